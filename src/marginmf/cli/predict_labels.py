"""``marginmf labels predict``: the labels that a saved model expects for the rows of a file."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from marginmf.cli.commands import command
from marginmf.cli.options import ConsoleOptions, LabelColumns, ModelFile

if TYPE_CHECKING:
    from marginmf._utils.types import Array
    from marginmf.datasets import LabelsTable
    from marginmf.labels.base import LabelsEstimator

ARRAYS = ".npz"
#: Scores to keep in memory at a time.
BATCH_SCORES = 1 << 22
SEPARATOR = ";"


@command("marginmf labels predict l.marginmf songs.csv --out found.csv", name="predict")
def predict_labels(
    *,
    model: ModelFile,
    file: Annotated[str, Argument(metavar="FILE", help="Features, as in the file of the fit.")],
    out: Annotated[
        Path | None,
        Option(help="A .csv, .tsv, .jsonl (or .gz of these), .parquet, .arrow or .npz file."),
    ] = None,
    form: Annotated[
        Literal["names", "table"],
        Option("--as", help="The names of each row's labels, or a column of 0 and 1 a label."),
    ] = "names",
    scores: Annotated[
        bool, Option("--scores", help="Also how far each label is above its threshold.")
    ] = False,
    top: Annotated[
        int | None,
        Option(
            min=1,
            metavar="K",
            help="The K best labels of each row instead, a line each, with their scores.",
            show_default=False,
        ),
    ] = None,
    columns: LabelColumns,
    console: ConsoleOptions,
) -> None:
    """Predict the labels of every row of a file; print CSV or write a file.

    Rows keep their order and are counted from 1; names of labels have a semicolon between them.
    Features are found by their names where file and model have them; those of svmlight files by
    their numbers, and what no row names is 0. Columns with the name of a label of the model are
    not features.
    """
    from marginmf.cli import estimators, inputs, output

    output.check_columns(out, also=(ARRAYS,))
    output.refuse_same(out, model, file, columns.xml)
    in_arrays = out is not None and out.suffix.lower() == ARRAYS
    if in_arrays and (top is not None or form == "table"):
        raise ValueError(
            f"{out} holds labels as arrays, and their scores with --scores: leave --top and --as "
            "out, or name a .csv file."
        )
    if top is not None and (scores or form == "table"):
        raise ValueError("--top has scores of its own: leave --scores and --as out.")
    fitted = estimators.load_model(model, "labels")
    names = tuple(map(str, fitted.classes_))
    table = inputs.read_label_rows(file, names, fitted, columns)
    found = _LabelPredictions(fitted, order_features(table, fitted), names, form, scores, top)
    written: dict[str, Any]
    if out is not None and in_arrays:
        found.write_arrays(out)
        written = {"out": str(out)}
    elif console.as_json and out is None and top is None:
        written = {"out": None, "predictions": list(found.records())}
    else:
        written = output.write_batches(found.batches(), out, console.as_json, "predictions")
    console.print_json({"model": str(model), "n_rows": len(found), **written})
    if out is not None:
        console.print(f"The labels of {len(found):,} rows are in {out}.")


def order_features(table: "LabelsTable", model: "LabelsEstimator") -> Any:
    """Return features in the order of the model's, by their names where both have them."""
    from marginmf.cli.inputs import feature_names

    wanted = feature_names(model)
    if wanted is None or table.feature_names is None:
        if table.n_features != model.n_features_in_:
            raise ValueError(
                f"{table.name} has {table.n_features:,} features, but the model has learned from "
                f"{model.n_features_in_:,}; give the same columns as for the fit."
            )
        return table.X
    again = [name for name, count in Counter(wanted).items() if count > 1]
    if again:
        raise ValueError(
            f"The model has learned from several features called {again[0]!r}, which cannot be "
            f"found by name in {table.name}; give a file without names, its columns in the order "
            f"of the fit."
        )
    positions = {name: position for position, name in enumerate(table.feature_names)}
    missing = [name for name in wanted if name not in positions]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise ValueError(
            f"{table.name} has no feature {missing[0]!r}{more}, which the model has learned from; "
            "give the same columns as for the fit."
        )
    order = [positions[name] for name in wanted]
    return table.X if order == list(range(table.n_features)) else table.X[:, order]


