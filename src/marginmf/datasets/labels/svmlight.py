"""Read svmlight files with several labels a line: ``1,3,5 4:0.2 7:1``.

scikit-learn parses them. What it does not do is done here: the first line of extreme
classification, blank lines as samples, features in any order, and errors that name the line.
"""

import io
import math
import re
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from marginmf._utils.types import IntArray
from marginmf.datasets.files.formats import SIZES
from marginmf.datasets.files.source import Source
from marginmf.datasets.labels.columns import LabelsChoice, no_labels, refuse_duplicates
from marginmf.datasets.labels.table import LabelsTable, all_finite, check_width, drop_features

# Blanks and digits are those of ASCII, which are the ones that numbers are read with.
BLANKS = " \t\n\r\f\v"
WORDS = re.compile(r"\S+", re.ASCII).findall
LABELS = re.compile(r"(?:\d{1,9}(?:,\d{1,9})*+)?", re.ASCII).fullmatch
START = re.compile(r"\d{1,9}(?:,\d{1,9})*+(?:\s|\Z)|\S*:", re.ASCII).match
FEATURE = re.compile(r"\d{1,9}:[^\s:,]+", re.ASCII).fullmatch
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII).fullmatch
IS_INDEX = re.compile(r"0|[1-9]\d{0,8}", re.ASCII).fullmatch
#: Labels and features are below this: they have at most nine digits.
MOST = 10**9
#: Bytes of rows to parse at once: short ones become a lot of objects.
CHUNK_BYTES = 1 << 21
#: More blank lines in a row than this are no samples.
MOST_BLANK = 1 << 20
TWICE = "is named twice; remove one of them"
#: Names of more features than this would take more memory than they are worth.
MOST_NAMED = 1 << 21


def read_svmlight(
    source: Source,
    labels: LabelsChoice | None,
    n_features: int | Sequence[str] | None,
    zero_based: bool | None,
    ignored: Sequence[str],
) -> LabelsTable:
    """Read a file; see `read_labels` for the parameters."""
    rows = source.read_decoded(partial(_read_rows, source))
    if rows.sizes is not None:  # such files count from 0, also where no row names a 0
        zero_based = zero_based is not False
    X, feature_names = _make_features(rows, n_features, zero_based, ignored)
    Y, label_names = _make_labels(rows, labels)
    about = f"read from {source.where}"
    table = LabelsTable(source.path.name, X, Y, feature_names, label_names, source=about)
    # What no row names is 0, so a number that is not there can be left out as well.
    known = set(feature_names or ())
    there = [one for one in ignored if one in known or not IS_INDEX(one)]
    return drop_features(table, there, source.where)


class SvmlightRows(NamedTuple):
    """All rows of a file: the line of each, and matrices with a column for every number."""

    where: str
    lines: IntArray
    features: Any
    labels: Any
    sizes: tuple[int, ...] | None

    def refuse(self, what: str, entry: Any, problem: str) -> ValueError:
        """Return the error for a feature or a label, by its index among all stored ones."""
        matrix = self.features if what == "feature" else self.labels
        line = self.lines[np.searchsorted(matrix.indptr, int(entry), side="right") - 1]
        number = matrix.indices[entry]
        return ValueError(f"{self.where}, line {line}: the {what} {number} {problem}.")

    def check_width(self, what: str, width: int) -> None:
        """Refuse more features or labels than their entries speak for, unless the caller does."""
        matrix, option = self.features, f"n_features={width}"
        if what == "label":
            matrix, option = self.labels, f"labels={width}"
        remedy = f"correct it, or give {option} if there are so many"
        try:
            check_width(width, matrix.nnz, f"{what}s", remedy)
        except ValueError as error:
            raise ValueError(f"{self.where}: {error}") from None


