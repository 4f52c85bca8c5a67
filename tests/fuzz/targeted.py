"""Files that were made with a purpose: to crash, to hang, to fill memory, to be believed."""

import gzip
import io
import json
import os
import random
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from fuzz import corpus, model_files
from fuzz.data_files import MOST_BYTES, MOST_SECONDS, check_labels, check_ratings
from fuzz.judging import FailedAttackError, attempt, in_proportion
from marginmf.datasets import read_features, read_labels, read_pairs, read_ratings
from tampering import ModelParts, every_node

# --- model files: each attack on every class ------------------------------------------------------


def _first_parameter(value: Any) -> Callable[[ModelParts], Any]:
    def change(parts: ModelParts) -> None:
        parts.params[next(iter(parts.params), "extra")] = value

    return change


def _every(kinds: Any, new: Callable[[Any], Any]) -> Callable[[ModelParts], Any]:
    """Return a change of all parameters of some types."""

    def change(parts: ModelParts) -> None:
        for container, key in every_node(parts.params, []):
            if type(container[key]) in kinds:
                container[key] = new(container[key])

    return change


def _every_float(number: float, place: Any = 0) -> Callable[[ModelParts], Any]:
    def change(parts: ModelParts) -> None:
        for array in parts.tensors.values():
            if array.dtype.kind == "f" and array.size:
                array.reshape(-1)[place] = number

    return change


def _every_code(number: int) -> Callable[[ModelParts], Any]:
    def change(parts: ModelParts) -> None:
        for array in parts.tensors.values():
            if array.dtype.kind in "iu" and array.size:
                array.reshape(-1)[-1] = np.array(number).astype(array.dtype)

    return change


def _many_arrays(parts: ModelParts) -> None:
    parts.tensors |= {f"x{k}": np.zeros(0, np.uint8) for k in range(50_000)}


def _doubling(parts: ModelParts) -> None:
    nodes: list[Any] = [{"object": ["LBFGS", {}]}]
    nodes += [{"object": ["LBFGS", {"memory": [{"same": k}] * 2}]} for k in range(60)]
    _first_parameter(nodes)(parts)


def _grid(parts: ModelParts) -> None:
    grid = {f"a{k}": list(range(10)) for k in range(12)}
    parts.params["param_grid"] = {"dict": grid}


def _many_ids(parts: ModelParts) -> None:
    name = next((name for name in ("users_", "items_") if name in parts.tensors), None)
    text = json.dumps(list(range(1_000_000)), separators=(",", ":")).encode()
    parts.tensors[name or next(iter(parts.tensors))] = np.frombuffer(text, np.uint8)


def _long_ids(parts: ModelParts) -> None:
    name = next((name for name in ("users_", "items_") if name in parts.tensors), None)
    text = json.dumps(["a" * 1_000_000, "b\0"]).encode()
    parts.tensors[name or next(iter(parts.tensors))] = np.frombuffer(text, np.uint8)


GENERATOR = {"generator": {"kind": "PCG64", "state": {"state": -1, "inc": 2}, "seeds": {}}}
WHOLE: dict[str, Callable[[ModelParts], Any]] = {
    "a grid of 10^12 candidates": _grid,
    "a number of 200,000 digits": _first_parameter({"int": "0x" + "f" * 200_000}),
    "300,000 empty lists": _first_parameter([[]] * 300_000),
    "300,000 empty objects": _first_parameter([{"dict": {}}] * 300_000),
    "a parameter of a million letters": lambda parts: parts.params.update({"a" * 1_000_000: 1}),
    "words of a million letters": _every((str,), lambda _: "b" * 1_000_000),
    "50,000 arrays": _many_arrays,
    "references that double": _doubling,
    "a forged generator": _first_parameter(GENERATOR),
    "all numbers times 10^7": _every((int,), lambda value: value * 10**7),
    "all numbers 0": _every((int, float), lambda _: 0),
    "all numbers -1": _every((int, float), lambda _: -1),
    "all numbers true": _every((int, float), lambda _: True),
    "all numbers NaN": _every((float,), lambda _: {"float": "7ff8000000000000"}),
    "all numbers lists": _every((int, float), lambda _: [[1, [2]]]),
    "a NaN in every array": _every_float(np.nan),
    "an infinity in every array": _every_float(np.inf),
    "arrays of 1e308": _every_float(1e308, slice(None)),
    "arrays of zeros": _every_float(0.0, slice(None)),
    "codes of -1": _every_code(-1),
    "codes of 2^31 - 1": _every_code(2**31 - 1),
    "a million ids": _many_ids,
    "ids of a million letters": _long_ids,
}


