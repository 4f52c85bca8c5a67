import warnings
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from marginmf._utils.tensor_files import Allowance, InvalidFileError
from marginmf.persistence.classes import ModelChecker
from marginmf.persistence.codec import ModelDecoder, ModelEncoder
from marginmf.ratings.feature_columns import Encoder, FeatureColumn, fitted_column
from marginmf.ratings.features import Features, FeatureTable
from marginmf.ratings.ids import IdIndex

FILMS = {
    "item": [7, 3, 5, 9],
    "genres": ["Crime|Drama", "Drama", "Comedy|Crime", "Drama"],
    "year": [1990.0, 2000.0, 2010.0, 1990.0],
}
WORDS = st.sampled_from(["red", "green", "blue", "grey"])
NUMBERS = st.floats(-1e6, 1e6)


def table_of(**columns):
    n = len(next(iter(columns.values())))
    return FeatureTable.of({"item": list(range(n)), **columns})


def dense(table, encoder=None):
    encoder = table.encoder() if encoder is None else encoder
    return dict(zip(encoder.names, encoder.encode(table).toarray().T, strict=True))


# What becomes of columns


def test_numbers_and_categories_become_weights():
    table = FeatureTable.of(FILMS)
    encoder = table.encoder()
    assert encoder.names == (
        "genres=Crime",
        "genres=Drama",
        "year~1990",
        "year~2000",
        "year~2010",
        "any",
    )
    assert str(encoder) == "genres (2 categories, several a cell), year (number)"
    expected = np.array(
        [[1, 1, 1, 0, 0, 1], [0, 1, 0, 1, 0, 1], [1, 0, 0, 0, 1, 1], [0, 1, 1, 0, 0, 1]], float
    )
    expected /= np.sqrt((expected**2).sum(axis=1, keepdims=True))
    rows = encoder.encode(table, quiet=True)  # "Comedy" is of one film alone
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows.toarray(), expected, rtol=1e-6)


