"""Whether the parts of a model fit one another.

After this a prediction cannot go wrong, whoever made the file: every code is within the arrays
that it is an index into, and every parameter is one that the estimator itself would take.
"""

from typing import Any

from marginmf._utils.saved import Optional
from marginmf.backends.rows import SIDES
from marginmf.persistence.classes import constructor_parameters, is_known
from marginmf.persistence.errors import ModelFileError
from marginmf.persistence.families import POSITIVE, RATINGS, Family, family_of
from marginmf.persistence.ratings_parts import check_ratings
from marginmf.persistence.shapes import Lengths, check_part
from marginmf.persistence.state import check_rules, fitted_attributes
from marginmf.ratings.data import Ratings
from marginmf.ratings.features import Features


def check_model(model: Any) -> None:
    """Raise `ModelFileError` unless the model is whole."""
    family = family_of(type(model))
    if family is None or family.counts is None:
        raise ModelFileError("it holds no model")
    _Checker().estimator(model, type(model).__name__, None, family)


class _Checker:
    def __init__(self) -> None:
        # By identity: members of an ensemble share their ratings, which are long.
        self._seen: set[int] = set()

    def estimator(self, model: Any, name: str, expected: Lengths | None, family: Family) -> None:
        """Check a fitted estimator, and that it is as large as expected."""
        lengths = family.lengths(model, name)
        shared = [axis for axis in family.shared if axis in lengths]
        if expected is not None and any(expected.get(axis) != lengths[axis] for axis in shared):
            *first, last = family.shared
            axes = f"{', '.join(first)} or {last}" if first else last
            raise ModelFileError(f"{name} has other {axes} than the model")
        if id(model) in self._seen:
            return
        self._seen.add(id(model))
        kind: Any = type(model)
        params = constructor_parameters(kind)
        for attribute, value in vars(model).items():
            apart = attribute in params or attribute in getattr(kind, "_separate", ())
            self._parts(value, f"{name}.{attribute}", None if apart else lengths)
        self._attributes(model, name, lengths)
        try:
            family.check(model)
        except Exception as error:  # a parameter may be anything, and so may what it leads to
            raise ModelFileError(f"the parameters of {name} cannot be used ({error})") from None

    def _attributes(self, value: Any, name: str, lengths: Lengths) -> None:
        kind: Any = type(value)
        for attribute, wanted in fitted_attributes(kind).items():
            label = f"{name}.{attribute}"
            part = getattr(value, attribute, None)
            if part is not None:
                check_part(part, wanted, label, lengths)
            elif not isinstance(wanted, Optional):
                raise ModelFileError(f"{label} is missing")
        check_rules(value, name, lengths)

    def _parts(self, value: Any, name: str, expected: Lengths | None) -> None:
        """Check what a value is made of; nothing is expected of the size of parameters."""
        kind: Any = type(value)
        family = family_of(kind)
        if family is not None:
            # One that is a parameter may be unfitted.  One that was learned may be so in label
            # models alone, where a rule says when.
            learned = fitted_attributes(kind).keys() & vars(value).keys()
            if learned or (family in (RATINGS, POSITIVE) and expected is not None):
                self.estimator(value, name, expected, family)
        elif isinstance(value, Ratings):
            self._ratings(value, name, expected)
        elif is_known(value):
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
            for side in SIDES:
                features, label = data.features(side), f"{name}.{side}_features"
                if features is None:
                    continue
                if not isinstance(features, Features):
                    raise ModelFileError(f"{label} are not features")
                self._parts(features, label, None)
                if features.matrix.shape[0] != len(data.index(side)):
                    raise ModelFileError(f"{label} are of other {side}s")
            self._seen.add(id(data))
        found = {"users": data.n_users, "items": data.n_items, "levels": data.n_levels}
        if expected is None:
            return
        if "levels" not in expected:  # of who has what, the scale is no matter
            del found["levels"]
        if any(expected.get(axis) != n for axis, n in found.items()):
            raise ModelFileError(f"{name} has other {' or '.join(found)} than the model")
