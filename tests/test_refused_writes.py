"""Where a system refuses to write, the message names the file and says what to do."""

import errno
import os
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from marginmf import protocols, ratings
from marginmf._utils import files
from marginmf._utils.files import atomic_write, check_destination, named
from marginmf.datasets import LabelsTable, RatingsTable, write_columns
from marginmf.datasets.files.formats import BY_ENDING
from marginmf.datasets.labels.arrays import write_labels_npz
from marginmf.datasets.table import write_npz
from marginmf.ratings import HMF, BiasOnly

RNG = np.random.default_rng(0)
PAIRS = np.array([(user, item) for user in range(30) for item in range(20)])
RATINGS = RNG.integers(1, 6, len(PAIRS)).astype(float)
NOISE = {"user": RNG.integers(0, 10**9, 4000), "score": RNG.random(4000)}
MODEL = BiasOnly(reg=0.1).fit(PAIRS, RATINGS)
FEW = {"n_factors": 2, "reg": 1.0, "max_iter": 5, "random_state": 0, "calibrate": False}


def write_table(path):
    write_npz(RatingsTable("t", PAIRS[:, 0], PAIRS[:, 1], RATINGS), path)


def write_label_table(path):
    X, Y = RNG.random((40, 30)), RNG.integers(0, 2, (40, 5))
    write_labels_npz(LabelsTable("t", X, Y), path)


def compare(path):
    models = {"mean": BiasOnly(reg=0.1)}
    splits = protocols.HoldOut(random_state=0)
    protocols.compare((PAIRS, RATINGS), models, splits, checkpoint=path)


def fit(path):
    HMF(**FEW).fit(PAIRS, RATINGS, checkpoint=path)


WRITERS = {
    "m.marginmf": MODEL.save,
    "ratings.npz": write_table,
    "labels.npz": write_label_table,
    "results.jsonl": compare,
    "checkpoint": fit,
    "t.csv.gz": lambda path: write_columns(path, NOISE),
    **{f"t{ending}": lambda path: write_columns(path, NOISE) for ending in BY_ENDING},
}


@contextmanager
def limited(n_bytes):
    """Let no file of this process grow beyond that."""
    resource = pytest.importorskip("resource", reason="this system has no limits on files")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_may_not_grow_is_named_and_what_was_there_stays(name, tmp_path):
    path = tmp_path / name
    with pytest.raises(OSError, match="larger than is allowed there") as caught, limited(300):
        WRITERS[name](path)
    assert caught.value.errno == errno.EFBIG
    assert str(tmp_path) in str(caught.value)
    assert ".part" not in str(caught.value)
    assert not list(tmp_path.rglob("*.part"))
    assert not [one for one in tmp_path.rglob("*") if one.is_file() and one.suffix != ".jsonl"]
    if path.suffix in (".csv", ".npz", ".marginmf"):
        path.write_bytes(b"before")
        with pytest.raises(OSError, match=name), limited(300):
            WRITERS[name](path)
        assert path.read_bytes() == b"before"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_full_device_is_named(kind):
    with pytest.raises(OSError, match=r"The disk is full: make room on it.*/dev/full"):
        write_columns("/dev/full", NOISE, kind=kind)


@pytest.mark.parametrize("name", files.ADVICE)
@pytest.mark.parametrize("step", ["open", "write"])
def test_each_reason_says_what_to_do(name, step, tmp_path, monkeypatch):
    code = getattr(errno, name, None)
    if code is None:
        pytest.skip(f"this system has no {name}")
    path, opened = tmp_path / "m.marginmf", os.open

    def refuse(target, *rest, **more):
        if str(target).endswith(".part"):
            raise OSError(code, "no", target)
        return opened(target, *rest, **more)

    def write():
        if step == "open":
            monkeypatch.setattr(os, "open", refuse)
            MODEL.save(path)
        with atomic_write(path):
            raise OSError(code, "no")

    with pytest.raises(OSError, match=r"m\.marginmf") as caught:
        write()
    assert (caught.value.errno, caught.value.strerror) == (code, files.ADVICE[name])
    assert not list(tmp_path.iterdir())


def test_an_error_about_another_file_keeps_its_words(tmp_path):
    with pytest.raises(PermissionError, match="not yours"), named(tmp_path / "mine"):
        raise PermissionError(errno.EACCES, "not yours", "elsewhere")


LONG = "n" * 5000


@pytest.mark.parametrize("name", [*WRITERS])
@pytest.mark.parametrize("fault", ["loop", "null", "long"])
def test_names_that_no_file_can_have_are_refused_before_the_work(name, fault, tmp_path):
    if fault == "loop":
        (tmp_path / name).symlink_to(name)
    path = tmp_path / {"loop": name, "null": f"a\0{name}", "long": f"{LONG}{name}"}[fault]
    sentence = {
        "loop": "links lead in a circle: name the file itself",
        "null": "has the character NUL in it: leave it out",
        "long": "name is too long: give a shorter one",
    }[fault]
    with pytest.raises((OSError, ValueError), match=sentence) as caught:
        WRITERS[name](path)
    assert len(str(caught.value)) < 300
    assert [one.name for one in tmp_path.iterdir()] == ([name] if fault == "loop" else [])


@pytest.mark.parametrize("name", ["\0", LONG])
def test_a_destination_is_checked_at_once(name, tmp_path):
    with pytest.raises((OSError, ValueError), match=r"NUL|too long"):
        check_destination(tmp_path / name)
    with pytest.raises((OSError, ValueError), match=r"NUL|too long"):
        ratings.BiasOnly(reg=0.1).fit(PAIRS, RATINGS).save(tmp_path / name)
