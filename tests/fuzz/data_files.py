"""Data files of every format that are changed anywhere, and what becomes of those that are read."""

import gzip
import io
import os
import random
import re
import sys
import zipfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fuzz import corpus
from fuzz.judging import FailedAttackError, attempt, in_proportion
from marginmf.datasets import read_features, read_labels, read_pairs, read_ratings
from marginmf.datasets.known_formats import READERS
from marginmf.labels import RidgeEmbedding
from marginmf.ratings import BiasOnly

TITLE = "Mutated data files"
N = 10_000

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "datasets"), str(TESTS / "datasets" / "labels")]

import label_files  # noqa: E402
import made_files  # noqa: E402

#: What reading may cost beside the file itself: 256 MiB, which any file may unpack to, become some
#: times as much where rows are Python objects.
MOST_BYTES, MOST_SECONDS = 1536 << 20, 20.0

ROWS: dict[str, list[Any]] = {
    "user": [user for user, _ in corpus.PAIRS[:60]],
    "item": [item for _, item in corpus.PAIRS[:60]],
    "rating": [float(star) for star in corpus.STARS[:60]],
    "timestamp": list(range(880_000_000, 880_000_060)),
}
NUMBERED = ROWS | {"user": list(range(60)), "item": [k % 7 for k in range(60)]}
FEATURES = {"user": ROWS["user"], "age": [20.0 + k % 9 for k in range(60)], "job": ["cook"] * 60}
WORDS = (
    *("", " ", "0", "-1", "1e400", "-1e400", "nan", "inf", "1e100", "1e101", "5e-324", "0x10"),
    *("9" * 25, "9" * 5_000, "1_0", "٣", "\x00", "\x1b]0;x\x07", "=1+1", '"', "'", "\\", "{", "}"),
    *("[" * 2_000, "a" * 70_000, "\ufeff", "\r", "\t", "::", "%", "@data", "#", "?", "1:1", "-1:1"),
    *("999999999:1", "1:1:1", "NULL", "true", "null", "<!DOCTYPE a>", "&x;", "\udc80"),
)


class Sample(NamedTuple):
    """An honest file: its ending, its content, how that becomes a file, and what reads it."""

    ending: str
    content: bytes
    pack: Callable[[bytes], bytes]
    read: Callable[[Path], Any]


def plain(content: bytes) -> bytes:
    """Return what is not packed."""
    return content


def zipped(name: str, *others: tuple[str, bytes]) -> Callable[[bytes], bytes]:
    """Return what packs a file into an archive with others."""

    def pack(content: bytes) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, content)
            for other, rest in others:
                archive.writestr(other, rest)
        return buffer.getvalue()

    return pack


@cache
def samples(folder: Path) -> tuple[Sample, ...]:
    """Return one honest file of each format and use."""
    csv, tsv = made_files.as_csv(ROWS), made_files.as_csv(ROWS, "\t")
    table = label_files.TABLE
    made = [
        *(Sample(end, make(ROWS), plain, read_ratings) for end, make in made_files.KINDS.items()),
        *(
            Sample(end, make(NUMBERED), plain, read_ratings)
            for end, make in made_files.KINDS.items()
        ),
        *(Sample(end, make(ROWS), plain, read_pairs) for end, make in made_files.KINDS.items()),
        *(
            Sample(end, make(FEATURES), plain, read_features)
            for end, make in made_files.KINDS.items()
        ),
        Sample("csv", csv.replace(b"\n", b"\r\n"), plain, read_ratings),
        Sample("csv", csv.decode().encode("utf-16"), plain, read_ratings),
        Sample("csv.gz", csv, gzip.compress, read_ratings),
        Sample("jsonl.gz", made_files.as_json(ROWS), gzip.compress, read_ratings),
        Sample("zip", csv, zipped("ratings.csv"), read_ratings),
        Sample(
            "zip", tsv, zipped("ml/ratings.csv", ("ml/movies.csv", b"a,b\n1,2\n")), read_ratings
        ),
    ]
    for name in ("movielens-100k", "movielens-1m", "movielens-10m", "movielens-csv"):
        made.append(_movielens(name))
    made.append(Sample("dat", b"1 \t5\t-9.5\n1 \t7\t3.25\n2 \t5\t0\n", plain, READERS["jester"]))
    books = b'"User-ID";"ISBN";"Book-Rating"\n"1";"034545104X";"0"\n"2";"0155061224";"5"\n'
    made.append(Sample("csv", books, plain, READERS["book-crossing"]))
    xml = label_files.as_xml(table.label_names)
    named = partial(read_labels, labels=list(table.label_names))
    made += [Sample(end, make(table), plain, named) for end, make in label_files.NAMED.items()]
    arff = label_files.as_arff(table)
    made += [
        Sample("arff.gz", arff, gzip.compress, named),
        Sample("csv.gz", label_files.as_text(table), gzip.compress, named),
        Sample("zip", arff, zipped("s.arff", ("s.xml", xml)), read_labels),
        Sample("zip", xml, zipped("s.xml", ("s.arff", arff)), read_labels),
        Sample(
            "zip", xml.decode().encode("utf-16"), zipped("s.xml", ("s.arff", arff)), read_labels
        ),
        Sample("svm", label_files.as_svmlight(table), plain, read_labels),
        Sample("txt", label_files.as_extreme(table), plain, read_labels),
        Sample("npz", label_files.as_npz(table, folder), plain, read_labels),
        *(Sample("mat", content, plain, read_labels) for content in _matlab(table)),
    ]
    return tuple(made)


