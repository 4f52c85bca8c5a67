"""Tables of numbers some of whose columns are labels: what CSV and Parquet files share."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from marginmf._utils.types import Float64Array
from marginmf.datasets.labels.choice import (
    IfThere,
    IgnoredChoice,
    LabelsChoice,
    ignored_places,
    label_places,
    listed,
    said_by_name,
)
from marginmf.datasets.labels.names import refuse_alike
from marginmf.datasets.labels.table import LabelsTable, joined_features, lean


class TableColumns:
    """Which columns are features and which are labels.

    Parameters
    ----------
    names : sequence of str
        Of all columns.
    named : bool
        Whether these names are the file's own.
    labels, ignore
        As the caller gave them.
    where : str
        The file, for messages.
    index : sequence of int
        Places of columns that only count or name the rows, as those that pandas writes. They are
        no features, and no labels either unless `labels` says so by name.
    """

    def __init__(
        self,
        names: Sequence[str],
        labels: LabelsChoice | None,
        ignore: IgnoredChoice,
        where: str,
        named: bool = True,
        index: Sequence[int] = (),
    ) -> None:
        self.where, self.named = where, named
        self.names = [name.strip() for name in names]
        if labels is None:
            raise ValueError(
                f"{where} does not say which of its columns are labels; say so with labels=n (the "
                f"last n columns), labels=['rock', 'jazz'] or a pattern such as labels='tag_*'; "
                f"its columns are {listed(self.names)}."
            )
        by_name = ignore.others if isinstance(ignore, IfThere) else ignore
        if not named and ((labels and not isinstance(labels, int)) or by_name):
            raise ValueError(
                f"{where} has no line of names; say with labels=n that the last n columns are "
                f"labels, or add a line of names."
            )
        said = said_by_name(labels) | said_by_name(ignore)
        self.index = [place for place in index if self.names[place] not in said]
        columns = [place for place in range(len(names)) if place not in self.index]
        known = [self.names[place] for place in columns]
        self.labels = [columns[k] for k in label_places(known, labels, where)]
        left_out = {*self.labels, *(columns[k] for k in ignored_places(known, ignore, where))}
        self.features = [place for place in columns if place not in left_out]
        if not self.features:
            raise ValueError(f"{where} has labels but no features; it needs both.")
        refuse_alike(((place + 1, self.names[place]) for place in self.read), where, "columns")

    @property
    def read(self) -> list[int]:
        """Places of all columns that are read."""
        return sorted([*self.features, *self.labels])

    def refused(self, here: str, place: int, value: object, problem: str) -> ValueError:
        """Return the error for a value that cannot be read."""
        name = self.names[place]
        if place in self.labels:
            remedy = "labels are 0 or 1"
        else:
            remedy = f"correct it, or leave the column out with ignore=[{name!r}]"
        return ValueError(f"{here}: {value} in the column {name!r} {problem}; {remedy}.")


class TableBlocks:
    """Rows that arrive some at a time, and the table that they become."""

    def __init__(self, columns: TableColumns) -> None:
        self._columns = columns
        self._X: list[Any] = []
        self._Y: list[Any] = []

    def add(self, values: Float64Array, here: Callable[[int], str]) -> None:
        """Add rows with a value for each column of the file; `here` names a row in messages."""
        labels = self._columns.labels
        Y = values[:, labels]
        wrong = (Y != 0) & (Y != 1)
        if wrong.any():
            row, place = (int(first) for first in np.argwhere(wrong)[0])
            raise self._columns.refused(
                here(row), labels[place], f"{Y[row, place]:g}", "is no label"
            )
        self._X.append(lean(values[:, self._columns.features]))
        self._Y.append(sparse.csr_array(Y.astype(np.int8)))

    def finish(self, name: str) -> LabelsTable:
        """Return the table of all rows."""
        columns = self._columns
        X, Y = joined_features(self._X), sparse.vstack(self._Y, format="csr")
        index = listed([columns.names[place] for place in columns.index])
        return LabelsTable(
            name,
            X,
            Y,
            feature_names=self._named(columns.features),
            label_names=self._named(columns.labels) or (),
            source=f"read from {columns.where}"
            + (f" without its index {index}" if columns.index else ""),
        )

    def __len__(self) -> int:
        return sum(block.shape[0] for block in self._X)

    def _named(self, places: list[int]) -> tuple[str, ...] | None:
        return tuple(self._columns.names[p] for p in places) if self._columns.named else None