def _read_rows(source: Source) -> SvmlightRows:
    where, sizes = source.where, None
    lines: list[int] = []
    parsed: list[tuple[Any, Any]] = []
    blank: list[int] = []  # lines that are samples without labels and features if others follow
    for chunk in source.read_chunks(CHUNK_BYTES):
        texts: dict[int, str] = {}
        split = chunk.text.removesuffix("\n").split("\n")
        for number, line in enumerate(split, chunk.lines_before + 1):
            text = line.partition("#")[0].strip(BLANKS)
            if not text:
                blank += [number] if "#" not in line else []
                if len(blank) > MOST_BLANK:
                    raise ValueError(
                        f"{where}, line {number}: more than {MOST_BLANK:,} blank lines follow one "
                        f"another, each of them a sample; remove them."
                    )
            elif sizes is None and not lines and not texts and (match := SIZES(text)):
                sizes = tuple(map(int, match.groups()))
                blank.clear()
            else:
                texts |= dict.fromkeys(blank, "")
                texts[number] = text
                blank.clear()
        lines += texts
        parsed.append(_parse(texts, where))
    missing = 0 if sizes is None else sizes[0] - len(lines)
    if 0 < missing <= len(blank):  # blank lines at the end are samples if the header counts them
        lines += blank[:missing]
        parsed.append(_parse(dict.fromkeys(blank[:missing], ""), where))
    if not lines:
        raise ValueError(f"{where} has no rows; it needs lines such as 1,3 4:0.2 7:1.")
    X, Y = (sparse.vstack(parts, format="csr") for parts in zip(*parsed, strict=True))
    numbers = np.array(lines)
    named = (np.diff(X.indptr) > 0) | (np.diff(Y.indptr) > 0)
    if missing < 0 and np.count_nonzero(~named) == -missing:  # others are not if it leaves them out
        numbers, X, Y = numbers[named], X[named], Y[named]
    if sizes is not None and sizes[0] != len(numbers):
        raise ValueError(
            f"{where} says in its first line that it has {sizes[0]:,} samples, but it has "
            f"{len(numbers):,}; it is cut short or joined, so fetch or write it again."
        )
    return SvmlightRows(where, numbers, X, Y, sizes)


def _parse(texts: dict[int, str], where: str) -> tuple[Any, Any]:
    """Return the features and labels of lines, by their number; blank ones have neither."""
    loaded = _load(list(texts.values()))
    if loaded is None:  # a slow second look, for the line at fault or the order of its features
        loaded = _load([_sort_features(text, f"{where}, line {n}") for n, text in texts.items()])
        assert loaded is not None
    X, labels = loaded
    if "" in texts.values():
        labels = [found if text else () for found, text in zip(labels, texts.values(), strict=True)]
    starts = np.concatenate([[0], np.cumsum(list(map(len, labels)), dtype=np.int64)])
    ids = np.fromiter(chain.from_iterable(labels), np.float64, starts[-1]).astype(np.int64)
    return X, sparse.csr_array((np.ones(len(ids)), ids, starts), shape=X.shape)


def _load(texts: list[str]) -> tuple[Any, list[tuple[float, ...]]] | None:
    """Parse lines with scikit-learn; None where it fails, or reads what is no number here."""
    from sklearn.datasets import load_svmlight_file

    lines = [text or "0" for text in texts]
    text = "\n".join(lines)
    if "_" in text or "qid" in text or not all(map(START, lines)):
        return None  # Python takes 1_0 for ten, and scikit-learn leaves queries out
    try:
        X, labels = load_svmlight_file(
            io.BytesIO(text.encode()), n_features=MOST, multilabel=True, zero_based=True
        )
    except (ValueError, OverflowError):
        return None
    return (sparse.csr_array(X), labels) if all_finite(X) else None


def _sort_features(text: str, here: str) -> str:
    """Return a line with its features in order, or raise an error that tells what is wrong."""
    pairs = WORDS(text)
    head = "" if not pairs or ":" in pairs[0] else pairs.pop(0)
    if not LABELS(head):
        problem = f"{head[:30]!r} are not labels, which are whole numbers such as 1,3"
        raise ValueError(f"{here}: {problem}; correct it.")
    values: dict[int, str] = {}
    for pair in pairs:
        problem, (feature, _, value) = "", pair.partition(":")
        if not FEATURE(pair):
            problem = f"{pair[:30]!r} is not a feature and its value, such as 4:0.2; correct it"
        elif not NUMBER(value) or not math.isfinite(float(value)):
            problem = f"the value of {pair[:30]!r} is not a finite number; correct it"
        elif int(feature) in values:
            problem = f"the feature {int(feature)} {TWICE}"
        if problem:
            raise ValueError(f"{here}: {problem}.")
        values[int(feature)] = value
    words = [head, *(f"{feature}:{values[feature]}" for feature in sorted(values))]
    return " ".join(words).lstrip()


