"""``marginmf info``: what is in a file of ratings or in a saved model."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from marginmf.cli.commands import command
from marginmf.cli.options import ColumnOptions, ConsoleOptions

if TYPE_CHECKING:
    from marginmf._utils.types import IntArray
    from marginmf.datasets import RatingsTable
    from marginmf.persistence import ModelDescription

SUFFIX = ".marginmf"
#: More levels than this are not listed one by one.
MOST_LEVELS = 20
#: Repeated pairs to name.
MOST_REPEATS = 3
RatingsOrModel = Annotated[
    str, Argument(metavar="FILE", help="Ratings or a model; or a dataset, such as ml-100k.")
]


@command("marginmf info ratings.csv")
def info(file: RatingsOrModel, columns: ColumnOptions, console: ConsoleOptions) -> None:
    """Show what is in a file of ratings, or in a saved model.

    Of ratings: how many there are, by whom, of what, at which levels, and whether pairs occur
    again. Of a model: what it is and what it was learned from, from the head of the file alone.
    """
    from marginmf.cli.output import show_facts

    if _is_model(Path(file)):
        from marginmf.persistence import describe

        about = describe(file)
        # Parameters may be objects, such as solvers and clusterers, which are shown as they print.
        facts = {**asdict(replace(about, params={})), "params": about.params}
        kind, title, shown = "model", file, _describe_model(about)
    else:
        from marginmf.cli.inputs import read_source

        source = read_source(file, columns.columns, console.progress)
        facts = ratings_facts(source.table)
        kind, title, shown = "ratings", source.title, _describe_ratings(facts)
    console.print_json({"kind": kind, **facts})
    show_facts(console.out, title, shown)


def _is_model(path: Path) -> bool:
    """Whether a file is called a model or begins as one: eight bytes of length, then JSON."""
    if path.suffix == SUFFIX or not path.is_file():
        return path.suffix == SUFFIX
    with path.open("rb") as file:
        head = file.read(9)
    return head[4:] == bytes(4) + b"{"


def _describe_model(about: "ModelDescription") -> dict[str, str]:
    from marginmf.cli.output import format_size

    facts = {
        "method": about.class_name,
        **_describe_counts(about),
        "file": f"{format_size(about.file_size)}, format {about.format_version}, written by "
        f"marginmf {about.marginmf_version}",
    }
    return facts | {f"  {name}": str(value) for name, value in about.params.items()}


def _describe_counts(about: "ModelDescription") -> dict[str, str]:
    """Return what a model was learned from, and how one of labels decides."""
    from marginmf.persistence import LabelCounts, PairCounts

    counts, params = about.counts, about.params
    if not isinstance(counts, LabelCounts):
        if isinstance(counts, PairCounts):
            rows, levels = f"{counts.pairs:,} pairs", ""
        else:
            rows, levels = f"{counts.ratings:,} ratings", f", {counts.levels} levels"
        learned = f"{rows} of {counts.items:,} items by {counts.users:,} users{levels}"
        return {"learned from": learned}
    learned = f"{counts.rows:,} rows, {counts.features:,} features, {counts.labels:,} labels"
    if counts.lowest_threshold is None:
        return {"learned from": learned}
    chosen = "" if params["decision"] == "sign" else f", chosen for {params['tune_for']}"
    low, high = counts.lowest_threshold, counts.highest_threshold
    among = f"threshold {low:.4g}" if low == high else f"thresholds from {low:.4g} to {high:.4g}"
    return {"learned from": learned, "decision": f"{params['decision']}{chosen}; {among}"}


def ratings_facts(table: "RatingsTable") -> dict[str, Any]:
    """Return counts, levels, density, repeated pairs and the range of times.

    Unlike `Ratings.of` it refuses nothing: a user may want to know why a fit was refused.

    >>> from marginmf.datasets import RatingsTable
    >>> table = RatingsTable("films", ["ann", "bob", "bob"], [7, 7, 7], [4, 5, 1])
    >>> facts = ratings_facts(table)
    >>> facts["density"], facts["duplicates"]["n_pairs"], facts["duplicates"]["first"]
    (1.0, 1, [["'bob'", '7']])
    """
    import numpy as np

    from marginmf._utils.ids import shown
    from marginmf.ratings.ids import IdIndex

    users, items = IdIndex(table.users, "user"), IdIndex(table.items, "item")
    rows, columns = users.encode(table.users), items.encode(table.items)
    pairs = rows.astype(np.int64) * len(items) + columns
    distinct, times = np.unique(pairs, return_counts=True)
    repeated = distinct[times > 1]
    levels, counts = np.unique(table.ratings, return_counts=True)
    listed = {f"{level:g}": int(n) for level, n in zip(levels, counts, strict=True)}
    moments = table.timestamps
    return {
        "name": table.name,
        "source": table.source,
        "n_ratings": len(table),
        "n_users": len(users),
        "n_items": len(items),
        "density": len(distinct) / (len(users) * len(items)),
        "n_levels": len(levels),
        "levels": listed if len(levels) <= MOST_LEVELS else None,
        "lowest": float(levels[0]),
        "highest": float(levels[-1]),
        "mean": float(table.ratings.mean()),
        "ratings_a_user": _count_spread(rows),
        "ratings_an_item": _count_spread(columns),
        **{
            f"{index.what}_ids": "whole numbers" if index.ids.dtype == np.int64 else "text"
            for index in (users, items)
        },
        "duplicates": {
            "n_pairs": len(repeated),
            "first": [
                [shown(users.ids[pair // len(items)]), shown(items.ids[pair % len(items)])]
                for pair in repeated[:MOST_REPEATS]
            ],
        },
        "titles": table.titles is not None,
        "timestamps": None if moments is None else [int(moments.min()), int(moments.max())],
    }


def _count_spread(codes: "IntArray") -> dict[str, float]:
    import numpy as np

    counts = np.bincount(codes)
    median = float(np.median(counts))
    return {"fewest": int(counts.min()), "median": median, "most": int(counts.max())}


def _describe_ratings(facts: dict[str, Any]) -> dict[str, str]:
    shown = {
        "ratings": f"{facts['n_ratings']:,}, {facts['density']:.2%} of all pairs",
        "users": f"{facts['n_users']:,}, {_describe_spread(facts['ratings_a_user'])}",
        "items": f"{facts['n_items']:,}, {_describe_spread(facts['ratings_an_item'])}",
        "ids": f"users {facts['user_ids']}, items {facts['item_ids']}",
        "levels": f"{facts['n_levels']}, from {facts['lowest']:g} to {facts['highest']:g}, mean "
        f"{facts['mean']:.3f}",
    }
    for level, count in (facts["levels"] or {}).items():
        shown[f"  {level}"] = f"{count:,} ({count / facts['n_ratings']:.1%})"
    repeats = facts["duplicates"]
    named = ", ".join(f"({user}, {item})" for user, item in repeats["first"])
    shown["repeated pairs"] = f"{repeats['n_pairs']:,}" + (f": {named}" if named else "")
    if facts["timestamps"]:
        shown["times"] = " to ".join(map(_format_time, facts["timestamps"]))
    return shown


def _describe_spread(counts: dict[str, float]) -> str:
    return f"{counts['fewest']:,} to {counts['most']:,} ratings each (median {counts['median']:g})"


def _format_time(seconds: int) -> str:
    """Write a time as a date if it is one in seconds since 1970, else as the number it is."""
    from datetime import UTC, datetime

    if not 0 < seconds < 2**32:
        return str(seconds)
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
