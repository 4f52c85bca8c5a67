"""What one user's hyperplanes look like among the items, in two dimensions."""

from collections.abc import Sequence

import numpy as np

from marginmf._utils.types import Float64Array, IntArray
from marginmf.datasets import make_matrix
from marginmf.experiments.cell import Values
from marginmf.experiments.measures.ratings import make_method
from marginmf.ratings import Ratings

N_LEVELS = 5


def user_view(
    method: str, n_users: int, n_items: int, counts: Sequence[int], reg: float, seed: int
) -> Values:
    """Fit a method to a matrix of few users, and return the items that its first user has rated.

    Parameters
    ----------
    method : str
        MMMF or PMMMF.
    n_users, n_items : int
        The size of the matrix, which is made from two factors.
    counts : sequence of int
        How many ratings of each level, the lowest first, are observed of every user; where a user
        has not so many, all of them.
    reg : float
        The weight of the penalty.
    seed : int
        Seeds the matrix, the choice of the observed ratings, and the start.
    """
    matrix = make_matrix(n_users, n_items, n_factors=2, random_state=seed)
    users, items = observed_of_each(matrix.ratings, counts, np.random.default_rng(seed))
    stars = matrix.ratings[users, items].astype(float)
    levels = np.arange(1.0, N_LEVELS + 1)
    data = Ratings.of(np.column_stack([users, items]), stars, levels=levels)
    model = make_method(method, {"n_factors": 2, "reg": reg, "max_iter": 500, "tol": 1e-6})
    model.set_params(random_state=seed).fit(data)
    # The user with most levels, and of those the one whose rarest has the most ratings.
    found = np.array(
        [
            np.bincount(data.codes[data.rows == user], minlength=N_LEVELS)
            for user in range(data.n_users)
        ]
    )
    user = int(np.lexsort((found.min(axis=1), (found > 0).sum(axis=1)))[-1])
    own = data.rows == user
    points = model.item_factors_[data.indices[own]]
    pairs = np.column_stack([data.users.ids[data.rows[own]], data.items.ids[data.indices[own]]])
    return {
        "direction": _rounded(model.user_factors_[user]),
        "points": _rounded(points),
        "ratings": data.values[own].tolist(),
        **{
            name: _rounded(getattr(model, f"{name}_")[user])
            for name in ("thresholds", "prototypes", "boundaries")
            if hasattr(model, f"{name}_")
        },
        "counts": found[user].tolist(),
        "right": float((model.predict(pairs, output="rule") == data.values[own]).mean()),
    }


def observed_of_each(
    ratings: IntArray, counts: Sequence[int], rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return rows and columns of so many random entries of each level in every row.

    >>> users, items = observed_of_each(np.array([[1, 1, 2]]), [1, 5], np.random.default_rng(0))
    >>> users.tolist(), sorted(items.tolist())[-1]
    ([0, 0], 2)
    """
    users, items = [], []
    for user, row in enumerate(ratings):
        for level, count in enumerate(counts, 1):
            places = np.flatnonzero(row == level)
            chosen = rng.permutation(places)[:count]
            users.append(np.full(len(chosen), user))
            items.append(chosen)
    return np.concatenate(users), np.concatenate(items)


def _rounded(values: Float64Array) -> list[float]:
    rounded: list[float] = np.round(np.asarray(values, float), 4).tolist()
    return rounded
