"""``marginmf recommend``, ``similar`` and ``explain``: lists of items, and the reasons for them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from marginmf.cli import options
from marginmf.cli.commands import command

if TYPE_CHECKING:
    from marginmf._utils.types import Array
    from marginmf.datasets.table import Columns

#: Users with their lists that are in memory at a time.
BATCH_USERS = 10_000
ALL_USERS = "all"
#: How the names of columns of titles end, in order of preference.
TITLES = ("title", "name")
UserId = Annotated[str, Option("--user", "-u", metavar="ID", help="The user.")]
ItemId = Annotated[str, Option("--item", "-i", metavar="ID", help="The item.")]


@dataclass(frozen=True)
class TitleOptions:
    """Where the titles of items are, which lists then show."""

    items: Annotated[
        str | None,
        Option(metavar="FILE", help="Show titles, from a file of items or a dataset (ml-100k)."),
    ] = None
    title: Annotated[
        str | None,
        Option(metavar="COLUMN", help="The column of titles.", show_default="title or name"),
    ] = None

    def read(self, model: Any, progress: bool) -> "Titles":
        """Return the titles of a model's items; none where no file is named."""
        from marginmf._utils.ids import shown

        if self.items is None:
            if self.title is not None:
                raise ValueError("--title names a column of a file: name that with --items FILE.")
            return Titles()
        own = model.ratings_.source.columns.get("item")
        titles, ids = _read_titles(self.items, self.title, progress, own), model.items_.ids
        if len(ids) and not any(str(item) in titles for item in ids.tolist()):
            there = next(iter(titles), None)
            raise ValueError(
                f"{self.items} has no title of an item that the model knows: its items are like "
                f"{shown(there)}, the model's like {shown(str(ids[0]))}."
            )
        return Titles(titles)


class Titles:
    """Titles of items by their ids, as these are written; the others have an empty one."""

    def __init__(self, titles: Mapping[str, str] | None = None) -> None:
        self.titles = titles

    def of(self, item: Any) -> str:
        """Return the title of an item."""
        return (self.titles or {}).get(str(item), "")

    def add(self, columns: "Columns", beside: str = "item") -> "Columns":
        """Return columns with a title beside each id."""
        from marginmf._utils.ids import as_objects

        if self.titles is None:
            return columns
        titles = as_objects(map(self.of, columns[beside].tolist()))
        named: Columns = {}
        for name, column in columns.items():
            named[name] = column
            if name == beside:
                named["title"] = titles
        return named


@command("marginmf recommend m.marginmf --user 42 -n 5")
def recommend(
    *,
    model: options.ModelFile,
    user: Annotated[
        list[str] | None, Option("--user", "-u", metavar="ID", help="A user; may be repeated.")
    ] = None,
    users: Annotated[
        str | None, Option(metavar="FILE|all", help="A file of users, one id a line; or all users.")
    ] = None,
    n: options.ListLength = 10,
    by: Annotated[
        Literal["relevance", "expected", "chance"] | None,
        Option(
            help="Rank by the chance to take and to like an item (relevance), the expected rating, "
            "or the chance to like it.",
            show_default="relevance",
        ),
    ] = None,
    level: Annotated[
        float | None,
        Option(help="The lowest rating of a liked item.", show_default="above the mean"),
    ] = None,
    include_seen: Annotated[
        bool, Option("--include-seen", help="Also items that the user has rated.")
    ] = False,
    candidates: Annotated[
        Path | None, Option(metavar="FILE", help="Choose among these items, one id a line.")
    ] = None,
    titles: TitleOptions,
    out: options.ColumnsOut = None,
    raw: options.Raw = False,
    console: options.ConsoleOptions,
) -> None:
    """Rank the items that users have not rated by how relevant they are.

    Prints a table for each user, CSV for many users, or writes a file. The score is what items are
    ranked by: by relevance, the product of the chances to take and to like an item. Of the
    predicted distribution over the levels, there are the mean (expected), the median (rating), and
    the chance of the top level.
    """
    from marginmf.cli import estimators, inputs, output

    output.check_columns(out, model, users, candidates, titles.items)
    if not user and users is None:
        raise ValueError("Name the users: --user ID, --users FILE or --users all.")
    estimator = estimators.load_model(model, "lists")
    index = estimator.users_
    if users == ALL_USERS:
        chosen = index.ids
    else:
        listed = [] if users is None else inputs.read_ids(Path(users), "user")
        chosen = inputs.find_ids(index, list(dict.fromkeys([*(user or []), *listed])))
    settings: dict[str, Any] = {"exclude_seen": not include_seen}
    if candidates is not None:
        named = inputs.read_ids(candidates, "item")
        settings["candidates"] = inputs.find_ids(estimator.items_, named)
    if not estimators.learns_from_pairs(estimator):
        settings |= {"by": by or "relevance", "level": level}
    elif by is not None or level is not None:
        raise ValueError(
            f"{model} holds a {type(estimator).__name__}, which ranks by its own scores: leave "
            "--by and --level out."
        )
    found = titles.read(estimator, console.progress)
    by_relevance = settings.get("by") == "relevance"
    estimators.learn_missing(estimator, model, console, exposure=by_relevance)
    batches = make_lists(estimator, chosen, n, found, settings)
    if out is None and not console.as_json:
        output.show_lists(console.out, batches, len(chosen), raw)
        return
    written = output.write_batches(batches, out, console.as_json, "recommendations", raw)
    console.print_json({"model": str(model), "n_users": len(chosen), "n": n, **written})
    console.print(f"Lists for {len(chosen):,} users are in {out}.")