def test_a_number_between_knots_belongs_to_both_and_one_outside_to_the_end():
    old = table_of(year=[0.0, 10.0, 20.0, 30.0, 40.0])
    new = table_of(year=[5.0, 38.0, -99.0, 99.0])
    rows = old.encoder().encode(new).toarray()
    rows /= rows[:, -1:]  # "any" is one before rows are scaled
    expected = [[0.5, 0.5, 0, 0, 0], [0, 0, 0, 0.2, 0.8], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    np.testing.assert_allclose(rows[:, :-1], expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Features of items have categories")
def test_a_cell_may_hold_several_categories_in_any_form():
    cells = [["a", "b"], ("a",), {"b"}, np.array(["a", "b"]), [], "b | a", frozenset(["c"])]
    rows = dense(table := table_of(tags=cells), Encoder(table.encoder().columns))
    assert table.encoder().names == ("tags=a", "tags=b", "any")
    assert (rows["tags=a"] > 0).tolist() == [True, True, False, True, False, True, False]
    assert (rows["tags=b"] > 0).tolist() == [True, False, True, True, False, True, False]


def test_booleans_and_categoricals_are_categories_even_if_they_are_numbers():
    frame = pd.DataFrame(
        {"item": [1, 2, 3, 4], "new": [True, False] * 2, "code": pd.Categorical([1, 1, 20, 20])}
    )
    names = FeatureTable.of(frame).encoder().names
    assert names == ("new=False", "new=True", "code=1", "code=20", "any")


def test_columns_that_say_nothing_are_left_out_with_one_warning():
    table = table_of(
        genre=["a", "a", "b", "b"],
        same=[1, 1, 1, 1],
        alike=["x"] * 4,
        title=["p", "q", "r", "s"],
        empty=[None] * 4,
        released=[date(2000, 1, day) for day in (1, 2, 3, 4)],
    )
    with pytest.warns(UserWarning, match="Left out") as caught:
        encoder = table.encoder()
    assert table.encoder() is encoder
    assert [str(one.message) for one in caught] == [
        "Left out of the features of items: 'same' (every value is the same), 'alike' (every value "
        "is the same), 'title' (every value differs), 'empty' (it is empty), 'released' (it holds "
        "dates: give years or days as numbers)."
    ]
    assert encoder.names == ("genre=a", "genre=b", "any")
    assert str(encoder).startswith("genre (2 categories), same left out: every value is the same")


def test_a_few_titles_that_occur_twice_are_no_categories():
    titles = [str(k) for k in range(40)] + ["0"]
    assert fitted_column("title", np.array(titles, object)) == "nearly every value differs"


def test_a_matrix_is_taken_as_it_is():
    matrix = np.array([[0.0, 3.0], [-2.0, 0.0], [1e90, 1e90]])
    for given_as in (matrix, sparse.csc_array(matrix), matrix.tolist(), sparse.csr_matrix(matrix)):
        table = FeatureTable.of((["a", "b", "c"], given_as))
        assert table.encoder().names == ("0", "1", "any")
        rows = table.encoder().encode(table).toarray()
        tenth, fifth, half = np.sqrt([0.1, 0.2, 0.5])
        expected = [[0, 3 * tenth, tenth], [-2 * fifth, 0, fifth], [half, half, 0]]
        np.testing.assert_allclose(rows, expected, rtol=1e-6, atol=1e-7)


# Where tables come from


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_all_frames_say_the_same(make):
    expected = FeatureTable.of(FILMS)
    lists = FILMS | {"genres": [cell.split("|") for cell in FILMS["genres"]]}
    for columns in (FILMS, lists):
        table = FeatureTable.of(make(columns))
        assert table.ids.dtype == np.int64
        assert table.ids.tolist() == FILMS["item"]
        assert table.encoder() == expected.encoder()
        rows = table.encoder().encode(table, quiet=True).toarray()
        assert (rows == expected.encoder().encode(expected, quiet=True).toarray()).all()
    assert FeatureTable.of(expected) is expected


@pytest.mark.filterwarnings("ignore:Features of items have categories")
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_cells_may_be_missing_with_a_warning(make):
    columns = {
        "item": [1, 2, 3, 4, 5],
        "age": [1, None, 3, 5, 1],
        "job": ["a", "a", None, "", "b"],
        "own": [True, True, False, None, False],
        "empty": [None] * 5,
    }
    said = r"items have cells .*: 'age' \(1\), 'job' \(2\), 'own' \(1\)\.$"
    with pytest.warns(UserWarning, match=said):
        table = FeatureTable.of(make(columns))
    with pytest.warns(UserWarning, match=r"'empty' \(it is empty\)"):
        rows = dense(table)
    present = np.array([list(rows[name] > 0) for name in rows]).T
    names = list(rows)
    assert names == ["age~1", "age~3", "age~5", "job=a", "own=False", "own=True", "any"]
    assert [names[k] for k in np.flatnonzero(present[1])] == ["job=a", "own=True", "any"]
    assert [names[k] for k in np.flatnonzero(present[3])] == ["age~5", "any"]


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("item", "item"),
        ("item", "movieId"),
        ("item", "item_id:token"),
        ("item", "id"),
        ("item", "ISBN"),
        ("user", "user"),
        ("user", "userId"),
        ("user", "user_id"),
    ],
)
def test_the_column_of_ids_is_found_by_usual_names(what, name):
    columns = {"title": ["x", "y", "y"], name: [4, 2, 3]}
    assert FeatureTable.of(columns, what).ids.tolist() == [4, 2, 3]
    assert FeatureTable.of(pd.DataFrame(columns).set_index(name), what).ids.tolist() == [4, 2, 3]


def test_the_column_of_ids_may_be_named():
    columns = {"item": ["x", "y", "y"], "code": ["c", "a", "b"]}
    for source in (columns, pd.DataFrame(columns), pd.DataFrame(columns).set_index("code")):
        table = FeatureTable.of(source, id="code")
        assert table.ids.tolist() == ["c", "a", "b"]
        assert list(table.columns) == ["item"]


