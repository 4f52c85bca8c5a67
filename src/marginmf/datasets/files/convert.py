"""What cells and values mean: ids, ratings and times, in batches of rows.

`TextCells` are the cells of a text, which has no types; `TypedValues` are the values of files that
have them. Both follow the same rules otherwise.
"""

import math
import re
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from marginmf._utils.ids import are_plain, collide, find_flaw, is_missing, shown
from marginmf._utils.parameters import LARGEST_RATING
from marginmf._utils.types import Array, Float64Array, IntArray

Int64Array = npt.NDArray[np.int64]

# "007", "+7" and "-0" are names, not numbers: as int64 they could not be told from 7 and 0. Any
# number of 18 digits fits, and one of 19 that does not begin with a 9.
is_whole_number = re.compile(r"0|-?[1-9][0-9]{0,17}|[1-8][0-9]{18}").fullmatch
TIME_DIGITS = 18
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Words for the upper, and for the lower, of two levels.
WORDS: dict[str, float] = {
    **dict.fromkeys(("true", "yes", "like", "liked", "up", "thumbs up", "positive", "+"), 1.0),
    **dict.fromkeys(("false", "no", "dislike", "disliked", "down", "thumbs down"), 0.0),
    **dict.fromkeys(("negative", "-"), 0.0),
}
# As seconds, these would be some days of 1970.
is_compact_date = re.compile(r"(19|20)[0-9]{6}").fullmatch
# 1,000 is one for some and a thousand for others.
is_decimal_comma = re.compile(r"[+-]?[0-9]+,[0-9]{1,2}").fullmatch


def words_of(levels: Iterable[Any]) -> tuple[str, ...] | None:
    """Return levels that are words; None for numbers, also where they are written as text.

    >>> words_of(["bad", "good"]), words_of(["1", 2.5])
    (('bad', 'good'), None)
    """
    levels = list(levels)
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in levels):
        return None  # also where one is not finite, which is refused as a number
    texts = tuple(map(str, levels))
    with suppress(ValueError):
        list(map(parse_number, texts))
        return None
    return texts


def number_words(levels: Iterable[Any]) -> dict[str, float]:
    """Return the number of each word, from 1 for the lowest.

    >>> number_words(["bad", "Good"])
    {'bad': 1.0, 'good': 2.0}
    """
    words = [str(word).strip().lower() for word in levels]
    if len(set(words)) < max(len(words), 2):
        raise ValueError(f"levels={list(levels)!r} must be two or more different words.")
    return {word: float(k) for k, word in enumerate(words, start=1)}


@dataclass(frozen=True)
class Encoded:
    """Ids of some rows: the distinct ones, and for each row the index of its own among them."""

    values: list[Any]
    codes: IntArray


#: Whole numbers are an array; anything else is `Encoded`.
IdBatch = Int64Array | Encoded


@dataclass(frozen=True)
class Batch:
    """Some rows of a file."""

    users: IdBatch
    items: IdBatch
    ratings: Float64Array | None = None
    timestamps: Int64Array | None = None
    in_words: bool = False


