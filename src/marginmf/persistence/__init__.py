"""Models in files: one safetensors file holds everything, and loading one runs nothing.

A file holds arrays as tensors, and in the metadata of its header one JSON document: versions, the
class, the parameters, the fitted attributes, and how the arrays belong to them.  Loading believes
nothing: lengths, positions, types and shapes are compared with the file before memory is taken, a
checksum tells whether a byte has changed, only classes that declare themselves are made, and codes
must lie within their arrays.

`files` saves, loads and describes; `codec` turns a model into the document and back, with `values`
for single values, ids and arrays; `classes` finds the classes that a file may name, and compares a
model with what they declare (`marginmf._utils.saved`).
"""

from marginmf.persistence.files import (
    Counts,
    LabelCounts,
    ModelDescription,
    ModelFileError,
    PairCounts,
    Savable,
    describe,
    load,
    save,
)

__all__ = [
    "Counts",
    "LabelCounts",
    "ModelDescription",
    "ModelFileError",
    "PairCounts",
    "Savable",
    "describe",
    "load",
    "save",
]
