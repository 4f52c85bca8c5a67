"""Load ``.npz`` files of others: what they say of their sizes is compared with what they hold.

NumPy takes the memory that the header of an array asks for before it reads the array.
"""

import math
import zipfile
from collections.abc import Iterator
from os import SEEK_END
from typing import Any, BinaryIO

from numpy.lib import format as npy

from marginmf._utils.types import Array

#: Deflate makes nothing smaller than this share of it.
MOST_DEFLATED = 1032
#: Arrays without a single byte may have as many numbers as this, were their empty axes left out.
MOST_EMPTY = 2**22
#: How the header of each version is read; a third one is for names of fields that no array has.
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def load_arrays(file: BinaryIO) -> dict[str, Array]:
    """Return the arrays of an ``.npz`` file; nothing is unpickled.

    They take the memory that the file's sizes say, which are at most about a thousand times its
    own.  A damaged file raises ValueError, or whatever `zipfile` and `zlib` raise.
    """
    size = file.seek(0, SEEK_END)
    with zipfile.ZipFile(file) as archive:
        for problem in _find_problems(archive, size):
            raise ValueError(problem)
        arrays: dict[str, Array] = {}
        for name in archive.namelist():
            with archive.open(name) as member:
                arrays[name.removesuffix(".npy")] = npy.read_array(member, allow_pickle=False)
    return arrays


def _find_problems(archive: zipfile.ZipFile, size: int) -> Iterator[str]:
    members = archive.infolist()
    if sum(info.compress_size for info in members) > size:
        yield "its arrays are said to be longer than the file"
    for info in members:
        name, times = f"{info.filename:.100}", 1
        if info.compress_type == zipfile.ZIP_DEFLATED:
            times = MOST_DEFLATED
        elif info.compress_type != zipfile.ZIP_STORED:
            yield f"{name} is packed in a way that NumPy does not pack"
        if info.file_size > times * info.compress_size:
            yield f"{name} is said to be longer than it can be"
        with archive.open(info) as member:
            for problem in _header_problems(member, info.file_size):
                yield f"{name} {problem}"


def _header_problems(member: Any, size: int) -> Iterator[str]:
    """Yield what is wrong with the header of an array, in a file of that size."""
    version = npy.read_magic(member)
    if version not in HEADERS:
        yield f"is of the unknown version {version[0]}.{version[1]}"
    shape, _, dtype = HEADERS[version](member)
    n_bytes = size - member.tell()
    if dtype.hasobject:
        yield "holds Python objects; write texts and numbers alone"
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != n_bytes:
        yield f"has {n_bytes:,} bytes, which are not those of its shape {shape!s:.60}"
    if n_bytes == 0 and math.prod(n or 1 for n in shape) > MOST_EMPTY:
        yield f"is empty, but has the shape {shape!s:.60}"