def _movielens(name: str) -> Sample:
    separator, form = {"100k": ("\t", "u.data"), "csv": (",", "ratings.csv")}.get(
        name.partition("-")[2], ("::", "ratings.dat")
    )
    rows = [
        f"{k % 9 + 1}{separator}{k % 7 + 1}{separator}{k % 5 + 1}{separator}88{k}"
        for k in range(50)
    ]
    others = {
        "u.data": [("ml/u.item", f"1|Toy Story (1995)|01-Jan-1995||url{'|0' * 18}|1\n")],
        "ratings.csv": [("ml/movies.csv", "movieId,title,genres\n1,Toy Story (1995),Animation\n")],
        "ratings.dat": [
            ("ml/movies.dat", "1::Toy Story (1995)::Animation\n"),
            ("ml/users.dat", "1::F::1::10::48067\n"),
        ],
    }[form]
    first = ["userId,movieId,rating,timestamp"] if form == "ratings.csv" else []
    content = "\n".join([*first, *rows, ""]).encode()
    packed = zipped(f"ml/{form}", *((other, text.encode()) for other, text in others))
    return Sample("zip", content, packed, READERS[name])


def _matlab(table: Any) -> list[bytes]:
    from scipy.io import savemat
    from scipy.sparse import csc_matrix

    made = []
    for compressed in (False, True):
        for form in (np.asarray, csc_matrix):
            buffer = io.BytesIO()
            Y = label_files.dense(table.Y)
            arrays = {"data": form(table.X), "target": form(Y.astype(float))}
            savemat(buffer, arrays, do_compression=compressed)
            made.append(buffer.getvalue())
    return made


def prepare(folder: Path) -> None:
    """Check that every honest file is read: what cannot be read honestly cannot be attacked."""
    for k, sample in enumerate(samples(folder)):
        path = folder / f"honest-{k}.{sample.ending}"
        path.write_bytes(sample.pack(sample.content))
        sample.read(path)
        path.unlink()


def attack(seed: int, number: int, folder: Path) -> str:
    """Change a data file, read it, and learn from what was read."""
    rng = random.Random(f"{seed} {number}")
    chosen = samples(folder)
    sample = rng.choice(chosen)
    content = sample.content
    inside = rng.random() < 0.7
    if inside and rng.random() < 0.15:
        columns = strange_columns(rng)
        if sample.ending in made_files.COLUMNAR and columns is not None:
            content, inside = made_files.COLUMNAR[sample.ending](columns), False
    content = sample.pack(changed(rng, content)) if inside else changed(rng, sample.pack(content))
    path = folder / f"attacked-{os.getpid()}.{sample.ending}"
    path.write_bytes(content)
    try:
        return read_and_learn(sample.read, path, rng.random() < 0.25)
    finally:
        path.unlink()