def _less(array: Any, axis: int) -> Any:
    return np.delete(array, -1, axis) if array.shape[axis] else array


#: Changes of one array at a time, each made with every array of a model.
OF_AN_ARRAY: dict[str, Callable[[Any], Any]] = {
    "every array without its last row": lambda array: _less(array, 0),
    "every array without its last column": lambda array: _less(array, -1),
    "every array twice": lambda array: np.concatenate([array, array]),
    "every array with another axis": lambda array: array[None],
    "every array turned": lambda array: array.T,
    "every array empty": lambda array: array[:0],
    "every array without columns": lambda array: array[..., :0],
    "every array of bytes": lambda array: array.astype(np.uint8),
}


def _attack_model(name: str, what: str, folder: Path) -> str:
    """Make one attack on the file of a model."""
    model_files.warm_up(folder)
    honest, path = model_files.whole(name, folder), folder / f"targeted-{os.getpid()}.marginmf"
    if what == "a document nested 100,000 deep":
        return _load(honest.copy(), path, document_text='{"model":' + "[" * 100_000)
    if what == "every class":
        for other in sorted({one.document["model"]["object"][0] for one in _all_parts(folder)}):
            parts = honest.copy()
            parts.document["model"]["object"][0] = other
            _load(parts, path)
        return "refused"
    if what in WHOLE:
        parts = honest.copy()
        WHOLE[what](parts)
        return _load(parts, path)
    outcomes = []
    for key in honest.tensors:
        parts = honest.copy()
        with np.errstate(all="ignore"):
            changed = OF_AN_ARRAY[what](parts.tensors[key]) if parts.tensors[key].ndim else None
        if changed is not None:
            parts.tensors[key] = np.ascontiguousarray(changed)
            outcomes.append(_load(parts, path))
    return max(outcomes, default="refused")


def _all_parts(folder: Path) -> list[ModelParts]:
    return [model_files.whole(name, folder) for name in corpus.NAMES]


def _load(parts: ModelParts, path: Path, **options: Any) -> str:
    parts.write(path, **options)
    try:
        return model_files.load_and_ask(path)
    finally:
        path.unlink()


MODEL_CASES = [
    (name, what)
    for name in corpus.NAMES
    for what in (*WHOLE, *OF_AN_ARRAY, "every class", "a document nested 100,000 deep")
]

# --- data files -----------------------------------------------------------------------------------

Write = Callable[[Path], Any]
Read = Callable[[Path], Any]
MEGABYTE = 1 << 20


def _bytes(content: bytes) -> Write:
    return lambda path: path.write_bytes(content)


def _packed_line(n: int, first: bytes = b"") -> Write:
    """Return what writes a gzip file of one line."""

    def write(path: Path) -> None:
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(first)
            for _ in range(n // MEGABYTE):
                file.write(b"1" * MEGABYTE)

    return write


def _zip(members: dict[str, bytes | int]) -> Write:
    """Return what writes an archive; a number stands for so many megabytes of zeros."""

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                with archive.open(name, "w") as file:
                    if isinstance(content, bytes):
                        file.write(content)
                    for _ in range(content if isinstance(content, int) else 0):
                        file.write(bytes(MEGABYTE))

    return write


def _header_of(shape: Any, dtype: str = "<f8") -> bytes:
    buffer = io.BytesIO()
    about = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, about)
    return buffer.getvalue()


def _npz(**arrays: Any) -> Write:
    return lambda path: np.savez(open(path, "wb"), **arrays)


def _mat(part: str, place: int, number: int) -> Write:
    """Return what writes a MATLAB file with one number of a sparse matrix changed."""

    def write(path: Path) -> None:
        from scipy.io import savemat
        from scipy.sparse import csc_matrix

        matrix, buffer = csc_matrix(np.arange(12.0).reshape(4, 3)), io.BytesIO()
        savemat(buffer, {"data": matrix, "target": np.eye(4)[:, :2]})
        # In its bytes, because SciPy itself crashes on writing such a matrix.
        honest = getattr(matrix, part).astype(np.int32)
        changed = honest.copy()
        changed[place] = number
        assert buffer.getvalue().count(honest.tobytes()) == 1
        path.write_bytes(buffer.getvalue().replace(honest.tobytes(), changed.tobytes()))

    return write


