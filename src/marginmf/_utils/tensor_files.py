"""Files in the safetensors format that hold one JSON document, arrays, and a checksum of it all.

Eight bytes with the length of the header; the header, JSON that says where each tensor is; the
tensors, one after the other.  The checksum is that of the whole file with zeros in its own stead.
Written and read here and not by the safetensors library, which can read the files all the same:
arrays need no second copy in memory, and everything is checked before it is believed.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from marginmf._utils.files import atomic_write
from marginmf._utils.types import Array

#: The types of tensors by their names in the file.  All are little-endian, as the format says.
TENSOR_TYPES: dict[str, np.dtype[Any]] = {
    **{"BOOL": np.dtype("|b1"), "U8": np.dtype("|u1"), "I8": np.dtype("|i1")},
    **{f"{kind}{8 * n}": np.dtype(f"<{kind.lower()}{n}") for n in (2, 4, 8) for kind in "UIF"},
}
TYPE_NAMES = {dtype.str: name for name, dtype in TENSOR_TYPES.items()}

#: Headers are some thousand bytes; one of more than this is not ours.
MAX_HEADER = 1 << 25
#: A file may take this many times its size in memory, and this many bytes more.
TIMES, BYTES_MORE = 3, 44_000_000
#: It may hold this many values beside its arrays, and one more for this many bytes of the file.
VALUES, BYTES_PER_VALUE = 5 << 16, 128
#: The text of a header, the description in it, what that holds, and how messages would show it.
COPIES = 3
#: What a value of JSON takes: an empty list has a separator on either side.
_BYTES_PER_SEPARATOR = 72
_DIGEST_BYTES = 32
_NO_CHECKSUM = "0" * (2 * _DIGEST_BYTES)
_CHECKSUM = re.compile(f"[0-9a-f]{{{2 * _DIGEST_BYTES}}}")
#: What the header says of a tensor.
_FIELDS = ("dtype", "shape", "data_offsets")
#: How files begin that are often mistaken for ours.
_FOREIGN = {
    b"PK": "a zip archive, as .npz files are",
    b"\x80": "a Python pickle",
    b"\x1f\x8b": "a gzip file",
    b"\x93NUMPY": "a NumPy array file",
    b"\x89HDF": "an HDF5 file",
    b"PAR1": "a Parquet file",
}


class InvalidFileError(ValueError):
    """What is wrong with a file, in words that follow its name; it may be malicious."""


class Allowance:
    """What may still be taken for one file: memory, and values, which take time.

    Loading must cost in proportion to the file, whatever it holds.  So what takes more memory than
    it has bytes is asked for here before it is made.

    >>> Allowance(9000).take(1 << 40)
    Traceback (most recent call last):
        ...
    marginmf._utils.tensor_files.InvalidFileError: it would take more memory than 9,000 bytes may
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._n_bytes = TIMES * size + BYTES_MORE
        self._n_values = VALUES + size // BYTES_PER_VALUE

    def take(self, n_bytes: int) -> None:
        """Ask for memory beside the bytes that were read, or (below 0) give some back."""
        self._n_bytes -= n_bytes
        if self._n_bytes < 0:
            raise InvalidFileError(f"it would take more memory than {self.size:,} bytes may")

    def take_values(self, n: int) -> None:
        """Ask for the time that it takes to make and check this many values."""
        self._n_values -= n
        if self._n_values < 0:
            raise InvalidFileError(f"it holds more values than {self.size:,} bytes may")

    def take_json(self, raw: bytes, copies: int) -> int:
        """Ask for what it takes to parse JSON, and return how many values it may hold at most."""
        # The widest character of a text is what all of its characters take.
        wide = 0 if raw.isascii() else int(np.frombuffer(raw, np.uint8).max())
        width = 4 if wide >= 0xF0 or b"\\u" in raw else 2 if wide else 1
        n = sum(map(raw.count, (b",", b":", b"[", b"{")))
        self.take(copies * width * len(raw) + _BYTES_PER_SEPARATOR * n)
        return n


