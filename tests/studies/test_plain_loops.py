"""The plain C loops do what our gradient does: a roofline of other work would prove nothing."""

import shutil

import numpy as np
import pytest

from marginmf.backends import get_backend
from marginmf.ratings import Ratings
from marginmf.ratings.objective import FactorObjective, Parameters
from studies.peers.roofline_kernels import ROW_LOSSES, Loops, NoCompiler, PlainGradient


@pytest.mark.parametrize("form", ["one_pass", "three_passes"])
@pytest.mark.parametrize("known", [False, True])
def test_plain_loops_and_our_gradient_agree(form: str, known: bool) -> None:
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        with pytest.raises(NoCompiler, match="no C compiler"):
            Loops.compiled()
        return
    generator = np.random.default_rng(0)
    pairs = np.argwhere(generator.random((20, 30)) < 0.4)
    data = Ratings.of(pairs, generator.integers(1, 5, len(pairs), endpoint=True))
    plain = PlainGradient(Loops.compiled(7 if known else 0).library, data, 7)
    # Scores of all sizes, so that every branch of the loss is taken.
    plain.U *= 10
    plain.V *= 10
    getattr(plain, form)()

    point = Parameters(plain.U, plain.V, np.empty((data.n_users, 0)))
    for backend in map(get_backend, ("reference", "cpu")):
        spec, shape = ROW_LOSSES["HMF"](data.n_levels), (data.n_items, 7)
        objective = FactorObjective(backend, backend.place(data, spec, 0.0, shape, np.float32))
        _, gradient = objective(objective.join(point))
        users, items, *_ = objective.split(gradient)
        np.testing.assert_allclose(plain.by_users, users, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(plain.by_items, items, rtol=1e-3, atol=1e-4)