def _constant_column(rows: int) -> Write:
    def write(path: Path) -> None:
        one = pa.array(np.zeros(rows, np.int8)).cast(pa.int64())
        parquet.write_table(pa.table({"user": one, "item": one, "rating": one}), path)

    return write


def _symlink_loop(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


def _folder(path: Path) -> None:
    path.mkdir(exist_ok=True)


CSR = {"Y_data": [1], "Y_indices": [0], "Y_indptr": [0, 1], "Y_shape": [1, 1]}
CSR = {name: np.array(value) for name, value in CSR.items()}
DOCTYPE = (
    '<?xml version="1.0"{}?><!DOCTYPE a [<!ENTITY x "{}">]><labels><label name="&x;"/></labels>'
)
ARFF = b"@relation r\n@attribute a numeric\n@attribute b {0,1}\n@data\n"


def _data_cases() -> dict[str, tuple[str, Write, Read, bool]]:
    """Return each file's ending, what writes it, what reads it, and whether it must be refused."""
    two = partial(read_labels, labels=1)
    cases: dict[str, tuple[str, Write, Read, bool]] = {}

    def add(name: str, ending: str, write: Write, read: Read, refused: bool = True) -> None:
        cases[f"{name} ({ending}, {getattr(read, '__name__', 'read_labels')})"] = (
            *(ending, write, read, refused),
        )

    for number in (10**9, 2**31, 2**40, 10**18, 10**25):
        add(f"feature {number}", "svm", _bytes(f"0 {number}:1\n".encode()), read_labels)
        add(f"label {number}", "svm", _bytes(f"{number} 1:1\n".encode()), read_labels)
        add(f"{number} features", "txt", _bytes(f"1 {number} 3\n0 0:1\n".encode()), read_labels)
        add(f"{number} labels", "txt", _bytes(f"1 3 {number}\n0 0:1\n".encode()), read_labels)
        add(f"{number} samples", "txt", _bytes(f"{number} 3 3\n0 0:1\n".encode()), read_labels)
        add(f"index {number}", "arff", _bytes(ARFF + b"{%d 1}\n" % number), two)
        shape = {"Y_shape": np.array([1, min(number, 2**62)])}
        add(f"{number} labels", "npz", _npz(X=np.ones((1, 1)), **CSR | shape), read_labels)
        header = _header_of((number,))
        for member in ("X.npy", "Y_data.npy", "Y_shape.npy"):
            add(f"{member} of {number}", "npz", _zip({member: header}), read_labels)
        add(f"id {number}", "csv", _bytes(f"1,{number},5\n2,1,4\n".encode()), read_ratings, False)
    for index in (4, 5, 10**8, -1, -(2**31), 2**31 - 1):
        for place in (0, 5, -1):
            add(f"row {index} at {place}", "mat", _mat("indices", place, index), read_labels)
    for end in (-1, 12, 100, 2**31 - 1):
        for place in (0, 1, -1):
            add(f"end {end} at {place}", "mat", _mat("indptr", place, end), read_labels)
    for n in (32, 512):
        for ending, read in (
            *(("csv.gz", read_ratings), ("tsv.gz", read_ratings), ("jsonl.gz", read_ratings)),
            *(("csv.gz", read_pairs), ("csv.gz", read_features)),
            *(("csv.gz", two), ("arff.gz", two), ("svm.gz", read_labels)),
        ):
            first = ARFF if ending == "arff.gz" else b'{"user": "' if "json" in ending else b""
            add(f"a line of {n} MB", ending, _packed_line(n * MEGABYTE, first), read)
        quoted = _packed_line(n * MEGABYTE, b'user,item,rating\n1,2,3\n"')
        add(f"a quote that never ends, {n} MB", "csv.gz", quoted, read_ratings)
        add(f"{n} MB of zeros", "zip", _zip({"ratings.csv": n}), read_ratings)
        add(f"{n} MB of zeros", "zip", _zip({"s.arff": n, "s.xml": b"<labels/>"}), read_labels)
        add(f"{n} MB of zeros", "npz", _zip({"X.npy": n}), read_labels)
        claimed = _zip({"X.npy": n, "Y_data.npy": n})
        add(f"{2 * n} MB of zeros", "npz", claimed, read_labels)
    for n in (10**6, 10**7):
        add(f"{n} equal rows", "parquet", _constant_column(n), read_ratings, False)
    for encoding in ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32"):
        for said in ("", f' encoding="{encoding}"'):
            for entity in ("b", "b" * 100_000):
                xml = DOCTYPE.format(said, entity).encode(encoding)
                made = _zip({"s.arff": ARFF + b"1,0\n", "s.xml": xml})
                add(f"an entity of {len(entity)}, {encoding}{said}", "zip", made, read_labels)
    hostile = {
        "NUL": "a\0b",
        "a long id": "a" * 2_000_000,
        "an escape": "\x1b]52;c;YQ==\x07",
        "a formula": "=1+1",
        "digits": "9" * 10_000,
    }
    for what, word in hostile.items():
        rows = f"user,item,rating\n{word},x,5\nb,{word},3\n"
        for ending, separator in (("csv", ","), ("tsv", "\t"), ("dat", "::")):
            content = _bytes(rows.replace(",", separator).encode())
            refused = what in ("NUL", "a long id")
            add(what, ending, content, read_ratings, refused)
            add(what, ending, content, read_pairs, refused)
            add(what, ending, content, read_features, False)
        lines = [{"user": word, "item": "x", "rating": 5}, {"user": "b", "item": word, "rating": 3}]
        text = "".join(json.dumps(line) + "\n" for line in lines).encode()
        add(what, "jsonl", _bytes(text), read_ratings, refused)
    for rating in ("1e101", "-1e101", "1e308", "1e400", "nan", "inf", "9" * 400, "9" * 5_000):
        for ending in ("csv", "jsonl"):
            rows = f"user,item,rating\na,x,{rating}\nb,y,3\n".encode()
            if ending == "jsonl":
                rows = f'{{"user":1,"item":2,"rating":{rating}}}\n'.encode()
            add(f"rating {rating:.20}", ending, _bytes(rows), read_ratings)
        # Features that are finite, and too large, are refused by `fit`.
        must, label = not np.isfinite(float(rating)), f"feature {rating:.20}"
        add(label, "csv", _bytes(f"a,b\n{rating},1\n1,0\n".encode()), two, must)
        add(label, "svm", _bytes(f"1 1:{rating}\n".encode()), read_labels, must)
        add(label, "arff", _bytes(ARFF + f"{rating},1\n".encode()), two, must)
    for read in (read_ratings, read_pairs, read_features, read_labels):
        add("a symbolic link to itself", "csv", _symlink_loop, read)
        add("a folder", "csv", _folder, read)
        add("nothing", "csv", _bytes(b""), read)
        for depth in (10**3, 10**5, 10**6):
            for bracket in (b"[", b'{"a":'):
                content = b'{"user":' + bracket * depth
                add(f"depth {depth} of {bracket!r}", "jsonl", _bytes(content), read)
    return cases


DATA_CASES = _data_cases()
TITLE = "Files made with a purpose"
N = len(MODEL_CASES) + len(DATA_CASES)


def prepare(folder: Path) -> None:
    """Save the honest models."""
    corpus.save_all(folder)


def attack(seed: int, number: int, folder: Path) -> str:
    """Make one of the attacks, in an order that the seed decides."""
    order = list(range(N))
    random.Random(seed).shuffle(order)
    number = order[number]
    if number < len(MODEL_CASES):
        name, what = MODEL_CASES[number]
        try:
            return _attack_model(name, what, folder)
        except FailedAttackError as error:
            raise FailedAttackError(f"{name}, {what}: {error}") from None
    what = list(DATA_CASES)[number - len(MODEL_CASES)]
    ending, write, read, must = DATA_CASES[what]
    path = folder / f"targeted-{os.getpid()}.{ending}"
    try:
        write(path)
        with in_proportion(0, more=MOST_BYTES, seconds=MOST_SECONDS):
            table, refused = attempt(read, path)
        if must and not refused:
            raise FailedAttackError("was read, and should have been refused")
        if hasattr(table, "Y"):
            check_labels(table)
        elif hasattr(table, "ratings"):
            check_ratings(table)
        return "refused" if refused else "read"
    except FailedAttackError as error:
        raise FailedAttackError(f"{what}: {error}") from None
    finally:
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
