"""``marginmf recommend``: the items that are most relevant for users, from a saved model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from marginmf.cli.options import ModelFile, TalkOptions, takes_groups

if TYPE_CHECKING:
    from marginmf._utils.types import Array
    from marginmf.ratings.lists.recommend import KnowsItems

EXAMPLE = "marginmf recommend m.marginmf --user 42 -n 5"
#: Users whose lists are made at a time, so that those of millions need not be in memory at once.
AT_A_TIME = 10_000
EVERYBODY = "all"


@takes_groups
def recommend(
    *,
    model: ModelFile,
    user: Annotated[
        list[str] | None,
        typer.Option("--user", "-u", metavar="ID", help="Whom for; again for more users."),
    ] = None,
    users: Annotated[
        str | None,
        typer.Option(metavar="FILE|all", help="A file of users, one id a line; or everybody."),
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="The length of a list.")] = 10,
    by: Annotated[
        Literal["relevance", "expected", "chance"] | None,
        typer.Option(
            help="Rank by the chance to take an item times the chance to like it (relevance), by "
            "the expected rating, or by the chance to like it.",
            show_default="relevance",
        ),
    ] = None,
    level: Annotated[
        float | None,
        typer.Option(
            help="The lowest rating that says that an item is liked; above the mean unless told.",
            show_default=False,
        ),
    ] = None,
    include_seen: Annotated[
        bool, typer.Option("--include-seen", help="Also items that the user has rated.")
    ] = False,
    candidates: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Choose among these items, one id a line."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A .csv, .tsv, .jsonl (or .gz of these), .parquet or .arrow file."),
    ] = None,
    talk: TalkOptions,
) -> None:
    """Rank the items that users have not rated by how relevant they are.

    Prints a table for each user, CSV for many users, or writes a file. The score is what items are
    ranked by, take and like are the chances that it is the product of, and the rating is the level
    that the model predicts.
    """
    from marginmf.cli.destination import check_table, refuse_same
    from marginmf.cli.ids import find_ids
    from marginmf.cli.lists import as_columns, in_parts, read_ids, records, show_lists
    from marginmf.cli.printing import to_json
    from marginmf.cli.saved import load_recommender
    from marginmf.datasets import write_columns
    from marginmf.ratings.positive import PositiveOnly

    refuse_same(out, model)
    check_table(out, "table")
    if not user and users is None:
        raise ValueError("Say whom for: --user ID, --users FILE or --users all.")
    estimator = load_recommender(model)
    whom = _users(estimator, user or [], users)
    among = None
    if candidates is not None:
        among = find_ids(estimator.items_, read_ids(candidates, "item"))
    options: dict[str, Any] = {"exclude_seen": not include_seen, "candidates": among}
    if isinstance(estimator, PositiveOnly):
        if by is not None or level is not None:
            raise ValueError(
                f"{model} holds a {type(estimator).__name__}, which ranks by its own scores: leave "
                "--by and --level out."
            )
    else:
        options |= {"by": by or "relevance", "level": level}
    pieces = (
        as_columns(estimator.recommend(part, n, **options)) for part in in_parts(whom, AT_A_TIME)
    )
    if out is not None:
        write_columns(out, pieces)
    if talk.as_json:
        lists = {} if out is not None else {"recommendations": records(pieces)}
        summary = {"model": str(model), "n_users": len(whom), "n": n}
        typer.echo(to_json({**summary, "out": None if out is None else str(out), **lists}))
    elif out is not None:
        said = f"Lists for {len(whom):,} users are in {out}."
        talk.out.print(said, markup=False, soft_wrap=True)
    else:
        show_lists(talk.out, pieces, len(whom))


def _users(model: "KnowsItems", named: list[str], users: str | None) -> "Array":
    """Return the ids of the users that were named, in a file or one by one, each once."""
    from marginmf.cli.ids import find_ids
    from marginmf.cli.lists import read_ids

    if users == EVERYBODY:
        return model.users_.ids
    listed = read_ids(Path(users), "user") if users is not None else []
    return find_ids(model.users_, list(dict.fromkeys([*named, *listed])))
