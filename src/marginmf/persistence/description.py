"""What a model file holds, from its header alone."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marginmf.persistence.container import Header, opened, read_header
from marginmf.persistence.counts import AnyCounts
from marginmf.persistence.decoder import Decoder, of_type
from marginmf.persistence.document import read_document
from marginmf.persistence.sparse import PARTS


@dataclass(frozen=True)
class ModelDescription:
    """A model file in short.

    Parameters
    ----------
    class_name : str
        The estimator.
    params : dict
        Its parameters; arrays are described in words.
    counts : Counts, PairCounts or LabelCounts
        How many users, items, ratings and levels, or users, items and pairs, or labels, features
        and rows, it was learned from.
    file_size : int
        In bytes.
    marginmf_version : str
        Which marginmf wrote the file.
    format_version : int
        Which version of the format it has.
    """

    class_name: str
    params: dict[str, Any]
    counts: AnyCounts
    file_size: int
    marginmf_version: str
    format_version: int


def describe(path: str | os.PathLike[str]) -> ModelDescription:
    """Return what a model file holds, reading its header alone.

    The header is checked as `load` does it; the arrays are not, so a description is no promise
    that the file will load.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from marginmf.ratings import BiasOnly
    >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y")]
    >>> with TemporaryDirectory() as folder:
    ...     BiasOnly(reg=0.1).fit(pairs, [5, 3, 4, 2]).save(f"{folder}/m.marginmf")
    ...     about = describe(f"{folder}/m.marginmf")
    >>> about.class_name, about.params["reg"], about.counts
    ('BiasOnly', 0.1, Counts(users=2, items=2, ratings=4, levels=4))
    """
    with opened(Path(path)) as file:
        header = read_header(file)
        document = read_document(header.document)
        params = _Describer(header)._dict(document.params, 0)
        size = os.fstat(file.fileno()).st_size
    return ModelDescription(
        document.class_name,
        params,
        document.counts,
        size,
        document.marginmf_version,
        document.format_version,
    )


class _Describer(Decoder):
    """A decoder that knows only what the header says of the arrays."""

    def __init__(self, header: Header) -> None:
        super().__init__(dict.fromkeys(header.tensors))
        self._header = header

    def _take(self, name: str, note: dict[str, Any]) -> str:
        return f"array of shape {self._header.tensors[name].shape}"

    def _text(self, content: Any, depth: int) -> str:
        self._array(content, depth)
        return "array of text"

    def _csr(self, content: Any, depth: int) -> str:
        parts = of_type(content, dict)
        for name in PARTS:
            self._array(parts.get(name), depth)
        return f"sparse array of shape {parts.get('shape')!r:.60}"

    def _ids(self, content: Any, depth: int) -> str:
        self._array(of_type(content, dict).get("array"), depth)
        return "list of ids"
