"""``marginmf predict`` and ``labels predict``: ask a saved model for ratings or labels."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from marginmf.cli import options
from marginmf.cli.commands import command

if TYPE_CHECKING:
    from marginmf._utils.types import Array
    from marginmf.datasets.files.source import Source
    from marginmf.labels.base import LabelsEstimator
    from marginmf.ratings.estimator import RatingsEstimator

#: Pairs, and scores of labels, that are in memory at a time.
BATCH_PAIRS, BATCH_SCORES = 200_000, 1 << 22
ARRAYS, SEPARATOR = ".npz", ";"
#: How pairs that training did not see are answered.
FALLBACKS = {"fallback": "predicted from the frequencies of levels", "nan": "left empty"}


@command("marginmf predict m.marginmf pairs.csv --out predicted.csv")
def predict(
    *,
    model: options.ModelFile,
    pairs: Annotated[Path, Argument(metavar="PAIRS", help="Users and items, a pair a line.")],
    out: options.ColumnsOut = None,
    answer: options.Answer = "median",
    output: Annotated[str | None, Option(hidden=True)] = None,
    proba: Annotated[bool, Option("--proba", help="Also the probability of every level.")] = False,
    unknown: Annotated[
        Literal["fallback", "raise", "nan"],
        Option(
            help="Users and items that training did not see: predict from the frequencies of "
            "levels, refuse, or leave empty."
        ),
    ] = "fallback",
    user: options.UserColumn = None,
    item: options.ItemColumn = None,
    header: options.Header = None,
    raw: options.Raw = False,
    max_bytes: options.MaxBytes = None,
    console: options.ConsoleOptions,
) -> None:
    """Predict a rating for every pair of a file; print CSV or write a file.

    The pairs keep their order. Probabilities are columns p_1, p_2 and so on, by level.
    """
    from marginmf.cli.estimators import learn_missing, load_model
    from marginmf.cli.inputs import describe_columns
    from marginmf.cli.output import check_columns, write_batches
    from marginmf.datasets.files.source import Source

    if output is not None:  # else the advice would be --out, which is a file
        raise ValueError("--output is now --answer; --out names the file to write.")
    check_columns(out, model, pairs)
    columns = options.given(user=user, item=item, header=header)
    estimator = load_model(model, "ratings")
    source = Source(pairs, "pairs", max_bytes=max_bytes)
    found = _PairPredictions(estimator, source, columns, answer, proba, unknown)
    if unknown == "raise":
        found.refuse_unknown()
    learn_missing(estimator, model, console, calibrator=proba or answer != "rule", exposure=False)
    written = write_batches(found.batches(), out, console.as_json, "predictions", raw)
    counts = {"n_pairs": found.n_pairs, "n_unknown": found.n_unknown}
    named = found.source.columns
    console.print_json({"model": str(model), **counts, "columns": named or None, **written})
    if any(role != name for role, name in named.items()):
        console.note(f"{pairs}: {describe_columns(named)}.", None)
    if out is not None:
        console.print(f"{found.n_pairs:,} predictions are in {out}.")
    if found.n_unknown:
        console.note(
            f"{found.n_unknown:,} of {found.n_pairs:,} pairs have a user or an item that training "
            f"did not see; they are {FALLBACKS[unknown]}."
        )


@command("marginmf labels predict l.marginmf songs.csv --out found.csv", name="predict")
def predict_labels(
    *,
    model: options.ModelFile,
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
        bool,
        Option(
            "--scores",
            help="Also how far each label is above its threshold or, of a model with the decision "
            "jaccard or f1, above the limit of its row.",
        ),
    ] = False,
    top: Annotated[
        int | None,
        Option(min=1, metavar="K", help="The K best labels of each row instead, with scores."),
    ] = None,
    columns: options.LabelColumns,
    raw: options.Raw = False,
    console: options.ConsoleOptions,
) -> None:
    """Predict the labels of every row of a file; print CSV or write a file.

    Rows keep their order and are counted from 1; names of labels have a semicolon between them.
    Features are found by their names where file and model have them; those of svmlight files by
    their numbers, and what no row names is 0. Columns with the name of a label of the model are
    not features.
    """
    from marginmf.cli import estimators, inputs, output

    output.check_columns(out, model, file, columns.xml, also=(ARRAYS,))
    in_arrays = out is not None and out.suffix.lower() == ARRAYS
    if in_arrays and (top is not None or form == "table"):
        raise ValueError(f"{out} holds arrays: leave --top and --as out, or name a .csv file.")
    if top is not None and (scores or form == "table"):
        raise ValueError("--top has scores of its own: leave --scores and --as out.")
    fitted = estimators.load_model(model, "labels")
    names = tuple(map(str, fitted.classes_))
    X = inputs.read_label_rows(file, names, fitted, columns)
    found = _LabelPredictions(fitted, X, names, form, scores, top)
    if out is not None and in_arrays:
        found.write_arrays(out)
        written: dict[str, Any] = {"out": str(out)}
    elif console.as_json and out is None and top is None:
        written = {"out": None, "predictions": list(found.records())}
    else:
        written = output.write_batches(found.batches(), out, console.as_json, "predictions", raw)
    console.print_json({"model": str(model), "n_rows": len(found), **written})
    if out is not None:
        console.print(f"The labels of {len(found):,} rows are in {out}.")


@dataclass
class _PairPredictions:
    """Pairs in a file and a model that predicts them; counts what it has seen of them."""

    model: "RatingsEstimator"
    source: "Source"
    columns: dict[str, Any]
    answer: Any
    proba: bool
    unknown: Any
    n_pairs: int = 0
    n_unknown: int = 0

    def batches(self) -> "Iterator[dict[str, Array]]":
        """Yield columns of users, items and predictions."""
        model = self.model
        for written, pairs, known in self._pairs():
            self.n_pairs += len(pairs)
            self.n_unknown += int((~known).sum())
            batch = {"user": written[:, 0], "item": written[:, 1]}
            predicted = model.predict(pairs, unknown=self.unknown, output=self.answer)
            batch["rating"] = self._in_words(predicted)
            if self.proba:
                probabilities = model.predict_proba(pairs, unknown=self.unknown)
                for level, column in zip(model.levels_, probabilities.T, strict=True):
                    batch[f"p_{level:g}"] = column
            yield batch

    def _in_words(self, predicted: "Array") -> "Array":
        """Return levels as they were called in the ratings of the fit, if those were words."""
        from marginmf._utils.ids import as_objects

        names = self.model.level_names_
        if names is None or self.answer == "mean":
            return predicted
        return as_objects(names.get(level, "") for level in predicted.tolist())

    def refuse_unknown(self) -> None:
        """Raise an error, before anything is written, if the model does not know some pair."""
        from marginmf._utils.ids import shown

        before = 0
        for written, pairs, known in self._pairs():
            if not known.all():
                row = int(known.argmin())
                user, item = written[row].tolist()
                users, items = self.model.users_, self.model.items_
                user_known = users.encode(pairs[row : row + 1, 0], quiet=True)[0] >= 0
                index, unseen = (items, item) if user_known else (users, user)
                raise ValueError(
                    f"{self.source.where}: the {index.what} {shown(unseen)} of pair "
                    f"{before + row + 1:,} was not seen in training. {index.hint(unseen)}"
                )
            before += len(pairs)

    def _pairs(self) -> "Iterator[tuple[Array, Array, Array]]":
        """Yield pairs as written, with ids as the model has them, and whether it has them."""
        from marginmf.cli.inputs import convert_ids
        from marginmf.datasets import iterate_pairs
        from marginmf.datasets.files.formats import TEXT, recognise
        from marginmf.datasets.files.text import first_row
        from marginmf.datasets.table import as_pairs

        users, items = self.model.users_, self.model.items_
        reading = {"names": self.model.column_names_, **self.columns}
        if "header" not in reading and recognise(self.source) is TEXT:
            # Names of columns and a pair of names look alike; but the model knows ids.
            reading |= {"header": False} if self._knows(first_row(self.source)) else {}
        for written in iterate_pairs(self.source, chunk=BATCH_PAIRS, **reading):
            pairs = as_pairs(convert_ids(users, written[:, 0]), convert_ids(items, written[:, 1]))
            known = (users.encode(pairs[:, 0]) >= 0) & (items.encode(pairs[:, 1]) >= 0)
            yield written, pairs, known

    def _knows(self, first: list[str]) -> bool:
        """Whether the first line holds an id of the model, and no name that columns have."""
        from marginmf.cli.inputs import written_ids
        from marginmf.datasets.files.columns import Wanted, recognise_names

        if recognise_names(first, Wanted(names=self.model.column_names_)):
            return False
        cells = [cell.strip() for cell in first]
        return any(written_ids(index, cells) for index in (self.model.users_, self.model.items_))


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

        for first, X in self._row_batches():
            numbers = np.arange(first, first + X.shape[0])
            if self.top is not None:
                scores, top = self.model.decision_function(X), min(self.top, len(self.names))
                best = np.argsort(-scores, axis=1, kind="stable")[:, :top]
                yield {
                    "row": np.repeat(numbers, top),
                    "rank": np.tile(np.arange(1, top + 1), len(numbers)),
                    "label": as_objects(self.names[label] for label in best.ravel().tolist()),
                    "score": np.take_along_axis(scores, best, axis=1).ravel(),
                }
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
            yield dict(zip(_distinct(names), values, strict=True))

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield every row as a dictionary that JSON can hold."""
        names = _distinct(self.names)
        for first, X in self._row_batches():
            scores = self.model.decision_function(X) if self.scores else None
            for index, present in enumerate(self._predict(X)):
                named: Any = self._names_of(present)
                if self.form == "table":
                    named = dict(zip(names, present.tolist(), strict=True))
                record = {"row": first + index, "labels": named}
                if scores is not None:
                    record["scores"] = dict(zip(names, scores[index].tolist(), strict=True))
                yield record

    def write_arrays(self, path: Path) -> None:
        """Write label sets as the arrays of a dataset, and scores beside them if wanted."""
        import numpy as np
        from scipy.sparse import csr_array

        from marginmf._utils.files import atomic_write
        from marginmf.datasets.labels.arrays import taken_apart

        Y = csr_array(self.model.predict(self.X)).astype(np.uint8)
        arrays = {**taken_apart("Y", Y), "label_names": np.array(self.names, dtype=np.str_)}
        if self.scores:
            arrays["scores"] = self.model.decision_function(self.X)
        with atomic_write(path) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    def _row_batches(self) -> Iterator[tuple[int, Any]]:
        """Yield some rows at a time, and the number of the first of them."""
        step = max(1, BATCH_SCORES // max(1, len(self.names)))
        for start in range(0, len(self), step):
            yield start + 1, self.X[start : start + step]

    def _predict(self, X: Any) -> "Array":
        found = self.model.predict(X)
        return found.toarray() if hasattr(found, "toarray") else found

    def _names_of(self, present: "Array") -> list[str]:
        return [self.names[label] for label in present.nonzero()[0].tolist()]


def _distinct(names: Iterable[str]) -> list[str]:
    """Return names with a number after those that come again, so that no two are equal."""
    given = list(names)
    taken, result = set(given), dict[str, None]()
    for name in given:
        new, number = name, 2
        while new in result or (new != name and new in taken):
            new, number = f"{name} ({number})", number + 1
        result[new] = None
    return list(result)
