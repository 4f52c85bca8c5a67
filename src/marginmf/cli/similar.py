"""``marginmf similar``: items like an item, or users like a user, from a saved model."""

from typing import Annotated

import typer

from marginmf.cli.options import ModelFile, TalkOptions, takes_groups

EXAMPLE = "marginmf similar m.marginmf --item 50 -n 5"


@takes_groups
def similar(
    *,
    model: ModelFile,
    item: Annotated[
        list[str] | None,
        typer.Option("--item", "-i", metavar="ID", help="Items like this one; again for more."),
    ] = None,
    user: Annotated[
        list[str] | None,
        typer.Option("--user", "-u", metavar="ID", help="Users like this one; again for more."),
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="The length of a list.")] = 10,
    talk: TalkOptions,
) -> None:
    """Rank items by how like they are to an item, or users by how like they are to a user.

    The similarity is the cosine of the angle between what the model has learned of the two.
    """
    from marginmf.cli.ids import find_ids
    from marginmf.cli.lists import as_columns, records, show_lists
    from marginmf.cli.printing import to_json
    from marginmf.cli.saved import load_recommender

    if bool(item) == bool(user):
        raise ValueError("Say what to look at: either --item ID or --user ID.")
    estimator = load_recommender(model)
    find = getattr(estimator, "similar_items" if item else "similar_users", None)
    if find is None:
        raise ValueError(
            f"{model} holds a model of items alone ({type(estimator).__name__}): ask with --item."
        )
    index = estimator.items_ if item else estimator.users_
    ids = find_ids(index, list(dict.fromkeys(item or user or [])))
    columns = as_columns(find(ids, n))
    if talk.as_json:
        typer.echo(to_json({"model": str(model), "n": n, "similar": records([columns])}))
    else:
        show_lists(talk.out, [columns], len(ids))
