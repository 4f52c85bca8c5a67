"""Options that several commands share, in groups; and how a command takes a group.

A command takes a group as one parameter, and typer shows the group's fields as options::

    @takes_groups
    def fit(data: DataOptions, model: ModelOptions) -> None: ...
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from marginmf.protocols import ListRule
    from marginmf.ratings import Ratings

Command = Callable[..., None]
Side = Literal["user", "item"]


def takes_groups(command: Command) -> Command:
    """Let typer see the fields of a command's option groups as options of its own."""
    parameters = inspect.signature(command).parameters.values()
    groups: dict[str, Any] = {
        one.name: one.annotation for one in parameters if is_dataclass(one.annotation)
    }
    seen = []
    for one in parameters:
        if one.name in groups:
            seen += [_as_parameter(field) for field in fields(groups[one.name])]
        else:
            seen.append(one.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    run.__signature__ = inspect.Signature(seen)  # type: ignore[attr-defined]
    return run


def _as_parameter(field: Any) -> inspect.Parameter:
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if field.default is MISSING else field.default,
        annotation=field.type,
    )


@dataclass(frozen=True)
class ColumnOptions:
    """Which columns of a file of ratings to read, and what to do with pairs that occur again."""

    user_column: Annotated[
        str | None, typer.Option("--user", metavar="COLUMN", help="The column of users.")
    ] = None
    item_column: Annotated[
        str | None, typer.Option("--item", metavar="COLUMN", help="The column of items.")
    ] = None
    rating_column: Annotated[
        str | None, typer.Option("--rating", metavar="COLUMN", help="The column of ratings.")
    ] = None
    duplicates: Annotated[
        Literal["raise", "last", "mean"],
        typer.Option(help="What to do with a pair that occurs again."),
    ] = "raise"

    @property
    def columns(self) -> dict[str, str]:
        """The columns that were named."""
        named = {
            "user": self.user_column,
            "item": self.item_column,
            "rating": self.rating_column,
        }
        return {what: column for what, column in named.items() if column is not None}


@dataclass(frozen=True, kw_only=True)
class DataOptions(ColumnOptions):
    """A file of ratings, and how to read it."""

    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Ratings, one a line; or a dataset, such as ml-100k."),
    ]
    users_file: Annotated[
        Path | None,
        typer.Option("--users", metavar="FILE", help="Features of users, one user a line."),
    ] = None
    items_file: Annotated[
        Path | None,
        typer.Option("--items", metavar="FILE", help="Features of items, one item a line."),
    ] = None
    features: Annotated[
        bool, typer.Option("--features", help="Use the features that the dataset comes with.")
    ] = False

    @property
    def feature_files(self) -> dict[Side, Path]:
        """The files of features that were named, by whose they are."""
        named: dict[Side, Path | None] = {
            "user": self.users_file,
            "item": self.items_file,
        }
        return {what: path for what, path in named.items() if path is not None}


@dataclass(frozen=True)
class ModelOptions:
    """The parameters of a method; those that were not given keep the method's defaults."""

    factors: Annotated[
        int | None, typer.Option(min=1, help="How many factors.", show_default=False)
    ] = None
    reg: Annotated[
        str | None,
        typer.Option(
            metavar="auto|NUMBER|N,N,...",
            help="The weight of the penalty: chosen on held-out ratings, one for all, or one for "
            "each stage of HMF.",
            show_default=False,
        ),
    ] = None
    max_iter: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many iterations.", show_default=False)
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other parameter of the method, such as loss=logistic; again for more. "
            "als.bias=true is for one method of several.",
            show_default=False,
        ),
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Seeds everything that is random.")] = 0
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; all cores unless told.", show_default=False)
    ] = None

    @property
    def n_jobs(self) -> int:
        """Threads as the estimators count them."""
        return self.threads or -1


@dataclass(frozen=True)
class ProtocolOptions:
    """Which ratings to learn from, and which to judge on."""

    protocol: Annotated[
        Literal["weak", "strong", "holdout", "kfold"] | None,
        typer.Option(
            help="Hold out some ratings of every user (weak), some users (strong), a share of all "
            "ratings (holdout), or each rating once (kfold).",
            show_default="weak; holdout with --lists",
        ),
    ] = None
    splits: Annotated[int, typer.Option(min=1, help="How many times.")] = 3
    held_out: Annotated[
        int, typer.Option(min=1, help="Ratings to hold out of each user (weak, strong).")
    ] = 1
    test_size: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="The share to hold out (holdout).")
    ] = 0.2
    train_users: Annotated[
        float, typer.Option(min=0.0, help="Users to train on, a share or a number (strong).")
    ] = 0.8
    min_ratings: Annotated[
        int, typer.Option(min=1, help="Leave out users with fewer ratings (strong).")
    ] = 20

    @property
    def name(self) -> str:
        """The protocol that was named, or the usual one for ratings."""
        return self.protocol or "weak"

    def for_lists(self) -> "ProtocolOptions":
        """Return the same with the usual protocol for lists, unless one was named."""
        # One held-out rating of every user, as in the weak protocol, is seldom a liked one.
        return replace(self, protocol=self.protocol or "holdout")

    def summary(self) -> dict[str, Any]:
        """Return the protocol's name and the options that belong to it."""
        belonging = {
            "weak": ("held_out",),
            "strong": ("train_users", "held_out", "min_ratings"),
            "holdout": ("test_size",),
            "kfold": (),
        }
        own = {name: getattr(self, name) for name in belonging[self.name]}
        return {"name": self.name, "splits": self.splits, **own}

    def words(self) -> str:
        """Return the same in words.

        >>> ProtocolOptions("holdout", splits=1).words()
        'holdout (test-size 0.2), 1 split'
        """
        name, splits, *_ = self.summary().values()
        own = {key: value for key, value in self.summary().items() if key not in ("name", "splits")}
        listed = ", ".join(f"{key.replace('_', '-')} {value:g}" for key, value in own.items())
        return (
            f"{name}{f' ({listed})' if listed else ''}, {splits} split{'s' if splits != 1 else ''}"
        )


