"""Ratings as one ``.npz`` file: the form of the cache and of a data folder.

Arrays ``user`` and ``item`` hold 0-based places in ``users`` and ``items``, which hold the ids;
``rating``; ``timestamp``, ``title_ids`` with ``titles``, ``train_idx``, ``test_idx``, ``source``
and the columns of features, such as ``item_features.year``, where there are any.
Nothing is pickled, so a file from elsewhere cannot run anything.
"""

from pathlib import Path
from typing import Any

import numpy as np

from marginmf._utils.files import atomic_write
from marginmf.datasets.table import Columns, IdArray, RatingsTable

FEATURES = ("user_features", "item_features")


def write_npz(table: RatingsTable, path: Path) -> None:
    """Write a table; the file appears whole or not at all."""
    users, user = np.unique(_storable(table.users), return_inverse=True)
    items, item = np.unique(_storable(table.items), return_inverse=True)
    arrays: dict[str, Any] = {
        "user": user.astype(np.int32),
        "item": item.astype(np.int32),
        "users": users,
        "items": items,
        "rating": table.ratings,
        "source": np.array(table.source),
    }
    if table.timestamps is not None:
        arrays["timestamp"] = table.timestamps
    for part in ("train_idx", "test_idx"):
        if getattr(table, part) is not None:
            arrays[part] = getattr(table, part)
    if table.titles is not None:
        arrays["title_ids"] = np.array(list(table.titles))
        arrays["titles"] = np.array(list(table.titles.values()))
    for part in FEATURES:
        for name, column in (getattr(table, part) or {}).items():
            arrays[f"{part}.{name}"] = _storable(column) if column.dtype == object else column
    with atomic_write(path) as file:
        np.savez_compressed(file, **arrays)


def read_npz(path: Path, name: str, source: str = "") -> RatingsTable:
    """Read a table; `source` is used where the file does not say its own."""
    try:
        # Opened here, because NumPy does not close a file that it fails to read.
        with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        timestamps, titles = arrays.get("timestamp"), None
        if "titles" in arrays:
            pairs = zip(arrays["title_ids"].tolist(), arrays["titles"].tolist(), strict=True)
            titles = dict(pairs)
        return RatingsTable(
            name,
            _as_text(arrays["users"])[arrays["user"]],
            _as_text(arrays["items"])[arrays["item"]],
            arrays["rating"],
            timestamps=timestamps,
            titles=titles,
            source=str(arrays.get("source", source)),
            train_idx=arrays.get("train_idx"),
            test_idx=arrays.get("test_idx"),
            **{part: _features(arrays, part) for part in FEATURES},
        )
    except (FileNotFoundError, NotADirectoryError):
        raise
    except Exception as error:  # a damaged file can fail anywhere in zipfile, zlib or NumPy
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path} is not a ratings file, or is damaged ({reason}).") from error


def _features(arrays: dict[str, Any], part: str) -> Columns | None:
    """Return the columns of features that a file has of users, or of items."""
    names = [key.removeprefix(f"{part}.") for key in arrays if key.startswith(f"{part}.")]
    return {name: _as_text(arrays[f"{part}.{name}"]) for name in names} or None


def _storable(ids: IdArray) -> IdArray:
    return ids if ids.dtype == np.int64 else ids.astype(np.str_)


def _as_text(ids: IdArray) -> IdArray:
    """Return ids that were kept as bytes, as ASCII may be, as the texts that they are."""
    return np.char.decode(ids, "latin-1") if ids.dtype.kind == "S" else ids
