"""One file of a checkpoint: vectors and a description, with a checksum over both.

The files are in the safetensors format, so reading one cannot run anything.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from marginmf._atomic import atomic_write
from marginmf._typing import Array
from marginmf.checkpoints.fingerprint import raw
from marginmf.checkpoints.generators import Snapshot
from marginmf.solvers import Record, Result, State, StopReason

#: The fingerprint of a fit, where a minimisation stands or ended, or a random generator.
Piece = dict[str, Any] | State | Result | Snapshot


def write_piece(path: Path, name: str, piece: Piece) -> None:
    """Write a piece under a name; the file appears whole or not at all."""
    kind, details, vectors = _taken_apart(piece)
    text = json.dumps({"name": name, "kind": kind, "details": details})
    # Written here and not by safetensors, which would copy all vectors first, or write to a
    # temporary file of its own that a killed process leaves behind.
    header: dict[str, Any] = {"__metadata__": {"piece": text, "checksum": _checksum(text, vectors)}}
    end = 0
    for key, vector in vectors.items():
        begin, end = end, end + vector.nbytes
        dtype = f"F{8 * vector.itemsize}"
        header[key] = {"dtype": dtype, "shape": vector.shape, "data_offsets": [begin, end]}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with atomic_write(path) as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for vector in vectors.values():
            file.write(raw(vector))


def read_piece(path: Path, name: str) -> Piece:
    """Read the piece of a name; refuse what is not exactly as it was written."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            vectors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        if _checksum(metadata["piece"], vectors) != metadata["checksum"]:
            raise ValueError("its checksum is another")
        piece = json.loads(metadata["piece"])
        if piece["name"] != name:
            raise ValueError("it belongs elsewhere")
        return _put_together(piece["kind"], piece["details"], vectors)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"The checkpoint's file {path} is damaged ({error}). Remove the folder and fit anew."
        ) from error


def _taken_apart(piece: Piece) -> tuple[str, dict[str, Any], dict[str, Array]]:
    if isinstance(piece, dict):
        return "fit", piece, {}
    if isinstance(piece, Snapshot):
        return "generator", vars(piece), {}
    history = [list(map(float, record)) for record in piece.history]
    if isinstance(piece, Result):
        details = {
            "history": history,
            "reason": piece.reason.name,
            "n_evaluations": piece.n_evaluations,
            "errors": piece.errors,
        }
        return "result", details, {"point": _contiguous(piece.point)}
    numbers = {name: list(map(float, values)) for name, values in piece.numbers.items()}
    groups = {name: len(group) for name, group in piece.vectors.items()}
    vectors = {
        f"{name} {place}": _contiguous(vector)
        for name, group in piece.vectors.items()
        for place, vector in enumerate(group)
    }
    return "state", {"history": history, "numbers": numbers, "groups": groups}, vectors


def _put_together(kind: str, details: dict[str, Any], vectors: Mapping[str, Array]) -> Piece:
    if kind == "fit":
        return details
    if kind == "generator":
        return Snapshot(**details)
    history = [
        Record(int(iteration), objective, norm, int(n_evaluations), seconds)
        for iteration, objective, norm, n_evaluations, seconds in details["history"]
    ]
    if kind == "result":
        reason = StopReason[details["reason"]]
        n_evaluations, errors = details["n_evaluations"], details["errors"]
        return Result(vectors["point"], history, reason, n_evaluations, errors)
    groups = {
        name: [vectors[f"{name} {place}"] for place in range(size)]
        for name, size in details["groups"].items()
    }
    return State(history, groups, details["numbers"])


def _contiguous(vector: Any) -> Array:
    """Return the bytes to write: little-endian ones, as the format wants them."""
    return np.ascontiguousarray(vector, vector.dtype.newbyteorder("<"))


def _checksum(text: str, vectors: Mapping[str, Array]) -> str:
    code = hashlib.sha256(text.encode())
    for name in sorted(vectors):
        vector = vectors[name]
        code.update(f"{name} {vector.dtype} {vector.shape}".encode())
        code.update(raw(vector))
    return code.hexdigest()
