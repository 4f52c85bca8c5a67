"""What commands read: ratings, pairs and label sets, from a file or a dataset known by name."""

import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from marginmf import datasets
from marginmf.cli.options import DataOptions, LabelColumns, LabelDataOptions
from marginmf.datasets import DatasetUnavailable, RatingsTable
from marginmf.ratings import Ratings
from marginmf.ratings.features import FeatureTable

if TYPE_CHECKING:
    from marginmf.datasets import LabelsTable
    from marginmf.labels.base import LabelsEstimator

Origin = Literal["movielens", "dataset", "synthetic", "file"]
Table = TypeVar("Table")
#: The dataset that the demo shows.
DEMO = "ml-100k"


@dataclass(frozen=True)
class RatingsInput:
    """Ratings, where they came from, and what the user should be told about that.

    Features have the names of parameters, such as ``item_features``.  `counted` says which rows
    count as taken, where there are pairs rather than ratings.
    """

    table: RatingsTable
    origin: Origin
    title: str
    note: str | None = None
    counted: str = ""
    features: dict[str, Any] = field(default_factory=dict)
    feature_titles: dict[str, str] = field(default_factory=dict)

    def lines(self) -> str:
        """Return a line on the ratings, and one on each table of features."""
        features = (f"{self.feature_titles[part]}: {used}." for part, used in self._used().items())
        return "\n".join([f"{self.title}: {self.counts()}.", *features])

    def counts(self) -> str:
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
            **self._used(),
        }

    def _used(self) -> dict[str, str]:
        return {part: str(table.encoder()) for part, table in self.features.items()}


def read_ratings_checked(options: DataOptions, progress: bool) -> tuple[RatingsInput, Ratings]:
    """Read ratings, and make sure that a model can learn from them.

    Pairs that occur again are an error or made one here, before any split of the rows could
    put one half of them into training and the other into the test.
    """
    source = add_features(read_source(options.file, options.columns, progress), options)
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


def read_pairs_checked(
    options: DataOptions, level: float | None, progress: bool
) -> tuple[RatingsInput, Ratings]:
    """Read who has what; ratings are read where a level says which of them count.

    Without a level, rows that occur again count once.
    """
    if options.features or options.feature_files:
        raise ValueError(
            "Who has what is learned from pairs alone: leave --features, --users and --items out."
        )
    if level is not None:
        source, data = read_ratings_checked(options, progress)
        return replace(source, counted=f"; those from {level:g} count as taken"), data
    source = read_source(options.file, options.columns, progress, with_ratings=False)
    table = source.table
    ones = np.ones(len(table))
    data = Ratings.of(table.pairs, ones, levels=(0, 1), duplicates="last")
    table = _without_repeats(table, data)
    return replace(source, table=table, counted="; every row counts as taken"), data


def read_source(
    name: str, columns: Mapping[str, str] | None, progress: bool, with_ratings: bool = True
) -> RatingsInput:
    """Read a file or, where there is no file of that name, load the dataset of that name.

    A file need not have ratings where those are not wanted.
    """
    if Path(name).exists():
        read = datasets.read_ratings if with_ratings else _read_pairs
        table = read(name, **(columns or {}))
        return RatingsInput(table, "file", table.name)
    known = name in datasets.dataset_names("ratings")
    if columns and known:
        raise ValueError(
            f"{name} is a dataset with columns of its own; --user, --item and --rating are for "
            "files."
        )
    if columns:
        raise FileNotFoundError(_absent(name))
    table = _load_named(name, datasets.load_ratings, progress)
    origin: Origin = "movielens" if name == DEMO else "dataset"
    return RatingsInput(table, origin, datasets.dataset_info(name).title if known else name)


def read_demo_ratings(file: str | None, seed: int, progress: bool) -> RatingsInput:
    """Read what was named; else load MovieLens 100K; else make ratings up."""
    if file is not None:
        return read_source(file, None, progress)
    try:
        return read_source(DEMO, None, progress)
    except DatasetUnavailable:
        return RatingsInput(
            # About as many ratings a user as in MovieLens, on a matrix that takes seconds to fit.
            datasets.make_ratings(500, 400, n_factors=8, observed=0.2, random_state=seed),
            "synthetic",
            "Synthetic ratings",
            f"{datasets.dataset_info(DEMO).title} could not be downloaded, so these are made-up "
            "ratings without noise, and all errors are small; connect to the network, or name a "
            "FILE of ratings.",
        )


def add_features(source: RatingsInput, options: DataOptions) -> RatingsInput:
    """Return ratings with the features asked for: from files, or those that a dataset has."""
    table = source.table
    if options.features and table.user_features is table.item_features is None:
        raise ValueError(
            f"{source.title} comes without features ({table.source}): leave --features out, or "
            "name files with --users and --items."
        )
    features, titles = {}, {}
    for side in ("user", "item"):
        part, path = f"{side}_features", options.feature_files.get(side)
        if path is not None:
            features[part] = _read_features(path, side, options.columns.get(side))
            titles[part] = path.name
        elif options.features and getattr(table, part) is not None:
            features[part] = FeatureTable.of(getattr(table, part), side)
            titles[part] = f"Features of {side}s"
    with warnings.catch_warnings():
        # What is left out is in the line on these features.
        warnings.filterwarnings("ignore", "Left out")
        for found in features.values():
            found.encoder()
    return replace(source, features=features, feature_titles=titles)


