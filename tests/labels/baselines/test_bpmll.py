"""BP-MLL against plain loops: the loss of pairs, both solvers, the thresholds of rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.model_selection import KFold

from label_contracts import labelled
from marginmf.datasets import load_labels
from marginmf.labels import BPMLL, Scaled
from marginmf.labels.baselines.network import fewest_errors, pair_losses
from marginmf.metrics import jaccard_accuracy

SEEDS = st.integers(0, 10_000)


def loss_of_pairs(outputs, present):
    """Return the loss of one row by its definition: a mean over pairs of labels."""
    pairs = [
        np.exp(-(outputs[k] - outputs[other]))
        for k in np.flatnonzero(present)
        for other in np.flatnonzero(~present)
    ]
    return np.mean(pairs) if pairs else 0.0


def loss_of_weights(first, second, row, present):
    hidden = np.tanh(row @ first[:-1] + first[-1])
    outputs = np.tanh(hidden @ second[:-1] + second[-1])
    if len(present) == 1:
        outputs, present = np.append(outputs, -outputs), np.append(present, ~present)
    return loss_of_pairs(outputs, present)


def gradient_of_weights(first, second, row, present):
    """Return the gradient of one row's loss by central differences, weight by weight."""
    gradients = []
    for layer in (first, second):
        gradient = np.zeros_like(layer)
        for index in np.ndindex(layer.shape):
            kept, values = layer[index], []
            for step in (1e-5, -1e-5):
                layer[index] = kept + step
                values.append(loss_of_weights(first, second, row, present))
            layer[index] = kept
            gradient[index] = (values[0] - values[1]) / 2e-5
        gradients.append(gradient)
    return gradients


