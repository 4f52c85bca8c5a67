"""Options that several commands share, in groups; see `marginmf.cli.commands`.

Nothing here imports a numerical library, so that ``--help`` need not wait for one.
"""

import csv
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer
from typer import Argument, Option

from marginmf._utils.printable import LONGEST_MESSAGE, printable

if TYPE_CHECKING:
    from rich.console import Console

#: The width of output that is not a terminal, unless ``COLUMNS`` says another.
NO_EDGE = 10_000
#: The ratings methods that choose their regularisation strength: the factorisers.
TUNABLE = ("hmf", "mmmf", "pmmmf", "bmmmf", "als", "pmf")
#: The methods of `marginmf.ratings.METHODS`, of its `POSITIVE`, and of `marginmf.labels.METHODS`.
METHODS = (
    *(*TUNABLE, "bias", "ensemble"),
    *("bpmf", "gibbsmmmf", "gibbsipmmmf", "ipmmmf", "urp", "attitude"),
    *("gplvm", "nmf", "svd", "imputedsvd"),
)
POSITIVE = ("ease", "itemknn", "oneclass", "popular")
LABEL_METHODS = (
    *("ensemble", "kernel", "ridge-embedding", "grople", "mlchmf"),
    *("binary-relevance", "classifier-chains", "mlknn", "plst", "cplst"),
    *("cssp", "faie", "leml", "mlsf", "bpmll", "lift", "ssjdr", "llsf"),
    *("rakel", "label-powerset", "clr", "mldt", "adaboost-mh", "adaboost-mr"),
)


def complete(*names: str) -> Callable[[str], list[str]]:
    """Return what a shell may complete the beginning of one of these names to, or of several.

    >>> complete("hmf", "als", "pmf")("hmf,a")
    ['hmf,als']
    """

    def find(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in names if name.startswith(last)]

    return find


def complete_data(kind: Literal["ratings", "labels"] | None) -> Callable[[str], list[str]]:
    """Return what a shell may complete the beginning of a file, or of a known dataset, to."""

    def find(incomplete: str) -> list[str]:
        from marginmf.datasets.registry import entries

        names = [name for name, entry in entries().items() if kind in (None, entry.kind)]
        folder, slash, beginning = incomplete.rpartition("/")
        files = sorted(Path(f"{folder}{slash}" or ".").glob("*"))
        # Files whose name begins with a dot are not meant, unless it is written.
        shown = [one for one in files if one.name.startswith(beginning)]
        shown = [one for one in shown if beginning or not one.name.startswith(".")]
        own = [f"{folder}{slash}{one.name}{'/' * one.is_dir()}" for one in shown]
        return [*(name for name in names if name.startswith(incomplete)), *own]

    return find


def _method_option(*names: str) -> Any:
    """Return the option that takes one of these methods."""
    listed, completed = f"The method: {', '.join(names)}.", complete(*names)
    return Option("--model", "-m", metavar="NAME", help=listed, autocompletion=completed)


MethodName = Annotated[str, _method_option(*METHODS)]
TunableName = Annotated[str, _method_option(*TUNABLE)]
LabelMethodName = Annotated[str, _method_option(*LABEL_METHODS)]
ModelFile = Annotated[Path, Argument(metavar="MODEL", help="A model that fit saved.")]
ModelOut = Annotated[Path, Option(help="Where to save the model.")]
Force = Annotated[bool, Option("--force", help="Replace the file if there is one.")]
TableOut = Annotated[
    Path | None, Option(help="Also write the table: a .csv, .md, .json, .png, .svg or .pdf file.")
]
ColumnsOut = Annotated[
    Path | None, Option(help="A .csv, .tsv, .jsonl (or .gz of these), .parquet or .arrow file.")
]
Raw = Annotated[bool, Option("--raw", help="Keep formulas and control characters in CSV and TSV.")]
UserColumn = Annotated[str | None, Option("--user", metavar="COLUMN", help="The column of users.")]
ItemColumn = Annotated[str | None, Option("--item", metavar="COLUMN", help="The column of items.")]
Header = Annotated[
    bool | None,
    Option(
        "--header/--no-header",
        help="Whether the first line holds names; found out where that is possible.",
        show_default=False,
    ),
]
MaxBytes = Annotated[
    str | None, Option(metavar="SIZE", help="What a packed file may unpack to, such as 4GB.")
]
Answer = Annotated[
    Literal["median", "mode", "mean", "rule"],
    Option(help="A point of the distribution over levels, or the method's own rule."),
]
Seed = Annotated[int, Option(min=0, help="Seed of everything that is random.")]
Threads = Annotated[int | None, Option(min=1, help="Threads; by default all cores.")]
ListLength = Annotated[int, Option("-n", min=1, help="The length of a list.")]
Settings = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="NAME=VALUE",
        help="A parameter of the method, such as n_factors=50; may be repeated. als.reg=2 or "
        "plst.reg=2 is for one method of several.",
    ),
]