def read_label_table(data: LabelDataOptions, progress: bool = False) -> "LabelsTable":
    """Read a file or, where there is no file of that name, load the dataset of that name."""
    table = _read_labels(data.file, data.reading(), {}, progress)
    if table.n_labels == 0:
        raise ValueError(f"{data.file} has no labels to learn.")
    return table


def read_label_rows(
    name: str, labels: tuple[str, ...], model: "LabelsEstimator", columns: LabelColumns
) -> Any:
    """Read the features of rows to predict, in the order of the model's.

    Columns with the name of a label of the model are not features.
    """
    from marginmf.datasets.labels.columns import Ignored

    given = columns.reading()
    # Labels of rows to predict need not be known, so they are not even looked at.
    features = _feature_names(model)
    known: dict[str, Any] = {"labels": [], "n_features": features or model.n_features_in_}
    # In svmlight files both have numbers, and so do the columns of text with the same rows.
    own = set(features or ())
    unlike = () if "labels" in given else tuple(name for name in labels if name not in own)
    known["ignore"] = Ignored(given.pop("ignore", ()), unlike)
    return _order_features(_read_labels(name, given, known), model)


def describe_labels(table: "LabelsTable") -> str:
    """Return a sentence on how much there is to learn from."""
    return (
        f"{table.name}: {table.n_samples:,} rows, {table.n_features:,} features, "
        f"{table.n_labels:,} labels, {table.cardinality:.3g} a row."
    )


def summarise_labels(table: "LabelsTable") -> dict[str, Any]:
    """Return the same for programs."""
    from scipy.sparse import issparse

    return {
        "name": table.name,
        "source": table.source,
        "n_rows": table.n_samples,
        "n_features": table.n_features,
        "n_labels": table.n_labels,
        "cardinality": table.cardinality,
        "sparse": bool(issparse(table.X)),
    }


def _feature_names(model: "LabelsEstimator") -> tuple[str, ...] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def _order_features(table: "LabelsTable", model: "LabelsEstimator") -> Any:
    """Return features in the order of the model's, by their names where both have them."""
    wanted = _feature_names(model)
    if wanted is None or table.feature_names is None:
        if table.n_features != model.n_features_in_:
            raise ValueError(
                f"{table.name} has {table.n_features:,} features, but the model has learned from "
                f"{model.n_features_in_:,}; give the same columns as for the fit."
            )
        return table.X
    again = [name for name, count in Counter(wanted).items() if count > 1]
    if again:
        raise ValueError(
            f"The model has learned from several features called {again[0]!r}, which cannot be "
            f"found by name in {table.name}; give a file without names, its columns in the order "
            f"of the fit."
        )
    positions = {name: position for position, name in enumerate(table.feature_names)}
    missing = [name for name in wanted if name not in positions]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise ValueError(
            f"{table.name} has no feature {missing[0]!r}{more}, which the model has learned from; "
            "give the same columns as for the fit."
        )
    order = [positions[name] for name in wanted]
    return table.X if order == list(range(table.n_features)) else table.X[:, order]


def _read_pairs(name: str, *, rating: str | None = None, **columns: str) -> RatingsTable:
    """Read a file of pairs as a table whose ratings are ones; others are not looked at."""
    users, items = datasets.read_pairs(name, **columns).T
    path = Path(name)
    return RatingsTable(path.name, users, items, np.ones(len(users)), source=f"read from {path}")


def _read_features(path: Path, side: Any, column: str | None) -> FeatureTable:
    columns = datasets.read_features(path)
    try:
        # The ids may have the name that they have in the file of ratings.
        return FeatureTable.of(columns, side, id=column if column in columns else None)
    except ValueError as error:
        raise ValueError(f"{path}: {str(error).partition(', or name it with')[0]}") from None


def _read_labels(
    name: str, given: dict[str, Any], known: dict[str, Any], progress: bool = False
) -> "LabelsTable":
    if Path(name).exists():
        return datasets.read_labels(name, **known | given)
    if given:
        raise FileNotFoundError(_absent(name))
    return _load_named(name, datasets.load_labels, progress)


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


def _load_named(name: str, load: Callable[..., Table], progress: bool) -> Table:
    """Load the dataset of a name that no file has."""
    if "/" in name or "." in name:  # a file was meant
        raise FileNotFoundError(_absent(name))
    try:
        return load(name, progress=progress)
    except ValueError as error:
        if str(error).startswith("There is no "):
            raise FileNotFoundError(f"{_absent(name)} {error}") from None
        raise


def _absent(name: str) -> str:
    return f"There is no file {name}; check the name and the folder (now in {Path.cwd()})."
