"""What ids, ratings and features in memory may be: the limits are those of files."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from marginmf._utils.ids import LONGEST_ID, as_id_column, check_names
from marginmf.datasets import LabelsTable, RatingsTable
from marginmf.ratings.data import Ratings
from marginmf.ratings.features import FeatureTable
from marginmf.ratings.ids import IdIndex


def said(call: Callable[[], Any]) -> str:
    with pytest.raises(ValueError, match=r"\.$") as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 600
    return text


LONG_ID = "a" * (LONGEST_ID + 1)
BAD_IDS: dict[str, tuple[Any, str]] = {
    "long": (LONG_ID, r"has 1,001 characters, and at most 1,000 are allowed"),
    "null character": ("a\0b", "has a null character; remove that"),
    "digits": (10**LONGEST_ID, "has 1,001 digits, and at most 1,000 are allowed"),
}
IN_MEMORY: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda ids: Ratings.of(list(zip(ids, [1, 2], strict=True)), [1, 2]),
    "items": lambda ids: Ratings.of(list(zip([1, 2], ids, strict=True)), [1, 2]),
    "dict": lambda ids: Ratings.of({"user": ids, "item": [1, 2], "rating": [1, 2]}),
    "table": lambda ids: RatingsTable("t", ids, [1, 2], [1, 2]),
    "index": IdIndex,
    "features": lambda ids: FeatureTable.of({"user": ids, "age": [1, 2]}, "user"),
    "column": lambda ids: as_id_column(ids, "user"),
}


@pytest.mark.parametrize("fault", BAD_IDS)
@pytest.mark.parametrize("kind", IN_MEMORY)
def test_ids_in_memory_have_one_limit(fault: str, kind: str) -> None:
    value, problem = BAD_IDS[fault]
    text = said(lambda: IN_MEMORY[kind]([1, value]))
    assert f"id in row 1 {problem}" in text


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ([1], "list"),
        ({"a": 1}, "dict"),
        ({1}, "set"),
        (np.arange(2), "ndarray"),
        ((1, []), "tuple"),
    ],
)
@pytest.mark.parametrize("kind", IN_MEMORY)
def test_ids_that_are_not_hashable_are_named_with_row_and_type(
    kind: str, value: Any, named: str
) -> None:
    text = said(lambda: IN_MEMORY[kind](["x", value]))
    assert f"id in row 1 is of the type {named}, not one id" in text


@pytest.mark.parametrize("value", [None, float("nan"), np.datetime64("NaT")])
@pytest.mark.parametrize("kind", IN_MEMORY)
def test_missing_ids_are_named(kind: str, value: Any) -> None:
    assert "id in row 1 is missing" in said(lambda: IN_MEMORY[kind](["x", value]))


@pytest.mark.parametrize("rating", [1e101, -1e300, float("inf"), float("nan")])
def test_ratings_in_memory_are_finite_and_not_huge(rating: float) -> None:
    pairs = [(1, 1), (2, 2)]
    for given in ([1, rating], np.array([1, rating]), ["1", str(rating)]):
        said(lambda given=given: Ratings.of(pairs, given))
    assert "row 1" in said(lambda: RatingsTable("t", [1, 2], [1, 2], [1, rating]))
    said(lambda: Ratings.of(pairs, [1, 2], levels=[1, rating]))


@pytest.mark.parametrize("value", [1e101, -1e300, float("inf")])
def test_features_are_finite_and_not_huge(value: float) -> None:
    assert "row 1" in said(lambda: FeatureTable.of({"item": [1, 2], "y": [1.0, value]}))
    assert "row 1" in said(lambda: FeatureTable.of(([1, 2], [[1.0], [value]])))


@pytest.mark.parametrize("name", [LONG_ID, "a\0b"])
def test_names_have_the_limit_of_ids(name: str) -> None:
    said(lambda: check_names(["a", name], "column"))
    said(lambda: FeatureTable.of({"item": [1, 2], name: [1, 2]}))
    said(lambda: LabelsTable("t", [[1.0]], [[1]], label_names=[name]))
    said(lambda: LabelsTable("t", [[1.0]], [[1]], feature_names=[name]))
