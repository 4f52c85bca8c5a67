"""``marginmf fold-in`` and ``update``: ratings that come after the fit, without another one."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from marginmf.cli import options
from marginmf.cli.commands import command
from marginmf.cli.lists import TitleOptions, make_lists

if TYPE_CHECKING:
    from marginmf._utils.types import Array
    from marginmf.cli.inputs import RatingsInput
    from marginmf.ratings import Ratings
    from marginmf.ratings.ids import IdIndex

#: The length of lists unless told.
LIST_LENGTH = 10


@dataclass(frozen=True, kw_only=True)
class NewRatings(options.ColumnOptions):
    """A file of new ratings, and how to read it."""

    file: Annotated[
        str, Argument(metavar="RATINGS", help="New ratings, one a line, at levels of the model.")
    ]
    users_file: Annotated[
        Path | None,
        Option("--users", metavar="FILE", help="Features of these users, for a model with some."),
    ] = None
    duplicates: Annotated[
        Literal["raise", "last", "mean"], Option(help="What to do with a pair that occurs again.")
    ] = "raise"

    def read(self, model: Any, progress: bool) -> "tuple[RatingsInput, Ratings]":
        """Return what was read, and as ratings on the scale of a model, with ids as it has them."""
        from marginmf.cli import estimators, inputs
        from marginmf.ratings import Ratings
        from marginmf.ratings.fitting.new_rows import scale_of
        from marginmf.ratings.scales import levels_of

        from_pairs = estimators.learns_from_pairs(model)
        rated = not from_pairs or model.level is not None
        source = inputs.read_source(
            self.file, self.reading(), progress, with_ratings=rated, model=model
        )
        users, items = source.table.users, source.table.items
        table = replace(
            source.table,
            users=_convert(model.users_, users),
            items=_convert(model.items_, items),
        )
        scale = {"levels": levels_of(table.ratings)} if from_pairs else scale_of(model.ratings_)
        repeats = self.duplicates if rated else "last"
        return source, Ratings.of(table, duplicates=repeats, **scale)

    def features(self, model: Any, side: str, path: Path | None) -> dict[str, Any]:
        """Return features of new users or items as the methods of a model take them."""
        from marginmf.cli import estimators, inputs

        if path is None:
            return {}
        if estimators.learns_from_pairs(model):
            raise ValueError(
                f"{type(model).__name__} learns from who has what alone: leave --{side}s out."
            )
        table = inputs.read_feature_table(path, side, self.columns.get(side), self.max_bytes)
        index = model.users_ if side == "user" else model.items_
        return {f"{side}_features": replace(table, ids=_convert(index, table.ids))}


@command("marginmf fold-in m.marginmf new.csv -n 5", name="fold-in")
def fold_in(
    *,
    model: options.ModelFile,
    data: NewRatings,
    out: Annotated[Path | None, Option(help="Save a model of the new users here.")] = None,
    force: options.Force = False,
    n: Annotated[
        int | None,
        Option("-n", min=1, help="Show a list of this length for each of them.", show_default="10"),
    ] = None,
    titles: TitleOptions,
    raw: options.Raw = False,
    console: options.ConsoleOptions,
) -> None:
    """Learn new users from their ratings, with the items as they are, and recommend to them.

    Prints lists, or saves a model of these users alone with --out, which recommend and predict
    then ask; -n and --out do both. The model itself stays as it is. For a model of all users, see
    update.
    """
    from marginmf.cli import estimators, output

    if out is not None:
        output.refuse_same(out, model, data.file, data.users_file, titles.items)
        output.check_destination(out, "model", overwrite=force)
    elif force:
        raise ValueError("--force is about the file of --out: name that, or leave --force out.")
    listed = n or (LIST_LENGTH if out is None else None)
    if listed is None and titles.items is not None:
        raise ValueError("--items has titles for lists: add -n 10 for lists, or leave it out.")
    estimator = estimators.load_model(model, "lists")
    source, ratings = data.read(estimator, console.progress)
    features = data.features(estimator, "user", data.users_file)
    found = titles.read(estimator, console.progress)
    folded = estimator.fold_in(ratings, **features)
    estimators.learn_missing(folded, model, console)
    users, n_used = folded.users_.ids, len(folded.ratings_)
    n_known = int((estimator.users_.encode(users, quiet=True) >= 0).sum())
    if n_known:
        console.note(
            f"{n_known:,} of these {len(users):,} users are known to the model; here they are "
            "learned from these ratings alone. See marginmf update."
        )
    result = {"model": str(model), "data": source.summary(), "n_users": len(users)}
    result |= {"n_ratings": n_used, "n_left_out": len(ratings) - n_used}
    if out is not None:
        saved, sentence = output.save_model(folded, out)
        result |= saved
        console.print(f"New users: {len(users):,}, from {n_used:,} ratings.", sentence)
    if listed is None:
        console.print_json(result)
        return
    batches = make_lists(folded, users, listed, found, {})
    if console.as_json:
        console.print_json({**result, "n": listed, "recommendations": output.records(batches)})
    else:
        output.show_lists(console.out, batches, len(users), raw)


@command("marginmf update m.marginmf new.csv --out m2.marginmf")
def update(
    *,
    model: options.ModelFile,
    data: NewRatings,
    items_file: Annotated[
        Path | None,
        Option("--items", metavar="FILE", help="Features of new items, for a model with some."),
    ] = None,
    side: Annotated[
        Literal["both", "users", "items"],
        Option(
            help="Learn the new items, and then the users of these ratings (both); only the users, "
            "with the items as they are; or only the items, new and known."
        ),
    ] = "both",
    out: options.ModelOut,
    force: options.Force = False,
    console: options.ConsoleOptions,
) -> None:
    """Take new ratings into a model, by users and of items known or new, and save the model.

    Users are learned again from all of their ratings, old and new; a new rating replaces an old
    one of the same pair. Everyone else stays as they are. It takes a small part of the time of a
    fit, which is due again when a tenth of the ratings are new.
    """
    from marginmf.cli import estimators, output

    output.refuse_same(out, data.file, data.users_file, items_file)
    output.check_destination(out, "model", overwrite=force)
    for part, file in (("users", data.users_file), ("items", items_file)):
        if file is not None and side not in ("both", part):
            raise ValueError(f"--side {side} learns no {part}: leave --{part} out.")
    estimator = estimators.load_model(model, "ratings")
    source, ratings = data.read(estimator, console.progress)
    of_users = data.features(estimator, "user", data.users_file)
    of_items = data.features(estimator, "item", items_file)
    before = [estimator.users_, estimator.items_, estimator.ratings_]
    if side == "items":
        estimator.update_items(ratings, **of_items)
    elif side == "both":
        # Known items stay: they rest on far more than these ratings.
        known = estimator.users_.encode(ratings.users.ids, quiet=True) >= 0
        new = estimator.items_.encode(ratings.items.ids, quiet=True) < 0
        first = ratings.subset(known[ratings.rows] & new[ratings.indices])
        if len(first) or of_items:
            estimator.update_items(first if len(first) else None, **of_items)
    if side != "items":
        estimator.update_users(ratings, **of_users)
    after = [estimator.users_, estimator.items_, estimator.ratings_]
    n_users, n_items, n_ratings = (
        len(now) - len(was) for now, was in zip(after, before, strict=True)
    )
    result = {"model": str(model), "data": source.summary(), "n_new_users": n_users}
    result |= {"n_new_items": n_items, "n_new_ratings": n_ratings}
    saved, sentence = output.save_model(estimator, out)
    console.print_json({**result, **saved})
    console.print(f"New: {n_users:,} users, {n_items:,} items, {n_ratings:,} ratings.", sentence)


def _convert(index: "IdIndex", ids: "Array") -> "Array":
    """Return ids as the model has them; new ones are text where all of the model's are."""
    from marginmf._utils.ids import as_objects
    from marginmf.cli.inputs import convert_ids

    if len(index) and all(isinstance(one, str) for one in index.ids.tolist()):
        return as_objects(map(str, ids.tolist()))
    return convert_ids(index, ids)
