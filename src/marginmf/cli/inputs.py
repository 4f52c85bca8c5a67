"""What commands read: ratings, pairs, label sets and ids, from files or datasets known by name."""

import csv
import os
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from scipy.sparse import issparse

from marginmf import datasets
from marginmf._utils.ids import as_objects, shown
from marginmf._utils.types import Array
from marginmf.cli.options import DataOptions, LabelColumns, LabelDataOptions
from marginmf.datasets import DatasetUnavailable, RatingsTable
from marginmf.datasets.files.columns import is_column_name
from marginmf.datasets.files.convert import words_of
from marginmf.datasets.files.reader import read_unrated
from marginmf.datasets.files.source import STANDARD_INPUT, Source, lines_of, missing_file
from marginmf.datasets.labels.columns import Ignored
from marginmf.ratings import Ratings
from marginmf.ratings.features import FeatureTable
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.scales import MANY_VALUES

if TYPE_CHECKING:
    from marginmf.datasets import LabelsTable
    from marginmf.labels.base import LabelsEstimator

Origin = Literal["movielens", "dataset", "synthetic", "file"]
Table = TypeVar("Table")
#: The dataset that the demo shows.
DEMO = "ml-100k"
#: A character that no id has, so that each line is one cell, with quotes around it or without.
NO_SEPARATOR = "\x1f"


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

    def lines(self) -> list[str]:
        """Return a line on the ratings, and one on each table of features."""
        features = (f"{self.feature_titles[part]}: {used}." for part, used in self._used().items())
        return [f"{self.title}: {self.counts()}.", *features]

    def counts(self) -> str:
        """Return how many ratings these are, by whom, of what, and which column is what."""
        table, levels = self.table, self.table.levels
        scale = f"ratings ({levels[0]:g} to {levels[-1]:g})" if len(levels) > 1 else "pairs"
        text = f"{len(table):,} {scale} of {table.n_items:,} items by {table.n_users:,} users"
        if table.columns is not None:
            unnamed = "columns by position, as they have no names"
            text += f"; {describe_columns(table.columns) if table.columns else unnamed}"
        return f"{text}{self.counted}"

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
            "columns": table.columns or None,
            **self._used(),
        }

    def _used(self) -> dict[str, str]:
        return {part: str(table.encoder()) for part, table in self.features.items()}


def read_ratings_checked(
    options: DataOptions, progress: bool, timed: bool = False, numbers: bool = False
) -> tuple[RatingsInput, Ratings]:
    """Read ratings, and make sure that a model can learn from them; `numbers` may have many values.

    Pairs that occur again are refused or merged here, before a split could put one half of them
    into training and the other into the test.
    """
    source = read_source(options.file, options.reading(), progress, timed=timed)
    source = add_features(source, options)
    table, scale = source.table, {} if source.table.level_names else options.scale()
    if numbers and not scale:
        scale = {"n_levels": MANY_VALUES}
    if words := words_of(scale.get("levels", ())):
        written = ",".join(words)
        raise ValueError(f"--levels {written} are words, but {source.title} has numbers.")
    data = Ratings.of(table, duplicates=options.duplicates, **scale, **source.features)
    return replace(source, table=_without_repeats(table, data)), data


def read_pairs_checked(
    options: DataOptions, level: float | None, progress: bool, timed: bool = False
) -> tuple[RatingsInput, Ratings]:
    """Read who has what; ratings are read where a level says which of them count.

    Without a level, rows that occur again count once.
    """
    if options.features or options.feature_files:
        raise ValueError(
            "Who has what is learned from pairs alone: leave --features, --users and --items out."
        )
    if isinstance(level, str):
        raise ValueError(f"--set level={level}: give the number of the level, 1 for the lowest.")
    if level is not None:
        source, data = read_ratings_checked(options, progress, timed)
        return replace(source, counted=f"; those from {level:g} count as taken"), data
    reading = options.reading()
    source = read_source(options.file, reading, progress, with_ratings=False, timed=timed)
    pairs = source.table.pairs
    data = Ratings.of(pairs, np.ones(len(pairs)), levels=(0, 1), duplicates="last")
    table = _without_repeats(source.table, data)
    return replace(source, table=table, counted="; every row counts as taken"), data