@dataclass(frozen=True)
class ConsoleOptions:
    """What a command prints: tables or JSON on standard output, notes on standard error."""

    panel: ClassVar = "Output"
    as_json: Annotated[bool, Option("--json", help="Print one JSON object only.")] = False
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress bars and no notes.")] = False

    @property
    def progress(self) -> bool:
        """Whether progress is shown: not in logs and pipes."""
        from marginmf import progress

        return not self.quiet and progress.is_watched()

    @property
    def out(self) -> "Console":
        """Where tables go: nowhere when JSON is wanted."""
        from marginmf.cli.terminal import PlainConsole

        # Files and pipes have no edge at which lines would have to end.
        wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else NO_EDGE
        return PlainConsole(quiet=self.as_json, width=wide)

    def print(self, *lines: str, most: int | None = LONGEST_MESSAGE) -> None:
        """Print lines, unless JSON is wanted; of longer ones the beginning and the end."""
        for line in lines:
            self.out.print(printable(line, most), soft_wrap=True)

    def note(self, text: str, style: str | None = "yellow") -> None:
        """Print text on standard error, unless notes are not wanted."""
        from marginmf.cli.terminal import PlainConsole

        notes = PlainConsole(stderr=True, quiet=self.quiet)
        notes.print(printable(text, LONGEST_MESSAGE), style=style, soft_wrap=True)

    def print_json(self, result: dict[str, Any]) -> None:
        """Print a result as JSON where that is wanted."""
        if self.as_json:
            from marginmf.cli.output import to_json

            typer.echo(to_json(result))


@dataclass(frozen=True)
class ColumnOptions:
    """Which columns of a file of ratings to read."""

    panel: ClassVar = "Data"
    user_column: UserColumn = None
    item_column: ItemColumn = None
    rating_column: Annotated[
        str | None, Option("--rating", metavar="COLUMN", help="The column of ratings.")
    ] = None
    header: Header = None
    max_bytes: MaxBytes = None

    @property
    def columns(self) -> dict[str, str]:
        """The columns that were named."""
        return given(user=self.user_column, item=self.item_column, rating=self.rating_column)

    def reading(self) -> dict[str, Any]:
        """Return the arguments of `marginmf.datasets.read_ratings` that were given."""
        return {**self.columns, **given(header=self.header, max_bytes=self.max_bytes)}


@dataclass(frozen=True)
class ScaledColumns(ColumnOptions):
    """Which columns to read, and what the levels of ratings are."""

    levels: Annotated[
        str | None,
        Option(
            metavar="N|WORD,WORD,...",
            help="Bin ratings of many values into N levels; or the levels, such as words, from "
            "the lowest: bad,good,great.",
        ),
    ] = None

    def reading(self) -> dict[str, Any]:
        """Return the arguments of `marginmf.datasets.read_ratings` that were given."""
        from marginmf.datasets.files.convert import words_of

        in_words = words_of(self.scale().get("levels", ()))
        return {**super().reading(), **given(levels=in_words)}

    def scale(self) -> dict[str, Any]:
        """Return the arguments of `marginmf.ratings.Ratings.of` that say what the levels are.

        >>> ScaledColumns(levels="10").scale(), ScaledColumns(levels="bad,good").scale()
        ({'n_levels': 10}, {'levels': ['bad', 'good']})
        """
        if self.levels is None:
            return {}
        if self.levels.strip().isdecimal():
            return {"n_levels": int(self.levels)}
        return {"levels": parse_names(self.levels)}