class CellError(ValueError):
    """A cell that cannot be read: its row in the batch, what is wrong, and what to do."""

    def __init__(self, row: int, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.row, self.remedy = row, remedy


def make_batch(
    raw: Mapping[str, Any], converter: Any, where: str, unit: str, numbers: Sequence[int]
) -> Batch:
    """Convert the raw columns of some rows; of several errors, the one of the first row counts.

    A converter has the methods of `TextCells`, which raise `CellError`. The error for the user
    names the file and the number of the line or row.
    """
    errors: list[CellError] = []

    def convert(role: str, function: Callable[..., Any], *rest: Any) -> Any:
        if raw.get(role) is None:
            return None
        try:
            return function(raw[role], *rest)
        except CellError as error:
            errors.append(error)

    users = convert("user", converter.ids, "user")
    items = convert("item", converter.ids, "item")
    ratings = convert("rating", converter.ratings)
    times = convert("timestamp", converter.times)
    if errors:
        error = min(errors, key=lambda error: error.row)
        remedy = f"{error.remedy} or remove this {unit}"
        raise ValueError(f"{where}, {unit} {numbers[error.row]}: {error}; {remedy}.")
    if times is None and raw.get("maybe_timestamp") is not None:
        with suppress(CellError):
            times = converter.times(raw["maybe_timestamp"])
    elif times is None:
        times = convert("maybe_time", converter.maybe_times)
    return Batch(users, items, ratings, times, bool(converter.ratings_read.in_words))


class RatingReader:
    """What ratings mean, as numbers or as words, but not both in one column.

    >>> read = RatingReader(WORDS)
    >>> read("Yes"), read("no")
    (1.0, 0.0)
    """

    def __init__(self, words: Mapping[str, float]) -> None:
        self.words = words
        #: Whether the first rating was a word; the others must be like it.
        self.in_words: bool | None = None

    def __call__(self, text: str) -> float:
        """Return the number that a text stands for, or raise ValueError with what is wrong."""
        word = text.lower()
        is_word = word in self.words
        if self.in_words is None:
            self.in_words = is_word
        if self.words is WORDS and is_word != self.in_words:
            raise ValueError("is of another kind than others, which are numbers or words")
        if is_word:
            return self.words[word]
        if self.words is WORDS or not self.words:
            try:
                return _check_size(parse_number(text))
            except ValueError as error:
                named = word not in ("nan", "inf", "infinity") and any(map(str.isalpha, word))
                hint = ", or a word that levels= puts in order"
                raise ValueError(f"{error}{hint * (named and self.words is WORDS)}") from None
        close = get_close_matches(word, self.words, 1)
        meant = f" (did you mean {close[0]!r}?)" if close else ""
        raise ValueError(f"is none of the levels {', '.join(self.words)}{meant}")


def _check_size(rating: float) -> float:
    if abs(rating) > LARGEST_RATING:
        raise ValueError(f"is beyond {LARGEST_RATING:g}, the largest rating")
    return rating


class TextCells:
    """The cells of a text, as lists of strings; blanks around them do not count.

    A column holds far fewer distinct cells than lines, so each distinct cell is parsed once.
    """

    def __init__(self, words: Mapping[str, float] = WORDS) -> None:
        self.ratings_read = RatingReader(words)

    def ids(self, cells: list[str], what: str) -> IdBatch:
        """Return whole numbers if all cells are, else names."""
        names = {cell: cell.strip() for cell in set(cells)}
        if not all(names.values()):
            empty = {cell for cell, name in names.items() if not name}
            raise CellError(_first(cells, empty), f"the {what} id is empty", "fill it in")
        if not are_plain(names.values()):
            flaws = {cell: flaw for cell, name in names.items() if (flaw := find_flaw(name))}
            row = _first(cells, flaws)
            raise _flawed(row, what, cells[row].strip(), flaws[cells[row]])
        if all(map(is_whole_number, names.values())):
            return _look_up(cells, {cell: int(name) for cell, name in names.items()}, np.int64)
        index = {name: k for k, name in enumerate(dict.fromkeys(names.values()))}
        codes = _look_up(cells, {cell: index[name] for cell, name in names.items()}, np.int32)
        return Encoded(list(index), codes)

    def ratings(self, cells: list[str]) -> Float64Array:
        """Return finite numbers."""
        return _parse_each(cells, "rating", self.ratings_read, np.float64)

    def times(self, cells: list[str]) -> Int64Array:
        """Return seconds since 1970."""
        digits = self.maybe_times(cells)  # nearly every line has a time of its own
        return _parse_each(cells, "timestamp", parse_time, np.int64) if digits is None else digits

    def maybe_times(self, cells: Iterable[str]) -> Int64Array | None:
        """Return the cells as numbers if all are digits, at most `TIME_DIGITS` of them."""
        stripped = list(map(str.strip, cells))
        if not all(map(str.isdecimal, stripped)) or max(map(len, stripped)) > TIME_DIGITS:
            return None
        return np.fromiter(map(int, stripped), np.int64, len(stripped))


def _parse_each(
    cells: list[str], what: str, parse: Callable[[str], float], dtype: type[np.generic]
) -> Array:
    numbers: dict[str, float] = {}
    faults: dict[str, str] = {}
    for cell in dict.fromkeys(cells):
        try:
            numbers[cell] = parse(cell.strip())
        except ValueError as error:
            faults[cell] = str(error)
    if faults:
        row = _first(cells, faults)
        cell = shown(cells[row].strip())
        raise CellError(row, f"the {what} {cell} {faults[cells[row]]}", "correct")
    return _look_up(cells, numbers, dtype)


def _look_up(cells: list[str], values: Mapping[str, Any], dtype: type[np.generic]) -> Array:
    return np.fromiter(map(values.__getitem__, cells), dtype, len(cells))


def _first(cells: list[str], wanted: Container[str]) -> int:
    return next(row for row, cell in enumerate(cells) if cell in wanted)


class TypedValues:
    """The values of a file with types, as lists: "7" is a name and 7 a number."""

    def __init__(self, words: Mapping[str, float] = WORDS) -> None:
        self.ratings_read = RatingReader(words)

    def ids(self, values: Any, what: str) -> IdBatch:
        """Return whole numbers if all values are, else texts and numbers as they are."""
        if set(map(type, values)) != {int}:
            values = _convert_each(_id, values, f"{what} id")
        if not any(isinstance(value, str) for value in values):
            with suppress(OverflowError):
                return np.array(values, dtype=np.int64)
        if collide(values):
            problem = f"the {what} ids are numbers made to be slow to look up"
            raise CellError(0, problem, "write them as text")
        index = {value: k for k, value in enumerate(dict.fromkeys(values))}
        check_distinct(index, values, what)
        return Encoded(list(index), _look_up(values, index, np.int32))

    def ratings(self, values: Any) -> Float64Array:
        """Return finite numbers."""
        if set(map(type, values)) <= {int, float} and self.ratings_read.words is WORDS:
            with suppress(OverflowError):  # a whole number that no float holds
                numbers: Float64Array = np.array(values, dtype=np.float64)
                if are_ratings(numbers):
                    return numbers
        return np.array(_convert_each(self._rating, values, "rating"), dtype=np.float64)

    def _rating(self, value: Any) -> float:
        if not isinstance(value, str | bool | int | float | Decimal):
            raise ValueError("is not a number")
        return self.ratings_read(str(value).strip())

    def times(self, values: Any) -> Int64Array:
        """Return seconds since 1970."""
        return np.array(_convert_each(_time, values, "timestamp"), dtype=np.int64)

    def maybe_times(self, values: Any) -> Int64Array | None:
        """Return the values if all are whole numbers."""
        if set(map(type, values)) != {int} or not 0 <= min(values) <= max(values) < 10**TIME_DIGITS:
            return None
        return np.array(values, dtype=np.int64)


def check_distinct(ids: Collection[Any], values: Iterable[Any], what: str) -> None:
    """Raise `CellError` at the first of the values if one of the distinct ids is flawed."""
    texts = [one for one in ids if isinstance(one, str)]
    others = (one for one in ids if not isinstance(one, str))
    if not are_plain(texts) or any(map(find_flaw, others)):
        flawed = next(
            (row, one, flaw) for row, one in enumerate(values) if (flaw := find_flaw(one))
        )
        raise _flawed(flawed[0], what, *flawed[1:])


def _flawed(row: int, what: str, value: Any, flaw: str) -> CellError:
    problem, _, remedy = flaw.partition("; ")
    return CellError(row, f"the {what} id {shown(value)} {problem}", remedy)


def are_ratings(numbers: Array) -> bool:
    """Whether all numbers can be ratings: finite, and not so large that squares are not.

    >>> are_ratings(np.array([1.0, 5.0])), are_ratings(np.array([1e200])), are_ratings(np.array([]))
    (True, False, True)
    """
    # Without a copy, because there may be many; no comparison with NaN is true.
    return not numbers.size or max(-float(numbers.min()), float(numbers.max())) <= LARGEST_RATING


def _convert_each(convert: Callable[[Any], Any], values: Any, what: str) -> list[Any]:
    converted = []
    for row, value in enumerate(values):
        if value is None or (is_missing(value) and not isinstance(value, float)):
            raise CellError(row, f"the {what} is missing", "fill it in")
        try:
            if isinstance(value, list | dict | tuple):
                raise ValueError("is more than one value")
            converted.append(convert(value))
        except (ValueError, OverflowError) as error:
            raise CellError(row, f"the {what} {shown(value)} {error}", "correct") from None
    return converted


def _id(value: Any) -> str | int:
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            value = value.decode()  # some writers of Parquet do not mark text as text
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("is empty")
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    # pandas turns whole numbers in a column with holes into floats.
    if isinstance(value, float | Decimal) and -(2**53) < value < 2**53 and value % 1 == 0:
        return int(value)
    raise ValueError("is neither text nor a whole number")


def _time(value: Any) -> int:
    if isinstance(value, datetime):
        return _seconds(value)
    if isinstance(value, date):
        return _seconds(datetime.combine(value, time()))
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise ValueError("is neither a number nor a date")
    return parse_time(str(value).strip())


def as_times(values: Any) -> Array:
    """Return times as numbers in the same order: numbers as they are, dates in seconds or finer.

    >>> as_times(["1970-01-02", "1970-01-01 00:00:07", "1970-01-01T01:00:00Z"]).tolist()
    [86400, 7, 3600]
    """
    column = np.asarray(values)
    if column.ndim != 1:
        raise ValueError(f"Times must be one column, but their shape is {column.shape}.")
    if column.dtype.kind in "iu":
        return column
    if column.dtype.kind in "fM":
        faulty = np.isnat(column) if column.dtype.kind == "M" else ~np.isfinite(column)
        if faulty.any():
            row = int(np.argmax(faulty))
            raise ValueError(f"The time in row {row} is {column[row]}: give each row a time.")
        return column.view(np.int64) if column.dtype.kind == "M" else column
    try:
        return TypedValues().times(column.tolist())
    except CellError as error:
        raise ValueError(f"Row {error.row}: {error}.") from None


def parse_number(cell: str) -> float:
    """Read a finite number, or raise ValueError with what is wrong with it."""
    plain = cell.replace(",", ".") if is_decimal_comma(cell) else cell
    try:
        number = float(plain.replace("_", "?"))  # Python reads 1_0 as ten; a file does not
    except ValueError:
        raise ValueError("is not a number") from None
    if not math.isfinite(number):
        raise ValueError("is not a finite number")
    return number


def parse_time(cell: str) -> int:
    """Read seconds since 1970, or a date such as 1998-04-22, 19980422 or 1998-04-22T10:00Z."""
    if is_compact_date(cell):
        with suppress(ValueError):
            return _seconds(datetime.fromisoformat(cell))
    if cell.isdecimal() and len(cell) <= TIME_DIGITS:
        return int(cell)
    try:
        number = parse_number(cell)
    except ValueError:
        return _parse_date(cell)
    if abs(number) >= 2.0**63:
        raise ValueError("is too large a number for a time")
    return int(number)


def _parse_date(cell: str) -> int:
    with suppress(ValueError):
        return _seconds(datetime.fromisoformat(cell))
    # NumPy knows months (1998-04) too, and years far away; but also the word "now".
    if cell[:1].isdigit():
        with suppress(ValueError, OverflowError):
            return int(np.datetime64(cell, "s").astype(np.int64))
    raise ValueError("is neither a number nor a date such as 1998-04-22 or 1998-04-22T10:00:00Z")


def _seconds(moment: datetime) -> int:
    """Return seconds since 1970; a moment without a time zone is in UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(seconds=1)
