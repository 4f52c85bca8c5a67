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


# --- changes, each a function of the parts ------------------------------------------------------


def param(name, node):
    return lambda parts: parts.params.update({name: node})


def attribute(name, node):
    return lambda parts: parts.fitted.update({name: node})


def document(name, node):
    return lambda parts: parts.document.update({name: node})


def tensor(name, change):
    def tamper(parts):
        parts.tensors[name] = change(parts.tensors[name])

    return tamper


def put(name, position, number):
    """Put a number into a tensor, which first becomes wide enough for any."""

    def change(array):
        array = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
        array[position] = number
        return array

    def tamper(parts):
        tensor(name, change)(parts)
        note = find(parts.document, name)
        if note.get("dtype") in ("<i2", "<i4"):  # so that the number is that of the array itself
            parts.tensors[name] = parts.tensors[name].astype(note["dtype"])
            del note["dtype"]
        if note.get("dtype") == "<i8":
            del note["dtype"]

    return tamper


def find(node, name):
    """Return the note on the array of a tensor."""
    if isinstance(node, dict):
        if node.get("tensor") == name:
            return node
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            found = find(part, name)
            if found is not None:
                return found
    return None


def rename_class(name):
    return lambda parts: parts.document["model"]["object"].__setitem__(0, name)


#: What may stand anywhere in a document by mistake or ill will.
COMMON_JUNK = [
    None,
    True,
    -1,
    10**30,
    1e308,
    "",
    "x",
    [],
    [[]],
    {},
    {"tuple": []},
    {"dict": {}},
    {"same": 0},
    {"same": 3},
    {"float": "7ff0000000000000"},
    {"int": "-0x1"},
    {"numpy": ["<f8", "00" * 8]},
    {"object": ["LBFGS", {}]},
    {"object": ["HMF", {}, {}]},
    {"loss": "squared"},
]


def every_node(node, found):
    """List every (container, key) in a JSON document."""
    keys = range(len(node)) if isinstance(node, list) else node
    for key in keys:
        found.append((node, key))
        if isinstance(node[key], list | dict):
            every_node(node[key], found)
    return found


def rows_less(name):
    return tensor(name, lambda array: array[:-1])


def columns_less(name):
    return tensor(name, lambda array: array[..., :-1])


def inside(*keys):
    """Return a change of what is found along these keys in the fitted attributes."""

    def with_value(value):
        def tamper(parts):
            node = parts.fitted
            for key in keys[:-1]:
                node = node[key]
            node[keys[-1]] = value

        return tamper

    return with_value


def without(*names):
    """Return a change that takes fitted attributes and their arrays away."""

    def tamper(parts):
        for name in names:
            del parts.fitted[name]
            parts.tensors.pop(name, None)

    return tamper


def both(*changes):
    def tamper(parts):
        for change in changes:
            change(parts)

    return tamper


def objects_more(n):
    """Return a change of all references, for there are so many more objects before them."""

    def tamper(parts):
        for container, key in every_node(parts.document, []):
            if key == "same":
                container[key] += n

    return tamper


def find_csr(found, name):
    """Return the sparse matrix whose data are that tensor."""
    for container, key in every_node(found, []):
        if key == "csr" and container[key]["data"]["tensor"] == name:
            return container[key]
    raise AssertionError(name)