def read_source(
    name: str,
    columns: Mapping[str, Any] | None,
    progress: bool,
    with_ratings: bool = True,
    timed: bool = False,
    model: Any = None,
) -> RatingsInput:
    """Read a file or, where there is no file of that name, load the dataset of that name.

    A file need not have ratings where those are not wanted, but times where it must be `timed`.
    Columns and words may be called as in the file that a `model` was fitted to.
    """
    columns = dict(columns or {})
    if model is not None and is_file(name):
        columns["names"] = model.ratings_.source.columns
        if with_ratings and model.ratings_.source.level_names:
            columns.setdefault("levels", model.ratings_.source.level_names)
    if is_file(name) and with_ratings:
        table = datasets.read_ratings(name, **columns, timed=timed)
        return RatingsInput(table, "file", table.name)
    if is_file(name):
        own = {side: column for side, column in columns.items() if side != "rating"}
        table = read_unrated(name, **own, timed=timed)
        return RatingsInput(table, "file", table.name)
    known = name in datasets.dataset_names("ratings")
    if columns and known:
        options = "--user, --item, --rating and --max-bytes"
        raise ValueError(f"{name} is a dataset; {options} are for files.")
    if columns:
        raise missing_file(Path(name))
    table = _load_named(name, datasets.load_ratings, progress)
    if timed and table.timestamps is None:
        raise ValueError(
            f"{name} has no times, which this protocol needs: choose another --protocol."
        )
    origin: Origin = "movielens" if name == DEMO else "dataset"
    return RatingsInput(table, origin, datasets.dataset_info(name).title if known else name)


def describe_columns(columns: Mapping[str, str]) -> str:
    """Return which column is what.

    >>> describe_columns({"user": "who", "item": "item"})
    'columns who (user), item'
    """
    named = (name if name == role else f"{name} ({role})" for role, name in columns.items())
    return f"columns {', '.join(named)}"


def is_file(name: str) -> bool:
    """Whether a name is that of a file, or stands for standard input, and not for a dataset."""
    return name == STANDARD_INPUT or os.path.lexists(name)


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
            column = options.columns.get(side)
            features[part] = read_feature_table(path, side, column, options.max_bytes)
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


def read_feature_table(
    path: Path, side: str, column: str | None, max_bytes: str | None
) -> FeatureTable:
    """Read features of users or items; the ids may have the name that they have elsewhere."""
    columns = datasets.read_features(path, max_bytes=max_bytes)
    try:
        return FeatureTable.of(columns, side, id=column if column in columns else None)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def read_label_table(data: LabelDataOptions, progress: bool = False) -> "LabelsTable":
    """Read a file or, where there is no file of that name, load the dataset of that name."""
    table = _read_labels(data.file, data.reading(), {}, progress)
    if table.n_labels == 0:
        raise ValueError(f"{data.file} has no labels to learn.")
    return table


def check_folds(table: "LabelsTable", n_folds: int) -> None:
    """Raise an error if there are more folds than rows."""
    if n_folds > table.n_samples:
        few = f"{table.name} has {table.n_samples} rows, too few for {n_folds} folds"
        raise ValueError(f"{few}; give fewer with --cv.")


def read_label_rows(
    name: str, labels: tuple[str, ...], model: "LabelsEstimator", columns: LabelColumns
) -> Any:
    """Read the features of rows to predict, in the order of the model's.

    Columns with the name of a label of the model are not features.
    """
    given = columns.reading()
    names = getattr(model, "feature_names_in_", None)
    wanted = None if names is None else tuple(map(str, names))
    # Labels of rows to predict need not be known, so they are not even looked at.
    known: dict[str, Any] = {"labels": [], "n_features": wanted or model.n_features_in_}
    # In svmlight files both have numbers, and so do the columns of text with the same rows.
    own = set(wanted or ())
    unlike = () if "labels" in given else tuple(name for name in labels if name not in own)
    known["ignore"] = Ignored(given.pop("ignore", ()), unlike)
    return _order_features(_read_labels(name, given, known), wanted, model.n_features_in_)


def describe_labels(table: "LabelsTable") -> str:
    """Return a sentence on how much there is to learn from."""
    size = f"{table.n_samples:,} rows, {table.n_features:,} features, {table.n_labels:,} labels"
    return f"{table.name}: {size}, {table.cardinality:.3g} a row."


def summarise_labels(table: "LabelsTable") -> dict[str, Any]:
    """Return the same for programs."""
    return {
        "name": table.name,
        "source": table.source,
        "n_rows": table.n_samples,
        "n_features": table.n_features,
        "n_labels": table.n_labels,
        "cardinality": table.cardinality,
        "sparse": bool(issparse(table.X)),
    }


def _order_features(table: "LabelsTable", wanted: Sequence[str] | None, n_features: int) -> Any:
    """Return features in the order of the model's, by their names where both have them."""
    if wanted is None or table.feature_names is None:
        if table.n_features != n_features:
            raise ValueError(
                f"{table.name} has {table.n_features:,} features, but the model has learned from "
                f"{n_features:,}; give the same columns as for the fit."
            )
        return table.X
    again = [name for name, count in Counter(wanted).items() if count > 1]
    if again:
        raise ValueError(
            f"The model has learned from several features called {shown(again[0])}: give a file "
            f"like {table.name} without names, its columns in the order of the fit."
        )
    positions = {name: position for position, name in enumerate(table.feature_names)}
    missing = [name for name in wanted if name not in positions]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise ValueError(
            f"{table.name} has no feature {shown(missing[0])}{more}, which the model has learned "
            "from; give the same columns as for the fit."
        )
    order = [positions[name] for name in wanted]
    return table.X if order == list(range(table.n_features)) else table.X[:, order]


