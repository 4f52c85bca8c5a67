"""What ``evaluate`` and ``compare`` share: options, and the tables of a `Comparison`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from typer import Option

from marginmf.cli import options

if TYPE_CHECKING:
    from rich.console import Console

    from marginmf.datasets import LabelsTable
    from marginmf.protocols import Comparison, ListRule, SplitProtocol

    #: A comparison, its data and settings for programs, and the same in lines for people.
    Outcome = tuple[Comparison, dict[str, Any], list[str]]

#: The class of each protocol in `marginmf.protocols`, and the options that belong to it.
PROTOCOLS: dict[str | None, tuple[str, ...]] = {
    "weak": ("WeakGeneralisation", "held_out"),
    "strong": ("StrongGeneralisation", "train_users", "held_out", "min_ratings"),
    "holdout": ("HoldOut", "test_size"),
    "kfold": ("KFold",),
    "time": ("TimeSplit", "test_size"),
    "time-per-user": ("TimeSplit", "held_out"),
}
ALL_MODELS = "all"
#: The most splits that are listed one by one, and the least width that has room for descriptions.
MOST_SPLITS, WIDE = 5, 96
#: Before the best of a column in the rows of a comparison: a character that no cell has.
MARK = "\x1f"


@dataclass(frozen=True)
class ProtocolOptions:
    """Which ratings to learn from, and which to test on."""

    panel: ClassVar = "Protocol"
    protocol: Annotated[
        Literal["weak", "strong", "holdout", "kfold", "time", "time-per-user"] | None,
        Option(
            help="Hold out some ratings of every user (weak), some users (strong), a share of all "
            "ratings (holdout), each rating once (kfold), the latest ratings (time), or the latest "
            "of every user (time-per-user).",
            show_default="weak; holdout with --lists",
        ),
    ] = None
    splits: Annotated[
        int | None,
        Option(
            min=1,
            help="Number of splits; in time, of windows, each predicted from all before it.",
            show_default="3; 1 in time",
        ),
    ] = None
    held_out: Annotated[
        int, Option(min=1, help="Held-out ratings of each user (weak, strong, time-per-user).")
    ] = 1
    test_size: Annotated[
        float, Option(min=0.0, max=1.0, help="Share to hold out (holdout, time).")
    ] = 0.2
    train_users: Annotated[
        float, Option(min=0.0, help="Users to train on, a share or a number (strong).")
    ] = 0.8
    min_ratings: Annotated[int, Option(min=1, help="Skip users with fewer ratings (strong).")] = 20

    def resolve(self, lists: bool) -> "ProtocolOptions":
        """Return the same with a protocol: unless one was named, the usual one."""
        # One held-out rating of every user, as in the weak protocol, is seldom a liked one.
        return replace(self, protocol=self.protocol or ("holdout" if lists else "weak"))

    @property
    def timed(self) -> bool:
        """Whether the time of every rating is needed."""
        return PROTOCOLS[self.protocol][0] == "TimeSplit"

    @property
    def n_splits(self) -> int:
        """The number of splits: that which was given, or the usual one."""
        return self.splits or (1 if self.timed else 3)

    def make(self, seed: int) -> "SplitProtocol":
        """Return the protocol, with the options that belong to it."""
        from marginmf import protocols

        if self.protocol == "kfold" and self.n_splits < 2:
            raise ValueError("kfold holds each part out once and needs 2 splits or more.")
        own = self._own()
        if not 0 < own.get("test_size", 0.5) < 1:
            raise ValueError(f"--test-size {self.test_size:g} must be between 0 and 1.")
        if self.timed and self.n_splits * own.get("test_size", 0) >= 1:
            raise ValueError(
                f"--splits {self.n_splits} of --test-size {self.test_size:g} each leave no ratings "
                "to train on: give fewer or smaller ones."
            )
        if self.protocol == "time-per-user":
            own = {"test_size": own.pop("held_out"), "per_user": True}
        if "train_users" in own:
            users = own.pop("train_users")
            own["n_train_users"] = int(users) if users > 1 else users
        kind = getattr(protocols, PROTOCOLS[self.protocol][0])
        return kind(n_splits=self.n_splits, random_state=seed, **own)

    def summary(self) -> dict[str, Any]:
        """Return the protocol's name and the options that belong to it."""
        return {"name": self.protocol, "splits": self.n_splits, **self._own()}

    def describe(self) -> str:
        """Return the same in words.

        >>> ProtocolOptions("holdout", splits=1).describe(), ProtocolOptions("time").describe()
        ('holdout (test-size 0.2), 1 split', 'time (test-size 0.2), 1 split')
        """
        own = ", ".join(f"{key.replace('_', '-')} {value:g}" for key, value in self._own().items())
        splits = f"{self.n_splits} split{'s' if self.n_splits != 1 else ''}"
        return f"{self.protocol}{f' ({own})' if own else ''}, {splits}"

    def _own(self) -> dict[str, Any]:
        return {option: getattr(self, option) for option in PROTOCOLS[self.protocol][1:]}


