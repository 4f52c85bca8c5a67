"""``marginmf predict``: the ratings that a saved model expects for (user, item) pairs."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from marginmf.cli import options
from marginmf.cli.commands import command

if TYPE_CHECKING:
    from marginmf._utils.types import Array
    from marginmf.ratings.estimator import RatingsEstimator

#: Pairs that are read and predicted at a time: enough for the kernels, little in memory.
BATCH_PAIRS = 200_000
#: How pairs that training did not see are answered.
ANSWERS = {"fallback": "predicted from the frequencies of levels", "nan": "left empty"}


@command("marginmf predict m.marginmf pairs.csv --out predicted.csv")
def predict(
    *,
    model: options.ModelFile,
    pairs: Annotated[Path, Argument(metavar="PAIRS", help="Users and items, a pair a line.")],
    out: options.ColumnsOut = None,
    output: Annotated[
        Literal["median", "mode", "mean", "rule"],
        Option(help="A point of the distribution over levels, or the method's own rule."),
    ] = "median",
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
    console: options.ConsoleOptions,
) -> None:
    """Predict a rating for every pair of a file; print CSV or write a file.

    The pairs keep their order. Probabilities are columns p_1, p_2 and so on, by level.
    """
    from marginmf.cli.estimators import load_model
    from marginmf.cli.output import check_columns, refuse_same, write_batches

    refuse_same(out, model, pairs)
    check_columns(out)
    columns = options.given(user=user, item=item)
    found = _PairPredictions(load_model(model, "ratings"), pairs, columns, output, proba, unknown)
    if unknown == "raise":
        found.refuse_unknown()
    written = write_batches(found.batches(), out, console.as_json, "predictions")
    counts = {"n_pairs": found.n_pairs, "n_unknown": found.n_unknown}
    console.print_json({"model": str(model), **counts, **written})
    if out is not None:
        console.print(f"{found.n_pairs:,} predictions are in {out}.")
    if found.n_unknown:
        console.note(
            f"{found.n_unknown:,} of {found.n_pairs:,} pairs have a user or an item that training "
            f"did not see; they are {ANSWERS[unknown]}."
        )


@dataclass
class _PairPredictions:
    """Pairs in a file and a model that predicts them; counts what it has seen of them."""

    model: "RatingsEstimator"
    path: Path
    columns: dict[str, str]
    output: Any
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
            batch["rating"] = model.predict(pairs, unknown=self.unknown, output=self.output)
            if self.proba:
                probabilities = model.predict_proba(pairs, unknown=self.unknown)
                for level, column in zip(model.levels_, probabilities.T, strict=True):
                    batch[f"p_{level:g}"] = column
            yield batch

    def refuse_unknown(self) -> None:
        """Raise an error, before anything is written, if the model does not know some pair."""
        before = 0
        for written, pairs, known in self._pairs():
            if not known.all():
                row = int(known.argmin())
                user, item = written[row].tolist()
                user_known = self.model.users_.encode(pairs[row : row + 1, 0])[0] >= 0
                unseen = f"item {item}" if user_known else f"user {user}"
                raise ValueError(
                    f"{self.path}: the {unseen} of pair {before + row + 1:,} was not seen in "
                    "training."
                )
            before += len(pairs)

    def _pairs(self) -> "Iterator[tuple[Array, Array, Array]]":
        """Yield pairs as written, with ids as the model has them, and whether it has them."""
        from marginmf.cli.ids import convert_ids
        from marginmf.datasets import iterate_pairs
        from marginmf.datasets.table import as_pairs

        users, items = self.model.users_, self.model.items_
        for written in iterate_pairs(self.path, chunk=BATCH_PAIRS, **self.columns):
            pairs = as_pairs(convert_ids(users, written[:, 0]), convert_ids(items, written[:, 1]))
            known = (users.encode(pairs[:, 0]) >= 0) & (items.encode(pairs[:, 1]) >= 0)
            yield written, pairs, known
