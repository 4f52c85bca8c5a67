"""What all factorisers have in common."""

import numpy as np
import pytest

from contracts import synthetic
from marginmf.ratings import MMMF, PMF
from marginmf.ratings.factoriser import ratings_solver
from marginmf.solvers import LBFGS, ConjugateGradient, GradientDescent

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
