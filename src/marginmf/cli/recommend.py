"""``marginmf recommend`` and ``similar``: ranked lists from a saved model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from marginmf.cli.commands import command
from marginmf.cli.options import ColumnsOut, ConsoleOptions, ListLength, ModelFile

if TYPE_CHECKING:
    from marginmf._utils.types import Array

#: Users whose lists are made at a time, so that those of millions need not be in memory at once.
BATCH_USERS = 10_000
ALL_USERS = "all"


@command("marginmf recommend m.marginmf --user 42 -n 5")
def recommend(
    *,
    model: ModelFile,
    user: Annotated[
        list[str] | None, Option("--user", "-u", metavar="ID", help="A user; may be repeated.")
    ] = None,
    users: Annotated[
        str | None, Option(metavar="FILE|all", help="A file of users, one id a line; or all users.")
    ] = None,
    n: ListLength = 10,
    by: Annotated[
        Literal["relevance", "expected", "chance"] | None,
        Option(
            help="Rank by the chance to take an item times the chance to like it (relevance), by "
            "the expected rating, or by the chance to like it.",
            show_default="relevance",
        ),
    ] = None,
    level: Annotated[
        float | None,
        Option(
            help="The lowest rating that says that an item is liked; by default, ratings above "
            "the mean do."
        ),
    ] = None,
    include_seen: Annotated[
        bool, Option("--include-seen", help="Also items that the user has rated.")
    ] = False,
    candidates: Annotated[
        Path | None, Option(metavar="FILE", help="Choose among these items, one id a line.")
    ] = None,
    out: ColumnsOut = None,
    console: ConsoleOptions,
) -> None:
    """Rank the items that users have not rated by how relevant they are.

    Prints a table for each user, CSV for many users, or writes a file. The score is what items are
    ranked by, take and like are the chances that it is the product of, and the rating is the level
    that the model predicts.
    """
    from marginmf.cli import estimators, ids, output

    output.refuse_same(out, model)
    output.check_columns(out)
    if not user and users is None:
        raise ValueError("Name the users: --user ID, --users FILE or --users all.")
    estimator = estimators.load_model(model, "lists")
    chosen = _find_users(estimator, user or [], users)
    options: dict[str, Any] = {"exclude_seen": not include_seen}
    if candidates is not None:
        options["candidates"] = ids.find_ids(estimator.items_, ids.read_ids(candidates, "item"))
    if not estimators.learns_from_pairs(estimator):
        options |= {"by": by or "relevance", "level": level}
    elif by is not None or level is not None:
        raise ValueError(
            f"{model} holds a {type(estimator).__name__}, which ranks by its own scores: leave "
            "--by and --level out."
        )
    batches = (
        output.as_columns(estimator.recommend(chosen[start : start + BATCH_USERS], n, **options))
        for start in range(0, len(chosen), BATCH_USERS)
    )
    if out is None and not console.as_json:
        output.show_lists(console.out, batches, len(chosen))
        return
    written = output.write_batches(batches, out, console.as_json, "recommendations")
    console.print_json({"model": str(model), "n_users": len(chosen), "n": n, **written})
    console.print(f"Lists for {len(chosen):,} users are in {out}.")


@command("marginmf similar m.marginmf --item 50 -n 5")
def similar(
    *,
    model: ModelFile,
    item: Annotated[
        list[str] | None,
        Option("--item", "-i", metavar="ID", help="Items like this one; may be repeated."),
    ] = None,
    user: Annotated[
        list[str] | None,
        Option("--user", "-u", metavar="ID", help="Users like this one; may be repeated."),
    ] = None,
    n: ListLength = 10,
    console: ConsoleOptions,
) -> None:
    """Rank items by their similarity to an item, or users by their similarity to a user.

    The similarity is the cosine of the angle between what the model has learned of the two.
    """
    from marginmf.cli.estimators import load_model
    from marginmf.cli.ids import find_ids
    from marginmf.cli.output import as_columns, records, show_lists

    if bool(item) == bool(user):
        raise ValueError("Name what to look at: either --item ID or --user ID.")
    estimator = load_model(model, "lists")
    find = getattr(estimator, "similar_items" if item else "similar_users", None)
    if find is None:
        raise ValueError(
            f"{model} holds a model of items alone ({type(estimator).__name__}): ask with --item."
        )
    index = estimator.items_ if item else estimator.users_
    ids = find_ids(index, list(dict.fromkeys(item or user or [])))
    columns = as_columns(find(ids, n))
    console.print_json({"model": str(model), "n": n, "similar": records([columns])})
    if not console.as_json:
        show_lists(console.out, [columns], len(ids))


def _find_users(model: Any, named: list[str], users: str | None) -> "Array":
    """Return the ids of the users that were named, in a file or one by one, each once."""
    from marginmf.cli.ids import find_ids, read_ids

    if users == ALL_USERS:
        everybody: Array = model.users_.ids
        return everybody
    listed = read_ids(Path(users), "user") if users is not None else []
    return find_ids(model.users_, list(dict.fromkeys([*named, *listed])))