@given(SEEDS, st.integers(1, 6), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_the_factorised_loss_and_gradient_are_those_of_the_pairs(seed, n_labels, n) -> None:
    rng = np.random.default_rng(seed)
    outputs, present = rng.uniform(-1, 1, (n, n_labels)), rng.random((n, n_labels)) < 0.5
    losses, slopes = pair_losses(outputs, present)
    if n_labels == 1:  # the other label is the absence of the one
        both = np.hstack([outputs, -outputs]), np.hstack([present, ~present])
        pairs, doubled = pair_losses(*both)
        np.testing.assert_allclose(losses, pairs)
        np.testing.assert_allclose(slopes[:, 0], doubled[:, 0] - doubled[:, 1])
        return
    np.testing.assert_allclose(losses, list(map(loss_of_pairs, outputs, present)), rtol=1e-12)
    for index in np.ndindex(outputs.shape):
        moved = np.zeros_like(outputs)
        moved[index] = 1e-6
        above, below = pair_losses(outputs + moved, present), pair_losses(outputs - moved, present)
        difference = (above[0] - below[0])[index[0]] / 2e-6
        assert difference == pytest.approx(slopes[index], abs=1e-7)


@given(SEEDS, st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_thresholds_have_the_fewest_errors(seed, n_labels) -> None:
    rng = np.random.default_rng(seed)
    outputs, present = rng.uniform(-1, 1, n_labels), rng.random(n_labels) < 0.4
    ranked = np.sort(outputs)
    cuts = [ranked[0] - 0.1, *(ranked[1:] + ranked[:-1]) / 2, ranked[-1] + 0.1]
    # Not below all where a label is lacking, nor above all where there is one.
    allowed = cuts[int(not present.all()) : n_labels + 1 - int(present.any())]
    errors = [int(((outputs > cut) != present).sum()) for cut in allowed]
    expected = allowed[errors.index(min(errors))]
    (found,) = fewest_errors(outputs[None], present[None])
    assert found == pytest.approx(expected, abs=1e-12)


class Recorded(BPMLL):
    """Keeps the first weights, and in which order epochs go through the rows."""

    def _train(self, X, Y, layers, generator):
        self.before, self.columns = [each.copy() for each in layers], self._seen.labels
        state = generator.bit_generator.state
        losses = super()._train(X, Y, layers, generator)
        self.data = (X.toarray() if hasattr(X, "toarray") else X), Y.toarray() > 0
        generator.bit_generator.state = state
        rows = np.flatnonzero([len(set(row)) > 1 or len(row) == 1 for row in self.data[1].tolist()])
        self.orders = [generator.permutation(rows) for _ in range(self.max_epochs)]
        return losses


@pytest.mark.parametrize("n_labels", [1, 3])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_sgd_steps_along_the_gradient_of_every_row(n_labels, form) -> None:
    X, Y = labelled(9, 4, n_labels)
    settings = {"hidden": 3, "max_epochs": 2, "learning_rate": 0.3, "decay": 0.9}
    model = Recorded(solver="sgd", decision="sign", random_state=0, **settings).fit(form(X), Y)
    first, second = model.before
    X, present = model.data
    losses = []
    for order in model.orders:
        losses.append([])
        for i in order:
            losses[-1].append(loss_of_weights(first, second, X[i], present[i]))
            for layer, gradient in zip(
                (first, second), gradient_of_weights(first, second, X[i], present[i]), strict=True
            ):
                layer -= 0.3 * (gradient + 0.9 * layer)
    np.testing.assert_allclose(model.hidden_weights_, first[:-1], atol=1e-7)
    np.testing.assert_allclose(model.hidden_intercept_, first[-1], atol=1e-7)
    np.testing.assert_allclose(model.output_weights_[:, model.columns], second[:-1], atol=1e-7)
    np.testing.assert_allclose(model.losses_, np.mean(losses, axis=1), atol=1e-7)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_adam_moves_the_averages_of_features_that_occur_in_the_batch(form) -> None:
    X, Y = labelled(9, 4, 3)
    X[:, 1] = np.where(np.arange(9) == 4, 1.0, 0.0)  # rare
    settings = {"hidden": 3, "max_epochs": 3, "learning_rate": 0.1, "decay": 0.5, "batch_size": 2}
    model = Recorded(decision="sign", random_state=0, **settings).fit(form(X), Y)
    layers = model.before
    X, present = model.data
    means, squares = ([np.zeros_like(each) for each in layers] for _ in range(2))
    steps = [np.zeros((len(each), 1), int) for each in layers]
    for order in model.orders:
        for start in range(0, len(order), 2):
            batch = order[start : start + 2]
            rows = [gradient_of_weights(*layers, X[i], present[i]) for i in batch]
            occurs = np.append((X[batch] != 0).any(axis=0), True)
            for k, moving in enumerate((occurs, np.ones(len(layers[1]), bool))):
                gradient = sum(each[k] for each in rows) / len(batch)
                steps[k][moving] += 1
                means[k][moving] = (0.9 * means[k] + 0.1 * gradient)[moving]
                squares[k][moving] = (0.999 * squares[k] + 0.001 * gradient**2)[moving]
                t = np.maximum(steps[k], 1)
                step = means[k] / (1 - 0.9**t) / (np.sqrt(squares[k] / (1 - 0.999**t)) + 1e-8)
                layers[k] *= 1 - 0.1 * 0.5
                layers[k] -= 0.1 * step * moving[:, None]
    np.testing.assert_allclose(model.hidden_weights_, layers[0][:-1], atol=1e-5)
    np.testing.assert_allclose(model.output_weights_[:, model.columns], layers[1][:-1], atol=1e-5)


@pytest.mark.parametrize("solver", ["adam", "sgd"])
def test_the_loss_falls(solver) -> None:
    X, Y = labelled()
    model = BPMLL(4, 30, 0.03, solver=solver, decision="sign", random_state=0).fit(X, Y)
    assert len(model.losses_) == 30
    assert model.losses_[-1] < 0.5 * model.losses_[0]


@pytest.mark.parametrize("share", [0.0, 0.01, 1.0])
def test_thresholds_are_the_ridge_regression_on_the_outputs(share) -> None:
    X, Y = labelled(40)
    model = BPMLL(4, 20, threshold_reg=share, decision="sign", random_state=0).fit(X, Y)
    outputs = model._outputs(X)
    predicted = outputs @ model.threshold_weights_ + model.threshold_intercept_
    residual = fewest_errors(outputs, Y > 0) - predicted
    centred = outputs - outputs.mean(axis=0)
    reg = share * np.square(centred).sum(axis=0).mean()
    np.testing.assert_allclose(centred.T @ residual, reg * model.threshold_weights_, atol=1e-9)
    assert residual.sum() == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(model.decision_function(X), outputs - predicted[:, None])


def test_hidden_units_are_a_number_or_a_share() -> None:
    X, Y = labelled(20, 30)
    for hidden, expected in ((3, 3), (0.4, 12), (1, 1), (1.0, 30), (0.001, 8)):
        model = BPMLL(hidden, 1, decision="sign").fit(X, Y)
        assert model.hidden_weights_.shape == (30, expected)


def test_labels_of_the_same_rows_have_the_same_scores() -> None:
    X, Y = labelled()
    model = BPMLL(4, 3, decision="sign", random_state=0).fit(X, Y[:, [0, 1, 0, 2, 0]])
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores[:, [2, 4]], scores[:, [0, 0]])


def test_rows_without_pairs_teach_thresholds_alone() -> None:
    X, Y = labelled(12)
    Y[:6], Y[6:] = 0, 1
    Y = np.column_stack([Y, np.zeros(12, int)])  # a label that nobody has makes no pairs
    model = BPMLL(4, 3, decision="sign", random_state=0).fit(X, Y)
    assert not model.losses_.any()
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"hidden": 0}, "hidden=0 must be a whole number >= 1, or a share of the features"),
        ({"hidden": 1.5}, "hidden=1.5 must be a whole number"),
        ({"hidden": True}, "hidden=True must be a whole number"),
        ({"max_epochs": 0}, "max_epochs=0 must be a whole number >= 1"),
        ({"learning_rate": 0.0}, "learning_rate=0.0 must be a number > 0"),
        ({"solver": "lbfgs"}, "solver='lbfgs' is not known"),
        ({"batch_size": 0}, "batch_size=0 must be"),
        ({"decay": -1.0}, "decay=-1.0 must be a number >= 0"),
        ({"decay": 20.0, "solver": "sgd"}, "decay=20.0 times the learning rate of 0.05 must be"),
        ({"threshold_reg": -0.1}, "threshold_reg=-0.1 must be"),
        ({"random_state": "seed"}, "random_state='seed' cannot seed"),
        ({"hidden": 10**8}, "too many weights: give a whole number, such as hidden=100"),
    ],
)
def test_bad_parameters_are_refused(params, said) -> None:
    with pytest.raises(ValueError, match=said):
        BPMLL(**params).fit(*labelled())


@pytest.mark.parametrize(
    ("name", "params", "least", "most"),
    [
        # Kumar's thesis, chapter 5: 0.548 and 0.216, of ten folds.
        ("emotions", {"solver": "sgd"}, 0.53, 0.60),
        ("cal500", {"solver": "adam"}, 0.20, 0.26),
        # Least squares with thresholds above all outputs allowed has 0.003.
        ("corel5k", {"solver": "sgd", "hidden": 20, "max_epochs": 5}, 0.09, 0.17),
    ],
)
def test_accuracy_on_real_data(name, params, least, most, data_root, monkeypatch) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    data = load_labels(name)
    folds = KFold(5, shuffle=True, random_state=0).split(np.arange(data.X.shape[0]))
    train, test = next(folds)
    model = BPMLL(random_state=0, decision="sign", **params)
    model = Scaled(model) if isinstance(data.X, np.ndarray) else model
    model.fit(data.X[train], data.Y[train])
    assert least < jaccard_accuracy(data.Y[test], model.predict(data.X[test])) < most
