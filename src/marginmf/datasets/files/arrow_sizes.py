"""What Arrow's columns and files take in memory, found before the memory is taken.

A file of a kilobyte can name one long text a million times, or claim that a compressed buffer is a
terabyte; pyarrow would believe it.
"""

import struct
from typing import Any

import numpy as np

#: A message of a stream begins with this, and the length of its description.
CONTINUES = 0xFFFFFFFF
#: The kinds of messages that have buffers.
DICTIONARY_BATCH, RECORD_BATCH = 2, 3
#: What each value takes at least, once it is read.
VALUE_BYTES = 8


def decoded_bytes(column: Any) -> int:
    """Return about what a column takes when every value of it is written out.

    >>> import pyarrow as pa
    >>> decoded_bytes(pa.array(["long" * 25] * 10).dictionary_encode())
    1080
    """
    from pyarrow import compute, types

    kind, size = column.type, VALUE_BYTES * len(column)
    if types.is_dictionary(kind):
        if _is_text(column.dictionary.type):
            lengths = compute.binary_length(column.dictionary).take(column.indices)
            return size + int(compute.sum(lengths).as_py() or 0)
        return len(column) * max(decoded_bytes(column.dictionary), VALUE_BYTES)
    if kind in _views():
        views = np.frombuffer(column.buffers()[1], np.int32).reshape(-1, 4)
        chosen = views[column.offset : column.offset + len(column), 0]
        return size + int(chosen.sum(dtype=np.int64))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return size + decoded_bytes(column.flatten())
    if types.is_struct(kind):
        return size + sum(map(decoded_bytes, column.flatten()))
    if types.is_map(kind):
        return size + decoded_bytes(column.keys) + decoded_bytes(column.items)
    if types.is_nested(kind) or types.is_run_end_encoded(kind):
        raise ValueError(f"is of the type {kind!s:.100}, which is not read; leave it out")
    return max(size, int(column.nbytes))


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    tests = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return any(is_kind(kind) for is_kind in tests)


def _views() -> tuple[Any, ...]:
    import pyarrow as pa

    return tuple(
        getattr(pa, name)() for name in ("string_view", "binary_view") if hasattr(pa, name)
    )


def claimed_bytes(file: Any, start: int) -> int:
    """Return what the compressed buffers of an Arrow stream say that they unpack to.

    A stream is one message after another: the length of its description, the description (a
    table of FlatBuffers), and the buffers, each of which begins with its length when unpacked.
    What cannot be followed ends the sum: pyarrow reads the same messages, and fails there too.
    """
    total, end = 0, file.size()
    while start < end:
        file.seek(start)
        first = struct.unpack("<I", file.read(4))[0]
        length = struct.unpack("<I", file.read(4))[0] if first == CONTINUES else first
        body = start + (8 if first == CONTINUES else 4) + length
        if length == 0 or body > end:
            break
        message = _Message(file.read(length))
        for offset, size in message.compressed_buffers():
            if size >= 8:
                file.seek(body + offset)
                total += max(0, struct.unpack("<q", file.read(8))[0])
        start = body + max(0, message.body_length)
    return total


class _Message:
    """The description of a message, as far as it tells of buffers."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._root = self._follow(0)
        self.body_length = self._number(self._root, 3, "<q")

    def compressed_buffers(self) -> list[tuple[int, int]]:
        """Return where each buffer begins after the description, and its length."""
        kind, table = self._number(self._root, 1, "<B"), self._child(self._root, 2)
        if kind == DICTIONARY_BATCH:
            table = self._child(table, 1)
        if kind not in (DICTIONARY_BATCH, RECORD_BATCH) or not self._child(table, 3):
            return []
        vector = self._child(table, 2)
        count = self._read("<I", vector) if vector else 0
        parts = self._data[vector + 4 : vector + 4 + 16 * count]
        return list(struct.iter_unpack("<qq", parts[: len(parts) // 16 * 16]))

    def _read(self, form: str, position: int) -> int:
        return int(struct.unpack_from(form, self._data, position)[0])

    def _follow(self, position: int) -> int:
        return position + self._read("<I", position)

    def _field(self, table: int, number: int) -> int:
        """Return where a field of a table is, or 0 if it is left out."""
        fields = table - self._read("<i", table)
        beyond = 4 + 2 * number >= self._read("<H", fields)
        offset = 0 if beyond else self._read("<H", fields + 4 + 2 * number)
        return table + offset if offset else 0

    def _child(self, table: int, number: int) -> int:
        position = self._field(table, number) if table else 0
        return self._follow(position) if position else 0

    def _number(self, table: int, number: int, form: str) -> int:
        position = self._field(table, number)
        return self._read(form, position) if position else 0