@dataclass(frozen=True)
class ListOptions:
    """Whether lists are judged in place of predicted ratings, and by which rule."""

    panel: ClassVar = "Lists"
    lists: Annotated[bool, Option("--lists", help="Judge lists of items, not ratings.")] = False
    k: Annotated[
        int | None, Option("--k", min=1, help="The length of the lists.", show_default="10")
    ] = None
    level: Annotated[
        str | None,
        Option(
            metavar="any|NUMBER",
            help="Held-out ratings from this level on are relevant, or any of them.",
            show_default="above the mean",
        ),
    ] = None
    by: Annotated[
        Literal["relevance", "expected", "chance"] | None,
        Option(help="What items are ranked by.", show_default="the method's own"),
    ] = None
    positive_only: Annotated[
        bool, Option("--positive-only", help="Rows need no ratings: every row is relevant.")
    ] = False

    def make(self) -> "ListRule | None":
        """Return the rule that lists are judged by; None where ratings are."""
        from marginmf.cli.estimators import parse_number

        level: Any = None if self.level is None else self.level.strip()
        if level not in (None, "any"):
            level = parse_number(level)
            if level is None:
                raise ValueError(f"--level {self.level} is not a rating: give a number, or any.")
        rule = options.given(k=self.k, level=level, by=self.by)
        if self.positive_only:
            if "level" in rule:
                raise ValueError("--level is about ratings, which --positive-only does not read.")
            rule["level"] = "any"
        if self.lists:
            from marginmf.protocols import ListRule

            return ListRule(**rule)
        if rule:
            option = "positive-only" if self.positive_only else next(iter(rule))
            raise ValueError(f"--{option} is for lists: add --lists.")
        return None

    def describe(self) -> str:
        """Return the rule as the end of a sentence on the protocol, nothing where there is none.

        >>> ListOptions(True, k=5, level="4").describe(), ListOptions().describe()
        ('; lists of 5, relevant from 4', '')
        """
        if not self.lists:
            return ""
        words = {None: "above the mean", "any": "if rated"}
        level = "if there" if self.positive_only else words.get(self.level, f"from {self.level}")
        by = f", by {self.by}" if self.by else ""
        return f"; lists of {self.k or 10}{by}, relevant {level}"


@dataclass(frozen=True)
class FoldOptions:
    """Which rows to learn from, and which to test on."""

    panel: ClassVar = "Protocol"
    cv: Annotated[int, Option(min=2, help="Number of folds, each held out once.")] = 5
    stratified: Annotated[
        bool, Option("--stratified", help="Every label equally frequent in all folds.")
    ] = False
    split: Annotated[
        bool, Option("--split", help="The training and test rows of the file's owner instead.")
    ] = False

    def make(self, table: "LabelsTable", seed: int) -> Any:
        """Return a splitter, or the rows of the only split."""
        from sklearn.model_selection import KFold

        from marginmf.cli.inputs import check_folds
        from marginmf.protocols import IterativeStratifiedKFold

        if self.split:
            if table.train_idx is None or table.test_idx is None:
                raise ValueError(f"{table.name} has no training and test rows: leave --split out.")
            return [(table.train_idx, table.test_idx)]
        check_folds(table, self.cv)
        if self.stratified:
            return IterativeStratifiedKFold(self.cv, seed)
        return KFold(self.cv, shuffle=True, random_state=seed)

    def summary(self) -> dict[str, Any]:
        """Return what is held out, for programs."""
        if self.split:
            return {"name": "split", "folds": 1}
        return {"name": "cv", "folds": self.cv, "stratified": self.stratified}

    def describe(self) -> str:
        """Return the same in words.

        >>> FoldOptions(10, stratified=True).describe(), FoldOptions(split=True).describe()
        ('10 folds, stratified', "the file's own training and test rows")
        """
        if self.split:
            return "the file's own training and test rows"
        return f"{self.cv} folds{', stratified' * self.stratified}"


