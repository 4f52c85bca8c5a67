"""Whether the parts of a model fit one another.

After this a prediction cannot go wrong, whoever made the file: every code is within the arrays
that it is a place in, and every parameter is one that the estimator itself would take.
"""

from typing import Any

import numpy as np

from marginmf._typing import Array
from marginmf.persistence.classes import class_named, constructor_parameters, is_known
from marginmf.persistence.errors import ModelFileError
from marginmf.persistence.state import ListOf, Optional, Shaped, fitted_attributes
from marginmf.ratings.base import RatingsEstimator
from marginmf.ratings.data import Ratings
from marginmf.ratings.ids import IdIndex

#: How long each axis is.
Lengths = dict[str, int]


def check_model(model: Any) -> None:
    """Raise `ModelFileError` unless the model is whole."""
    if not isinstance(model, RatingsEstimator):
        raise ModelFileError("it holds no model")
    _Checker().estimator(model, type(model).__name__, None)


class _Checker:
    def __init__(self) -> None:
        # By identity: members of an ensemble share their ratings, which are long.
        self._seen: set[int] = set()

    def estimator(self, model: RatingsEstimator, name: str, expected: Lengths | None) -> None:
        """Check a fitted estimator, and that it is as large as expected."""
        lengths = _lengths(model, name)
        if expected is not None and any(expected[axis] != lengths[axis] for axis in lengths):
            raise ModelFileError(f"{name} has other users, items or levels than the model")
        if id(model) in self._seen:
            return
        self._seen.add(id(model))
        params = constructor_parameters(type(model))
        for attribute, value in vars(model).items():
            self._parts(value, f"{name}.{attribute}", None if attribute in params else lengths)
        self._attributes(model, name, lengths)
        try:
            model._check(model.ratings_)
        except Exception as error:  # a parameter may be anything, and so may what it leads to
            raise ModelFileError(f"the parameters of {name} cannot be used ({error})") from None

    def _attributes(self, value: Any, name: str, lengths: Lengths) -> None:
        kind: Any = type(value)
        for attribute, wanted in fitted_attributes(kind).items():
            label = f"{name}.{attribute}"
            part = getattr(value, attribute, None)
            if part is not None:
                _check_part(part, wanted, label, lengths)
            elif not isinstance(wanted, Optional):
                raise ModelFileError(f"{label} is missing")

    def _parts(self, value: Any, name: str, expected: Lengths | None) -> None:
        """Check what a value is made of; nothing is expected of the size of parameters."""
        if isinstance(value, RatingsEstimator):
            # One that is a parameter may be unfitted; one that was learned may not.
            if expected is not None or fitted_attributes(type(value)).keys() & vars(value).keys():
                self.estimator(value, name, expected)
        elif isinstance(value, Ratings):
            self._ratings(value, name, expected)
        elif is_known(value):
            kind: Any = type(value)
            parts = {part: getattr(value, part) for part in constructor_parameters(kind)}
            self._parts(parts, name, expected)
            self._attributes(value, name, dict(expected or {}))
        elif isinstance(value, dict):
            for key, part in value.items():
                self._parts(part, f"{name}.{key}", expected)
        elif isinstance(value, list | tuple):
            for k, part in enumerate(value):
                self._parts(part, f"{name}.{k}", expected)

    def _ratings(self, data: Ratings, name: str, expected: Lengths | None) -> None:
        if id(data) not in self._seen:
            check_ratings(data, name)
            self._seen.add(id(data))
        found = {"users": data.n_users, "items": data.n_items, "levels": data.n_levels}
        if expected is not None and any(expected[axis] != n for axis, n in found.items()):
            raise ModelFileError(f"{name} has other users, items or levels than the model")


def check_ratings(data: Ratings, name: str = "Ratings") -> None:
    """Raise `ModelFileError` unless ratings are as `Ratings.of` makes them."""
    if not isinstance(data.users, IdIndex) or not isinstance(data.items, IdIndex):
        raise ModelFileError(f"{name} has no users or no items")
    lengths = {"users + 1": data.n_users + 1}
    _check_shape(data.indptr, Shaped(("int64",), ("users + 1",)), f"{name}.indptr", lengths)
    _check_shape(data.indices, Shaped(("int32",), ("ratings",)), f"{name}.indices", lengths)
    _check_shape(data.codes, Shaped(("int32",), ("ratings",)), f"{name}.codes", lengths)
    _check_levels(data.levels, f"{name}.levels")
    indptr, n = data.indptr, lengths["ratings"]
    if indptr[0] != 0 or indptr[-1] != n or (indptr[1:] < indptr[:-1]).any():
        raise ModelFileError(f"{name} are not divided among the users")
    if not _within(data.indices, data.n_items):
        raise ModelFileError(f"{name} are of items that do not exist")
    if not _within(data.codes, data.n_levels):
        raise ModelFileError(f"{name} are at levels that do not exist")
    rises = data.indices[1:] > data.indices[:-1]
    starts = indptr[1:-1]
    rises[starts[(starts > 0) & (starts < n)] - 1] = True  # the next user begins anywhere
    if not rises.all():
        raise ModelFileError(f"{name} are not in the order of the items")


def _lengths(model: RatingsEstimator, name: str) -> Lengths:
    users, items, levels = (getattr(model, key, None) for key in ("users_", "items_", "levels_"))
    if not isinstance(users, IdIndex) or not isinstance(items, IdIndex):
        raise ModelFileError(f"{name} has no users or no items")
    _check_levels(levels, f"{name}.levels_")
    n_levels = len(levels)  # type: ignore[arg-type]
    return {"users": len(users), "items": len(items), "levels": n_levels, "stages": n_levels - 1}


def _check_levels(levels: Any, label: str) -> None:
    _check_shape(levels, Shaped(("float64",), ("levels",)), label, {})
    if len(levels) < 2 or not np.isfinite(levels).all() or not (levels[1:] > levels[:-1]).all():
        raise ModelFileError(f"{label} are not levels in rising order")


def _check_part(part: Any, wanted: Any, label: str, lengths: Lengths) -> None:
    if isinstance(wanted, Optional):
        _check_part(part, wanted.wanted, label, lengths)
    elif isinstance(wanted, ListOf):
        if type(part) is not list or not part:
            raise ModelFileError(f"{label} is not a list, or is empty")
        for k, each in enumerate(part):
            _check_part(each, wanted.wanted, f"{label}.{k}", lengths)
    elif isinstance(wanted, Shaped):
        _check_shape(part, wanted, label, lengths)
    else:
        kind: Any = class_named(wanted) if isinstance(wanted, str) else wanted
        if not isinstance(part, kind):
            raise ModelFileError(f"{label} is a {type(part).__name__}, which it cannot be")


def _check_shape(array: Any, wanted: Shaped, label: str, lengths: Lengths) -> None:
    """Compare an array's type and axes; an axis that is new here gets its length."""
    if type(array) is not np.ndarray or array.dtype.name not in wanted.kinds:
        raise ModelFileError(f"{label} is not an array of {' or '.join(wanted.kinds)}")
    axes = wanted.axes
    expected = [lengths.setdefault(axis, n) for axis, n in zip(axes, array.shape, strict=False)]
    if array.ndim != len(axes) or list(array.shape) != expected or not array.dtype.isnative:
        raise ModelFileError(
            f"{label} has the shape {array.shape}, which does not fit ({', '.join(axes)})"
        )


def _within(codes: Array, n: int) -> bool:
    return codes.size == 0 or (int(codes.min()) >= 0 and int(codes.max()) < n)