@dataclass(frozen=True)
class ListOptions:
    """Whether lists are judged in place of predicted ratings, and by which rule."""

    lists: Annotated[
        bool, typer.Option("--lists", help="Judge lists of items, not predicted ratings.")
    ] = False
    k: Annotated[
        int | None,
        typer.Option("--k", min=1, help="The length of the lists.", show_default="10"),
    ] = None
    level: Annotated[
        str | None,
        typer.Option(
            metavar="any|NUMBER",
            help="Held-out ratings from this level on are relevant, or any of them.",
            show_default="above the mean",
        ),
    ] = None
    by: Annotated[
        Literal["relevance", "expected", "chance"] | None,
        typer.Option(help="What items are ranked by.", show_default="the method's own"),
    ] = None
    positive_only: Annotated[
        bool,
        typer.Option(
            "--positive-only", help="Rows need no ratings: whatever is there is relevant."
        ),
    ] = False

    @property
    def rule(self) -> "ListRule | None":
        """The rule that lists are judged by; None where ratings are."""
        given = {
            "k": self.k,
            "level": None if self.level is None else _parse_level(self.level),
            "by": self.by,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if self.positive_only:
            if "level" in given:
                raise ValueError("--level is about ratings, which --positive-only does not read.")
            given["level"] = "any"
        if self.lists:
            from marginmf.protocols import ListRule

            return ListRule(**given)  # type: ignore[arg-type]
        if given:
            option = "positive-only" if self.positive_only else next(iter(given))
            raise ValueError(f"--{option} is for lists: add --lists.")
        return None

    def check_scale(self, ratings: "Ratings") -> None:
        """Raise an error if the level is not on the scale: better now than after the fits."""
        try:
            if (rule := self.rule) is not None:
                rule.threshold(ratings)
        except ValueError as error:
            raise ValueError(str(error).replace("level=", "--level ")) from None

    def words(self) -> str:
        """Return the rule as the end of a sentence on the protocol, nothing where there is none.

        >>> ListOptions(True, k=5, level="4").words(), ListOptions().words()
        ('; lists of 5, relevant from 4', '')
        """
        if not self.lists:
            return ""
        relevant = {None: "above the mean", "any": "if rated"}
        level = relevant.get(self.level, f"from {self.level}")
        level = "if there" if self.positive_only else level
        by = "" if self.by is None else f", by {self.by}"
        return f"; lists of {self.k or 10}{by}, relevant {level}"


def _parse_level(text: str) -> float | str:
    """Read a level: ``any`` or a number.

    >>> _parse_level("any"), _parse_level("3.5")
    ('any', 3.5)
    """
    if text.strip() == "any":
        return "any"
    try:
        level = float(text)
    except ValueError:
        level = math.nan
    if not math.isfinite(level):
        raise ValueError(f"--level {text} is not a rating: give a number, or any.")
    return level


@dataclass(frozen=True)
class TalkOptions:
    """What a command prints: tables or JSON on standard output, notes on standard error."""

    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars and no notes.")] = (
        False
    )

    @property
    def progress(self) -> bool:
        """Whether progress is shown."""
        return not self.quiet

    @property
    def out(self) -> "Console":
        """Where tables go: nowhere when JSON is wanted."""
        from rich.console import Console

        return Console(quiet=self.as_json, highlight=False)

    @property
    def notes(self) -> "Console":
        """Where notes and progress go."""
        from rich.console import Console

        return Console(stderr=True, quiet=self.quiet, highlight=False)


#: The methods, as `marginmf.cli.models` finds them; written here so that --help need not look.
METHODS = ("hmf", "mmmf", "pmmmf", "bmmmf", "als", "pmf", "bias", "ensemble")
#: Those for who has what.
POSITIVE = ("ease", "itemknn", "oneclass", "popular")
MethodName = Annotated[
    str,
    typer.Option("--model", "-m", metavar="NAME", help=f"The method: {', '.join(METHODS)}."),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that fit saved.")]
