"""The columns that the numbers of an svmlight file become: features and labels, by name."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from marginmf._utils.types import IntArray
from marginmf.datasets.labels.choice import LabelsChoice, is_none
from marginmf.datasets.labels.names import refuse_alike
from marginmf.datasets.labels.svmlight_rows import Entries, SvmlightRows

IS_NUMBER = re.compile(r"0|[1-9]\d{0,8}", re.ASCII).fullmatch
#: Names of more features than this would take more memory than they are worth.
MOST_NAMED = 1 << 21

Named = tuple[Any, tuple[str, ...]]


class Sizes(NamedTuple):
    """What the header of extreme classification says."""

    n_samples: int
    n_features: int
    n_labels: int


@dataclass(frozen=True)
class Numbering:
    """What is known of the numbers of features before the file is read.

    Parameters
    ----------
    features : int or sequence of str, optional
        How many features there are, or their names: numbers as they are in the file, or else names
        in the order of the numbers.
    zero_based : bool, optional
        Whether they count from 0; by default they do if one of them is 0.
    without : sequence of str
        Names of features to leave out, which may be others than those.
    """

    features: int | Sequence[str] | None = None
    zero_based: bool | None = None
    without: Sequence[str] = ()

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names, if they are given."""
        given = self.features
        return None if given is None or isinstance(given, int) else tuple(given)


def features(rows: SvmlightRows, numbering: Numbering) -> tuple[Any, tuple[str, ...] | None]:
    """Return the features, and their names, which are their numbers unless they are given."""
    names, entries = numbering.names, rows.finish_features()
    if names is not None and all(map(IS_NUMBER, names)):
        return _numbered_features(rows, entries, names, numbering.without), names
    lowest = int(entries.numbers.min(initial=1))
    zero_based = lowest == 0 if numbering.zero_based is None else numbering.zero_based
    base = 0 if zero_based else 1
    if lowest < base:
        row = row_of(entries.indptr, int(np.argmin(entries.numbers)))
        raise ValueError(
            f"{rows.at(row)}: there is a feature 0, but with zero_based=False features are counted "
            f"from 1; correct it, or leave zero_based= out."
        )
    places = entries.numbers - base
    width = int(places.max(initial=-1)) + 1
    n_features = numbering.features if names is None else len(names)
    if isinstance(n_features, int) and width > n_features:
        first = int(np.argmax(places >= n_features))
        raise ValueError(
            f"{rows.at(row_of(entries.indptr, first))}: the feature {int(places[first]) + base} is "
            f"beyond the {n_features:,} features, which are counted from {base}; correct it, or "
            f"give the right n_features=."
        )
    width = n_features if isinstance(n_features, int) else width
    X = _matrix(rows, entries._replace(numbers=places), width, base, "feature")
    if names is None and width <= MOST_NAMED:
        names = tuple(map(str, range(base, base + width)))
    return X, names


def labels(rows: SvmlightRows, sizes: Sizes | None, choice: LabelsChoice | None) -> Named:
    """Return the labels and their names, which are their numbers unless they are given."""
    entries = rows.finish_labels()
    ids = entries.numbers
    places: IntArray
    names = _label_names(ids, sizes, choice, rows.where)
    if names is None:  # those that occur
        known, places = np.unique(ids, return_inverse=True)
        names, base = tuple(map(str, known.tolist())), 0
    elif not isinstance(choice, int) and choice and all(map(IS_NUMBER, names)):
        places = _places_of(ids, names)
        if (places < 0).any():
            first = int(np.argmin(places))
            raise ValueError(
                f"{rows.at(row_of(entries.indptr, first))}: the label {int(ids[first])} is none of "
                f"the {len(names):,} that are given; correct it, or give the right labels=."
            )
        base = 0
    else:
        base = 0 if sizes is not None or ids.min(initial=1) == 0 else 1
        places = ids - base
    beyond = places >= len(names)
    if beyond.any():
        first = int(np.argmax(beyond))
        raise ValueError(
            f"{rows.at(row_of(entries.indptr, first))}: the label {int(ids[first])} is beyond the "
            f"{len(names):,} labels, which are counted from {base}; correct it, or give the right "
            f"labels=."
        )
    Y = _matrix(rows, entries._replace(numbers=places), len(names), 0, "label", names)
    return Y, names