def choose_models(text: str, known: Sequence[str], example: str) -> tuple[list[str], bool]:
    """Return the names of ``--models``, and whether all are meant, or those that suit the data."""
    from marginmf.cli.estimators import parse_model_names

    names = parse_model_names(text, example)
    return (list(known), True) if ALL_MODELS in names else (names, False)


def compare_ratings(
    names: list[str],
    lists: ListOptions,
    protocol: ProtocolOptions,
    model: options.ModelOptions,
    data: options.DataOptions,
    console: options.ConsoleOptions,
    answer: Any = "median",
    skip_unsuitable: bool = False,
) -> "Outcome":
    """Read ratings, or who has what alone, and compare methods on them."""
    from marginmf import protocols
    from marginmf.cli import estimators, inputs

    protocol = protocol.resolve(lists.lists)
    if lists.lists and answer != "median":
        raise ValueError(f"--answer {answer} is about ratings: leave it out with --lists.")
    rule, splitter = lists.make(), protocol.make(model.seed)
    models = estimators.make_models(names, model, lists=lists.lists)
    if lists.positive_only:
        for name in names:
            if name not in options.POSITIVE:
                raise ValueError(
                    f"{name} learns from ratings, which --positive-only does not read: name "
                    f"methods of {', '.join(options.POSITIVE)}."
                )
        source, ratings = inputs.read_pairs_checked(data, None, console.progress, protocol.timed)
    else:
        source, ratings = inputs.read_ratings_checked(data, console.progress, protocol.timed)
    if rule is not None:
        rule.threshold(ratings)  # so that a fault is found before the fits
    found = protocols.compare(
        source.table,
        models,
        splitter,
        lists=rule,
        output=answer,
        unsuitable="skip" if skip_unsuitable else "raise",
        progress=console.progress,
        **source.features,
    )
    about: dict[str, Any] = {"data": source.summary(), "protocol": protocol.summary()}
    about |= {"unknown_share": found.unknown_share, "seed": model.seed}
    about |= {} if lists.lists else {"answer": answer}
    measured = f"; answer {answer}" if answer != "median" else ""
    heading = [*source.lines(), f"Protocol {protocol.describe()}{lists.describe()}{measured}."]
    if protocol.timed and found.unknown_share:
        new = f"{found.unknown_share:.1%} of the test ratings"
        heading.append(f"{new} are of users or items without earlier ratings.")
    return found, about, heading


def compare_label_sets(
    names: list[str],
    folds: FoldOptions,
    model: options.LabelModelOptions,
    decision: options.DecisionOptions,
    data: options.LabelDataOptions,
    console: options.ConsoleOptions,
    skip_unsuitable: bool = False,
) -> "Outcome":
    """Read label sets and compare methods on them."""
    from marginmf import protocols
    from marginmf.cli import estimators, inputs

    models = estimators.make_label_models(names, model, decision)
    table = inputs.read_label_table(data, console.progress)
    models = estimators.scale_features(models, model, table)
    splitter = folds.make(table, model.seed)
    unsuitable: Any = "skip" if skip_unsuitable else "raise"
    found = protocols.compare_labels(
        table, models, splitter, unsuitable=unsuitable, progress=console.progress
    )
    about = {
        "data": inputs.summarise_labels(table),
        "folds": folds.summary(),
        "decision": decision.parameters(),
        "seed": model.seed,
    }
    all_labelled = bool((table.Y.sum(axis=1) > 0).all())
    held_out = f"Held out: {folds.describe()}. Decision: {decision.describe(all_labelled)}."
    return found, about, [inputs.describe_labels(table), held_out]