@command("marginmf similar m.marginmf --item 50 -n 5")
def similar(
    *,
    model: options.ModelFile,
    item: Annotated[
        list[str] | None,
        Option("--item", "-i", metavar="ID", help="Items like this one; may be repeated."),
    ] = None,
    user: Annotated[
        list[str] | None,
        Option("--user", "-u", metavar="ID", help="Users like this one; may be repeated."),
    ] = None,
    n: options.ListLength = 10,
    titles: TitleOptions,
    raw: options.Raw = False,
    console: options.ConsoleOptions,
) -> None:
    """Rank items by their similarity to an item, or users by their similarity to a user.

    The similarity is the cosine of the angle between what the model has learned of the two.
    """
    from marginmf.cli import estimators, inputs, output

    if bool(item) == bool(user):
        raise ValueError("Name what to look at: either --item ID or --user ID.")
    if user and titles.items is not None:
        raise ValueError("--items has titles of items: leave it out, or ask with --item.")
    estimator = estimators.load_model(model, "lists")
    find = getattr(estimator, "similar_items" if item else "similar_users", None)
    if find is None:
        raise ValueError(
            f"{model} holds a model of items alone ({type(estimator).__name__}): ask with --item."
        )
    index = estimator.items_ if item else estimator.users_
    ids = inputs.find_ids(index, list(dict.fromkeys(item or user or [])))
    found = titles.read(estimator, console.progress)
    columns = found.add(output.as_columns(find(ids, n)), "similar")
    console.print_json({"model": str(model), "n": n, "similar": output.records([columns])})
    if not console.as_json:
        output.show_lists(console.out, [columns], len(ids), raw, found.of)


