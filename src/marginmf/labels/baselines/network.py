"""BP-MLL: a network whose outputs rank a row's labels before the others (Zhang and Zhou, 2006).

With a row's outputs c, its labels P and the others Q, its loss is the mean over pairs of
``exp(c_l - c_k)``, k in P and l in Q.  That is a product of two sums, so that neither the loss nor
its gradient needs the pairs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, identity

from marginmf._utils.indicators import counts
from marginmf._utils.parameters import check_choice, check_number
from marginmf._utils.random import as_generator
from marginmf._utils.saved import floats
from marginmf._utils.types import BoolArray, Float64Array, FloatArray, IntArray
from marginmf.backends.labels import adam_rows, sgd_epoch
from marginmf.labels.algebra.matrices import row_blocks, used_features
from marginmf.labels.algebra.ridge import Ridge
from marginmf.labels.base import LabelsEstimator, method
from marginmf.labels.linear import affine

#: The step length of each solver, if none is given.
RATES = {"adam": 1e-3, "sgd": 0.05}
#: The fewest hidden units that a share of the features makes: one or two learn next to nothing.
FEWEST = 8
#: The most weights of a layer: one gibibyte of them, and twice that for Adam's averages.
MOST_WEIGHTS = 2**27
#: The most outputs that thresholds are learned from.
MOST_OUTPUTS = 2**26
#: How far outside a row's outputs the threshold is that leaves none, or all, on one side.
OUTSIDE = 0.1
#: Weights are divided by a common factor, which must not become too small.
SMALLEST = 1e-3

#: Goes through rows in an order, and returns the sum of their losses.
Epoch = Callable[[IntArray], float]


@method("bpmll")
@dataclass(eq=False, repr=False)
class BPMLL(LabelsEstimator):
    """Back-propagation for multi-label learning: a network that ranks labels (Zhang, Zhou, 2006).

    One hidden layer, the hyperbolic tangent in both layers, and a loss of pairs of labels: one that
    the row has should be far above one that it has not.  A threshold of its own for every row is
    learned from the outputs by ridge regression; a score is the output minus that threshold, and
    the paper has ``decision="sign"``.

    Parameters
    ----------
    hidden : int or float
        How many hidden units, or what share of the number of features, but at least 8.
    max_epochs : int
        How often the solver goes through the rows.
    learning_rate : float, optional
        The step length; by default 0.001 of Adam and 0.05 of "sgd".
    decay : float
        The regularisation strength of all weights and intercepts.
    solver : {"adam", "sgd"}
        Adam (Kingma and Ba, 2015) on batches of rows, or a step along the gradient of every single
        row, as in the paper.
    batch_size : int
        How many rows Adam looks at before each step.
    threshold_reg : float
        The regularisation strength of the thresholds' regression, as a share of the mean square of
        the outputs; 0 is least squares, as in the paper.
    random_state : int, Generator or None
        Seeds the first weights and the order of the rows.

    Attributes
    ----------
    hidden_weights_ : array of shape (n_features, n_hidden)
        From features to hidden units.
    hidden_intercept_ : array of shape (n_hidden,)
        What is added there.
    output_weights_ : array of shape (n_hidden, n_labels)
        From hidden units to the outputs.
    output_intercept_ : array of shape (n_labels,)
        What is added there.
    threshold_weights_ : array of shape (n_labels,)
        From the outputs of a row to its threshold.
    threshold_intercept_ : float
        What is added there.
    losses_ : array of shape (n_epochs,)
        The mean loss of the rows in every epoch, each as the weights were before its step.

    Notes
    -----
    Rows that have all labels, or none, have no pairs; the thresholds alone learn from them.  A
    single label is compared with its own absence, whose output is minus that of the label.

    Features should be of one scale, [0, 1] at best (see `Scaled`); sparse ones stay sparse.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=4, random_state=0)
    >>> model = BPMLL(hidden=8, decision="sign", random_state=0).fit(X / X.max(), Y)
    >>> model.predict(X / X.max()).shape, model.output_weights_.shape
    ((100, 4), (8, 4))
    """

    hidden: int | float = 0.2
    max_epochs: int = 100
    learning_rate: float | None = None
    decay: float = 1e-4
    solver: str = "adam"
    batch_size: int = 32
    threshold_reg: float = 0.01
    random_state: Any = None

    _saved: ClassVar[dict[str, Any]] = {
        "hidden_weights_": floats("features", "hidden"),
        "hidden_intercept_": floats("hidden"),
        "output_weights_": floats("hidden", "labels"),
        "output_intercept_": floats("labels"),
        "threshold_weights_": floats("labels"),
        "threshold_intercept_": float,
        "losses_": floats("epochs", most=None),
    }

    def _check(self) -> None:
        whole = isinstance(self.hidden, Integral) and not isinstance(self.hidden, bool)
        share = isinstance(self.hidden, Real) and not isinstance(self.hidden, Integral)
        if not ((whole and self.hidden >= 1) or (share and 0 < self.hidden <= 1)):
            raise ValueError(
                f"hidden={self.hidden!r} must be a whole number >= 1, or a share of the features "
                "above 0 and up to 1.0."
            )
        check_number(self, "max_epochs", int, 1)
        check_number(self, "batch_size", int, 1)
        check_number(self, "decay", float, 0)
        check_number(self, "threshold_reg", float, 0)
        check_choice(self, "solver", RATES)
        if self.learning_rate is not None:
            check_number(self, "learning_rate", float, 5e-324)
        if self._rate * self.decay >= 1:
            raise ValueError(
                f"decay={self.decay!r} times the learning rate of {self._rate:g} must be below 1: "
                "else a step would turn all weights round."
            )
        as_generator(self.random_state)

    @property
    def _rate(self) -> float:
        return RATES[self.solver] if self.learning_rate is None else float(self.learning_rate)

    def _fit(self, X: Any, Y: csr_array) -> None:
        generator = self._checkpoint.generator("weights", self.random_state)
        n_features, n_labels = X.shape[1], Y.shape[1]
        n_hidden = self._n_hidden(n_features, n_labels)
        first = _first_weights(generator, n_features, n_hidden)
        # Labels that the same rows have get the same weights, so that their order cannot matter.
        kinds = self._seen.order.kinds[np.isin(self._seen.order.labels, self._seen.labels)]
        n_kinds = int(kinds.max(initial=-1)) + 1
        second = np.ascontiguousarray(_first_weights(generator, n_hidden, n_kinds)[:, kinds])
        self.losses_ = self._train(X, Y, (first, second), generator)
        self.hidden_weights_, self.hidden_intercept_ = first[:-1], first[-1]
        self.output_weights_, self.output_intercept_ = second[:-1], second[-1]
        self._fit_thresholds(X, Y)

    def _n_hidden(self, n_features: int, n_labels: int) -> int:
        if isinstance(self.hidden, Integral):
            n_hidden = int(self.hidden)
        else:
            n_hidden = max(FEWEST, round(float(self.hidden) * n_features))
        if max(n_features, n_labels) * n_hidden > MOST_WEIGHTS:
            raise ValueError(
                f"hidden={self.hidden!r} makes {n_hidden} hidden units for {n_features} features "
                f"and {n_labels} labels, which are too many weights: give a whole number, such as "
                "hidden=100."
            )
        return n_hidden

    def _train(
        self,
        X: Any,
        Y: csr_array,
        layers: tuple[Float64Array, Float64Array],
        generator: np.random.Generator,
    ) -> Float64Array:
        """Improve the weights of both layers in place, and return the mean loss of each epoch."""
        n_labels = counts(Y, axis=1)
        # One label is compared with its absence: all rows have a pair.
        pairs = (n_labels > 0) & (n_labels < Y.shape[1]) | (Y.shape[1] == 1)
        rows = np.flatnonzero(pairs)
        run = self._adam(X, Y, layers) if self.solver == "adam" else self._sgd(X, Y, layers)
        losses = [run(generator.permutation(rows)) for _ in range(self.max_epochs)]
        return np.array(losses) / max(1, len(rows))

    def _sgd(self, X: Any, Y: csr_array, layers: tuple[Float64Array, Float64Array]) -> Epoch:
        """Return what goes through rows in an order, one by one, and adds up their losses."""
        X = csr_array(X, dtype=np.float64)
        return lambda order: sgd_epoch(order, X, Y, layers, self._rate, float(self.decay))

    def _adam(self, X: Any, Y: csr_array, layers: tuple[Float64Array, Float64Array]) -> Epoch:
        """Return what goes through rows in an order, batch by batch, and adds up their losses."""
        shrink = 1.0 - self._rate * self.decay
        first, second = (_Layer(weights, self._rate, shrink) for weights in layers)
        always = np.arange(len(second.weights))

        def run(order: IntArray) -> float:
            total = 0.0
            for start in range(0, len(order), self.batch_size):
                batch = order[start : start + self.batch_size]
                features, inputs = used_features(X[batch])
                features = np.append(features, X.shape[1])  # the intercept's
                hidden = np.tanh(first.apply(inputs, features))
                outputs = np.tanh(second.apply(hidden, always))
                losses, slopes = pair_losses(outputs, Y[batch].toarray() > 0)
                total += float(losses.sum())
                slopes *= (1.0 - np.square(outputs)) / len(batch)
                errors = second.back(slopes)
                errors *= 1.0 - np.square(hidden)
                second.step(hidden, always, slopes)
                first.step(inputs, features, errors)
            first.unscale()
            second.unscale()
            return total

        return run

    def _fit_thresholds(self, X: Any, Y: csr_array) -> None:
        """Learn every row's threshold from its outputs."""
        n_labels = Y.shape[1]
        self.threshold_weights_, self.threshold_intercept_ = np.zeros(n_labels), 0.0
        if n_labels <= 1:  # the middle between the label and its absence
            return
        # Rows are in an order of their own, as good as random.
        n = min(X.shape[0], max(1, MOST_OUTPUTS // n_labels))
        width = max(n_labels, self.hidden_weights_.shape[1])
        outputs = np.concatenate([self._outputs(rows) for rows in row_blocks(X[:n], width)])
        cuts = fewest_errors(outputs, Y[:n].toarray() > 0)
        squares = Ridge(outputs, 0.0).moments[1]
        ridge = Ridge(outputs, float(self.threshold_reg) * float(squares.mean()))
        weights = ridge.solve(csr_array(identity(n)), cuts[:, None])[:, 0]
        self.threshold_weights_ = weights
        self.threshold_intercept_ = float(cuts.mean() - ridge.means @ weights)

    def _outputs(self, X: Any) -> Float64Array:
        hidden = np.tanh(affine(X, self.hidden_weights_, self.hidden_intercept_))
        return np.tanh(affine(hidden, self.output_weights_, self.output_intercept_))

    def _scores(self, X: Any) -> FloatArray:
        outputs = self._outputs(X)
        outputs -= (outputs @ self.threshold_weights_ + self.threshold_intercept_)[:, None]
        return outputs


def _first_weights(generator: np.random.Generator, n_inputs: int, n_outputs: int) -> Float64Array:
    """Return uniform weights of variance ``1 / n_inputs``, and a last row of intercepts of 0."""
    limit = np.sqrt(3.0 / max(1, n_inputs))
    weights = generator.uniform(-limit, limit, (n_inputs + 1, n_outputs))
    weights[-1] = 0.0
    return weights


class _Layer:
    """The weights of a layer, the last row of which has the intercepts, and Adam's averages.

    ``weights`` are divided by ``scale``: so the decay of all of them is one multiplication, and a
    step touches none but those of inputs that are not zero.  The averages of a feature move on
    only when it occurs.
    """

    def __init__(self, weights: Float64Array, rate: float, shrink: float) -> None:
        self.weights, self.scale = weights, 1.0
        self.rate, self.shrink = rate, shrink
        self.averages = np.zeros((2, *weights.shape))
        self.steps = np.zeros(len(weights), np.int64)

    def apply(self, inputs: Any, rows: IntArray) -> Float64Array:
        """Return the layer's sums, given inputs and the rows of their weights."""
        whole = len(rows) == len(self.weights)
        product: Float64Array = inputs @ (self.weights[:-1] if whole else self.weights[rows[:-1]])
        product += self.weights[-1]
        product *= self.scale
        return product

    def back(self, errors: Float64Array) -> Float64Array:
        """Return the gradient of the inputs, given that of the layer's sums."""
        product: Float64Array = errors @ self.weights[:-1].T
        product *= self.scale
        return product

    def step(self, inputs: Any, rows: IntArray, errors: Float64Array) -> None:
        """Move against the gradient, given that of the layer's sums."""
        gradient = np.empty((len(rows), errors.shape[1]))
        gradient[:-1] = inputs.T @ errors
        gradient[-1] = errors.sum(axis=0)
        self.scale *= self.shrink
        length = self.rate / self.scale
        means, squares = self.averages
        adam_rows(rows, gradient, self.weights, means, squares, self.steps, length)
        if self.scale < SMALLEST:
            self.unscale()

    def unscale(self) -> None:
        """Let the weights be what they are."""
        self.weights *= self.scale
        self.scale = 1.0


def pair_losses(outputs: Float64Array, present: BoolArray) -> tuple[Float64Array, Float64Array]:
    """Return the loss of every row, and its derivatives with respect to the outputs.

    >>> losses, slopes = pair_losses(np.array([[1.0, 0.0]]), np.array([[True, False]]))
    >>> losses.round(3).tolist(), slopes.round(3).tolist()
    ([0.368], [[-0.368, 0.368]])
    """
    if outputs.shape[1] == 1:
        sign = np.where(present, 1.0, -1.0)
        losses = np.exp(-2.0 * sign * outputs)
        return losses[:, 0], -2.0 * sign * losses
    # No exponent is large: outputs are between -1 and 1.
    powers = np.exp(np.where(present, -outputs, outputs))
    of_labels = np.where(present, powers, 0.0).sum(axis=1)
    of_others = np.where(present, 0.0, powers).sum(axis=1)
    n = present.sum(axis=1)
    n_pairs = n * (outputs.shape[1] - n)
    share = np.divide(1.0, n_pairs, out=np.zeros(len(n)), where=n_pairs > 0)
    factors = np.where(present, -(of_others * share)[:, None], (of_labels * share)[:, None])
    return of_labels * of_others * share, powers * factors


def fewest_errors(outputs: Float64Array, present: BoolArray) -> Float64Array:
    """Return for every row the threshold of its outputs with the fewest errors, the lowest of such.

    It is in the middle between two outputs, or outside of all.  In a row with labels at least one
    label stays above, and in a row that lacks some at least one below: where the fewest errors are
    those of no label at all, thresholds would lie above all outputs and nothing be predicted.

    >>> fewest_errors(np.array([[0.0, 0.5, -1.0]]), np.array([[False, True, False]])).tolist()
    [0.25]
    """
    order = np.argsort(outputs, axis=1, kind="stable")
    ranked = np.take_along_axis(outputs, order, axis=1)
    labels = np.take_along_axis(present, order, axis=1)
    n_rows, n_labels = outputs.shape
    rows = np.arange(n_rows)
    # With k outputs below: labels there, and others above.
    errors = np.zeros((n_rows, n_labels + 1), np.int64)
    np.cumsum(np.where(labels, 1, -1), axis=1, out=errors[:, 1:])
    n = present.sum(axis=1)
    errors[n > 0, -1] = n_labels + 1
    errors[n < n_labels, 0] = n_labels + 1
    below = errors.argmin(axis=1)
    padded = np.pad(ranked, ((0, 0), (1, 1)), mode="edge")
    padded[:, 0] -= 2.0 * OUTSIDE
    padded[:, -1] += 2.0 * OUTSIDE
    middle: Float64Array = 0.5 * (padded[rows, below] + padded[rows, below + 1])
    return middle
