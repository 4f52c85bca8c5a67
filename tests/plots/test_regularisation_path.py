"""The picture of a regularisation path."""

import pytest

from contracts import synthetic
from marginmf.plots import regularisation_path
from marginmf.ratings import HMF, MMMF


def test_one_line_and_one_ring_for_every_stage():
    model = HMF(3, random_state=0).fit(*synthetic((1, 2, 3, 4, 5)))
    ax = regularisation_path(model, title="HMF")
    curves, rings = ax.lines[::2], ax.lines[1::2]
    assert len(curves) == len(rings) == 4
    for path, curve, ring in zip(model.reg_path_, curves, rings, strict=True):
        assert curve.get_xdata().tolist() == path.regs.tolist()
        assert ring.get_xdata() == [path.best]
    assert ax.get_xscale() == "log"
    assert ax.get_title(loc="left") == "HMF"


def test_several_hold_outs_have_a_band():
    model = MMMF(3, random_state=0, holdouts=2).fit(*synthetic((1, 2, 3, 4, 5)))
    ax = regularisation_path(model)
    assert len(ax.collections) == 1
    assert ax.get_ylabel() == "mean absolute error on held-out ratings"


def test_a_given_reg_has_no_path():
    model = MMMF(3, 1.0, random_state=0).fit(*synthetic((1, 2, 3, 4, 5)))
    with pytest.raises(ValueError, match="fit it with reg='auto' first"):
        regularisation_path(model)
