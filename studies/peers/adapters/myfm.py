"""myFM."""

from typing import Any

import myfm
import numpy as np
from scipy.sparse import csr_matrix, diags_array, hstack

from studies.peers.adapters.common import Codes, Scale, implicit_matrix

PACKAGES = ("myfm", "numpy", "scipy")


class Regressor:
    """A column for each user and one for each item; ids that training did not see have none."""

    machine, ordinal = myfm.MyFMRegressor, False

    def __init__(self, threads: int, rank: int, n_iter: int) -> None:
        self.model = self.machine(rank=rank, random_seed=0)
        self.n_iter = n_iter

    def prepare(self, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> None:
        self.users, self.items, self.scale = Codes(users), Codes(items), Scale(ratings)
        self.levels = np.unique(ratings)
        self.targets = np.searchsorted(self.levels, ratings) if self.ordinal else ratings
        self.shapes = [len(self.users), len(self.items)]
        self.columns, self.blocks = self._encoded(users, items)

    def fit(self) -> None:
        groups = {"X_rel": self.blocks, "group_shapes": self.shapes}
        self.model.fit(self.columns, self.targets, n_iter=self.n_iter, **groups)

    def answer(self, users: np.ndarray, items: np.ndarray) -> dict[str, np.ndarray]:
        return {"estimate": self.scale(self.model.predict(*self._encoded(users, items)))}

    def _encoded(self, users: np.ndarray, items: np.ndarray) -> tuple[Any, list[Any]]:
        """Return columns with a row for each pair, and relation blocks."""
        user_codes, known_users = self.users(users)
        item_codes, known_items = self.items(items)
        columns = np.column_stack([user_codes, len(self.users) + item_codes])
        known = np.column_stack([known_users, known_items])
        starts = np.concatenate([[0], known.sum(axis=1).cumsum()])
        shape = len(users), len(self.users) + len(self.items)
        return csr_matrix((np.ones(starts[-1]), columns[known], starts), shape=shape), []


class OrderedProbit(Regressor):
    """The same with a distribution over the levels."""

    machine, ordinal = myfm.MyFMOrderedProbit, True

    def answer(self, users: np.ndarray, items: np.ndarray) -> dict[str, np.ndarray]:
        found = np.clip(self.model.predict_proba(*self._encoded(users, items)), 1e-9, 1.0)
        distribution = found / found.sum(axis=1, keepdims=True)
        return {"estimate": distribution @ self.levels, "distribution": distribution}


class Relational(Regressor):
    """Beside the ids: the items that the user rated, the users that rated the item, attributes.

    Who rated whom is known from the training pairs alone.  Each kind of columns is a group of its
    own, with priors of its own.  Several attributes in a group, such as genres, are scaled like
    the ratings, so that their squares add up to one.
    """

    def __init__(self, threads: int, rank: int, n_iter: int, attributes: bool = False) -> None:
        super().__init__(threads, rank, n_iter)
        self.attributes = attributes

    def describe(self, **side: np.ndarray) -> None:
        self.side = side if self.attributes else {}

    def prepare(self, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> None:
        rows, columns = Codes(users), Codes(items)
        codes, n_users, n_items = (rows(users)[0], columns(items)[0]), len(rows), len(columns)
        self.rated = implicit_matrix(*codes, (n_users, n_items))
        self.raters = implicit_matrix(*reversed(codes), (n_items, n_users))
        super().prepare(users, items, ratings)
        of_users, of_items = (
            self.side.get(f"{kind}_groups", np.array([], int)).tolist() for kind in ("user", "item")
        )
        self.shapes = [n_users, n_items, *of_users, n_items, n_users, *of_items]

    def _encoded(self, users: np.ndarray, items: np.ndarray) -> tuple[None, list[Any]]:
        return None, [
            self._block("user", users, self.users, self.rated),
            self._block("item", items, self.items, self.raters),
        ]

    def _block(self, kind: str, ids: np.ndarray, codes: Codes, partners: Any) -> Any:
        different, of_pairs = np.unique(ids, return_inverse=True)
        own, known = codes(different)
        rows = np.arange(len(different))
        parts = [
            csr_matrix((known.astype(float), (rows, own)), shape=(len(rows), len(codes))),
            diags_array(known.astype(float)) @ partners[own],
        ]
        if len(self.side.get(f"{kind}_ids", ())):
            order = np.argsort(self.side[f"{kind}_ids"])
            described = Codes(self.side[f"{kind}_ids"])
            codes_of, there = described(different)
            features = self.side[f"{kind}_features"][order][codes_of] * there[:, None]
            for group in np.split(features, self.side[f"{kind}_groups"].cumsum()[:-1], axis=1):
                counts = np.maximum(group.sum(axis=1, keepdims=True), 1)
                parts.append(csr_matrix(group / np.sqrt(counts)))
        matrix = csr_matrix(hstack(parts, format="csr"))
        matrix.eliminate_zeros()
        return myfm.RelationBlock(of_pairs, matrix)


class RelationalOrderedProbit(Relational, OrderedProbit):
    """The same with a distribution over the levels."""
