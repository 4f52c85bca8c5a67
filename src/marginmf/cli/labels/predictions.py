"""What a model predicts for the rows of a file, some rows at a time, in the form asked for."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from marginmf._utils.files import atomic_write
from marginmf._utils.ids import as_objects
from marginmf._utils.types import Array, FloatArray, IntArray
from marginmf.cli.labels.data import feature_names
from marginmf.datasets import LabelsTable
from marginmf.datasets.labels.columns import distinct
from marginmf.labels.base import LabelsEstimator

ARRAYS = ".npz"
#: Scores to hold at a time.
AT_A_TIME = 1 << 22
BETWEEN = ";"


def aligned(table: LabelsTable, model: LabelsEstimator) -> Any:
    """Return features in the order of the model's, by their names where both have them."""
    wanted = feature_names(model)
    if wanted is None or table.feature_names is None:
        if table.n_features != model.n_features_in_:
            raise ValueError(
                f"{table.name} has {table.n_features:,} features, but the model has learned from "
                f"{model.n_features_in_:,}; give the same columns as for the fit."
            )
        return table.X
    places = {name: place for place, name in enumerate(table.feature_names)}
    again = [name for name, count in Counter(wanted).items() if count > 1]
    if again:
        raise ValueError(
            f"The model has learned from several features called {again[0]!r}, which cannot be "
            f"found by name in {table.name}; give a file without names, its columns in the order "
            f"of the fit."
        )
    missing = [name for name in wanted if name not in places]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise ValueError(
            f"{table.name} has no feature {missing[0]!r}{more}, which the model has learned from; "
            "give the same columns as for the fit."
        )
    order = [places[name] for name in wanted]
    if order == list(range(table.n_features)):
        return table.X
    return table.X[:, order]


@dataclass
class Predictions:
    """Rows and a model that predicts their labels.

    Parameters
    ----------
    model : LabelsEstimator
        A fitted model.
    X : matrix
        The features.
    names : sequence of str
        The names of the labels.
    form : str
        "names" or "table".
    scores : bool
        Whether scores are wanted too.
    top : int or None
        How many labels a row, if that is what is wanted instead.
    """

    model: LabelsEstimator
    X: Any
    names: Sequence[str]
    form: str = "names"
    scores: bool = False
    top: int | None = None

    def __post_init__(self) -> None:
        # Features have been found by their names already; scikit-learn would warn of their lack.
        if hasattr(self.model, "feature_names_in_"):
            del self.model.feature_names_in_

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def pieces(self) -> Iterator[dict[str, Array]]:
        """Yield columns, some rows at a time."""
        for rows, X in self._parts():
            numbers = np.arange(rows.start + 1, rows.stop + 1)
            if self.top is not None:
                yield self._best(numbers, self.model.decision_function(X))
                continue
            present = self._present(X)
            columns: list[tuple[str, Array]] = [("row", numbers)]
            if self.form == "names":
                joined = as_objects(BETWEEN.join(self._named(one)) for one in present)
                columns.append(("labels", joined))
            else:
                columns += zip(self.names, present.astype(np.int64).T, strict=True)
            if self.scores:
                named = (f"score:{name}" for name in self.names)
                columns += zip(named, self.model.decision_function(X).T, strict=True)
            # A label may be called "row", or two of them alike.
            names, values = zip(*columns, strict=True)
            yield dict(zip(distinct(names), values, strict=True))

    def records(self) -> list[dict[str, Any]]:
        """Return every row as a dictionary that JSON can hold."""
        if self.top is not None:
            return [
                dict(zip(piece, row, strict=True))
                for piece in self.pieces()
                for row in zip(*(column.tolist() for column in piece.values()), strict=True)
            ]
        found: list[dict[str, Any]] = []
        names = distinct(self.names)
        for rows, X in self._parts():
            scores = self.model.decision_function(X) if self.scores else None
            for place, present in enumerate(self._present(X)):
                record: dict[str, Any] = {"row": rows.start + place + 1}
                if self.form == "names":
                    record["labels"] = self._named(present)
                else:
                    record["labels"] = dict(zip(names, present.tolist(), strict=True))
                if scores is not None:
                    record["scores"] = dict(zip(names, scores[place].tolist(), strict=True))
                found.append(record)
        return found

    def write_arrays(self, path: Path) -> None:
        """Write label sets as the arrays of a dataset, and scores beside them if wanted."""
        from scipy.sparse import csr_array

        from marginmf.datasets.labels.npz import taken_apart

        Y = csr_array(self.model.predict(self.X)).astype(np.uint8)
        arrays = {**taken_apart("Y", Y), "label_names": np.array(self.names, dtype=np.str_)}
        if self.scores:
            arrays["scores"] = self.model.decision_function(self.X)
        with atomic_write(path) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    def _parts(self) -> Iterator[tuple[slice, Any]]:
        step = max(1, AT_A_TIME // max(1, len(self.names)))
        for start in range(0, len(self), step):
            rows = slice(start, min(start + step, len(self)))
            yield rows, self.X[rows]

    def _present(self, X: Any) -> Array:
        found = self.model.predict(X)
        return np.asarray(found.toarray() if hasattr(found, "toarray") else found)

    def _named(self, present: Array) -> list[str]:
        return [self.names[place] for place in np.flatnonzero(present).tolist()]

    def _best(self, numbers: IntArray, scores: FloatArray) -> dict[str, Array]:
        top = min(self.top or 1, len(self.names))
        best = np.argsort(-scores, axis=1, kind="stable")[:, :top]
        return {
            "row": np.repeat(numbers, top),
            "rank": np.tile(np.arange(1, top + 1), len(numbers)),
            "label": as_objects(self.names[place] for place in best.ravel().tolist()),
            "score": np.take_along_axis(scores, best, axis=1).ravel(),
        }
