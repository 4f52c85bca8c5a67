"""The folder of a checkpoint: whose it is, what may be there, and that nothing else is touched."""

import errno
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import marginmf
from contracts import assert_same_fit, synthetic
from marginmf.checkpoints import Checkpoint
from marginmf.checkpoints import store as store_module
from marginmf.checkpoints.store import difference, digest, fingerprint, plain
from marginmf.losses import TwoLevelLoss, smooth_hinge
from marginmf.ratings import HMF, MMMF, Ratings
from marginmf.solvers import LBFGS, ConjugateGradient

PAIRS, RATINGS = synthetic((1, 2, 3, 4, 5))
FEW = {"n_factors": 4, "reg": 0.5, "random_state": 0, "max_iter": 12, "tol": 0.0}
FEW["calibrate"] = False


@pytest.fixture
def interrupted(path, interrupt_after):
    """Leave the checkpoint of an interrupted fit; return a maker of the same estimator."""
    with pytest.raises(KeyboardInterrupt):
        HMF(**FEW, callbacks=[interrupt_after(20)]).fit(PAIRS, RATINGS, checkpoint=path)
    return lambda **params: HMF(**FEW | params)


def contents(path):
    return {file.name: file.read_bytes() for file in path.iterdir()}


# --- another fit ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"reg": 2.0}, r"other parameters \(reg was 0\.5 and is 2\.0\)"),
        ({"reg": [1, 2, 3, 4]}, r"other parameters \(reg was 0\.5 and is \[1, 2, 3, 4\]\)"),
        ({"random_state": 1}, r"random_state was 0 and is 1"),
        ({"random_state": None}, r"random_state was 0 and is None"),
        ({"max_iter": 13, "tol": 0.1}, r"max_iter was 12 and is 13, tol was 0\.0 and is 0\.1"),
        ({"dtype": "float64"}, r"dtype was 'float32' and is 'float64'"),
        ({"solver": LBFGS(memory=7)}, r"solver was 'lbfgs' and is .*LBFGS"),
    ],
)
def test_other_parameters_are_refused(interrupted, path, params, sentence):
    before = contents(path)
    with pytest.raises(ValueError, match=sentence) as error:
        interrupted(**params).fit(PAIRS, RATINGS, checkpoint=path)
    assert "Remove it or choose another path" in str(error.value)
    assert str(path) in str(error.value)
    assert contents(path) == before


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda pairs, ratings: (pairs + np.array([1, 0]), ratings), r"users"),
        (lambda pairs, ratings: (pairs.astype(str).astype(object), ratings), r"users, items"),
        (lambda pairs, ratings: (pairs[:-1], ratings[:-1]), r"ratings per user, rated items"),
        (lambda pairs, ratings: (pairs, ratings * 2), r"levels"),
        (lambda pairs, ratings: (pairs, np.append(ratings[1:], ratings[0])), r"ratings"),
    ],
)
def test_other_data_is_refused(interrupted, path, change, parts):
    before = contents(path)
    with pytest.raises(ValueError, match=rf"other data \({parts}"):
        interrupted().fit(*change(PAIRS, RATINGS), checkpoint=path)
    assert contents(path) == before


def test_another_class_is_refused(interrupted, path):
    with pytest.raises(ValueError, match=r"another class \('marginmf\.ratings\.max_margin\.HMF'\)"):
        MMMF(**FEW).fit(PAIRS, RATINGS, checkpoint=path)


def test_another_version_is_refused(interrupted, path, monkeypatch):
    monkeypatch.setattr("marginmf.checkpoints.store.__version__", "99.0")
    sentence = rf"another version of marginmf \('{marginmf.__version__}', this is 99\.0\)"
    with pytest.raises(ValueError, match=sentence):
        interrupted().fit(PAIRS, RATINGS, checkpoint=path)


def test_the_same_data_in_another_form_is_the_same(interrupted, path):
    order = np.random.default_rng(0).permutation(len(PAIRS))
    data = Ratings.of([tuple(pair) for pair in PAIRS[order].tolist()], list(RATINGS[order]))
    resumed = interrupted(n_jobs=2, reg=np.float64(0.5)).fit(data, checkpoint=path)
    assert_same_fit(resumed, interrupted().fit(PAIRS, RATINGS))


# --- damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["fit", "stage-2", "stage-1"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:5],
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: content + b"!",
        lambda content: content.replace(b'"name', b'"nome'),
        lambda content: content.replace(b"checksum", b"chequesum"),
        lambda content: content[:-3] + bytes([content[-3] ^ 1]) + content[-2:],
        lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
        lambda content: bytes(len(content)),
    ],
)
def test_a_damaged_file_is_noticed(interrupted, path, which, damage):
    (file,) = path.glob(f"{which}-*")
    file.write_bytes(damage(file.read_bytes()))
    before = contents(path)
    with pytest.raises(ValueError, match=r"file .* is damaged .*Remove the folder") as error:
        interrupted().fit(PAIRS, RATINGS, checkpoint=path)
    assert str(file) in str(error.value)
    assert contents(path) == before


