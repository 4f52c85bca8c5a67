"""A few attacks of every kind, and that the sieve finds what it looks for."""

import sys

import pytest

from fuzz import planted
from fuzz.__main__ import run
from fuzz.kinds import module_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the sieve needs limits of memory")

#: How many attacks of each kind; `make fuzz` makes all.
FEW = {
    "models": 80,
    "data": 150,
    "checkpoints": 20,
    "targeted": 12,
    "kills": 3,
    "calls": 20,
    "numbers": 24,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return where honest models are, which several kinds begin with."""
    folder = tmp_path_factory.mktemp("models")
    module_of("models").prepare(folder)
    return folder


@pytest.mark.parametrize("kind", FEW)
def test_a_few_attacks_end_in_answers_or_sentences(kind, folder, tmp_path):
    if kind in ("data", "checkpoints", "kills", "numbers"):
        folder = tmp_path
        module_of(kind).prepare(folder)
    # With the kernels that all tests use: those with bounds checks take minutes to compile.
    done = run(kind, 1, range(FEW[kind]), folder, surroundings={})
    assert len(done) == FEW[kind]
    assert [each for each in done if each[1]["failed"]] == []


def test_the_sieve_finds_every_planted_fault(tmp_path):
    done = run("planted", 0, range(planted.N), tmp_path, surroundings={})
    found = [each["failed"] for _, each in done]
    linux = sys.platform == "linux"  # elsewhere, memory is not measured
    assert found == [True, True, linux, True, True, True, True, False]
    died, hangs, *_ = (each["outcome"] for _, each in done)
    assert died == "the process died with -11"
    assert hangs == "hangs"
