"""cornac."""

from typing import Any

import cornac.data
import cornac.models
import numpy as np

from studies.peers.adapters.common import Feedback, best_of_each

PACKAGES = ("cornac", "numpy", "scipy")


class MF:
    def __init__(self, threads: int, **options: Any) -> None:
        # A seed forces one thread, so two threads must go without.
        seed = 0 if threads == 1 else None
        self.model = cornac.models.MF(seed=seed, num_threads=threads, verbose=False, **options)

    def prepare(self, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> None:
        columns = users.tolist(), items.tolist(), ratings.tolist()
        self.data = cornac.data.Dataset.from_uir(list(zip(*columns, strict=True)))

    def fit(self) -> None:
        self.model.fit(self.data)

    def answer(self, users: np.ndarray, items: np.ndarray) -> dict[str, np.ndarray]:
        # Ids that training did not see get numbers beyond those that it did.
        codes = (
            [known.get(one, len(known)) for one in ids.tolist()]
            for known, ids in ((self.data.uid_map, users), (self.data.iid_map, items))
        )
        return {"estimate": np.array([self.model.rate(*pair) for pair in zip(*codes, strict=True)])}


class Server(MF):
    def answer(self, users: np.ndarray, n: np.ndarray) -> dict[str, np.ndarray]:
        # `recommend` does the same with ids, and takes several times as long over what was seen.
        items, seen = np.array(self.data.item_ids), self.data.csr_matrix

        def best(user: int) -> np.ndarray:
            row = self.data.uid_map[user]
            unseen = np.ones(len(items), bool)
            unseen[seen.indices[seen.indptr[row] : seen.indptr[row + 1]]] = False
            ranked, _ = self.model.rank(row, np.flatnonzero(unseen), k=int(n))
            return items[ranked[: int(n)]]

        return best_of_each(users, int(n), best)


class Lists(Server):
    """A model by name, fitted to pairs of weight one."""

    def __init__(self, threads: int, model: str, likes: bool = False, **options: Any) -> None:
        if model == "BPR":
            options["num_threads"] = threads
        self.model = getattr(cornac.models, model)(verbose=False, seed=0, **options)
        self.likes = likes

    def prepare(self, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> None:
        self.feedback = learned = Feedback(users, items, ratings, self.likes)
        super().prepare(learned.users, learned.items, learned.ones)

    def answer(self, users: np.ndarray, n: np.ndarray) -> dict[str, np.ndarray]:
        known = np.isin(users, self.feedback.users)  # someone who likes nothing is not known
        found = super().answer(users[known], n + self.feedback.n_more)
        return self.feedback.lists(users, found["users"], found["items"], int(n))