def show_method(console: "Console", found: "Comparison", name: str) -> None:
    """Print a row for every metric of one method, with each split where there is room for them."""
    from marginmf.cli.output import new_table
    from marginmf.cli.terminal import mark_best
    from marginmf.metrics import metric

    listed = [f"split {number}" for number in range(1, found.n_splits + 1)]
    headings = ["metric", name, *["95 % interval"] * (found.kind == "lists")]
    rows = [[*headings, *listed]]
    for key, values in found.values[name].items():
        one = metric(key, found.kind)
        cells = [found.cell(name, key)]
        if found.kind == "lists":
            ends = found.interval(name, key)
            cells = [one.format(found.mean(name, key)), " to ".join(map(one.format, ends or ()))]
        title = one.title(None if found.rule is None else found.rule.k)
        rows.append([title, *cells, *map(one.format, values)])
    if not 1 < len(listed) <= MOST_SPLITS or _width(rows) > console.width:
        rows = [row[: len(headings)] for row in rows]
    table = new_table(*rows[0], numbers=len(rows[0]) - 1)
    for row in rows[1:]:
        table.add_row(*(mark_best(console, cell, best=False) for cell in row))
    console.print(table)
    if found.kind == "lists":
        n_users = len(found.user_values(name))
        console.print(f"Means and intervals are over {n_users:,} users with a relevant item.")


def show_comparison(
    console: "Console", found: "Comparison", descriptions: Mapping[str, str] | None = None
) -> None:
    """Print a row for every method, with the best of each column marked.

    Columns that there is no room for are left out, and so are descriptions of the methods.
    """
    from marginmf.cli.output import new_table
    from marginmf.cli.terminal import mark_best, styled

    shown = list(found.metrics)
    # Recall says more of lists than precision; of other metrics, the first matter most.
    while len(shown) > 2 and _width(found.rows(shown)) > console.width:
        shown.remove("precision" if "precision" in shown else shown[-2])
    headings, *rows = found.rows(shown, (MARK, ""))
    described = descriptions if descriptions and console.width >= WIDE else {}
    first = ["method", "what it is"] if described else ["method"]
    table = new_table(*first, *headings[1:], numbers=len(headings) - 1)
    for name, *cells in rows:
        marked = (mark_best(console, cell.removeprefix(MARK), MARK in cell) for cell in cells)
        words = [styled(described[name], "dim")] if described else []
        table.add_row(name, *words, *marked)
    console.print(table)
    if "p" in headings:
        console.print(f"p is that of the difference from the best {headings[1]}.")


def _width(rows: list[list[str]]) -> int:
    """Return the width of a table: three blanks between columns, one at each end."""
    return sum(max(map(len, column)) + 3 for column in zip(*rows, strict=True)) - 1


def check_table(out: Path | None, *read: str | Path | None) -> None:
    """Raise an error if a table cannot be written to a path, before the work, or if it is read."""
    from marginmf.cli.output import PICTURES, check_destination, check_picture, refuse_same

    refuse_same(out, *read)
    if out is not None:
        check_destination(out, "table", formats=(".csv", ".md", ".json", *PICTURES))
        check_picture(out if out.suffix.lower() in PICTURES else None)


def write_table(found: "Comparison", result: dict[str, Any], out: Path) -> None:
    """Write a comparison in the format of the ending: text, the result as JSON, or a picture."""
    from marginmf import plots
    from marginmf._utils.files import atomic_write
    from marginmf.cli.output import save_figure, to_json

    texts = {
        ".csv": found.to_csv,
        ".md": found.to_markdown,
        ".json": lambda: to_json(result, "utf-8") + "\n",
    }
    ending = out.suffix.lower()
    if ending in texts:
        with atomic_write(out) as file:
            file.write(texts[ending]().encode())
        return
    # NMAE is MAE in another unit, and coverage is neither better nor worse.  Not every method has
    # probabilities.
    measured = found.values.items()
    common = set.intersection(*(set(own) for _, own in measured)) - {"nmae", "coverage"}
    drawn = [name for name in found.metrics if name in common]
    values = {method: {name: own[name] for name in drawn} for method, own in measured}
    save_figure(plots.error_bars(values), out)