def read_and_learn(read: Callable[[Path], Any], path: Path, learn: bool) -> str:
    """Read a file; what was read must be whole, and must be learned from or be refused."""
    with in_proportion(path.stat().st_size, more=MOST_BYTES, seconds=MOST_SECONDS):
        table, refused = attempt(read, path)
    if refused:
        return "refused"
    if hasattr(table, "Y"):
        check_labels(table)
        if learn:
            model, refused = attempt(RidgeEmbedding(1.0).fit, table.X, table.Y)
            attempt(model.predict, table.X) if model is not None else None
    elif hasattr(table, "ratings"):
        check_ratings(table)
        if learn:
            model, refused = attempt(BiasOnly(calibrate=False).fit, table)
            attempt(model.predict, table.pairs) if model is not None else None
    return "read and learned from" if learn and not refused else "read"


def check_ratings(table: Any) -> None:
    """Fail unless a table of ratings is whole."""
    n = len(table.ratings)
    if len(table.users) != n or len(table.items) != n or not np.isfinite(table.ratings).all():
        raise FailedAttackError("a table of ratings that is not whole")


def check_labels(table: Any) -> None:
    """Fail unless a table of labels is whole."""
    for name, matrix in (("X", table.X), ("Y", table.Y)):
        if matrix.shape[0] != table.n_samples:
            raise FailedAttackError(f"{name} has other rows than samples")
        values = matrix.data if hasattr(matrix, "indptr") else matrix
        if not np.isfinite(values).all():
            raise FailedAttackError(f"{name} has numbers that are not finite")
        if hasattr(matrix, "indptr"):
            inside = matrix.indices.size == 0 or (
                matrix.indices.min() >= 0 and matrix.indices.max() < matrix.shape[1]
            )
            if not inside or matrix.indptr[-1] != len(matrix.indices):
                raise FailedAttackError(f"{name} has entries outside of it")
    if len(table.label_names) != table.n_labels:
        raise FailedAttackError("labels without names")


# --- changes ------------------------------------------------------------------------------------


def changed(rng: random.Random, content: bytes) -> bytes:
    """Change a file in some places."""
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        content = _changed(rng, content)
    return content


def _changed(rng: random.Random, content: bytes) -> bytes:
    made, n = bytearray(content), max(1, len(content))
    place, length = rng.randrange(n), rng.choice((1, 2, 8, n // 4 + 1))
    match rng.randrange(10):
        case 0 | 1:
            for _ in range(rng.choice((1, 1, 3, 10)) if content else 0):
                made[rng.randrange(n)] = rng.randrange(256)
        case 2:
            del made[place:]
        case 3:
            del made[place : place + length]
        case 4:
            made[place:place] = made[place : place + length] * rng.choice((1, 1, 2, 50))
        case 5:
            made[place:place] = rng.choice(WORDS).encode("utf-8", "surrogatepass")
        case 6:
            made[place:place] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 4, 100))))
        case 7:
            other = rng.randrange(n)
            made[place : place + length], made[other : other + length] = (
                made[other : other + length],
                made[place : place + length],
            )
        case _:
            word = rng.choice(WORDS).encode("utf-8", "surrogatepass")
            words = list(re.finditer(rb"[\w.+-]+", content))
            if words:
                one = rng.choice(words)
                made[one.start() : one.end()] = word
    return bytes(made)


def strange_columns(rng: random.Random) -> Any:
    """Return a table whose columns have types that nobody expects."""
    n = 5
    strange = (
        [None] * n,
        [[1, 2]] * n,
        [{"a": 1}] * n,
        [True, False, None, True, True],
        [b"\xff\x00"] * n,
        [float("nan")] * n,
        [float("inf")] * n,
        [1e300] * n,
        ["\x00"] * n,
        ["a" * 100_000] * n,
        pa.array([2**64 - 1] * n, pa.uint64()),
        pa.array([1] * n, pa.timestamp("ns")),
        pa.array([1] * n, pa.duration("s")),
        pa.array([1] * n, pa.date64()),
        pa.array(["a", "b", None, "a", "b"]).dictionary_encode(),
        pa.array([1.5] * n, pa.float16() if hasattr(pa, "float16") else pa.float32()),
        pa.nulls(n),
        pa.array([1] * n, pa.decimal128(38, 0)),
    )
    names = ["user", "item", "rating", *rng.choice(((), ("timestamp",), ("a", "b", "p", "q")))]
    usual = {"user": list("abcde"), "item": list("vwxyz"), "rating": [1.0, 2.0, 3.0, 4.0, 5.0]}
    columns = {name: usual.get(name, [0.0, 1.0, 0.0, 1.0, 0.0]) for name in names}
    columns[rng.choice(names)] = rng.choice(strange)
    try:
        return pa.table(columns)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None