def _make_features(
    rows: SvmlightRows,
    n_features: int | Sequence[str] | None,
    zero_based: bool | None,
    ignored: Sequence[str],
) -> tuple[Any, tuple[str, ...] | None]:
    """Return the features, and their names, which are their numbers unless they are given."""
    numbers, names, known = rows.features.indices, None, n_features
    if n_features is None or isinstance(n_features, int):
        known = n_features if rows.sizes is None else rows.sizes[1]
    else:
        names, known = tuple(n_features), len(n_features)
        if all(map(IS_INDEX, names)):
            return _select_features(rows, names, ignored), names
    lowest = int(numbers.min(initial=1))
    base = int(lowest > 0 if zero_based is None else not zero_based)
    if lowest < base:
        problem = "does not go with zero_based=False, where features are counted from 1"
        remedy = "correct it, or leave zero_based= out"
        raise rows.refuse("feature", np.argmin(numbers), f"{problem}; {remedy}")
    width = int(numbers.max(initial=base - 1)) + 1 - base
    if isinstance(known, int):
        if width > known:
            problem = f"is beyond the {known:,} features, which are counted from {base}"
            remedy = "correct it, or give the right n_features="
            raise rows.refuse("feature", np.argmax(numbers - base >= known), f"{problem}; {remedy}")
        width = known
    if names is None and width > (n_features if isinstance(n_features, int) else 0):
        rows.check_width("feature", width)
    if names is None and width <= MOST_NAMED:
        names = tuple(map(str, range(base, base + width)))
    return _make_matrix(rows.features, numbers - base, width), names


def _select_features(rows: SvmlightRows, names: tuple[str, ...], ignored: Sequence[str]) -> Any:
    """Return the features of some numbers; those between them are what the fit has left out."""
    numbers = rows.features.indices
    known = [int(name) for name in names]
    left_out = [int(name) for name in ignored if IS_INDEX(name)]
    strange = (numbers < min(known, default=0)) | (numbers > max(known, default=-1))
    strange &= ~np.isin(numbers, left_out)
    if strange.any():
        first = np.argmax(strange)
        problem = f"is none of the {len(names):,} features {names[0]} to {names[-1]}"
        remedy = f"correct it, or leave it out with ignore=['{numbers[first]}']"
        raise rows.refuse("feature", first, f"{problem}; {remedy}")
    columns = _find_numbers(numbers, names)
    rows.features.data[columns < 0] = 0  # which the matrix leaves out
    return _make_matrix(rows.features, columns.clip(min=0), len(names))


def _make_labels(rows: SvmlightRows, choice: LabelsChoice | None) -> tuple[Any, tuple[str, ...]]:
    """Return the labels and their names, which are their numbers unless they are given."""
    ids, sizes = rows.labels.indices, rows.sizes
    again = np.flatnonzero(ids[1:] == ids[:-1]) + 1  # they are sorted in each row
    again = again[~np.isin(again, rows.labels.indptr)]
    if len(again):
        raise rows.refuse("label", again[0], TWICE)
    if (isinstance(choice, str) and choice) or (isinstance(choice, int) and choice < 1):
        raise ValueError(
            f"{rows.where}: the labels of an svmlight file are numbers; give labels= as how many "
            f"there are, or as a list of their names, not {choice!r:.60}."
        )
    base = 0 if sizes is not None or ids.min(initial=1) == 0 else 1
    columns: IntArray = ids - base
    if isinstance(choice, int):
        names = tuple(map(str, range(base, base + choice)))
    elif choice is not None and not no_labels(choice):
        names = tuple(map(str, choice))
        refuse_duplicates(enumerate(names, 1), rows.where, "labels")
        if all(map(IS_INDEX, names)):
            columns = _find_numbers(ids, names)
    elif sizes is not None:
        rows.check_width("label", sizes[2])
        names = tuple(map(str, range(sizes[2])))
    else:  # those that occur
        known = np.unique(ids)
        columns, names = np.searchsorted(known, ids), tuple(map(str, known.tolist()))
    wrong = (columns < 0) | (columns >= len(names))
    if wrong.any():
        first = np.argmax(wrong)
        problem = f"is beyond the {len(names):,} labels, which are counted from {base}"
        if columns[first] < 0:
            problem = f"is none of the {len(names):,} that are given"
        raise rows.refuse("label", first, f"{problem}; correct it, or give the right labels=")
    return _make_matrix(rows.labels, columns, len(names)), names


def _find_numbers(numbers: IntArray, names: Sequence[str]) -> IntArray:
    """Return the index of each number among names, or -1."""
    known = np.array([int(name) for name in names], dtype=np.int64)
    order = np.argsort(known)
    found = order[np.searchsorted(known, numbers, sorter=order).clip(max=len(known) - 1)]
    return np.where(known[found] == numbers, found, -1)


def _make_matrix(matrix: Any, columns: IntArray, width: int) -> Any:
    """Return a matrix of other columns, sorted and without stored zeros."""
    matrix = sparse.csr_array((matrix.data, columns, matrix.indptr), (matrix.shape[0], width))
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix
