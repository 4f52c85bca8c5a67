"""``marginmf predict``: the ratings that a saved model expects for (user, item) pairs."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from marginmf.cli.options import ModelFile, TalkOptions, takes_groups

if TYPE_CHECKING:
    from marginmf._utils.types import Array
    from marginmf.ratings.estimator import RatingsEstimator

EXAMPLE = "marginmf predict m.marginmf pairs.csv --out predicted.csv"
#: Pairs that are read and predicted at a time: enough for the kernels, little in memory.
AT_A_TIME = 200_000
#: What becomes of pairs that training did not see.
FATE = {"fallback": "predicted from the frequencies of levels", "nan": "left empty"}


@takes_groups
def predict(
    *,
    model: ModelFile,
    pairs: Annotated[Path, typer.Argument(metavar="PAIRS", help="Users and items, a pair a line.")],
    out: Annotated[
        Path | None,
        typer.Option(help="A .csv, .tsv, .jsonl (or .gz of these), .parquet or .arrow file."),
    ] = None,
    output: Annotated[
        Literal["median", "mode", "mean", "rule"],
        typer.Option(help="A point of the distribution over levels, or the method's own rule."),
    ] = "median",
    proba: Annotated[
        bool, typer.Option("--proba", help="Also the probability of every level.")
    ] = False,
    unknown: Annotated[
        Literal["fallback", "raise", "nan"],
        typer.Option(
            help="Users and items that training did not see: predict from the frequencies of "
            "levels, refuse, or leave empty."
        ),
    ] = "fallback",
    user: Annotated[
        str | None, typer.Option("--user", metavar="COLUMN", help="The column of users.")
    ] = None,
    item: Annotated[
        str | None, typer.Option("--item", metavar="COLUMN", help="The column of items.")
    ] = None,
    talk: TalkOptions,
) -> None:
    """Predict a rating for every pair of a file; print CSV or write a file.

    The pairs keep their order. Probabilities are columns p_1, p_2 and so on, by level.
    """
    from marginmf.cli.destination import check_table, refuse_same
    from marginmf.cli.lists import records
    from marginmf.cli.printing import to_json
    from marginmf.cli.saved import load_ratings_model
    from marginmf.datasets import write_columns

    refuse_same(out, model, pairs)
    check_table(out, "table")
    columns = {"user": user, "item": item}
    named = {key: name for key, name in columns.items() if name is not None}
    job = _Job(load_ratings_model(model), pairs, named, output, proba, unknown)
    if unknown == "raise":
        job.refuse_strangers()
    if talk.as_json and out is None:
        predictions: Any = records(job.pieces())
    else:
        predictions = None
        write_columns("-" if out is None else out, job.pieces())
    if talk.as_json:
        summary = {
            "model": str(model),
            "n_pairs": job.n_pairs,
            "n_unknown": job.n_strangers,
            "out": None if out is None else str(out),
        }
        found = {} if predictions is None else {"predictions": predictions}
        typer.echo(to_json({**summary, **found}))
    elif out is not None:
        talk.out.print(f"{job.n_pairs:,} predictions are in {out}.", markup=False, soft_wrap=True)
    if job.n_strangers:
        talk.notes.print(
            f"{job.n_strangers:,} of {job.n_pairs:,} pairs have a user or an item that training "
            f"did not see; they are {FATE[unknown]}.",
            style="yellow",
            soft_wrap=True,
        )


@dataclass
class _Job:
    """Pairs in a file and a model that predicts them; counts what it has seen of them."""

    model: "RatingsEstimator"
    path: Path
    columns: dict[str, str]
    output: Any
    proba: bool
    unknown: Any
    n_pairs: int = 0
    n_strangers: int = 0

    def pieces(self) -> "Iterator[dict[str, Array]]":
        """Yield users, items and predictions, some at a time."""
        model = self.model
        for found, pairs, known in self._pairs():
            self.n_pairs += len(pairs)
            self.n_strangers += int((~known).sum())
            piece = {"user": found[:, 0], "item": found[:, 1]}
            piece["rating"] = model.predict(pairs, unknown=self.unknown, output=self.output)
            if self.proba:
                shares = model.predict_proba(pairs, unknown=self.unknown)
                for level, share in zip(model.levels_, shares.T, strict=True):
                    piece[f"p_{level:g}"] = share
            yield piece

    def refuse_strangers(self) -> None:
        """Raise an error, before anything is written, if the model does not know some pair."""
        before = 0
        for found, pairs, known in self._pairs():
            if not known.all():
                row = int(known.argmin())
                user, item = found[row].tolist()
                user_known = self.model.users_.encode(pairs[row : row + 1, 0])[0] >= 0
                strange = f"item {item}" if user_known else f"user {user}"
                raise ValueError(
                    f"{self.path}: the {strange} of pair {before + row + 1:,} was not seen in "
                    "training."
                )
            before += len(pairs)

    def _pairs(self) -> "Iterator[tuple[Array, Array, Array]]":
        """Yield pairs as they are, with ids as the model has them, and whether it has them."""
        from marginmf.cli.ids import as_known
        from marginmf.datasets import iterate_pairs
        from marginmf.datasets.table import as_pairs

        users, items = self.model.users_, self.model.items_
        for found in iterate_pairs(self.path, chunk=AT_A_TIME, **self.columns):
            pairs = as_pairs(as_known(users, found[:, 0]), as_known(items, found[:, 1]))
            known = (users.encode(pairs[:, 0]) >= 0) & (items.encode(pairs[:, 1]) >= 0)
            yield found, pairs, known