# What is refused


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (7, r"must be a data frame, a dict of columns or a pair \(ids, matrix\), not int"),
        ("items.csv", "must be a data frame, .* not str"),
        ([1, 2], "ids of items with features must be a column, not 1"),
        (([], np.ones((0, 2))), r"must be a column: its shape is \(0,\)"),
        ({"movie": [1, 1, 2, 2, 3], "y": range(5)}, r"occur more than once \(2\): 1, 2\. Keep one"),
        (([1, 1, 2, 2, 3, 3, 4, 4], np.eye(8)), r"more than once \(4\): 1, 2, 3, \.\.\.\. Keep"),
        ({"item": ["a", None], "y": [1, 2]}, "item id in row 1 is missing"),
        (pd.DataFrame({"item": [1, np.nan], "y": [1, 2]}), "item id in row 1 is missing"),
        ({"name": [1], "y": [1]}, "No column is known as the ids of items; there are 'name', 'y'"),
        (pd.DataFrame({"y": [1]}), "Rename the column of ids to 'item', or name it with id="),
        ({"item": [1, 2], "y": [1.0, np.inf]}, "'y' has inf in row 1: numbers must be finite"),
        ({"item": [1, 2], "y": [1, 2, 3]}, "'y' has 3 cells where the column 'item' has 2"),
        ({"item": [1, 2], "y": "ab"}, "'y' must hold a cell for each id, not 'ab'"),
        ({"item": [1, 2], "y": np.ones((2, 2))}, r"'y' must be one column: its shape is \(2, 2\)"),
        (([1, 2], np.ones((3, 2))), r"has the shape \(3, 2\), but 2 items need 2 rows"),
        (([1, 2], np.ones(2)), r"has the shape \(2,\), but 2 items need 2 rows"),
        (([1, 2], np.ones((2, 0))), r"has the shape \(2, 0\)"),
        (([1, 2], [["a"], ["b"]]), "must be a matrix of numbers: give anything else as a data"),
        (([1, 2], sparse.csr_array([[1j], [2j]])), "must be a matrix of numbers"),
        (([8, 9], [[1, 0], [0, np.nan]]), r"has nan in row 1 \(item 9\), column 1: give finite"),
        ((["a"], sparse.csr_array([[0, np.inf]])), r"has inf in row 0 \(item 'a'\), column 1"),
    ],
)
def test_bad_tables_are_refused_in_a_sentence(source, said):
    with pytest.raises(ValueError, match=said):
        FeatureTable.of(source)


def test_the_named_column_must_be_there():
    with pytest.raises(ValueError, match="No column is called 'x'; there are 'item', 'y'"):
        FeatureTable.of({"item": [1], "y": [1]}, id="x")


def test_a_table_that_says_nothing_is_refused():
    with pytest.raises(ValueError, match="No column says anything about items: there is none"):
        table_of(item=[1, 2]).encoder()
    with pytest.raises(ValueError, match=r"'title' \(every value differs\), 'k' \(every value is"):
        table_of(title=["a", "b"], k=[1, 1]).encoder()


def test_the_matrix_that_was_given_stays_as_it_was():
    matrix = sparse.csr_array((np.ones(2), np.array([1, 0]), np.array([0, 2])), shape=(1, 2))
    FeatureTable.of((["a"], matrix))
    assert matrix.indices.tolist() == [1, 0]


# New tables


def test_unknown_categories_are_ignored_with_one_warning():
    encoder = table_of(genre=["a", "a", "b", "b"], mood=["x", "x", "y", "y"]).encoder()
    new = table_of(genre=["a", "p", "q", "p"], mood=["r", "s", "x", "x"])
    with pytest.warns(UserWarning, match="not known") as caught:
        rows = encoder.encode(new).toarray()
    assert [str(one.message) for one in caught] == [
        "Features of items have categories that were not known in training, and which are ignored "
        "(4): 'p', 'q', 'r', ...."
    ]
    np.testing.assert_allclose(rows[1], [0, 0, 0, 0, 1])


def test_columns_of_new_tables_are_those_of_training():
    old = table_of(genre=["a", "a", "b", "b"], title=["p", "q", "r", "s"])
    with pytest.warns(UserWarning, match="Left out"):
        encoder = old.encoder()
    encoder.encode(table_of(genre=["a"], title=["new"]))  # left out then, and silently now
    with pytest.warns(UserWarning, match="not in training, and which are ignored: 'mood'"):
        encoder.encode(table_of(genre=["a"], mood=["good"]))
    with pytest.raises(ValueError, match=r"lack the column 'genre', .* there are 'title'"):
        encoder.encode(table_of(title=["a"]))
    with pytest.raises(ValueError, match="are a matrix, but were columns in training"):
        encoder.encode(FeatureTable.of(([1], [[1.0]])))
    weights = FeatureTable.of(([1], [[1.0, 2.0]])).encoder()
    for other in (FeatureTable.of(([1], [[1.0]])), old):
        with pytest.raises(ValueError, match="were a matrix with 2 columns in training"):
            weights.encode(other)


