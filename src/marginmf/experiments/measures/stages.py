"""The zero-one error of one stage of HMF on held-out ratings, for one weight of the penalty."""

from marginmf.experiments.cell import Values
from marginmf.experiments.data import Data, ratings_of
from marginmf.experiments.measures.ratings import facts_of, make_method, rows_of
from marginmf.metrics import zero_one_error


def stage_error(data: Data, split: int, stage: int, n_factors: int, reg: float) -> Values:
    """Hold out one rating of every user, learn "above level `stage`" from the rest, and judge."""
    table = ratings_of(data)
    train, _, test = rows_of(table, {"name": "weak"}, split)
    above = (table.ratings > table.levels[stage - 1]).astype(float)
    model = make_method("BMMMF", {"n_factors": n_factors, "reg": reg, "tol": 2e-3})
    model.fit(table.pairs[train], above[train])
    error = zero_one_error(above[test], model.predict(table.pairs[test], output="rule"))
    return {"zero_one": error, "n_test": len(test), **facts_of(model)}