@command("marginmf explain m.marginmf --user 42 --item 50")
def explain(
    *,
    model: options.ModelFile,
    user: UserId,
    item: ItemId,
    n: Annotated[
        int, Option("-n", min=1, help="How many ratings for the item, and how many against it.")
    ] = 5,
    titles: TitleOptions,
    console: options.ConsoleOptions,
) -> None:
    """Show which of a user's own ratings speak for an item, and which against it.

    A contribution is what a rating adds to the score of the item, which says how much the user
    would like it; "to take" is what having rated that item adds to the chance to take this one.
    """
    from marginmf.cli import estimators, inputs, output
    from marginmf.ratings.lists.explain import contributions, reasons

    estimator = estimators.load_model(model, "ratings")
    users = inputs.find_ids(estimator.users_, [user])
    items = inputs.find_ids(estimator.items_, [item])
    found = titles.read(estimator, console.progress)
    estimators.learn_missing(estimator, model, console)
    parts = contributions(estimator, users, items)
    columns = found.add(output.as_columns(reasons(parts, n)))
    about = {"user": users.tolist()[0], "item": items.tolist()[0]}
    if found.titles is not None:
        about["title"] = found.of(item)
    pair = [(about["user"], about["item"])]
    estimates = {
        "take": parts.take,
        "like": parts.like,
        "expected": float(estimator.predict(pair, output="mean")[0]),
        "rating": float(estimator.predict(pair)[0]),
        "score": parts.score,
        "remainder": parts.remainder,
    }
    result = {"model": str(model), **about, **estimates, "n_ratings": len(parts.items)}
    console.print_json({**result, "reasons": output.records([columns])})
    named = output.heading("user", user, ""), output.heading("item", item, found.of(item))
    console.out.print(", ".join(named), style="bold")
    console.print(
        f"Chance to take it {parts.take:.4f}, to like it then {parts.like:.4f}; expected rating "
        f"{estimates['expected']:.2f}, median {estimates['rating']:g}."
    )
    if len(parts.items) and not console.as_json:
        output.show_columns(console.out, columns)
    elif not len(parts.items):
        console.print("The user has rated nothing, so nothing speaks for the item or against it.")


def make_lists(
    model: Any, users: "Array", n: int, titles: Titles, settings: Mapping[str, Any]
) -> Iterator["Columns"]:
    """Yield the lists of known users in batches, with titles."""
    from marginmf._utils.ids import shown
    from marginmf._utils.parameters import warn
    from marginmf.cli.output import as_columns

    for start in range(0, len(users), BATCH_USERS):
        asked = users[start : start + BATCH_USERS]
        batch = as_columns(model.recommend(asked, n, **settings))
        batch.pop("known")  # all of them are: the command refuses others
        served = set(batch["user"].tolist())
        if empty := [user for user in asked.tolist() if user not in served]:
            warn(f"No item is left for {len(empty):,} of the users, such as {shown(empty[0])}.")
        yield titles.add(batch)


def _read_titles(
    name: str, column: str | None, progress: bool, own: str | None = None
) -> dict[str, str]:
    """Return the titles in a file of items, or of a dataset, by ids as they are written.

    The ids may be called as in the file of the fit.
    """
    from marginmf.cli.inputs import is_file, read_source
    from marginmf.datasets import read_features
    from marginmf.datasets.files.columns import find_id_column, listed
    from marginmf.datasets.known_formats import read_film_titles

    if not is_file(name):
        titles = read_source(name, None, progress).table.titles
        if titles is None:
            raise ValueError(f"{name} comes without titles: leave --items out, or name a file.")
        return {str(item): title for item, title in titles.items()}
    films = read_film_titles(Path(name)) if column is None else None
    if films is not None:
        return films
    columns = read_features(name)
    ids = own if own in columns else find_id_column(columns, "item")
    known = listed(columns)
    if ids is None:
        raise ValueError(
            f"{name}: none of the columns {known} is known as the item's id; call it 'item'."
        )
    found = _find_title_column([one for one in columns if one != ids]) if column is None else column
    if found is None or found not in columns:
        wanted = "is known as the title" if column is None else f"is {column!r}"
        raise ValueError(f"{name}: none of the columns {known} {wanted}; name it with --title.")
    cells = zip(columns[ids].tolist(), columns[found].tolist(), strict=True)
    return {_as_text(item): str(title) for item, title in cells if title is not None}


def _find_title_column(names: Iterable[str]) -> str | None:
    """Return the column that holds titles, if any: ``title`` before ``Book-Title``, then names.

    >>> _find_title_column(["artist name", "movie_title:token"]), _find_title_column(["year"])
    ('movie_title:token', None)
    """
    from marginmf.datasets.files.columns import plain_name

    plain = {plain_name(name): name for name in names}
    for ending in TITLES:
        found = sorted((one for one in plain if one.endswith(ending)), key=len)
        if found:
            return plain[found[0]]
    return None


def _as_text(item: Any) -> str:
    """Return an id as it is written; a column of numbers with an empty cell has floats."""
    return str(int(item)) if isinstance(item, float) and item.is_integer() else str(item)
