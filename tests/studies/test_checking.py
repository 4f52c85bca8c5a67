import pytest

from studies.thesis.commands import compare_values


@pytest.mark.parametrize(
    ("stored", "found", "agrees"),
    [
        (0.1, 0.1, True),
        (0.1, 0.1 + 1e-9, True),
        (0.1, 0.1001, False),
        (0.0, 1e-15, True),
        (3, 3.0, True),
        ([1.0, [2.0, None]], [1.0, [2.0, None]], True),
        ([1.0, 2.0], [1.0, 2.1], False),
        ([1.0, 2.0], [1.0], False),
        ("HMF", "HMF", True),
        ("HMF", "ALS", False),
        (None, 0.5, False),
        ({}, {}, True),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, False),
    ],
)
def test_values_agree_but_for_rounding(stored, found, agrees: bool) -> None:
    assert all(one.agrees for one in compare_values({"value": stored}, {"value": found})) == agrees


def test_times_may_differ_wherever_they_are() -> None:
    stored = {"fit_seconds": 1.0, "inner": {"cpu_seconds": 2.0}}
    rows = compare_values(stored, {"fit_seconds": 5.0, "inner": {"cpu_seconds": 7.0}})
    assert all(one.is_time and one.agrees for one in rows)


def test_what_only_one_side_has_differs() -> None:
    assert not all(one.agrees for one in compare_values({"a": 1}, {"a": 1, "b": 2}))
    assert not all(one.agrees for one in compare_values({"a": 1, "b": 2}, {"a": 1}))