@dataclass(frozen=True, kw_only=True)
class DataOptions(ScaledColumns):
    """A file of ratings, and how to read it."""

    file: Annotated[
        str,
        Argument(
            metavar="FILE",
            help="Ratings, one a line, - for standard input; or a dataset (ml-100k).",
            autocompletion=complete_data("ratings"),
        ),
    ]
    users_file: Annotated[
        Path | None, Option("--users", metavar="FILE", help="Features of users, one user a line.")
    ] = None
    items_file: Annotated[
        Path | None, Option("--items", metavar="FILE", help="Features of items, one item a line.")
    ] = None
    features: Annotated[
        bool, Option("--features", help="Use the features that the dataset comes with.")
    ] = False
    duplicates: Annotated[
        Literal["raise", "last", "mean"], Option(help="What to do with a pair that occurs again.")
    ] = "raise"

    @property
    def feature_files(self) -> dict[str, Path]:
        """The files of features that were named, by whose features they hold."""
        return given(user=self.users_file, item=self.items_file)


#: The parameters that options of `ModelOptions` set.
PARAMETERS = {"factors": "n_factors", "reg": "reg", "max_iter": "max_iter"}


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The parameters of a method; those that were not given keep the method's defaults."""

    panel: ClassVar = "Parameters"
    factors: Annotated[int | None, Option(min=1, help="Number of factors.")] = None
    reg: Annotated[
        str | None,
        Option(
            metavar="auto|NUMBER|N,N,...",
            help="The regularisation strength: chosen on held-out ratings (auto), one number, or "
            "one for each stage of HMF.",
        ),
    ] = None
    max_iter: Annotated[int | None, Option(min=1, help="The largest number of iterations.")] = None
    settings: Settings = None
    seed: Seed = 0
    threads: Threads = None


@dataclass(frozen=True)
class LabelColumns:
    """Which columns of a file are labels."""

    panel: ClassVar = "Data"
    labels: Annotated[
        str | None,
        Option(
            metavar="N|NAME,NAME,...",
            help="The columns that are labels: the last N, the first as -N, names, or a pattern "
            "such as 'tag_*'. Not needed for svmlight files and for ARFF files with an XML file.",
        ),
    ] = None
    xml: Annotated[
        Path | None,
        Option(metavar="FILE", help="The XML file of an ARFF file's labels, if not beside it."),
    ] = None
    ignore: Annotated[
        str | None,
        Option(metavar="NAME,NAME,...", help="Columns to leave out; quote names with commas."),
    ] = None
    max_bytes: MaxBytes = None

    def reading(self) -> dict[str, Any]:
        """Return the arguments of `marginmf.datasets.read_labels` that were given."""
        return given(
            labels=None if self.labels is None else parse_columns(self.labels),
            xml=self.xml,
            ignore=None if self.ignore is None else parse_names(self.ignore),
            max_bytes=self.max_bytes,
        )