def test_a_file_in_the_place_of_another_is_noticed(interrupted, path):
    (first,), (second,) = path.glob("stage-2-*"), path.glob("stage-1-*")
    second.write_bytes(first.read_bytes())
    with pytest.raises(ValueError, match="it belongs elsewhere"):
        interrupted().fit(PAIRS, RATINGS, checkpoint=path)


# --- other things in the way ----------------------------------------------------------------------


def test_a_file_in_the_way_is_left_alone(path):
    path.write_text("thesis")
    with pytest.raises(ValueError, match=r"is a file\. A checkpoint is a folder of its own"):
        HMF(**FEW).fit(PAIRS, RATINGS, checkpoint=path)
    assert path.read_text() == "thesis"


def test_a_folder_of_something_else_is_left_alone(path):
    path.mkdir()
    (path / "thesis.tex").write_text("chapter 1")
    with pytest.raises(ValueError, match=r"other things in it, such as 'thesis\.tex'"):
        HMF(**FEW).fit(PAIRS, RATINGS, checkpoint=path)
    assert contents(path) == {"thesis.tex": b"chapter 1"}


def test_what_others_put_into_a_checkpoint_stays(interrupted, path):
    (path / "model.safetensors").write_bytes(b"mine")
    interrupted().fit(PAIRS, RATINGS, checkpoint=path)
    assert contents(path) == {"model.safetensors": b"mine"}


def test_an_empty_folder_is_taken(path):
    path.mkdir()
    (path / ".fit-da4270e3.safetensors.0123456789ab.part").write_bytes(b"killed at the very start")
    HMF(**FEW).fit(PAIRS, RATINGS, checkpoint=str(path))
    assert not path.exists()


def test_the_folder_above_must_exist(path):
    with pytest.raises(FileNotFoundError, match=r"folder cannot be made .*checkpoint/inner"):
        HMF(**FEW).fit(PAIRS, RATINGS, checkpoint=path / "inner")
    assert not path.exists()


@pytest.mark.parametrize("checkpoint", [3, b"bytes", ["list"], True])
def test_what_is_no_path_is_refused(checkpoint):
    with pytest.raises(ValueError, match="must be a path, a Checkpoint or None"):
        HMF(**FEW).fit(PAIRS, RATINGS, checkpoint=checkpoint)


@pytest.mark.parametrize("seconds", [-1, "5", None, float("nan")])
def test_seconds_must_be_a_number(path, seconds):
    with pytest.raises(ValueError, match=r"seconds=.* must be a number >= 0"):
        Checkpoint(path, seconds=seconds)


def test_two_fits_at_once_cannot_share_a_checkpoint(path):
    def fit_again(progress):
        with pytest.raises(BlockingIOError, match="in use by another fit"):
            HMF(**FEW).fit(PAIRS, RATINGS, checkpoint=path)
        return True

    HMF(**FEW, callbacks=[fit_again]).fit(PAIRS, RATINGS, checkpoint=path)
    assert not path.exists()


def test_file_systems_without_locks_will_do(path, monkeypatch):
    def flock(handle, flags):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    HMF(**FEW).fit(PAIRS, RATINGS, checkpoint=path)


