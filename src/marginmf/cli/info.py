"""``marginmf info``: what is in a file of ratings or in a saved model."""

from typing import Any

import typer

from marginmf.cli.options import DataOptions, TalkOptions, takes_groups

EXAMPLE = "marginmf info ratings.csv"


@takes_groups
def info(data: DataOptions, talk: TalkOptions) -> None:
    """Show how many ratings, users, items and levels a file has, and whether pairs occur again."""
    from marginmf.cli.data import read_source
    from marginmf.cli.facts import ratings_facts
    from marginmf.cli.printing import show_facts, to_json

    source = read_source(data.file, data.columns, talk.progress)
    facts = ratings_facts(source.table)
    if talk.as_json:
        typer.echo(to_json({"kind": "ratings", **facts}))
        return
    show_facts(talk.out, source.title, _in_words(facts))


def _in_words(facts: dict[str, Any]) -> dict[str, str]:
    """Return the same facts as short phrases, by what they are of."""
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