def test_cells_are_read_as_they_were_in_training():
    encoder = table_of(year=[1, 2, 3], code=["7", "7", "x"], tags=["a|b", "a", "b"]).encoder()
    rows = dense(table_of(year=["2"], code=[7.0], tags=["a"]), encoder)
    assert [name for name in rows if rows[name][0]] == ["year~2", "code=7", "tags=a", "any"]
    with pytest.raises(ValueError, match="'year' holds numbers, but 'old' in row 0 is none"):
        encoder.encode(table_of(year=["old"], code=["7"], tags=["a"]))


# In the order of a vocabulary


def test_rows_are_in_the_order_of_the_codes():
    table = FeatureTable.of(FILMS)
    features = Features.of(table, IdIndex([3, 4, 7], "item"))
    rows = table.encoder().encode(table, quiet=True).toarray()
    np.testing.assert_array_equal(features.matrix.toarray(), [rows[1], 0 * rows[0], rows[0]])
    assert features.names == table.encoder().names


def test_two_are_joined_and_the_new_rows_win():
    old, new = IdIndex(["a", "b", "c"], "item"), IdIndex(["b", "c", "d"], "item")
    ours = Features.of({"item": ["a", "b", "c"], "x": ["p", "q", "p"], "y": [1, 2, 3]}, old)
    theirs = Features.of({"item": ["b", "d"], "x": ["p", "p"], "y": [1, 2]}, new, ours.encoder)
    union = old.union(new)
    joined = ours.joined(union, old, theirs, new).matrix.toarray()
    a, _, c = ours.matrix.toarray()
    b, _, d = theirs.matrix.toarray()
    np.testing.assert_array_equal(joined, [a, b, c, d])
    np.testing.assert_array_equal(ours.joined(new, old).matrix.toarray()[-1], 0 * a)
    other = Features.of({"item": ["b"], "x": ["p"]}, new, Encoder(ours.encoder.columns[:1]))
    with pytest.raises(ValueError, match="two encoders cannot be joined"):
        ours.joined(union, old, other, new)


def test_arrays_tell_two_apart():
    index = IdIndex(FILMS["item"], "item")
    one, same = Features.of(FILMS, index), Features.of(FILMS, index)
    other = Features.of(FILMS | {"year": [1990, 2000, 2010, 2000]}, index)
    assert all((one.arrays[name] == same.arrays[name]).all() for name in one.arrays)
    assert not np.array_equal(one.arrays["columns"], other.arrays["columns"])


# Properties


@given(st.lists(st.tuples(WORDS, st.none() | NUMBERS, st.lists(WORDS)), min_size=2, max_size=30))
def test_rows_are_of_unit_length_whatever_the_order(rows):
    words, numbers, lists = (list(column) for column in zip(*rows, strict=True))
    n = len(rows)
    # The column of flags lets no table say nothing.
    columns = {"flag": [["on"]] + [[]] * n, "word": [*words, "red"], "number": [*numbers, 0.0]}
    columns |= {"tags": [*lists, ["red"]], "item": range(n + 1)}
    columns["flag"][-1] = ["on"]
    index = IdIndex(range(n + 2), "item")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        features = Features.of(columns, index)
        backwards = {name: list(cells)[::-1] for name, cells in columns.items()}
        again = Features.of(backwards, index)
    lengths = np.linalg.norm(features.matrix.toarray(), axis=1)
    np.testing.assert_allclose(lengths, [1.0] * (n + 1) + [0.0], rtol=1e-6)
    assert again.encoder == features.encoder
    assert (again.matrix.toarray() == features.matrix.toarray()).all()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.data())
def test_hats_add_up_to_one_and_are_exact_at_knots(numbers, data):
    column = fitted_column("x", np.array(numbers))
    if isinstance(column, str):
        assert len(set(numbers)) == 1
        return
    knots = np.array(column.values)
    assert 2 <= len(knots) <= 5
    assert (knots[0], knots[-1]) == (min(numbers), max(numbers))
    asked = [*knots, *data.draw(st.lists(st.floats(allow_nan=False, allow_infinity=False)))]
    found = column.encode(np.array(asked))
    weights = sparse.coo_array(
        (found.weights, (found.rows, found.columns)), shape=(len(asked), len(knots))
    ).toarray()
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    np.testing.assert_array_equal(weights[: len(knots)], np.eye(len(knots)))


