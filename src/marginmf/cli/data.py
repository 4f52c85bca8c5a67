"""Where ratings come from: a file, a dataset known by name, or nowhere but a random generator."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from marginmf import datasets
from marginmf.backends.rows import SIDES
from marginmf.cli.named import absent, load_named
from marginmf.cli.options import DataOptions, Side
from marginmf.datasets import DatasetUnavailable, RatingsTable
from marginmf.ratings import POSITIVE, Ratings
from marginmf.ratings.features import FeatureTable
from marginmf.ratings.positive import PositiveOnly

Origin = Literal["movielens", "dataset", "synthetic", "file"]
#: The dataset that the demo shows, and whose weights of penalties are known.
DEMO = "ml-100k"


@dataclass(frozen=True)
class Source:
    """Ratings, where they came from, and what the user should be told about that."""

    table: RatingsTable
    origin: Origin
    title: str
    note: str | None = None
    #: What counts as taken, where who has what is all that matters.
    counted: str = ""
    #: By the names that parameters have, such as ``item_features``; and where each came from.
    features: dict[str, Any] = field(default_factory=dict)
    feature_titles: dict[str, str] = field(default_factory=dict)

    def lines(self) -> str:
        """Return what was read: a line for the ratings, and one for each table of features."""
        taken = (f"{self.feature_titles[part]}: {said}." for part, said in self._taken().items())
        return "\n".join([f"{self.title}: {self.facts()}.", *taken])

    def _taken(self) -> dict[str, str]:
        return {part: str(table.encoder()) for part, table in self.features.items()}

    def facts(self) -> str:
        """Return one clause on how many ratings these are, by whom, of what."""
        table, levels = self.table, self.table.levels
        scale = f"ratings ({levels[0]:g} to {levels[-1]:g})" if len(levels) > 1 else "pairs"
        return (
            f"{len(table):,} {scale} of {table.n_items:,} items by {table.n_users:,} users"
            f"{self.counted}"
        )

    def summary(self) -> dict[str, Any]:
        """Return the same for programs."""
        table = self.table
        return {
            "name": table.name,
            "origin": self.origin,
            "source": table.source,
            "n_ratings": len(table),
            "n_users": table.n_users,
            "n_items": table.n_items,
            "levels": table.levels.tolist(),
            **self._taken(),
        }


def checked_ratings(options: DataOptions, progress: bool) -> tuple[Source, Ratings]:
    """Read ratings, and make sure that a model can learn from them.

    Pairs that occur again are an error or made one here, before any split of the rows could
    put one half of them into training and the other into the test.
    """
    source = read_source(options.file, options.columns, progress)
    source = with_features(source, options)
    table = source.table
    try:
        data = Ratings.of(
            table.pairs, table.ratings, duplicates=options.duplicates, **source.features
        )
    except ValueError as error:
        if "duplicates=" not in str(error):
            raise
        advice = "Remove the repeats, or choose with --duplicates last or --duplicates mean."
        raise ValueError(f"{str(error).partition(' Remove the')[0]} {advice}") from None
    return replace(source, table=_without_repeats(table, data)), data


def checked_for_lists(
    options: DataOptions, models: Mapping[str, Any], positive_only: bool, progress: bool
) -> tuple[Source, Ratings]:
    """Read ratings, or who has what alone, for methods that all of them can learn from that."""
    if not positive_only:
        return checked_ratings(options, progress)
    rated = [name for name, model in models.items() if not isinstance(model, PositiveOnly)]
    if rated:
        raise ValueError(
            f"{rated[0]} learns from ratings, which --positive-only does not read: name methods "
            f"of {', '.join(POSITIVE)}."
        )
    return checked_pairs(options, None, progress)


def checked_pairs(
    options: DataOptions, level: float | None, progress: bool
) -> tuple[Source, Ratings]:
    """Read who has what; ratings are read where a level tells which of them count.

    Without a level, rows that occur again count once.
    """
    if options.features or options.feature_files:
        raise ValueError(
            "Who has what is learned from pairs alone: leave --features, --users and --items out."
        )
    if level is not None:
        source, data = checked_ratings(options, progress)
        return replace(source, counted=f"; those from {level:g} count as taken"), data
    source = read_source(options.file, options.columns, progress, with_ratings=False)
    table = source.table
    ones = np.ones(len(table))
    data = Ratings.of(table.pairs, ones, levels=(0, 1), duplicates="last")
    table = _without_repeats(table, data)
    return replace(source, table=table, counted="; every row counts as taken"), data


def _without_repeats(table: RatingsTable, data: Ratings) -> RatingsTable:
    """Return a table of the pairs that ratings have once each."""
    if len(data) == len(table):
        return table
    return replace(
        table,
        users=data.users.ids[data.rows],
        items=data.items.ids[data.indices],
        ratings=data.values,
        timestamps=None,
    )


def with_features(source: Source, options: DataOptions) -> Source:
    """Return ratings with the features asked for: from files, or those that a dataset has."""
    table = source.table
    if options.features and table.user_features is table.item_features is None:
        raise ValueError(
            f"{source.title} comes without features ({table.source}): leave --features out, or "
            "name files with --users and --items."
        )
    features, titles = {}, {}
    for what in SIDES:
        part, path = f"{what}_features", options.feature_files.get(what)
        if path is not None:
            features[part], titles[part] = (
                _from_file(path, what, options.columns.get(what)),
                path.name,
            )
        elif options.features and getattr(table, part) is not None:
            features[part] = FeatureTable.of(getattr(table, part), what)
            titles[part] = f"Features of {what}s"
    with warnings.catch_warnings():
        # What is left out is in the line on these features.
        warnings.filterwarnings("ignore", "Left out")
        for found in features.values():
            found.encoder()
    return replace(source, features=features, feature_titles=titles)


def _from_file(path: Path, what: Side, column: str | None) -> FeatureTable:
    columns = datasets.read_features(path)
    try:
        # The ids may have the name that they have in the file of ratings.
        return FeatureTable.of(columns, what, id=column if column in columns else None)
    except ValueError as error:
        raise ValueError(f"{path}: {str(error).partition(', or name it with')[0]}") from None


def read_source(
    name: str, columns: Mapping[str, str] | None, progress: bool, with_ratings: bool = True
) -> Source:
    """Read a file or, where there is no file of that name, load the dataset of that name.

    A file need not have ratings where those are not wanted.
    """
    if Path(name).exists():
        read = datasets.read_ratings if with_ratings else _read_pairs
        table = read(name, **(columns or {}))
        return Source(table, "file", table.name)
    known = name in datasets.dataset_names("ratings")
    if columns and known:
        raise ValueError(
            f"{name} is a dataset with columns of its own; --user, --item and --rating are for "
            "files."
        )
    if columns:
        raise FileNotFoundError(absent(name))
    table = load_named(name, datasets.load_ratings, progress)
    origin: Origin = "movielens" if name == DEMO else "dataset"
    return Source(table, origin, datasets.dataset_info(name).title if known else name)


def _read_pairs(name: str, *, rating: str | None = None, **columns: str) -> RatingsTable:
    """Read a file of pairs as a table whose ratings are ones; others are not looked at."""
    users, items = datasets.read_pairs(name, **columns).T
    path = Path(name)
    return RatingsTable(path.name, users, items, np.ones(len(users)), source=f"read from {path}")


def demo_ratings(file: str | None, seed: int, progress: bool) -> Source:
    """Read what was named; else load MovieLens 100K; else make ratings up."""
    if file is not None:
        return read_source(file, None, progress)
    try:
        return read_source(DEMO, None, progress)
    except DatasetUnavailable:
        return Source(
            # About as many ratings a user as in MovieLens, on a matrix that takes seconds to fit.
            datasets.make_ratings(500, 400, n_factors=8, observed=0.2, random_state=seed),
            "synthetic",
            "Synthetic ratings",
            f"{datasets.dataset_info(DEMO).title} could not be downloaded, so these are made-up "
            "ratings without noise, and all errors are small; connect to the network, or name a "
            "FILE of ratings.",
        )
