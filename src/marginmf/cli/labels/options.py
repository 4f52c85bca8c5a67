"""Options that the commands for label sets share, in groups."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

#: The methods, as `marginmf.cli.labels.models` finds them; here so that --help need not look.
METHODS = (
    "grople",
    "mlchmf",
    "binary-relevance",
    "classifier-chains",
    "mlknn",
    "plst",
    "cplst",
    "ridge-embedding",
)
MethodName = Annotated[
    str,
    typer.Option("--model", "-m", metavar="NAME", help=f"The method: {', '.join(METHODS)}."),
]


@dataclass(frozen=True)
class LabelColumns:
    """Which columns of a file are labels."""

    labels: Annotated[
        str | None,
        typer.Option(
            metavar="N|NAME,NAME,...",
            help="The columns that are labels: the last N, the first as -N, names, or a pattern "
            "such as 'tag_*'. ARFF files with their XML file, and svmlight files, say it "
            "themselves.",
            show_default=False,
        ),
    ] = None
    xml: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The XML file that names the labels of an ARFF file, if it is not beside it.",
            show_default=False,
        ),
    ] = None
    ignore: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Columns that are neither labels nor features; one with commas in quotes.",
            show_default=False,
        ),
    ] = None

    def reading(self) -> dict[str, Any]:
        """Return the arguments of `marginmf.datasets.read_labels` that were given."""
        given = {
            "labels": None if self.labels is None else parse_columns(self.labels),
            "xml": self.xml,
            "ignore": None if self.ignore is None else names_of(self.ignore),
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class LabelsData(LabelColumns):
    """A file of features and labels, and how to read it."""

    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="ARFF (or a zip of it), svmlight, CSV, Parquet, Arrow, mat or npz; or a dataset, "
            "such as yeast.",
        ),
    ]


@dataclass(frozen=True)
class LabelModel:
    """The parameters of methods; those that were not given keep the methods' defaults."""

    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter of the method, such as n_factors=50; again for more. plst.reg=2 is "
            "for one method of several.",
            show_default=False,
        ),
    ] = None
    scale: Annotated[
        Literal["auto", "minmax", "none"],
        typer.Option(
            help="Bring every feature between 0 and 1, as it is in the rows to learn from: where "
            "features are dense (auto), always, or never."
        ),
    ] = "auto"
    seed: Annotated[int, typer.Option(min=0, help="Seeds everything that is random.")] = 0
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Work in parallel; on all cores unless told.", show_default=False),
    ] = None


@dataclass(frozen=True)
class DecisionOptions:
    """How scores become label sets."""

    decision: Annotated[
        Literal["sign", "global", "per-label"],
        typer.Option(
            help="A label is predicted above 0, above one threshold, or above its own; thresholds "
            "are chosen on rows held out in turn."
        ),
    ] = "global"
    tune_for: Annotated[
        Literal["accuracy", "micro-f1", "macro-f1", "hamming"],
        typer.Option(help="The measure that thresholds are chosen for."),
    ] = "accuracy"
    top1: Annotated[
        bool, typer.Option("--top1", help="A row that would get no label gets its best one.")
    ] = False

    def parameters(self) -> dict[str, Any]:
        """Return them as the estimators call them.

        >>> DecisionOptions("per-label", "macro-f1").parameters()
        {'decision': 'per_label', 'tune_for': 'macro_f1', 'top1_if_empty': False}
        """
        return {
            "decision": self.decision.replace("-", "_"),
            "tune_for": self.tune_for.replace("-", "_"),
            "top1_if_empty": self.top1,
        }

    def words(self) -> str:
        """Return the same in words.

        >>> DecisionOptions(top1=True).words()
        'global, chosen for accuracy, the best label where there is none'
        """
        chosen = "" if self.decision == "sign" else f", chosen for {self.tune_for}"
        return f"{self.decision}{chosen}{', the best label where there is none' * self.top1}"


@dataclass(frozen=True)
class FoldOptions:
    """Which rows to learn from, and which to judge on."""

    cv: Annotated[int, typer.Option(min=2, help="Hold each of so many parts out once.")] = 5
    stratified: Annotated[
        bool,
        typer.Option("--stratified", help="Every label equally frequent in all parts."),
    ] = False
    split: Annotated[
        bool,
        typer.Option("--split", help="The training and test rows of the file's owner instead."),
    ] = False

    @property
    def n_folds(self) -> int:
        """How many times every method is fitted."""
        return 1 if self.split else self.cv

    def summary(self) -> dict[str, Any]:
        """Return what is held out, for programs."""
        if self.split:
            return {"name": "split", "folds": 1}
        return {"name": "cv", "folds": self.cv, "stratified": self.stratified}

    def words(self) -> str:
        """Return the same in words.

        >>> FoldOptions(10, stratified=True).words(), FoldOptions(split=True).words()
        ('10 folds, stratified', "the file's own training and test rows")
        """
        if self.split:
            return "the file's own training and test rows"
        return f"{self.cv} folds{', stratified' * self.stratified}"


def parse_columns(text: str) -> int | list[str]:
    """Read how many columns are meant, or which.

    >>> parse_columns("6"), parse_columns("-6"), parse_columns("rock, jazz"), parse_columns("t_*")
    (6, -6, ['rock', 'jazz'], ['t_*'])
    """
    if re.fullmatch(r"\s*-?\d+\s*", text):
        return int(text)
    return names_of(text)


def names_of(text: str) -> list[str]:
    """Read names with commas between them; one that has commas itself is in quotes.

    >>> names_of('rock, "blues, slow"')
    ['rock', 'blues, slow']
    """
    rows = csv.reader([text], skipinitialspace=True)
    return [name.strip() for name in next(rows, [])]
