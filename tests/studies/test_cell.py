import json
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from studies.harness import Cell

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
SETTINGS = st.dictionaries(st.text(), VALUES, max_size=4)


def test_a_key_is_the_same_for_ever() -> None:
    # Stores of earlier versions are found again by it.
    assert Cell("errors", {"data": "ml-100k", "split": 0}).key == "b6e9ef84417e"
    assert Cell("errors", {}).key == "067151ab757d"


@given(SETTINGS)
def test_a_key_survives_the_file(settings) -> None:
    again = json.loads(json.dumps(settings))
    assert Cell("m", settings).key == Cell("m", again).key
    backwards = dict(reversed(settings.items()))
    assert Cell("m", settings).key == Cell("m", backwards).key


@given(SETTINGS, SETTINGS)
def test_other_settings_have_other_keys(first, second) -> None:
    same = json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    assert (Cell("m", first).key == Cell("m", second).key) == same
    assert Cell("m", first).key != Cell("n", first).key


def test_a_key_does_not_depend_on_the_process() -> None:
    cell = Cell("errors", {"letters": "äß", "numbers": [1, 0.1, None]})
    code = (
        "import sys, json; from studies.harness import Cell\n"
        "print(Cell(*json.loads(sys.argv[1])).key)"
    )
    command = [sys.executable, "-c", code, json.dumps([cell.measure, cell.settings])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == cell.key


def test_whether_it_runs_alone_is_not_part_of_what_it_measures() -> None:
    assert Cell("m", {}, alone=True).key == Cell("m", {}).key


def test_cells_of_the_same_data_and_method_are_of_a_kind() -> None:
    data = {"n_users": 10, "seed": 0}
    cells = [Cell("m", {"data": data, "method": "HMF", "split": split}) for split in (1, 2)]
    assert cells[0].kind == cells[1].kind
    assert Cell("m", {"data": data, "method": "ALS"}).kind != cells[0].kind


def test_words_name_what_is_measured() -> None:
    assert str(Cell("errors", {"data": "ml-100k", "split": 3, "params": {}})) == "errors ml-100k 3"
