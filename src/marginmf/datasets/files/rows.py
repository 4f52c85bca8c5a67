"""The rows of a file of any kind, in batches: the one place that knows all kinds."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from marginmf.datasets.files.blocks import Batch
from marginmf.datasets.files.headers import Wanted
from marginmf.datasets.files.kinds import COLUMNAR, Kind, recognise
from marginmf.datasets.files.pieces import OTHER_ENCODING, likely_encoding
from marginmf.datasets.files.sources import Source

Result = TypeVar("Result")


class Rows:
    """The rows of a file, which can be gone through more than once.

    Parameters
    ----------
    source : Source
        The file.
    wanted : Wanted
        Which columns to read.
    """

    def __init__(self, source: Source, wanted: Wanted) -> None:
        self.source = source
        self.wanted = wanted
        self.kind = recognise(source)
        self._encoding = likely_encoding(source)

    @property
    def text(self) -> bool:
        """Whether the file has no types, only text."""
        return self.kind is Kind.TEXT

    def gather(self, consume: Callable[[Iterator[Batch]], Result]) -> Result:
        """Return what `consume` makes of all batches.

        It is called again from the beginning when the end of the file shows that the file has
        another encoding than its beginning.
        """
        try:
            return consume(self.batches())
        except UnicodeDecodeError:
            self._encoding = OTHER_ENCODING
            return consume(self.batches())

    def batches(self) -> Iterator[Batch]:
        """Return all batches, after `gather` has found the encoding."""
        if self.kind in COLUMNAR:
            from marginmf.datasets.files.columnar import columnar_batches

            return columnar_batches(self.source, self.wanted, self.kind)
        if self.kind is Kind.JSON_LINES:
            from marginmf.datasets.files.jsonlines import json_batches

            return json_batches(self.source, self.wanted, self._encoding)
        from marginmf.datasets.files.text import text_batches

        return text_batches(self.source, self.wanted, self._encoding)
