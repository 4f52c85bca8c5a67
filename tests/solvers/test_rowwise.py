"""Many small problems side by side: each is solved, and none depends on the others."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginmf.solvers import minimise_rows


class Quadratics:
    """``1/2 x' A x - b' x`` for every row, with condition numbers up to that given."""

    def __init__(self, A, b):
        self.A, self.b = A, b
        self.n_evaluations = 0

    @classmethod
    def random(cls, n_rows, n_parameters, condition, seed=0, dtype=np.float64):
        rng = np.random.default_rng(seed)
        directions = np.linalg.qr(rng.normal(size=(n_rows, n_parameters, n_parameters)))[0]
        curvatures = condition ** rng.random((n_rows, n_parameters, 1))
        A = directions @ (curvatures * directions.transpose(0, 2, 1))
        return cls(A.astype(dtype), rng.normal(size=(n_rows, n_parameters)).astype(dtype))

    def __call__(self, x):
        self.n_evaluations += 1
        Ax = np.einsum("ipq,iq->ip", self.A, x)
        values = np.einsum("ip,ip->i", x, 0.5 * Ax - self.b).astype(np.float64)
        return values, Ax - self.b

    def take(self, which):
        return Quadratics(self.A[which], self.b[which])

    @property
    def minima(self):
        return np.linalg.solve(self.A.astype(float), self.b.astype(float)[:, :, None])[:, :, 0]


class Elementwise:
    """A sum over the parameters of a function of one number, with a constant for every row."""

    def __init__(self, value, derivative, constants):
        self.value, self.derivative, self.constants = value, derivative, constants

    def __call__(self, x):
        return self.value(x, self.constants).sum(axis=1), self.derivative(x, self.constants)

    def take(self, which):
        return Elementwise(self.value, self.derivative, self.constants[which])


@given(
    n_rows=st.integers(1, 12),
    n_parameters=st.integers(1, 8),
    condition=st.floats(1, 100),
    seed=st.integers(0, 1000),
)
@settings(max_examples=50, deadline=None)
def test_quadratics_are_solved_to_the_tolerance(n_rows, n_parameters, condition, seed):
    problems = Quadratics.random(n_rows, n_parameters, condition, seed)
    start = np.zeros_like(problems.b)
    found = minimise_rows(problems, start, tol=1e-5)
    norms = np.linalg.norm(problems(found)[1], axis=1)
    assert (norms <= 1.001e-5 * np.linalg.norm(problems(start)[1], axis=1)).all()
    # No curvature is below one, so that no row is further from its minimum than its slope.
    assert (np.linalg.norm(found - problems.minima, axis=1) <= norms + 1e-12).all()


def test_single_precision_reaches_the_tolerance():
    problems = Quadratics.random(40, 20, 100.0, dtype=np.float32)
    found = minimise_rows(problems, np.zeros_like(problems.b))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, problems.minima, atol=1e-4)


def test_a_row_does_not_depend_on_the_rows_beside_it():
    # Rows of very different difficulty, so that some are set aside long before others.
    rng = np.random.default_rng(1)
    easy, hard = (Quadratics.random(n, 10, c, seed=2) for n, c in ((30, 1.5), (7, 1e4)))
    order = rng.permutation(37)
    problems = Quadratics(
        np.concatenate([easy.A, hard.A])[order], np.concatenate([easy.b, hard.b])[order]
    )
    together = minimise_rows(problems, np.zeros_like(problems.b))
    for i in range(37):
        alone = minimise_rows(problems.take(np.array([i])), np.zeros((1, 10)))
        np.testing.assert_array_equal(alone[0], together[i])


def test_rows_that_start_at_their_minimum_stay_there():
    problems = Quadratics.random(3, 4, 10.0)
    problems.b[1] = 0
    start = np.zeros((3, 4))
    found = minimise_rows(problems, start)
    np.testing.assert_array_equal(found[1], 0)
    assert (found[[0, 2]] != 0).all()
    assert not start.any()


def test_no_rows_are_no_work():
    problems = Quadratics.random(3, 4, 1.0).take(np.array([], int))
    assert minimise_rows(problems, np.zeros((0, 4))).shape == (0, 4)


def test_max_rounds_bounds_the_evaluations():
    problems = Quadratics.random(1, 30, 1e6)
    minimise_rows(problems, np.zeros((1, 30)), tol=1e-14, max_rounds=7)
    assert problems.n_evaluations == 8  # the start, and seven rounds


def test_steps_into_overflow_are_taken_back():
    # e^x - c x: a step that is too long overflows, and the minimum is at log c.
    constants = np.array([[1e-6], [1.0], [1e6]])
    problems = Elementwise(lambda x, c: np.exp(x) - c * x, lambda x, c: np.exp(x) - c, constants)
    found = minimise_rows(problems, np.full((3, 1), 5.0), tol=1e-12)
    np.testing.assert_allclose(found, np.log(constants), atol=1e-4)


def test_kinks_do_not_keep_it_from_the_minimum():
    # |x - c| + x^2 / 2: the minimum is the kink at c where |c| <= 1, and sign(c) elsewhere.
    constants = np.array([[0.3], [-0.9], [4.0], [-2.5]])
    problems = Elementwise(
        lambda x, c: np.abs(x - c) + x * x / 2, lambda x, c: np.sign(x - c) + x, constants
    )
    found = minimise_rows(problems, np.zeros((4, 1)))
    np.testing.assert_allclose(found, np.clip(constants, -1, 1), atol=1e-5)


def test_a_start_without_a_value_gets_a_sentence():
    problems = Quadratics.random(3, 2, 1.0)
    problems.A[1] = np.nan
    with pytest.raises(FloatingPointError, match="objective of row 1 is nan at its start"):
        minimise_rows(problems, np.ones((3, 2)))
