"""Sparse matrices with entries outside them: refused wherever they are handed in.

SciPy's compiled routines, and ours, would read and write beyond the ends of other arrays.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.dummy import DummyClassifier

import marginmf
from marginmf import labels, metrics, ratings
from marginmf._utils.sparse import check_sparse
from marginmf.datasets import LabelsTable
from marginmf.metrics import label_scorer
from marginmf.protocols import (
    HoldOut,
    IterativeStratifiedKFold,
    KFold,
    compare,
    compare_labels,
    evaluate,
)

FORMATS = ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")
FAR = 10**8
ROWS, COLUMNS = 6, 4


def whole(form: str, kind: str = "array", dtype: Any = float) -> Any:
    """Return a matrix that is as it should be, with both ones and zeros in every column."""
    values = np.resize([1, 0, 0, 1, 1, 0, 1], (ROWS, COLUMNS)).astype(dtype)
    return getattr(sparse, f"{form}_{kind}")(values)


def changed(array: np.ndarray, position: int, value: Any) -> np.ndarray:
    array = array.copy()
    array[position] = value
    return array


def put(name: str, change: Callable[[Any], Any]) -> Callable[[Any], None]:
    return lambda matrix: setattr(matrix, name, change(getattr(matrix, name)))


def put_row(matrix: Any, columns: list[Any], values: list[float]) -> None:
    matrix.rows[2], matrix.data[2] = columns, values


def put_key(matrix: Any, key: Any) -> None:
    # The matrix is a dictionary itself in older versions of SciPy.
    dict.__setitem__(getattr(matrix, "_dict", matrix), key, 1.0)


def put_index(axis: str, index: Any) -> Callable[[Any], None]:
    return put(axis, lambda indices: changed(indices, 1, index))


DIVIDED: dict[str, Callable[[Any], None]] = {
    "far": put("indices", lambda indices: changed(indices, -1, FAR)),
    "just outside": put("indices", lambda indices: changed(indices, 0, ROWS)),
    "negative": put("indices", lambda indices: changed(indices, 0, -1)),
    "no whole numbers": put("indices", lambda indices: indices.astype(float)),
    "a table of indices": put("indices", lambda indices: indices[:, None]),
    "a list": put("indptr", lambda indptr: indptr.tolist()),
    "falling": put("indptr", lambda indptr: changed(indptr, 1, indptr[-1] + 9)),
    "beginning late": put("indptr", lambda indptr: changed(indptr, 0, 1)),
    "ending late": put("indptr", lambda indptr: changed(indptr, -1, FAR)),
    "ending early": put("indptr", lambda indptr: changed(indptr, -1, indptr[-2])),
    "cut": put("indptr", lambda indptr: indptr[:-1]),
    "values missing": put("data", lambda data: data[:-1]),
    "values in a table": put("data", lambda data: data[:, None]),
}
DAMAGES: dict[str, dict[str, Callable[[Any], None]]] = {
    "csr": DIVIDED,
    "csc": DIVIDED,
    "bsr": DIVIDED,
    "coo": {
        "far": put_index("col", FAR),
        "far row": put_index("row", FAR),
        "negative": put_index("row", -1),
        "values missing": put("data", lambda data: data[:-1]),
    },
    "lil": {
        "far": lambda matrix: put_row(matrix, [FAR], [1.0]),
        "negative": lambda matrix: put_row(matrix, [-1], [1.0]),
        "enormous": lambda matrix: put_row(matrix, [10**30], [1.0]),
        "half an index": lambda matrix: put_row(matrix, [1.5], [1.0]),
        "values missing": lambda matrix: put_row(matrix, [0, 1], [1.0]),
        "indices missing": lambda matrix: put_row(matrix, [0], [1.0, 1.0]),
        "no list": put("rows", lambda rows: changed(rows, 2, None)),
        "cut": put("rows", lambda rows: rows[:-1]),
    },
    "dok": {
        "far": lambda matrix: put_key(matrix, (0, FAR)),
        "negative": lambda matrix: put_key(matrix, (-1, 0)),
        "enormous": lambda matrix: put_key(matrix, (10**30, 0)),
        "no pair": lambda matrix: put_key(matrix, (1, 2, 3)),
    },
    "dia": {
        "far": put("offsets", lambda offsets: np.arange(FAR, FAR + 2 * len(offsets))),
        "cut": put("data", lambda data: data[:-1]),
        "twice": put("offsets", lambda offsets: changed(offsets, 0, offsets[1])),
        "no whole numbers": put("offsets", lambda offsets: offsets + 0.5),
    },
}


def damaged(form: str, fault: str = "far", kind: str = "array", dtype: Any = float) -> Any:
    matrix = whole(form, kind, dtype)
    DAMAGES[form][fault](matrix)
    return matrix


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("form", FORMATS)
def test_every_damage_of_every_format_is_a_sentence(form: str, kind: str) -> None:
    check_sparse(whole(form, kind), "X")
    for fault in DAMAGES[form]:
        with pytest.raises(ValueError, match=rf"^X is a damaged {form} matrix: it.*\.$") as caught:
            check_sparse(damaged(form, fault, kind), "X")
        assert len(str(caught.value)) < 250, fault


@pytest.mark.parametrize("form", FORMATS)
def test_matrices_without_entries_rows_or_columns_are_whole(form: str) -> None:
    for shape in ((3, 2), (0, 2), (3, 0)):
        check_sparse(getattr(sparse, f"{form}_array")(np.zeros(shape)), "X")


def test_indices_of_any_size_are_whole() -> None:
    matrix = whole("csr")
    for dtype in (np.int8, np.int16, np.int64, np.uint32):
        matrix.indices, matrix.indptr = matrix.indices.astype(dtype), matrix.indptr.astype(dtype)
        check_sparse(matrix, "X")


X = np.random.default_rng(0).random((ROWS, COLUMNS))
Y = whole("csr", dtype=int).toarray()
FITTED = labels.PLST(2, decision="sign", calibrate=True, cv=2).fit(X, Y)
MODEL = labels.PLST(2)
RATED = [(user, item) for user in range(5) for item in range(4)]
RATINGS = np.resize([1, 3, 2, 5], len(RATED))
FOLLOWED = ratings.BiasOnly().fit(RATED, RATINGS)
IDS = list(range(ROWS))

#: Whatever takes a sparse matrix.  Each gets one that is damaged.
CALLS: dict[str, Callable[[Any], Any]] = {
    "predict": FITTED.predict,
    "decision_function": FITTED.decision_function,
    "predict_proba": FITTED.predict_proba,
    "transform": FITTED.transform,
    "score features": lambda bad: FITTED.score(bad, Y),
    "score labels": lambda bad: FITTED.score(X, bad),
    "true": lambda bad: metrics.macro_f1(bad, Y),
    "predicted": lambda bad: metrics.micro_f1(Y, bad),
    "hamming": lambda bad: metrics.hamming_loss(bad, bad),
    "ranks": lambda bad: metrics.coverage(bad, X),
    "precision": lambda bad: metrics.precision_at_k(bad, X, 2),
    "labels log loss": lambda bad: metrics.labels.log_loss(bad, X),
    "calibration error": lambda bad: metrics.calibration_error(bad, X),
    "report": lambda bad: metrics.labels_report(bad, Y),
    "scorer features": lambda bad: label_scorer("macro_f1")(FITTED, bad, Y),
    "scorer labels": lambda bad: label_scorer("macro_f1")(FITTED, X, bad),
    "scorer probabilities": lambda bad: label_scorer("log_loss")(FITTED, bad, Y),
    "stratified": lambda bad: list(IterativeStratifiedKFold(2).split(X, bad)),
    "table features": lambda bad: LabelsTable("t", bad, Y),
    "table labels": lambda bad: LabelsTable("t", X, bad),
    "compare features": lambda bad: compare_labels((bad, Y), [MODEL], KFold(2)),
    "compare labels": lambda bad: compare_labels((X, bad), [MODEL], KFold(2)),
    "compare a stranger": lambda bad: compare_labels((bad, Y), [DummyClassifier()], KFold(2)),
    "ratings": ratings.Ratings.of,
    "compare ratings": lambda bad: compare((bad, RATINGS[:ROWS]), [FOLLOWED], HoldOut()),
    "evaluate ratings": lambda bad: evaluate(FOLLOWED, bad, RATINGS[:ROWS], HoldOut()),
    "compare only ratings": lambda bad: compare(bad, [FOLLOWED], HoldOut()),
    "halving": lambda bad: ratings.HalvingSearch(ratings.ALS(), {"reg": [1, 2]}).fit(bad),
    "fold in": FOLLOWED.fold_in,
    "ratings score": FOLLOWED.score,
    "pairs": FOLLOWED.predict,
    "user features": lambda bad: ratings.HMF().fit(RATED, RATINGS, user_features=(IDS, bad)),
    "item features": lambda bad: ratings.Ratings.of(RATED, RATINGS, item_features=(IDS, bad)),
}


#: Pairs cannot be given as a sparse matrix, whole or not, and `compare` takes no other form alone.
SAID = {
    **dict.fromkeys(CALLS, "is a damaged"),
    **dict.fromkeys(("pairs", "compare ratings", "evaluate ratings"), "Pairs must be an array, a"),
    "compare only ratings": "The data must be a RatingsTable",
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("call", CALLS)
def test_whatever_takes_a_matrix_refuses_one_with_entries_outside(call: str, form: str) -> None:
    faults = ("far", "ending late") if form in ("csr", "csc") else tuple(DAMAGES[form])[:1]
    if form == "dia":
        faults = ("cut",)
    for fault in faults:
        for kind in ("array", "matrix"):
            with pytest.raises(ValueError, match=SAID[call]):
                CALLS[call](damaged(form, fault, kind))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", labels.METHODS)
def test_every_label_method_refuses_to_learn_from_it(name: str, form: str) -> None:
    fault = "cut" if form == "dia" else "far"
    model = labels.METHODS[name]()
    for bad in (damaged(form, fault), damaged(form, fault, "matrix")):
        with pytest.raises(ValueError, match="X is a damaged"):
            model.fit(bad, Y)
        with pytest.raises(ValueError, match="y is a damaged"):
            model.fit(X, bad)


@pytest.mark.parametrize("name", ratings.METHODS)
def test_every_ratings_method_refuses_to_learn_from_it(name: str) -> None:
    for form in FORMATS:
        with pytest.raises(ValueError, match=r"matrix of ratings is a damaged|no ratings"):
            ratings.METHODS[name]().fit(damaged(form, "cut" if form == "dia" else "far"))


SAVED = sorted(Path(__file__).parent.glob("fixtures/*.marginmf"))


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_every_fitted_label_model_refuses_to_predict_it(path: Path) -> None:
    model = marginmf.load(path)
    if not isinstance(model, labels.base.LabelsEstimator):
        return
    X = sparse.csr_array(np.ones((2, model.n_features_in_)))
    X.indices[0] = FAR
    for name in ("predict", "decision_function", "predict_proba", "transform"):
        if hasattr(model, name):
            with pytest.raises(ValueError, match=re.escape(f"its index {FAR} is outside its")):
                getattr(model, name)(X)
