"""Neighbours in the space of factors: `similar_items` and `similar_users`."""

from typing import TYPE_CHECKING, Any

import numpy as np

from marginmf._threads import n_threads
from marginmf._typing import Float64Array, FloatArray, IntArray
from marginmf.backends import Kernels
from marginmf.ratings.blocks import as_stages, block_product
from marginmf.ratings.exclusions import Lists
from marginmf.ratings.frames import as_ids, known_codes, make_frame
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.search import best
from marginmf.ratings.topn import check_length

if TYPE_CHECKING:
    from marginmf.ratings.recommender import Recommender


def similar(model: "Recommender", values: Any, n: int, index: IdIndex, side: str) -> Any:
    """Return the frame of `similar_items` or `similar_users`; ``side`` names the factors."""
    check_length(n)
    factors = getattr(model, side, None)
    if factors is None:
        raise ValueError(
            f"{type(model).__name__} has no factors, so no {index.what} is more similar than "
            "another. Use a method with factors, such as HMF, MMMF or ALS."
        )
    ids = as_ids(values, index)
    codes = known_codes(ids, index, f"{index.what}s")
    scorer = _Cosines(as_stages(factors), codes, model._kernels())
    found = best(scorer, int(n), n_threads(model.n_jobs))
    return make_frame(
        {
            index.what: ids[found.rows],
            "similar": index.ids[found.columns],
            "rank": found.ranks,
            "similarity": found.scores,
        },
        values,
    )


class _Cosines:
    """Cosines of the factors of some ids (rows) with those of all (columns)."""

    cell_bytes = 4 * 2  # a product and the sum of the stages' products, in float32
    tolerance = 1e-5

    def __init__(self, factors: FloatArray, codes: IntArray, kernels: Kernels) -> None:
        self.factors, self.codes, self.kernels = factors, codes, kernels
        self.n_rows, self.n_columns = len(codes), factors.shape[1]
        self.rows_at_a_time = max(1, self.n_rows)
        squares = np.einsum("qjd,qjd->j", factors, factors, dtype=np.float64)
        # What has no length is similar to nothing: 0, not 0/0.
        with np.errstate(divide="ignore"):
            self.scale = np.where(squares > 0, 1.0 / np.sqrt(squares), 0.0)

    def block(self, rows: IntArray, columns: slice) -> tuple[FloatArray, FloatArray]:
        codes = self.codes[rows]
        left, right = (self.scale[side, None].astype(np.float32) for side in (codes, columns))
        cosines = sum(block_product(F[codes] * left, F[columns] * right) for F in self.factors)
        return cosines, cosines  # type: ignore[return-value]  # there is at least one stage

    def pairs(self, rows: IntArray, columns: IntArray) -> tuple[Float64Array, Float64Array]:
        codes = self.codes[rows]
        products = np.zeros(len(rows))
        for stage in self.factors:
            products += self.kernels.scores(codes, columns, stage, stage)
        cosines = np.clip(products * (self.scale[codes] * self.scale[columns]), -1.0, 1.0)
        return cosines, cosines

    def excluded(self, rows: IntArray) -> Lists:
        return Lists(np.arange(len(rows) + 1), self.codes[rows])