def _read_labels(
    name: str, given: dict[str, Any], known: dict[str, Any], progress: bool = False
) -> "LabelsTable":
    if is_file(name):
        return datasets.read_labels(name, **known | given)
    if given:
        raise missing_file(Path(name))
    return _load_named(name, datasets.load_labels, progress)


def _without_repeats(table: RatingsTable, data: Ratings) -> RatingsTable:
    """Return a table of the pairs that ratings have once each, at the last of their times."""
    if len(data) == len(table):
        return table
    users, items, times = data.users.ids[data.rows], data.items.ids[data.indices], None
    if table.timestamps is not None:
        own = data.rows.astype(np.int64) * data.n_items + data.indices  # ascending
        cells = data.users.encode(table.users).astype(np.int64) * data.n_items
        times = np.full(len(data), np.iinfo(np.int64).min)
        which = np.searchsorted(own, cells + data.items.encode(table.items))
        np.maximum.at(times, which, table.timestamps)
    return replace(table, users=users, items=items, ratings=data.values, timestamps=times)


def _load_named(name: str, load: Callable[..., Table], progress: bool) -> Table:
    """Load the dataset of a name that no file has."""
    if "/" in name or "." in name:  # a file was meant
        raise missing_file(Path(name))
    try:
        return load(name, progress=progress)
    except ValueError as error:
        if str(error).startswith("There is no "):
            raise FileNotFoundError(f"{missing_file(Path(name))} {error}") from None
        raise


# Ids on the command line and in files are text; a model's own may be numbers or anything.


def find_ids(index: IdIndex, texts: Sequence[str]) -> Array:
    """Return the ids that are written like this, or say which text is no id.

    >>> find_ids(IdIndex([7, 42], "user"), ["42"]).tolist()
    [42]
    """
    written = written_ids(index, texts)
    for text in texts:
        if text not in written:
            unknown = f"The model does not know the {index.what} {shown(text)}."
            raise ValueError(f"{unknown} {index.hint(text)}")
    found = [written[text] for text in texts]
    return np.array(found, np.int64) if index.ids.dtype == np.int64 else as_objects(found)


def convert_ids(index: IdIndex, ids: Array) -> Array:
    """Return a column of ids in the type that the index has them in; others stay as they are.

    A column of whole numbers is read as numbers, also where a name in another file made it text.

    >>> convert_ids(IdIndex(["7", "x"], "item"), np.array([7, 8])).tolist()
    ['7', 8]
    """
    if ids.dtype == np.int64 and index.ids.dtype == np.int64:
        return ids
    texts = {value: str(value) for value in set(ids.tolist())}
    written = written_ids(index, list(texts.values()))
    known = {value: written.get(text, value) for value, text in texts.items()}
    return as_objects(known[value] for value in ids.tolist())


def read_ids(path: Path, what: str) -> list[str]:
    """Read the ids of users or items from a text file, one a line, each once.

    A first line such as ``user`` or ``movieId`` is a header.
    """
    source = Source(path, f"{what}s")
    if b"\0" in source.head and source.encoding != "utf-16":
        raise ValueError(f"{path} is not a text file; write one {what} id a line.")
    text = source.read_decoded(lambda: list(lines_of(source.read_chunks())))
    lines = csv.reader(text, delimiter=NO_SEPARATOR)
    found = [cells[0].strip() for cells in lines if cells and cells[0].strip()]
    ids = found[1:] if found and is_column_name(found[0], what) else found
    if not ids:
        raise ValueError(f"{path} names no {what}; write one id a line.")
    return list(dict.fromkeys(ids))


def written_ids(index: IdIndex, texts: Sequence[str]) -> dict[str, Any]:
    """Return, for those of the texts that an id is written as, that id."""
    if index.ids.dtype == np.int64:
        # The id 7 is written 7, and not 07 or +7; what is too long for int64 is no id.
        numbers = {text: int(text) for text in set(texts) if _is_number(text)}
        codes = index.encode(np.fromiter(numbers.values(), np.int64, len(numbers)))
        return {text: numbers[text] for text, code in zip(numbers, codes, strict=True) if code >= 0}
    wanted, ids = set(texts), index.ids.tolist()
    written = {str(value): value for value in ids if str(value) in wanted}
    # A text of exactly this spelling goes before a number that is written in the same way.
    return written | {value: value for value in ids if isinstance(value, str) and value in wanted}


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return False
    return str(int(text)) == text and -(2**63) <= int(text) < 2**63
