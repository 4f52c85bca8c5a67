"""``-`` is standard input, wherever a command reads a table."""

import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from marginmf.labels import PLST

FIT = ("--model", "mmmf", "--reg", 1, "--factors", 2, "--max-iter", 5, "--out", "new.marginmf")


@pytest.fixture
def send(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Let bytes come through standard input."""
    return lambda data: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_ratings_plain_packed_and_columnar(run, send, ratings_file: Path, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import csv, parquet

    plain = ratings_file.read_bytes()
    columnar = pa.BufferOutputStream()
    parquet.write_table(csv.read_csv(ratings_file), columnar)
    wanted = run("info", ratings_file, "--json").out.replace(str(ratings_file), "standard input")
    wanted = wanted.replace(ratings_file.name, "standard input")
    for data in (plain, gzip.compress(plain), columnar.getvalue().to_pybytes()):
        send(data)
        assert run("info", "-", "--json").out == wanted


def test_a_model_is_fitted_to_what_comes(run, send, ratings_file: Path) -> None:
    send(ratings_file.read_bytes())
    outcome = run("fit", "-", *FIT)
    assert outcome.code == 0
    assert outcome.out.startswith("standard input: ")


def test_pairs_and_ids(run, send, model_file: Path) -> None:
    send(b"user,item\nu1,3\nu2,4\n")
    assert [line.split(",")[:2] for line in run("predict", model_file, "-").out.split()[1:]] == [
        ["u1", "3"],
        ["u2", "4"],
    ]
    send(b"u1\nu2\n")
    lists = run("recommend", model_file, "--users", "-", "-n", 1, "--json").out
    assert '"n_users": 2' in lists


def test_pairs_without_ratings(run, send) -> None:
    send(b"user,item\na,x\na,y\nb,x\n")
    outcome = run("fit", "-", "--positive-only", "--model", "popular", "--out", "new.marginmf")
    assert outcome.out.startswith("standard input: 3 pairs of 2 items by 2 users")


def test_labels(run, send) -> None:
    rows = [f"{k % 7},{k % 3},{k % 2}" for k in range(30)]
    data = "\n".join(["tempo,loud,tag_calm", *rows]).encode()
    send(data)
    quick = ("--model", "plst", "--decision", "sign", "--out", "l.marginmf")
    outcome = run("labels", "fit", "-", "--labels", "tag_*", *quick)
    assert outcome.out.startswith("standard input: 30 rows, 2 features, 1 labels")
    assert PLST.__name__ in outcome.out
    send(data)
    assert run("labels", "predict", "l.marginmf", "-").out.count("\n") == 31


@pytest.mark.parametrize("data", [b"", b"\n \n"])
def test_nothing_comes(run, send, model_file: Path, data: bytes) -> None:
    for command in (("info", "-"), ("fit", "-", *FIT), ("predict", model_file, "-")):
        send(data)
        outcome = run(*command)
        assert outcome.code == 2
        assert outcome.err.startswith("marginmf: Nothing came through standard input")


def test_a_terminal_is_not_waited_for(run, send, monkeypatch: pytest.MonkeyPatch) -> None:
    send(b"user,item,rating\n")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert "send the ratings through a pipe, or name a file" in run("info", "-").err
