"""Fingerprints are the same for the same fit in every process, and differ otherwise."""

import json
import subprocess
import sys

import numpy as np
import pytest

from marginmf.checkpoints.store import difference, digest, fingerprint, plain
from marginmf.losses import TwoLevelLoss, smooth_hinge
from marginmf.ratings import HMF, MMMF
from marginmf.solvers import LBFGS, ConjugateGradient

DATA = {"x": np.arange(4.0)}


def exponential(slope):
    def value(margin):
        return np.exp(-slope * margin)

    return TwoLevelLoss("exponential", value, value)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({}, {"n_jobs": 2, "verbose": 1, "callbacks": [print]}),
        ({"reg": [1, 2.0]}, {"reg": np.array([1.0, 2.0])}),
        ({"reg": 1}, {"reg": np.float32(1)}),
        ({"solver": LBFGS()}, {"solver": LBFGS(memory=5)}),
        ({"loss": smooth_hinge}, {"loss": smooth_hinge}),
        ({"loss": exponential(1.0)}, {"loss": exponential(1.0)}),
        ({"random_state": np.random.default_rng(1)}, {"random_state": np.random.default_rng(2)}),
    ],
)
def test_the_same_fit(a, b):
    stored = json.loads(json.dumps(fingerprint(HMF(**a), DATA)))
    assert difference(stored, fingerprint(HMF(**b), DATA)) is None


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"reg": 1.0}, {"reg": 1.5}),
        ({"solver": LBFGS()}, {"solver": LBFGS(memory=1)}),
        ({"solver": LBFGS()}, {"solver": ConjugateGradient()}),
        ({"random_state": np.random.default_rng(1)}, {"random_state": 1}),
        ({"random_state": None}, {"random_state": 0}),
        ({"loss": exponential(1.0)}, {"loss": exponential(2.0)}),
        ({"loss": lambda z: z + 1}, {"loss": lambda z: z + 2}),
        ({"loss": lambda z: np.exp(z)}, {"loss": lambda z: np.log(z)}),
        ({"loss": {"inner": MMMF(reg=1)}}, {"loss": {"inner": MMMF(reg=2)}}),
    ],
)
def test_other_parameters(a, b):
    found = difference(fingerprint(HMF(**a), DATA), fingerprint(HMF(**b), DATA))
    assert found.startswith(f"other parameters ({next(iter(a))} was ")
    assert len(found) < 200


def test_both_parameters_and_data_are_named():
    stored = fingerprint(HMF(reg=1), DATA)
    assert difference(stored, fingerprint(HMF(reg=2), {"x": np.arange(5.0)})) == (
        "other parameters (reg was 1 and is 2) and other data (x)"
    )


@pytest.mark.parametrize(
    "array",
    [
        np.arange(4),
        np.arange(4.0).astype(np.float32),
        np.arange(4.0).reshape(2, 2),
        np.array(["0", "1"], object),
        np.array([0, "1"], object),
        np.array(["0, '1'"], object),
        np.array([("a", 1), None], object),
    ],
)
def test_digests_tell_values_types_and_shapes_apart(array):
    others = [np.arange(4.0), np.array(["0", "2"], object), np.array([0, 1], object)]
    assert digest(array) == digest(array.copy())
    assert digest(array) not in map(digest, others)


def test_fingerprints_do_not_depend_on_the_process():
    script = (
        "import json, numpy as np\n"
        "from marginmf.checkpoints.store import digest, plain\n"
        "from marginmf.losses import smooth_hinge\n"
        "from marginmf.solvers import LBFGS\n"
        "print(json.dumps([plain([smooth_hinge, LBFGS()]), digest(np.array(['a', 1], object))]))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    expected = [plain([smooth_hinge, LBFGS()]), digest(np.array(["a", 1], object))]
    assert json.loads(run.stdout) == expected