class Tensor(NamedTuple):
    """Where a tensor is in the file, counted from the end of the header, and what it is."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    stop: int


class TensorHeader(NamedTuple):
    """What stands before the tensors; those are in the order of the file."""

    document: dict[str, Any]
    tensors: dict[str, Tensor]
    checksum: str
    #: That of the file so far.
    digest: Any
    allowance: Allowance


def write_tensor_file(
    path: Path,
    document: Mapping[str, Any],
    tensors: Mapping[str, Array],
    ask: Callable[[Allowance], None] = lambda allowance: None,
) -> None:
    """Write a file of contiguous tensors; it appears whole or not at all.

    Before that, ``ask`` takes from the allowance of the file what it takes to decode its tensors.
    """
    # The widest first, so that every tensor begins at a multiple of its own width.
    names = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    metadata = {"checksum": _NO_CHECKSUM, "marginmf": write_json(document)}
    entries: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name in names:
        tensor, start = tensors[name], end
        end += tensor.nbytes
        about = TYPE_NAMES[tensor.dtype.str], list(tensor.shape), [start, end]
        entries[name] = dict(zip(_FIELDS, about, strict=True))
    try:
        header = write_json(entries).encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"A parameter or attribute holds the text {error.object[error.start]!r}, which is not "
            "Unicode and cannot be written."
        ) from None
    header += b" " * (-len(header) % 8)
    length = len(header).to_bytes(8, "little")
    try:
        if len(header) > MAX_HEADER:
            raise InvalidFileError(f"it can have {MAX_HEADER:,}")
        allowance = Allowance(len(length) + len(header) + end)
        allowance.take_values(allowance.take_json(header, COPIES))
        ask(allowance)
    except InvalidFileError as error:
        raise ValueError(
            f"There is more beside the arrays of numbers than can be read from a file again "
            f"({error}): long lists should be arrays, and millions of ids whole numbers."
        ) from None
    digest = blake2b(length + header, digest_size=_DIGEST_BYTES)
    for name in names:
        digest.update(as_bytes(tensors[name]).data)
    # The checksum comes first in the header, so the first zeros are its own.
    header = header.replace(_NO_CHECKSUM.encode(), digest.hexdigest().encode(), 1)
    with atomic_write(path) as file:
        file.write(length + header)
        for name in names:
            file.write(as_bytes(tensors[name]).data)


def read_header(file: BufferedReader) -> TensorHeader:
    """Read and check everything up to the tensors."""
    size = os.fstat(file.fileno()).st_size
    beginning = file.read(8)
    length = int.from_bytes(beginning, "little")
    if size == 0:
        raise InvalidFileError("the file is empty")
    if size < 8 or not 2 <= length <= MAX_HEADER:
        foreign = (what for magic, what in _FOREIGN.items() if beginning.startswith(magic))
        raise InvalidFileError(f"it is {next(foreign, 'no model file')}, or damaged")
    if size < 8 + length:
        raise InvalidFileError(
            f"it is cut short: the header should have {length:,} bytes, and {size - 8:,} are there"
        )
    allowance = Allowance(size)
    raw = file.read(length)
    allowance.take_values(allowance.take_json(raw, COPIES))
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise InvalidFileError("its header is not text") from None
    entries = read_json(text, "its header")
    metadata = entries.pop("__metadata__", None) if isinstance(entries, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("marginmf"), str):
        raise InvalidFileError("it was not written by marginmf")
    checksum = metadata.get("checksum")
    if not isinstance(checksum, str) or not _CHECKSUM.fullmatch(checksum):
        raise InvalidFileError("it has no checksum")
    blank = raw.replace(checksum.encode(), _NO_CHECKSUM.encode(), 1)
    digest = blake2b(beginning + blank, digest_size=_DIGEST_BYTES)
    del raw, text, blank  # they may be long, and the description as long again
    document = read_json(metadata.pop("marginmf"), "its description of the model")
    if not isinstance(document, dict):
        raise InvalidFileError("its description of the model is not an object")
    tensors = _read_entries(entries, size - 8 - length)
    return TensorHeader(document, tensors, checksum, digest, allowance)


def read_tensors(file: BufferedReader, header: TensorHeader) -> dict[str, Array]:
    """Read the tensors behind a header, and compare the checksum."""
    digest, tensors = header.digest.copy(), {}
    for name, tensor in header.tensors.items():
        data = np.empty(tensor.stop - tensor.start, np.uint8)
        if file.readinto(data.data) != data.nbytes:
            raise InvalidFileError("it is cut short")
        digest.update(data.data)
        tensors[name] = data.view(tensor.dtype).reshape(tensor.shape)
    if digest.hexdigest() != header.checksum:
        raise InvalidFileError("it is damaged: its checksum is not that of its contents")
    return tensors


def as_bytes(array: Array) -> Array:
    """Return the bytes of an array in C order, without a copy."""
    return array.reshape(-1).view(np.uint8)


def write_json(value: Any) -> str:
    """Return a value as JSON without spaces; infinities and NaN are a fault of the caller."""
    options: Any = {"allow_nan": False, "check_circular": False}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), **options)


def read_json(text: str, what: str) -> Any:
    """Parse JSON, or raise `InvalidFileError` that says what could not be parsed.

    Stricter than the standard: a name that occurs twice in an object, and NaN, are refused.

    >>> read_json('{"a": [1, 2.5, null]}', "the header")
    {'a': [1, 2.5, None]}
    """
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse_constant)
    except RecursionError:
        raise InvalidFileError(f"{what} is nested too deeply") from None
    except InvalidFileError as error:
        raise InvalidFileError(f"{what} {error}") from None
    except ValueError:  # also a number with thousands of digits
        raise InvalidFileError(f"{what} is not valid JSON") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) < len(pairs):
        raise InvalidFileError("has the same name twice in one object")
    return names


def _refuse_constant(constant: str) -> NoReturn:
    raise InvalidFileError(f"has the number {constant}, which JSON does not know")


def _read_entries(entries: dict[str, Any], available: int) -> dict[str, Tensor]:
    """Return the tensors in the order of the file; they must fill it without a gap."""
    tensors = {name: _read_entry(name, entry) for name, entry in entries.items()}
    tensors = dict(sorted(tensors.items(), key=lambda item: (item[1].start, item[1].stop)))
    end = 0
    for name, tensor in tensors.items():
        if tensor.start != end:
            raise InvalidFileError(f"the array {name!r:.60} overlaps another or leaves a gap")
        end = tensor.stop
    if end > available:
        raise InvalidFileError(
            f"it is cut short: the arrays should have {end:,} bytes, and {available:,} are there"
        )
    if end < available:
        raise InvalidFileError(f"{available - end:,} bytes after its arrays belong to nothing")
    return tensors


def _read_entry(name: str, entry: Any) -> Tensor:
    if not isinstance(entry, dict) or entry.keys() != set(_FIELDS):
        raise InvalidFileError(f"the entry of the array {name!r:.60} cannot be understood")
    dtype, shape, offsets = (entry[field] for field in _FIELDS)
    if not isinstance(dtype, str) or dtype not in TENSOR_TYPES:
        raise InvalidFileError(
            f"the array {name!r:.60} is of the type {dtype!r:.60}, not a known one"
        )
    if not _are_lengths(shape) or not _are_lengths(offsets) or len(offsets) != 2:
        raise InvalidFileError(f"the shape or the offsets of the array {name!r:.60} are invalid")
    size, most = TENSOR_TYPES[dtype].itemsize, TENSOR_TYPES[dtype].itemsize
    for n in shape:
        size, most = size * n, most * max(n, 1)
    # Even an array without elements may not have more along its other axes than memory could hold.
    if offsets[1] - offsets[0] != size or most >= 1 << 62 or len(shape) > 16:
        raise InvalidFileError(
            f"the array {name!r:.60} has the shape {shape!r:.60}, which does not fit its offsets"
        )
    return Tensor(TENSOR_TYPES[dtype], tuple(shape), *offsets)


def _are_lengths(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(n) is int and n >= 0 for n in numbers)