@dataclass
class _LabelPredictions:
    """Rows and a model that predicts their labels, in the form that was asked for."""

    model: "LabelsEstimator"
    X: Any
    names: tuple[str, ...]
    form: str
    scores: bool
    top: int | None

    def __post_init__(self) -> None:
        # Features are in order already; scikit-learn would warn that these have no names.
        if hasattr(self.model, "feature_names_in_"):
            del self.model.feature_names_in_

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def batches(self) -> "Iterator[dict[str, Array]]":
        """Yield columns of some rows at a time."""
        import numpy as np

        from marginmf._utils.ids import as_objects
        from marginmf.datasets.labels.names import distinct

        for rows, X in self._row_batches():
            numbers = np.arange(rows.start + 1, rows.stop + 1)
            if self.top is not None:
                yield self._best(numbers, X)
                continue
            present = self._predict(X)
            columns: list[tuple[str, Array]] = [("row", numbers)]
            if self.form == "names":
                joined = as_objects(SEPARATOR.join(self._names_of(row)) for row in present)
                columns.append(("labels", joined))
            else:
                columns += zip(self.names, present.astype(np.int64).T, strict=True)
            if self.scores:
                named = (f"score:{name}" for name in self.names)
                columns += zip(named, self.model.decision_function(X).T, strict=True)
            # A label may be called "row", or two of them alike.
            names, values = zip(*columns, strict=True)
            yield dict(zip(distinct(names), values, strict=True))

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield every row as a dictionary that JSON can hold."""
        from marginmf.datasets.labels.names import distinct

        names = distinct(self.names)
        for rows, X in self._row_batches():
            scores = self.model.decision_function(X) if self.scores else None
            for index, present in enumerate(self._predict(X)):
                record: dict[str, Any] = {"row": rows.start + index + 1}
                if self.form == "names":
                    record["labels"] = self._names_of(present)
                else:
                    record["labels"] = dict(zip(names, present.tolist(), strict=True))
                if scores is not None:
                    record["scores"] = dict(zip(names, scores[index].tolist(), strict=True))
                yield record

    def write_arrays(self, path: Path) -> None:
        """Write label sets as the arrays of a dataset, and scores beside them if wanted."""
        import numpy as np
        from scipy.sparse import csr_array

        from marginmf._utils.files import atomic_write
        from marginmf.datasets.labels.npz import taken_apart

        Y = csr_array(self.model.predict(self.X)).astype(np.uint8)
        arrays = {**taken_apart("Y", Y), "label_names": np.array(self.names, dtype=np.str_)}
        if self.scores:
            arrays["scores"] = self.model.decision_function(self.X)
        with atomic_write(path) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    def _row_batches(self) -> Iterator[tuple[slice, Any]]:
        step = max(1, BATCH_SCORES // max(1, len(self.names)))
        for start in range(0, len(self), step):
            rows = slice(start, min(start + step, len(self)))
            yield rows, self.X[rows]

    def _predict(self, X: Any) -> "Array":
        import numpy as np

        found = self.model.predict(X)
        return np.asarray(found.toarray() if hasattr(found, "toarray") else found)

    def _names_of(self, present: "Array") -> list[str]:
        return [self.names[label] for label in present.nonzero()[0].tolist()]

    def _best(self, numbers: "Array", X: Any) -> "dict[str, Array]":
        """Return the labels with the highest scores of each row, a line each."""
        import numpy as np

        from marginmf._utils.ids import as_objects

        scores = self.model.decision_function(X)
        top = min(self.top or 1, len(self.names))
        best = np.argsort(-scores, axis=1, kind="stable")[:, :top]
        return {
            "row": np.repeat(numbers, top),
            "rank": np.tile(np.arange(1, top + 1), len(numbers)),
            "label": as_objects(self.names[label] for label in best.ravel().tolist()),
            "score": np.take_along_axis(scores, best, axis=1).ravel(),
        }