@given(st.lists(st.lists(WORDS), min_size=1, max_size=10), st.lists(st.integers(0, 9)))
def test_unknown_categories_change_nothing_else(cells, where):
    encoder = table_of(tags=[["red"], ["red", "green"], ["green", "blue"], ["blue"], []]).encoder()
    with_unknown = [[*cell, "?"] if k in where else cell for k, cell in enumerate(cells)]
    plain, changed = (
        encoder.encode(table_of(tags=tags), quiet=True).toarray() for tags in (cells, with_unknown)
    )
    np.testing.assert_array_equal(plain, changed)


# Model files


def restored(features):
    encoder = ModelEncoder()
    node = encoder.encode(features, "features")
    return ModelDecoder(encoder.tensors, Allowance(0)).decode(node)


@pytest.mark.parametrize("source", [FILMS, (FILMS["item"], np.eye(4))])
def test_features_come_back_from_a_model_file(source):
    features = Features.of(source, IdIndex([3, 4, 7], "item"))
    joined = features.joined(index := IdIndex([1, 3, 7], "item"), IdIndex([3, 4, 7]), features)
    for one in (features, joined):
        copy = restored(one)
        ModelChecker().check(copy, "features", None)
        assert copy.encoder == one.encoder
        assert copy.names == one.names
        for name, array in one.arrays.items():
            np.testing.assert_array_equal(copy.arrays[name], array)
    assert len(index) == joined.matrix.shape[0]


GOOD = FeatureColumn("g", "category", ("a", "b"))
MATRIX = sparse.csr_array(np.eye(3, dtype=np.float32))


@pytest.mark.parametrize(
    ("columns", "matrix", "said"),
    [
        ((), MATRIX, "encoder has no columns"),
        ((7,), MATRIX, "encoder has no columns, or others"),
        ((GOOD, GOOD), MATRIX, "two columns of one name"),
        ((GOOD, FeatureColumn("", "weights", (1,))), MATRIX, "has columns beside a matrix"),
        ((FeatureColumn("g", "word", ("a",)),), MATRIX, "of the kind 'word', with other values"),
        ((FeatureColumn("g", "category", (1,)),), MATRIX, "with other values"),
        ((FeatureColumn("g", "number", ("1", "2")),), MATRIX, "with other values"),
        ((FeatureColumn("g", "category", ()),), MATRIX, "has no categories"),
        ((FeatureColumn("g", "category", ("a", "a")),), MATRIX, "one of them twice"),
        ((FeatureColumn("g", "number", (1.0,)),), MATRIX, "not in rising order"),
        ((FeatureColumn("g", "number", (2.0, 1.0)),), MATRIX, "not in rising order"),
        ((FeatureColumn("g", "number", (1.0, np.inf)),), MATRIX, "not in rising order"),
        ((FeatureColumn("g", "weights", (-1,)),), MATRIX, "no number of weights"),
        ((FeatureColumn(7, "category", ("a", "b")),), MATRIX, "name is of the type int"),
        ((GOOD,), MATRIX[:, :2], "matrix has other columns than its encoder"),
        ((GOOD,), MATRIX.astype(np.float64), "not a sparse matrix of float32"),
        ((GOOD,), MATRIX.toarray(), "not a sparse matrix of float32"),
        ((GOOD,), MATRIX * np.float32(np.nan), "numbers that are not finite"),
    ],
)
def test_hostile_features_are_refused(columns, matrix, said):
    features = restored(Features(matrix, Encoder(columns)))
    with pytest.raises(InvalidFileError, match=said):
        ModelChecker().check(features, "features", None)
    wrong = Features(MATRIX, Encoder((GOOD,), {"x": 7}))
    with pytest.raises(InvalidFileError, match="left_out has other reasons than text"):
        ModelChecker().check(wrong, "features", None)


def test_a_matrix_of_very_many_columns_gets_a_sentence(monkeypatch):
    matrix = sparse.csr_array(([1.0], ([0], [5])), shape=(2, 2**40))
    with pytest.raises(ValueError, match=r"has 1,099,511,627,776 columns, and may have 4,194,304"):
        FeatureTable.of(([1, 2], matrix), "item")