@dataclass(frozen=True, kw_only=True)
class LabelDataOptions(LabelColumns):
    """A file of features and labels, and how to read it."""

    file: Annotated[
        str,
        Argument(
            metavar="FILE",
            help="ARFF, svmlight, CSV, Parquet, Arrow, mat or npz, - for standard input; or a "
            "dataset, such as yeast.",
            autocompletion=complete_data("labels"),
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class LabelModelOptions:
    """The parameters of label methods; those that were not given keep the methods' defaults."""

    panel: ClassVar = "Parameters"
    settings: Settings = None
    scale: Annotated[
        Literal["auto", "minmax", "none"],
        Option(
            help="Scale features to between 0 and 1 on the training rows: if they are dense "
            "(auto), always (minmax), or never."
        ),
    ] = "auto"
    seed: Seed = 0
    threads: Threads = None


#: The rules of `marginmf.labels.decisions` that follow no thresholds.
EXPECTED = ("jaccard", "f1")


@dataclass(frozen=True)
class DecisionOptions:
    """How scores become label sets."""

    panel: ClassVar = "Decision"
    decision: Annotated[
        Literal["auto", "sign", "global", "per-label", "jaccard", "f1"],
        Option(
            help="A label is predicted above 0 (sign), above one threshold (global) or above its "
            "own (per-label); or each row gets the labels whose overlap with the true ones is "
            "expected to be largest, by the Jaccard index or by F1. Chosen by cross-validation, "
            "with auto the rule itself too."
        ),
    ] = "auto"
    tune_for: Annotated[
        Literal["accuracy", "example-f1", "micro-f1", "macro-f1", "hamming"],
        Option(help="The measure that the rule is chosen for."),
    ] = "accuracy"
    top1: Annotated[
        bool | None,
        Option(
            "--top1/--no-top1",
            help="Rows without a label get their best one, or stay empty. By default they get it "
            "if every training row has a label, and --decision is not sign. jaccard and f1 give "
            "every row a label; auto leaves them out where rows may stay empty.",
        ),
    ] = None

    def parameters(self) -> dict[str, Any]:
        """Return them as the estimators call them.

        >>> DecisionOptions("per-label", "macro-f1").parameters()
        {'decision': 'per_label', 'tune_for': 'macro_f1', 'top1_if_empty': 'auto'}
        """
        return {
            "decision": self.decision.replace("-", "_"),
            "tune_for": self.tune_for.replace("-", "_"),
            "top1_if_empty": "auto" if self.top1 is None else self.top1,
        }

    def describe(self, all_labelled: bool) -> str:
        """Return the same in words, given whether every training row has a label.

        >>> DecisionOptions().describe(True), DecisionOptions("sign").describe(True)
        ('auto, chosen for accuracy, the best label where there is none', 'sign')
        """
        top1 = all_labelled and self.decision != "sign" if self.top1 is None else self.top1
        return describe_rule(self.decision, self.tune_for, top1=top1)


def describe_rule(
    rule: str,
    tune_for: str,
    thresholds: tuple[float, float] | None = None,
    shift: float = 0.0,
    *,
    top1: bool,
) -> str:
    """Write a decision rule in the words of the options.

    Of a fitted model, the lowest and the highest threshold are given, and the shift of an
    expected-overlap rule; ``top1`` is whether a row without a label gets its best one.

    >>> describe_rule("per_label", "macro_f1", (0.25, 0.75), top1=True)
    'per-label (thresholds 0.25 to 0.75), chosen for macro-f1, the best label where there is none'
    >>> describe_rule("jaccard", "accuracy", (0.1, 0.1), shift=-0.5, top1=True)
    'jaccard (expected overlap, shift -0.5), chosen for accuracy'
    """
    words = [rule.replace("_", "-")]
    if thresholds is not None and rule in EXPECTED:
        words[0] += f" (expected overlap, shift {shift:g})"
    elif thresholds is not None:
        ends = dict.fromkeys(f"{end:.4g}" for end in thresholds)
        words[0] += f" (threshold{'s' * (len(ends) > 1)} {' to '.join(ends)})"
    words += [] if rule == "sign" else [f"chosen for {tune_for.replace('_', '-')}"]
    # The sets of an expected-overlap rule are never empty.
    words += ["the best label where there is none"] if top1 and rule not in EXPECTED else []
    return ", ".join(words)


def given(**values: Any) -> dict[str, Any]:
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def parse_columns(text: str) -> int | list[str]:
    """Read how many columns are meant, or which.

    >>> parse_columns("6"), parse_columns("-6"), parse_columns("rock, jazz"), parse_columns("t_*")
    (6, -6, ['rock', 'jazz'], ['t_*'])
    """
    return int(text) if re.fullmatch(r"\s*-?\d+\s*", text) else parse_names(text)


def parse_names(text: str) -> list[str]:
    """Read names with commas between them; a name that has commas itself is in quotes.

    >>> parse_names('rock, "blues, slow"')
    ['rock', 'blues, slow']
    """
    rows = csv.reader([text], skipinitialspace=True)
    return [name.strip() for name in next(rows, [])]
