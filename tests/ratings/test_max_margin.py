"""The max-margin factorisers: boundaries between prototypes, and their solver."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts import synthetic
from marginmf.ratings import MMMF, PMF, PMMMF
from marginmf.ratings.factoriser import ratings_solver
from marginmf.ratings.fitting.calibration import count_above
from marginmf.ratings.max_margin import boundaries
from marginmf.solvers import LBFGS, ConjugateGradient, GradientDescent

# Other work on the machine must not fail a test.
patient = settings(deadline=None)


def oracle(prototypes: np.ndarray, counts: np.ndarray) -> list[float]:
    """METHODS.md for one user: theta_a + n_a / (n_a + n_b) (theta_b - theta_a)."""
    used = [r for r, n in enumerate(counts) if n > 0]
    bounds = []
    for r in range(len(counts) - 1):
        below, above = [a for a in used if a <= r], [b for b in used if b > r]
        if not above:
            bounds.append(np.inf)
        elif not below:
            bounds.append(-np.inf)
        else:
            a, b = below[-1], above[0]
            share = counts[a] / (counts[a] + counts[b])
            bounds.append(prototypes[a] + share * (prototypes[b] - prototypes[a]))
    return bounds


@patient
@given(
    counts=st.lists(st.lists(st.integers(0, 4), min_size=5, max_size=5), min_size=1, max_size=6),
    seed=st.integers(0, 1000),
)
def test_boundaries_are_their_definition(counts: list[list[int]], seed: int) -> None:
    n = np.array(counts)
    prototypes = np.random.default_rng(seed).normal(size=n.shape)
    prototypes[n == 0] = np.nan
    expected = [oracle(*row) for row in zip(prototypes, n, strict=True)]
    np.testing.assert_allclose(boundaries(prototypes, n), expected)


def test_larger_level_gets_the_larger_share() -> None:
    found = boundaries(np.array([[0.0, 1.0]]), np.array([[3, 1]]))
    np.testing.assert_allclose(found, [[0.75]])


def test_levels_in_between_that_were_never_used_are_passed_over() -> None:
    bounds = boundaries(np.array([[-1.0, np.nan, np.nan, 1.0]]), np.array([[2, 0, 0, 2]]))
    scores = np.array([-5.0, -0.1, 0.1, 5.0])
    assert count_above(scores[:, None] - bounds).tolist() == [0, 0, 3, 3]


def test_only_used_levels_are_predicted() -> None:
    prototypes = np.array([[np.nan, -1.0, np.nan, 1.0, np.nan]])
    bounds = boundaries(prototypes, np.array([[0, 1, 0, 1, 0]]))
    scores = np.linspace(-100, 100, 41)
    assert set(count_above(scores[:, None] - bounds).tolist()) == {1, 3}


def test_user_with_one_level_always_gets_it() -> None:
    bounds = boundaries(np.array([[np.nan, 0.5, np.nan]]), np.array([[0, 7, 0]]))
    scores = np.array([-1e9, 0.0, 1e9])
    assert count_above(scores[:, None] - bounds).tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_boundaries_keep_the_dtype(dtype: type) -> None:
    assert boundaries(np.array([[0.0, 1.0]], dtype), np.array([[1, 1]])).dtype == dtype


def test_fitted_model_has_the_prototypes_of_its_own_scores() -> None:
    rng = np.random.default_rng(0)
    pairs = np.array([(i, j) for i in range(6) for j in range(9) if (i + j) % 4])
    stars = rng.integers(1, 5, size=len(pairs))
    model = PMMMF(n_factors=3, reg=0.5, random_state=0, dtype="float64", max_iter=30)
    model.fit(pairs, stars)
    scores = (model.user_factors_[pairs[:, 0]] * model.item_factors_[pairs[:, 1]]).sum(axis=1)
    for i in range(6):
        counts = np.zeros(4, int)
        for r in range(4):
            own = scores[(pairs[:, 0] == i) & (stars == r + 1)]
            counts[r] = len(own)
            expected = own.mean() if len(own) else np.nan
            np.testing.assert_allclose(model.prototypes_[i, r], expected)
        np.testing.assert_allclose(model.boundaries_[i], oracle(model.prototypes_[i], counts))


DATA = synthetic((1, 2, 3, 4, 5))


def test_ratings_ask_for_one_remembered_step_unless_a_solver_is_given():
    assert ratings_solver("lbfgs") == LBFGS(memory=1)
    assert ratings_solver("cg") == ConjugateGradient()
    assert ratings_solver("gd") == GradientDescent()
    own = LBFGS()
    assert ratings_solver(own) is own
    assert own.memory == 5


@pytest.mark.parametrize("kind", [MMMF, PMF])
def test_the_solver_by_its_name_is_the_one_with_one_remembered_step(kind):
    def factors(solver):
        return kind(3, 0.5, solver=solver, max_iter=8, random_state=0).fit(*DATA).user_factors_

    np.testing.assert_array_equal(factors("lbfgs"), factors(LBFGS(memory=1)))
    assert not np.array_equal(factors("lbfgs"), factors(LBFGS()))
