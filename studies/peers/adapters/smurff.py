"""SMURFF."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import smurff
from scipy.sparse import coo_matrix

from studies.peers.adapters.common import Codes, Scale

PACKAGES = ("smurff", "numpy", "scipy")


class BPMF:
    """Bayesian matrix factorisation around the mean, with noise that is sampled.

    Samples go through a file: that is how SMURFF predicts pairs that are named after the fit.
    """

    def __init__(self, threads: int, rank: int, n_burn: int, n_samples: int, thin: int) -> None:
        self.folder = TemporaryDirectory()
        self.session = smurff.TrainSession(
            priors=["normal", "normal"],
            num_latent=rank,
            num_threads=threads,
            burnin=n_burn,
            nsamples=n_samples * thin,
            save_freq=thin,
            save_name=str(Path(self.folder.name) / "samples.hdf5"),
            seed=0,
            verbose=0,
        )

    def prepare(self, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> None:
        self.users, self.items, self.scale = Codes(users), Codes(items), Scale(ratings)
        matrix, _ = self._placed(users, items, ratings - self.scale.mean)
        self.session.setTrain(matrix, smurff.SampledNoise(1.0), is_scarce=True)

    def fit(self) -> None:
        self.session.run()

    def answer(self, users: np.ndarray, items: np.ndarray) -> dict[str, np.ndarray]:
        pairs, known = self._placed(users, items, np.ones(len(users)))
        total = np.zeros(pairs.nnz)
        samples = self.session.makePredictSession().predict_sparse(pairs)
        for sample in samples:
            total += np.asarray(sample.tocsr()[pairs.row, pairs.col]).ravel()
        estimates = np.full(len(users), np.nan)
        estimates[known] = self.scale.mean + total / len(samples)
        return {"estimate": self.scale(estimates)}

    def _placed(
        self, users: np.ndarray, items: np.ndarray, values: np.ndarray
    ) -> tuple[Any, np.ndarray]:
        """Return values at pairs of known ids, and which pairs are of those."""
        rows, known_users = self.users(users)
        columns, known_items = self.items(items)
        known = known_users & known_items
        shape = len(self.users), len(self.items)
        return coo_matrix((values[known], (rows[known], columns[known])), shape=shape), known