def row_of(indptr: IntArray, entries: Any) -> Any:
    """Return the row that an entry, or each of several, stands in."""
    return np.searchsorted(indptr, entries, side="right") - 1


def _numbered_features(
    rows: SvmlightRows, entries: Entries, names: tuple[str, ...], without: Sequence[str]
) -> Any:
    """Return the features of some numbers; rows that do not name one have 0 of it.

    Between the lowest and the highest, rows may name others, such as the fit has left out.
    """
    numbers = entries.numbers
    known = [int(name) for name in names]
    left_out = [int(name) for name in without if IS_NUMBER(name)]
    strange = (numbers < min(known, default=0)) | (numbers > max(known, default=-1))
    strange &= ~np.isin(numbers, left_out)
    if strange.any():
        first = int(np.argmax(strange))
        raise ValueError(
            f"{rows.at(row_of(entries.indptr, first))}: the feature {int(numbers[first])} is none "
            f"of the {len(names):,} features {names[0]} to {names[-1]}; correct it, or leave it "
            f"out with ignore=['{int(numbers[first])}']."
        )
    again = entries._replace(numbers=numbers.copy(), values=entries.values.copy())
    _matrix(rows, again, int(numbers.max(initial=-1)) + 1, 0, "feature")  # for what is left out too
    places = _places_of(numbers, names)
    kept = places >= 0
    before = np.concatenate([[0], np.cumsum(kept)])
    chosen = Entries(places[kept], before[entries.indptr], entries.values[kept])
    return _matrix(rows, chosen, len(names), 0, "feature")


def _places_of(numbers: IntArray, names: Sequence[str]) -> IntArray:
    """Return the place of each number among names, or -1."""
    known = np.array([int(name) for name in names], dtype=np.int64)
    order = np.argsort(known)
    found = order[np.searchsorted(known, numbers, sorter=order).clip(max=len(known) - 1)]
    places: IntArray = np.where(known[found] == numbers, found, -1)
    return places


def _matrix(
    rows: SvmlightRows,
    entries: Entries,
    width: int,
    base: int,
    what: str,
    names: tuple[str, ...] | None = None,
) -> Any:
    """Return a matrix without stored zeros, no place of which is named twice.

    Its arrays are those of the entries, and are sorted in place.
    """
    parts = (entries.values, entries.numbers, entries.indptr)
    matrix = sparse.csr_array(parts, shape=(len(rows), width))
    matrix.sort_indices()
    again = np.flatnonzero(np.diff(matrix.indices) == 0)
    found = row_of(matrix.indptr, again)
    same = found == row_of(matrix.indptr, again + 1)
    if same.any():
        place = int(matrix.indices[again[same][0]])
        name = str(place + base) if names is None else names[place]
        raise ValueError(
            f"{rows.at(int(found[same][0]))}: the {what} {name} is named twice; remove one of them."
        )
    matrix.eliminate_zeros()
    return matrix


def _label_names(
    ids: IntArray, sizes: Sizes | None, choice: LabelsChoice | None, where: str
) -> tuple[str, ...] | None:
    """Return the names of all labels, or None where there are as many as occur."""
    if choice is None or is_none(choice):
        return None if sizes is None else tuple(map(str, range(sizes.n_labels)))
    if isinstance(choice, str) or (isinstance(choice, int) and choice < 1):
        raise ValueError(
            f"{where}: the labels of an svmlight file are numbers; give labels= as how many there "
            f"are, or as a list of their names, not {choice!r}."
        )
    if not isinstance(choice, int):
        names = tuple(map(str, choice))
        refuse_alike(enumerate(names, 1), where, "labels")
        return names
    from_zero = sizes is not None or ids.min(initial=1) == 0
    return tuple(map(str, range(choice) if from_zero else range(1, choice + 1)))
