"""``marginmf info``: what is in a file of ratings or in a saved model."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginmf.cli.options import ColumnOptions, TalkOptions, takes_groups

if TYPE_CHECKING:
    from marginmf.persistence import ModelDescription

EXAMPLE = "marginmf info ratings.csv"
SUFFIX = ".marginmf"
Anything = Annotated[
    str, typer.Argument(metavar="FILE", help="Ratings or a model; or a dataset, such as ml-100k.")
]


@takes_groups
def info(file: Anything, columns: ColumnOptions, talk: TalkOptions) -> None:
    """Show what is in a file of ratings, or in a saved model.

    Of ratings: how many there are, by whom, of what, at which levels, and whether pairs occur
    again. Of a model: what it is and what it was learned from, from the head of the file alone.
    """
    from marginmf.cli.printing import show_facts, to_json

    if _is_model(Path(file)):
        from marginmf.persistence import describe

        about = describe(file)
        # Parameters may be objects, such as solvers and clusterers, which are shown as they print.
        facts = {**asdict(replace(about, params={})), "params": about.params}
        title, words = file, _model_in_words(about)
        kind = "model"
    else:
        from marginmf.cli.data import read_source
        from marginmf.cli.facts import ratings_facts

        source = read_source(file, columns.columns, talk.progress)
        facts, title = ratings_facts(source.table), source.title
        kind, words = "ratings", _ratings_in_words(facts)
    if talk.as_json:
        typer.echo(to_json({"kind": kind, **facts}))
    show_facts(talk.out, title, words)


def _is_model(path: Path) -> bool:
    """Whether a file is called a model or begins as one: eight bytes of length, then JSON."""
    if path.suffix == SUFFIX or not path.is_file():
        return path.suffix == SUFFIX
    with path.open("rb") as file:
        head = file.read(9)
    return head[4:] == bytes(4) + b"{"


def _model_in_words(about: "ModelDescription") -> dict[str, str]:
    """Return what a model file says of itself as short phrases."""
    from marginmf.cli.printing import size

    words = {
        "method": about.class_name,
        **_counts_in_words(about),
        "file": f"{size(about.file_size)}, format {about.format_version}, written by marginmf "
        f"{about.marginmf_version}",
    }
    return words | {f"  {name}": str(value) for name, value in about.params.items()}


def _counts_in_words(about: "ModelDescription") -> dict[str, str]:
    """Return what a model was learned from, and how one of labels decides."""
    from marginmf.persistence import Counts, PairCounts

    counts = about.counts
    if isinstance(counts, PairCounts):
        learned = f"{counts.pairs:,} pairs of {counts.items:,} items by {counts.users:,} users"
        return {"learned from": learned}
    if isinstance(counts, Counts):
        learned = (
            f"{counts.ratings:,} ratings of {counts.items:,} items by {counts.users:,} users, "
            f"{counts.levels} levels"
        )
        return {"learned from": learned}
    learned = f"{counts.rows:,} rows, {counts.features:,} features, {counts.labels:,} labels"
    if counts.lowest_threshold is None:
        return {"learned from": learned}
    params = about.params
    rule = str(params["decision"])
    if rule != "sign":
        rule += f", chosen for {params['tune_for']}"
    low, high = counts.lowest_threshold, counts.highest_threshold
    among = f"threshold {low:.4g}" if low == high else f"thresholds from {low:.4g} to {high:.4g}"
    return {"learned from": learned, "decision": f"{rule}; {among}"}


def _ratings_in_words(facts: dict[str, Any]) -> dict[str, str]:
    """Return the facts of a file of ratings as short phrases."""
    words = {
        "ratings": f"{facts['n_ratings']:,}, {facts['density']:.2%} of all pairs",
        "users": f"{facts['n_users']:,}, {_spread(facts['ratings_a_user'])}",
        "items": f"{facts['n_items']:,}, {_spread(facts['ratings_an_item'])}",
        "ids": f"users {facts['user_ids']}, items {facts['item_ids']}",
        "levels": f"{facts['n_levels']}, from {facts['lowest']:g} to {facts['highest']:g}, mean "
        f"{facts['mean']:.3f}",
    }
    for level, count in (facts["levels"] or {}).items():
        words[f"  {level}"] = f"{count:,} ({count / facts['n_ratings']:.1%})"
    repeats = facts["duplicates"]
    named = ", ".join(f"({user}, {item})" for user, item in repeats["first"])
    words["repeated pairs"] = f"{repeats['n_pairs']:,}" + (f": {named}" if named else "")
    if facts["timestamps"]:
        words["times"] = " to ".join(map(_moment, facts["timestamps"]))
    return words


def _spread(counts: dict[str, float]) -> str:
    return f"{counts['fewest']:,} to {counts['most']:,} ratings each (median {counts['median']:g})"


def _moment(seconds: int) -> str:
    """Write a time as a date if it is one in seconds since 1970, else as the number it is."""
    from datetime import UTC, datetime

    if not 0 < seconds < 2**32:
        return str(seconds)
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
