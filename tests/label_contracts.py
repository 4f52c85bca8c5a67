"""The contract of every label estimator.

Subclass `LabelsEstimatorContract` in a test module, define `make`, and the whole suite runs.
"""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csc_array, csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import marginmf

DECISIONS = ("sign", "global", "per_label")
NAMES = ["rock", "jazz", "folk", "opera", "blues"]
#: The fitted model of each contract.
FITTED = {}


def labelled(n_samples=60, n_features=8, n_labels=5, seed=0):
    """Rows with zeros among their features, whose labels are where a linear score is high."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.2, 1.0, (n_samples, n_features)) * (rng.random((n_samples, n_features)) < 0.5)
    X = X.astype(np.float32).astype(np.float64)  # the same numbers in both
    scores = X @ rng.normal(size=(n_features, n_labels))
    cuts = np.quantile(scores, np.linspace(0.45, 0.8, n_labels), axis=0).diagonal()
    return X, (scores > cuts).astype(int)


def accuracy(true, predicted):
    both, either = (true & predicted).sum(axis=1), (true | predicted).sum(axis=1)
    return np.mean(both / np.maximum(either, 1))


def log_loss(true, likely):
    return -np.mean(np.log(np.where(true, likely, 1.0 - likely)))


def dense(matrix):
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)


class LabelsEstimatorContract:
    """What a user may rely on, for every estimator."""

    #: One parameter and its candidates, for a grid search.
    grid = {"top1_if_empty": (False, True)}  # noqa: RUF012  (replaced, never changed)
    #: How far scores may be apart that should be the same, the sums being made in another order.
    tolerance = 1e-6
    #: How far, when the features are rounded to float32.
    float32_tolerance = 1e-3
    #: The share of labels that the method gets right at least, on its own training rows.
    least_accuracy = 0.6
    #: The same of 30 rows with 100 features.
    least_wide_accuracy = 0.3

    def make(self, **params):
        """Return an unfitted estimator that is quick to fit and has a fixed seed."""
        raise NotImplementedError

    def make_for_many_labels(self):
        """Return an estimator that learns ten thousand labels of a few rows within seconds."""
        return self.make(decision="sign")

    def assert_same_scores(self, scores, others, tolerance=None):
        tolerance = self.tolerance if tolerance is None else tolerance
        np.testing.assert_allclose(scores, others, rtol=tolerance, atol=tolerance)

    @pytest.fixture
    def data(self):
        return labelled()

    @pytest.fixture
    def model(self):
        """Return an estimator that is fitted once for all tests, none of which changes it."""
        if type(self) not in FITTED:
            FITTED[type(self)] = self.make().fit(*labelled())
        return FITTED[type(self)]

    # --- predictions ---------------------------------------------------------------------------

    def test_labels_are_learned(self, model, data):
        X, Y = data
        predicted = model.predict(X)
        assert (predicted.shape, predicted.dtype) == (Y.shape, Y.dtype)
        assert accuracy(Y, predicted) > self.least_accuracy
        common = np.tile(Y.mean(axis=0) > 0.5, (len(Y), 1)).astype(int)
        assert accuracy(Y, predicted) > accuracy(Y, common)

    @pytest.mark.parametrize("decision", DECISIONS)
    def test_labels_are_predicted_where_the_decision_function_is_positive(self, data, decision):
        X, Y = data
        model = self.make(decision=decision).fit(X, Y)
        scores = model.decision_function(X)
        assert scores.shape == Y.shape
        np.testing.assert_array_equal(model.predict(X), scores > 0)
        if decision != "per_label":
            assert np.ptp(model.thresholds_) == 0
        if decision == "sign":
            assert model.thresholds_[0] == 0

    @pytest.mark.parametrize("decision", DECISIONS)
    def test_top1_gives_rows_without_labels_their_best(self, data, decision):
        X, Y = data
        filled = self.make(decision=decision, top1_if_empty=True).fit(X, Y)
        scores, predicted = filled.decision_function(X), filled.predict(X)
        assert predicted.any(axis=1).all()
        np.testing.assert_array_equal(predicted, (scores > 0) | self.best_of_empty(scores))
        if decision == "sign":
            bare = clone(filled).set_params(top1_if_empty=False).fit(X, Y)
            self.assert_same_scores(scores, bare.decision_function(X))

    def test_by_default_rows_get_a_label_if_all_training_rows_have_one(self, model, data):
        X, Y = data
        assert model.top1_if_empty_ is bool(Y.any(axis=1).all())
        labelled_rows = Y.any(axis=1)
        full = self.make().fit(X[labelled_rows], Y[labelled_rows])
        assert full.top1_if_empty_ is True
        assert full.predict(X).any(axis=1).all()
        chosen = self.make(top1_if_empty=True).fit(X[labelled_rows], Y[labelled_rows])
        np.testing.assert_array_equal(full.thresholds_, chosen.thresholds_)
        sign = self.make(decision="sign").fit(X[labelled_rows], Y[labelled_rows])
        assert sign.top1_if_empty_ is False

    def best_of_empty(self, scores):
        empty = ~(scores > 0).any(axis=1)
        return empty[:, None] & (np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, None])

    # --- probabilities -------------------------------------------------------------------------

    def test_probabilities_rise_with_the_scores_and_beat_the_base_rates(self, model, data):
        X, Y = data
        likely, scores = model.predict_proba(X), model.decision_function(X)
        assert (likely.shape, likely.dtype) == (Y.shape, np.float64)
        assert ((likely > 0) & (likely < 1)).all()
        for label in range(Y.shape[1]):
            order = np.argsort(scores[:, label], kind="stable")
            assert (np.diff(likely[order, label]) >= 0).all()
        assert log_loss(Y, likely) < log_loss(Y, np.tile(Y.mean(axis=0), (len(Y), 1)))

    def test_with_the_sign_rule_probabilities_must_be_asked_for(self, data, tmp_path):
        X, Y = data
        model = self.make(decision="sign").fit(X, Y)
        assert not hasattr(model, "predict_proba")
        with pytest.raises(AttributeError, match="no probabilities: set calibrate=True and fit it"):
            model.predict_proba(X)
        asked = self.make(decision="sign", calibrate=True).fit(X, Y)
        self.assert_same_scores(asked.decision_function(X), model.decision_function(X))
        assert not asked.thresholds_.any()
        likely = asked.predict_proba(X)
        asked.save(tmp_path / "model.marginmf")
        copy = marginmf.load(tmp_path / "model.marginmf")
        assert copy.predict_proba(X).tobytes() == likely.tobytes()

    @pytest.mark.parametrize("classes", [["no", "yes"], ["red", "green", "blue"]])
    def test_probabilities_of_classes_add_up_to_one(self, data, classes):
        X, _ = data
        scores = X @ np.random.default_rng(3).normal(size=(X.shape[1], len(classes)))
        y = np.array(classes)[(scores - scores.mean(axis=0)).argmax(axis=1)]
        assert not hasattr(self.make().fit(X, y), "predict_proba")
        model = self.make(calibrate=True).fit(X, y)
        likely = model.predict_proba(X)
        assert likely.shape == (len(X), len(classes))
        np.testing.assert_allclose(likely.sum(axis=1), 1.0)
        truth = y[:, None] == model.classes_
        assert log_loss(truth, likely) < log_loss(truth, np.tile(truth.mean(axis=0), (len(X), 1)))

    def test_batches_do_not_change_answers(self, model, data, monkeypatch):
        X, _ = data
        scores, predicted = model.decision_function(X), model.predict(X)
        monkeypatch.setattr("marginmf.labels.base.BATCH_BYTES", 2**15)
        self.assert_same_scores(model.decision_function(X), scores)
        np.testing.assert_array_equal(model.predict(X), predicted)
        self.assert_same_scores(model.decision_function(X[7:8]), scores[7:8])

    def test_predict_before_fit_is_an_error(self, data):
        with pytest.raises(NotFittedError):
            self.make().predict(data[0])

    # --- a class a row -------------------------------------------------------------------------

    @pytest.mark.parametrize("classes", [["no", "yes"], ["red", "green", "blue"]])
    def test_vectors_of_classes_can_be_learned(self, data, classes):
        X, _ = data
        scores = X @ np.random.default_rng(3).normal(size=(X.shape[1], len(classes)))
        y = np.array(classes)[(scores - scores.mean(axis=0)).argmax(axis=1)]
        model = self.make().fit(X, y)
        assert (model.predict(X) == y).mean() > 0.6
        shape = (len(X),) if len(classes) == 2 else (len(X), 3)
        assert model.decision_function(X).shape == shape
        assert model.classes_.tolist() == sorted(classes)

    # --- forms of data -------------------------------------------------------------------------

    def test_sparse_features_give_the_same_answers(self, model, data):
        X, Y = data
        sparse = csr_array(X)
        other = self.make().fit(sparse, Y)
        scores = model.decision_function(X)
        self.assert_same_scores(other.decision_function(sparse), scores)
        self.assert_same_scores(other.decision_function(X), scores)
        self.assert_same_scores(model.decision_function(sparse), scores)
        np.testing.assert_array_equal(other.predict(sparse), model.predict(X))

    def test_sparse_features_in_any_order_with_wide_indices_and_stored_zeros(self, model, data):
        X, Y = data
        wide = csr_array(np.where(X == 0, np.nan, X))
        wide.data[np.isnan(wide.data)] = 0.0
        for row in range(len(X)):
            here = slice(wide.indptr[row], wide.indptr[row + 1])
            wide.indices[here], wide.data[here] = wide.indices[here][::-1], wide.data[here][::-1]
        wide = csr_array(
            (wide.data, wide.indices.astype(np.int64), wide.indptr.astype(np.int64)), X.shape
        )
        scores = self.make().fit(wide, Y).decision_function(wide)
        self.assert_same_scores(scores, model.decision_function(X))

    def test_sparse_labels_give_the_same_answers_and_come_back_sparse(self, model, data):
        X, Y = data
        other = self.make().fit(X, csc_array(Y.astype(np.int8)))
        predicted = other.predict(X)
        assert isinstance(predicted, csr_array)
        assert predicted.dtype == np.int8
        np.testing.assert_array_equal(predicted.toarray(), model.predict(X))
        self.assert_same_scores(other.decision_function(X), model.decision_function(X))

    def test_float32_features(self, model, data):
        X, Y = data
        other = self.make().fit(X.astype(np.float32), Y)
        for rows in (X.astype(np.float32), X):
            self.assert_same_scores(
                other.decision_function(rows), model.decision_function(X), self.float32_tolerance
            )

    def test_booleans_and_lists(self, model, data):
        X, Y = data
        predicted = self.make().fit(X.tolist(), Y.astype(bool)).predict(X.tolist())
        assert predicted.dtype == bool
        np.testing.assert_array_equal(predicted, model.predict(X))
        np.testing.assert_array_equal(self.make().fit(X, Y.tolist()).predict(X), model.predict(X))

    def test_data_frames_keep_their_names(self, model, data):
        X, Y = data
        columns = [f"feature {k}" for k in range(X.shape[1])]
        features = pd.DataFrame(dict(zip(columns, X.T, strict=True)))
        labels = pl.DataFrame(dict(zip(NAMES, Y.T, strict=True)))
        other = self.make().fit(features, labels)
        assert other.classes_.tolist() == NAMES
        assert other.feature_names_in_.tolist() == columns
        np.testing.assert_array_equal(other.predict(features), model.predict(X))
        swapped = features[columns[::-1]]
        with pytest.raises(ValueError, match="feature names should match"):
            other.predict(swapped)

    def test_what_is_given_is_not_changed(self, data):
        X, Y = data
        X.setflags(write=False)
        Y.setflags(write=False)
        sparse, labels = csr_array(X), csr_array(Y)
        for array in (sparse.data, sparse.indices, sparse.indptr, labels.data, labels.indices):
            array.setflags(write=False)
        for features, targets in ((X, Y), (sparse, labels)):
            self.make().fit(features, targets).predict(features)
            np.testing.assert_array_equal(dense(features), labelled()[0])
            np.testing.assert_array_equal(dense(targets), labelled()[1])

    # --- what must not matter ------------------------------------------------------------------

    @pytest.mark.parametrize("form", [np.asarray, csr_array])
    def test_the_order_of_the_rows_does_not_matter(self, model, data, form):
        X, Y = data
        order = np.random.default_rng(1).permutation(len(X))
        other = self.make().fit(form(X[order]), Y[order])
        self.assert_same_scores(other.decision_function(form(X)), model.decision_function(X))
        np.testing.assert_array_equal(other.predict(form(X[order])), model.predict(X)[order])

    def test_the_order_of_rows_that_are_alike_does_not_matter(self, data):
        X, Y = data
        X = np.vstack([X, X[:20], X[:20]])
        Y = np.vstack([Y, Y[20:40], 1 - Y[:20]])
        model = self.make().fit(X, Y)
        order = np.random.default_rng(1).permutation(len(X))
        other = self.make().fit(X[order], Y[order])
        self.assert_same_scores(other.decision_function(X), model.decision_function(X))

    def test_the_order_of_the_labels_does_not_matter(self, model, data):
        X, Y = data
        order = np.random.default_rng(2).permutation(Y.shape[1])
        other = self.make().fit(X, Y[:, order])
        self.assert_same_scores(other.decision_function(X), model.decision_function(X)[:, order])
        self.assert_same_scores(other.predict_proba(X), model.predict_proba(X)[:, order])
        np.testing.assert_array_equal(other.predict(X), model.predict(X)[:, order])

    def test_fitting_again_gives_the_same_answers(self, model, data):
        X, Y = data
        scores = model.decision_function(X)
        np.testing.assert_array_equal(self.make().fit(X, Y).decision_function(X), scores)
        other = labelled(50, 6, 3, seed=5)
        again = self.make().fit(*other).fit(X, Y)
        np.testing.assert_array_equal(again.decision_function(X), scores)
        assert set(vars(again)) == set(vars(model))

    def test_the_number_of_jobs_does_not_matter(self, model, data):
        if "n_jobs" not in model.get_params():
            return
        X, Y = data
        other = self.make(n_jobs=2).fit(X, Y)
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))

    # --- odd data ------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("decision", "top1"),
        [("sign", True), ("global", False), ("global", True), ("per_label", False)],
    )
    def test_labels_that_nobody_or_everybody_has(self, data, decision, top1):
        X, Y = data
        odd = np.column_stack([np.zeros(len(Y), int), Y, np.ones(len(Y), int)])
        model = self.make(decision=decision, top1_if_empty=top1).fit(X, odd)
        predicted = model.predict(X)
        assert not predicted[:, 0].any()
        assert predicted[:, -1].all()
        assert accuracy(odd, predicted) > self.least_accuracy
        assert np.isfinite(model.decision_function(X)).all()
        if decision != "sign":
            likely = model.predict_proba(X)
            assert (likely[:, 0] < 0.05).all()
            assert (likely[:, -1] > 0.95).all()

    def test_only_labels_that_nobody_has(self, data):
        X, Y = data
        for top1 in (False, True):
            model = self.make(top1_if_empty=top1).fit(X, np.zeros_like(Y))
            assert not model.predict(X).any()

    def test_rows_without_labels(self, data):
        X, Y = data
        Y = Y.copy()
        Y[::3] = 0
        assert self.make().fit(X, Y).predict(X).shape == Y.shape

    def test_one_label(self, data):
        X, Y = data
        column, vector = (self.make(decision="sign").fit(X, y) for y in (Y[:, :1], Y[:, 0]))
        np.testing.assert_array_equal(column.predict(X)[:, 0], vector.predict(X))
        assert column.decision_function(X).shape == (len(X), 1)

    def test_more_features_than_rows(self):
        X, Y = labelled(30, 100)
        for form in (np.asarray, csr_array):
            model = self.make().fit(form(X), Y)
            assert np.isfinite(model.decision_function(form(X))).all()
            assert accuracy(Y, model.predict(form(X))) > self.least_wide_accuracy

    def test_constant_features(self, data):
        X, Y = data
        n = len(X)
        wide = np.column_stack([X, np.zeros((n, 2)), np.full(n, 3.0), X[:, :1]])
        model, other = self.make().fit(wide, Y), self.make().fit(csr_array(wide), Y)
        scores = model.decision_function(wide)
        assert np.isfinite(scores).all()
        self.assert_same_scores(other.decision_function(wide), scores)
        nothing = self.make().fit(np.zeros((n, 3)), Y).decision_function(np.zeros((2, 3)))
        assert np.isfinite(nothing).all()

    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_fewer_rows_than_folds(self, data, n):
        X, Y = data
        for decision in ("sign", "global"):
            model = self.make(decision=decision, cv=5).fit(X[:n], Y[:n])
            assert model.predict(X[:4]).shape == (4, 5)
            assert np.isfinite(model.decision_function(X)).all()

    def test_ten_thousand_labels(self):
        rng = np.random.default_rng(0)
        X, _ = labelled(200, 10)
        labels = rng.integers(5, 10_000, (200, 3))
        labels[:, 0] = np.arange(200) % 5
        X[:, :5] = labels[:, :1] == np.arange(5)
        Y = csr_array((np.ones(600), labels.ravel(), np.arange(0, 601, 3)), (200, 10_000))
        Y.sum_duplicates()
        Y.data[:] = 1
        predicted = self.make_for_many_labels().fit(csr_array(X), Y).predict(csr_array(X))
        assert predicted.shape == Y.shape
        found, known = predicted[:, :5].toarray() > 0, Y[:, :5].toarray() > 0
        assert found[known].mean() > 0.5
        assert not predicted[:, Y.sum(axis=0) == 0].nnz

    # --- scikit-learn --------------------------------------------------------------------------

    def test_pipelines(self, data):
        X, Y = data
        pipe = make_pipeline(StandardScaler(with_mean=False), self.make()).fit(csr_array(X), Y)
        assert accuracy(Y, pipe.predict(csr_array(X))) > 0.9 * self.least_accuracy

    def test_grid_search_and_cross_validation(self, data):
        X, Y = data
        (name, candidates), *_ = self.grid.items()
        search = GridSearchCV(self.make(decision="sign"), {name: list(candidates)}, cv=2)
        search.fit(X, Y)
        assert search.best_params_[name] in candidates
        assert search.predict(X).shape == Y.shape
        scores = cross_val_score(self.make(decision="sign"), csr_array(X), Y, cv=2)
        assert ((scores >= 0) & (scores <= 1)).all()

    def test_clones_and_pickles(self, model, data):
        X, Y = data
        scores = model.decision_function(X)
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.decision_function(X), scores)
        np.testing.assert_array_equal(clone(model).fit(X, Y).decision_function(X), scores)

    def test_files(self, model, data, tmp_path):
        model.save(tmp_path / "model.marginmf")
        copy = marginmf.load(tmp_path / "model.marginmf")
        for rows in (data[0], csr_array(data[0])):
            scores = model.decision_function(rows)
            assert copy.decision_function(rows).tobytes() == scores.tobytes()
        np.testing.assert_array_equal(copy.predict(data[0]), model.predict(data[0]))

    # --- bad input -----------------------------------------------------------------------------

    def bad_data(self, data):
        X, Y = data
        hole, two = X.copy(), Y.copy()
        hole[4, 2], two[3, 1] = np.nan, 2
        return [
            (hole, Y, "X has NaN in row 4, column 2"),
            (csr_array(hole), Y, "X has NaN in row 4, column 2"),
            (X, two, "Y has the value 2 in row 3, column 1"),
            (X, csr_array(two), "Y has the value 2 in row 3, column 1"),
            (X, Y[:-1], "inconsistent numbers of samples"),
            (X[0], Y, "1D array instead"),
            (X, Y * 0.5, "continuous|value 0.5"),
        ]

    def test_bad_data_gets_a_sentence_and_leaves_the_model_as_it_was(self, model, data):
        scores = model.decision_function(data[0])
        for X, Y, said in self.bad_data(data):
            with pytest.raises(ValueError, match=said):
                model.fit(X, Y)
            np.testing.assert_array_equal(model.decision_function(data[0]), scores)
        other = pickle.loads(pickle.dumps(model)).set_params(cv=1)
        with pytest.raises(ValueError, match="cv=1 must be"):
            other.fit(*labelled(20, 4, 2))
        np.testing.assert_array_equal(other.decision_function(data[0]), scores)

    def test_bad_rows_to_predict_get_a_sentence(self, model, data):
        X, _ = data
        with pytest.raises(ValueError, match=f"expecting {X.shape[1]} features"):
            model.predict(X[:, :-1])
        hole = X.copy()
        hole[0, 1] = np.inf
        with pytest.raises(ValueError, match="X has inf in row 0, column 1"):
            model.predict(hole)

    def test_bad_parameters_get_a_sentence(self, data):
        for params, message in (
            ({"decision": "best"}, "decision='best' is not known"),
            ({"tune_for": "auc"}, "tune_for='auc' is not known"),
            ({"top1_if_empty": "yes"}, "top1_if_empty='yes' must be 'auto', True or False"),
            ({"calibrate": "yes"}, "calibrate='yes' must be True or False"),
        ):
            with pytest.raises(ValueError, match=message):
                self.make(**params).fit(*data)
        if "n_jobs" in self.make().get_params():
            with pytest.raises(ValueError, match="n_jobs=0 must be a number of threads"):
                self.make(n_jobs=0).fit(*data)
