"""Take a model file apart, change anything, and put it together with a checksum that is right.

Written from the description of the format and not with the code under test.
"""

import json
from copy import deepcopy
from hashlib import blake2b

import numpy as np

DTYPES = {
    "BOOL": "?",
    "U8": "u1",
    "I8": "i1",
    "U16": "<u2",
    "I16": "<i2",
    "F16": "<f2",
    "U32": "<u4",
    "I32": "<i4",
    "F32": "<f4",
    "U64": "<u8",
    "I64": "<i8",
    "F64": "<f8",
}
NAMES = {np.dtype(code): name for name, code in DTYPES.items()}
ZEROS = "0" * 64


class ModelParts:
    """The parts of a file; change them, then `write`."""

    def __init__(self, path):
        raw = path.read_bytes()
        length = int.from_bytes(raw[:8], "little")
        entries = json.loads(raw[8 : 8 + length])
        body = raw[8 + length :]
        self.document = json.loads(entries.pop("__metadata__")["marginmf"])
        self.tensors = {}
        for name, entry in entries.items():
            start, stop = entry["data_offsets"]
            flat = np.frombuffer(body[start:stop], DTYPES[entry["dtype"]])
            self.tensors[name] = flat.reshape(entry["shape"]).copy()

    def copy(self):
        return deepcopy(self)

    @property
    def params(self):
        return self.document["model"]["object"][1]

    @property
    def fitted(self):
        return self.document["model"]["object"][2]

    def entries(self):
        entries, end = {}, 0
        for name, tensor in self.tensors.items():
            start, end = end, end + tensor.nbytes
            entries[name] = {
                "dtype": NAMES[tensor.dtype],
                "shape": list(tensor.shape),
                "data_offsets": [start, end],
            }
        return entries

    def write(self, path, change_entries=lambda entries: None, document_text=None):
        entries = self.entries()
        change_entries(entries)
        text = json.dumps(self.document) if document_text is None else document_text
        metadata = {"checksum": ZEROS, "marginmf": text}
        header = json.dumps({"__metadata__": metadata, **entries}).encode()
        body = b"".join(tensor.tobytes() for tensor in self.tensors.values())
        path.write_bytes(sealed(header, body))


def sealed(header, body=b""):
    """Return a whole file: length, header with its checksum, tensors."""
    length = len(header).to_bytes(8, "little")
    checksum = blake2b(length + header + body, digest_size=32).hexdigest()
    return length + header.replace(ZEROS.encode(), checksum.encode(), 1) + body