def test_systems_without_locks_will_do(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    HMF(**FEW).fit(PAIRS, RATINGS, checkpoint=path)


# --- what cannot be written -----------------------------------------------------------------------


def test_a_folder_that_cannot_be_made_is_an_error_before_the_fit(path, monkeypatch):
    def mkdir(self, *args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.mkdir", mkdir)
    seen = []
    with pytest.raises(PermissionError, match=r"folder cannot be made \(Permission denied\)"):
        HMF(**FEW, callbacks=[seen.append]).fit(PAIRS, RATINGS, checkpoint=path)
    assert seen == []


def test_a_folder_that_cannot_be_written_is_an_error_before_the_fit(path, monkeypatch):
    path.mkdir()
    real_open = open

    def refusing_open(name, mode="r", *rest, **more):
        if str(name).startswith(str(path)) and mode != "r":
            raise PermissionError(errno.EACCES, "Permission denied", str(name))
        return real_open(name, mode, *rest, **more)

    # As for a folder without the right to write, which root always has.
    monkeypatch.setattr("builtins.open", refusing_open)
    seen = []
    with pytest.raises(PermissionError, match="You may not write there: change the permissions"):
        HMF(**FEW, callbacks=[seen.append]).fit(PAIRS, RATINGS, checkpoint=path)
    assert seen == []


FULL_DISK = """
import resource, sys
import numpy as np
from marginmf.checkpoints import Checkpoint
from marginmf.ratings import HMF

def fill_the_disk(progress):
    if progress.record.iteration == 5:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))

pairs, ratings = (np.array(eval(text)) for text in sys.argv[2:])
few = {"n_factors": 4, "reg": 0.5, "random_state": 0, "max_iter": 12, "tol": 0.0}
model = HMF(**few, calibrate=False, callbacks=[fill_the_disk])
model.fit(pairs, ratings, checkpoint=Checkpoint(sys.argv[1], seconds=0))
"""


def test_a_full_disk_is_a_sentence_and_what_was_written_before_is_whole(path):
    arguments = [str(path), str(PAIRS.tolist()), str(RATINGS.tolist())]
    command = [sys.executable, "-c", FULL_DISK, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "The checkpoint could not be written, but what was" in run.stderr
    assert not list(path.glob(".*.part"))
    seen = []
    resumed = HMF(**FEW, callbacks=[seen.append]).fit(PAIRS, RATINGS, checkpoint=path)
    assert seen[0].record.iteration == 5
    assert_same_fit(resumed, HMF(**FEW).fit(PAIRS, RATINGS))


def test_an_interruption_is_not_hidden_by_a_checkpoint_that_cannot_be_written(path, monkeypatch):
    def full(path, name, content, vectors):
        raise OSError(errno.ENOSPC, "No space left on device")

    def interrupt(progress):
        if progress.record.iteration == 3:
            monkeypatch.setattr(store_module, "write_content", full)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as error:
        HMF(**FEW, callbacks=[interrupt]).fit(PAIRS, RATINGS, checkpoint=path)
    assert "No space left on device" in error.value.__notes__[0]


# --- what is left behind --------------------------------------------------------------------------


def test_a_fit_that_fails_before_it_began_leaves_nothing(path):
    with pytest.raises(ValueError, match="cannot seed a generator"):
        HMF(**FEW | {"random_state": "dice"}).fit(PAIRS, RATINGS, checkpoint=path)
    assert not path.exists()


def test_data_and_parameters_are_checked_before_the_folder_is_made(path):
    with pytest.raises(ValueError, match="n_factors=0"):
        HMF(**FEW | {"n_factors": 0}).fit(PAIRS, RATINGS, checkpoint=path)
    assert not path.exists()


def test_a_checkpoint_that_cannot_be_removed_does_not_spoil_the_fit(path, monkeypatch):
    def unlink(self, missing_ok=False):
        raise PermissionError(errno.EPERM, "Operation not permitted", str(self))

    monkeypatch.setattr("pathlib.Path.unlink", unlink)
    with pytest.warns(UserWarning, match="could not be removed .*remove it by hand"):
        model = HMF(**FEW).fit(PAIRS, RATINGS, checkpoint=path)
    assert_same_fit(model, HMF(**FEW).fit(PAIRS, RATINGS))


# --- is it the same fit? -------------------------------------------------------------------------

ARRAYS = {"x": np.arange(4.0)}


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
        ({"reg": np.nan, "tol": -np.inf}, {"reg": np.nan, "tol": -np.inf}),
        ({"solver": LBFGS()}, {"solver": LBFGS(memory=5)}),
        ({"loss": smooth_hinge}, {"loss": smooth_hinge}),
        ({"loss": exponential(1.0)}, {"loss": exponential(1.0)}),
        ({"random_state": np.random.default_rng(1)}, {"random_state": np.random.default_rng(2)}),
    ],
)
def test_the_same_fit(a, b):
    stored = json.loads(json.dumps(fingerprint(HMF(**a), ARRAYS)))
    assert difference(stored, fingerprint(HMF(**b), ARRAYS)) is None


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"reg": 1.0}, {"reg": 1.5}),
        ({"reg": np.inf}, {"reg": -np.inf}),
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
    found = difference(fingerprint(HMF(**a), ARRAYS), fingerprint(HMF(**b), ARRAYS))
    assert found.startswith(f"other parameters ({next(iter(a))} was ")
    assert len(found) < 200


def test_both_parameters_and_data_are_named():
    stored = fingerprint(HMF(reg=1), ARRAYS)
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


def test_a_fit_with_more_data_is_another_fit(path, interrupt_after):
    features = {"user": np.arange(40), "age": np.arange(40) % 7}
    with pytest.raises(KeyboardInterrupt):
        MMMF(**FEW, callbacks=[interrupt_after(3)]).fit(
            PAIRS, RATINGS, user_features=pd.DataFrame(features), checkpoint=path
        )
    with pytest.raises(ValueError, match=r"other data .*user"):
        MMMF(**FEW).fit(PAIRS, RATINGS, checkpoint=path)


def test_functions_differ_by_their_defaults():
    assert plain(lambda z, k=2: k * z) != plain(lambda z, k=3: k * z)
