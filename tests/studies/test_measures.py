import pytest

from studies.harness.cell import MEASURES, find_measure


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_every_measure_is_where_it_is_said_to_be(name: str) -> None:
    assert find_measure(name).__name__ == name


def test_measures_of_others_are_found_by_module_and_name() -> None:
    assert find_measure("sample_measures:square")(number=3) == {"square": 9}


def test_an_unknown_measure_is_a_sentence() -> None:
    with pytest.raises(ValueError, match="There is no measure 'mae'; there are convergence, fit_"):
        find_measure("mae")
