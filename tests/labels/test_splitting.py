"""Dividing instances in two: the same whatever form they come in."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.cluster import KMeans

from marginmf.labels import growing
from marginmf.labels.growing import N_STARTS, divide


def instances(n: int = 60) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.random((n, 12)) * (rng.random((n, 12)) < 0.4)
    X[::3] += 0.5 * (rng.random(12) < 0.5)
    return X.astype(np.float32)


@pytest.mark.parametrize("few", [0, 2**16])
@pytest.mark.parametrize("kind", [csr_array, np.asarray])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_default_is_k_means_whatever_the_form_of_the_instances(
    few, kind, dtype, monkeypatch
) -> None:
    monkeypatch.setattr(growing, "FEW", few)
    X = instances().astype(dtype)
    given = kind(X)
    found = divide(given, None, 3)
    labels = KMeans(2, n_init=N_STARTS, random_state=3).fit_predict(X.astype(np.float64))
    assert found[0].tolist() == np.flatnonzero(labels == labels[0]).tolist()
    assert found[1].tolist() == np.flatnonzero(labels != labels[0]).tolist()
    assert given.dtype == dtype
    np.testing.assert_array_equal(given.toarray() if kind is csr_array else given, X)


def test_a_splitter_of_somebodys_own_sees_the_instances_as_they_are() -> None:
    class Seen(KMeans):
        def fit_predict(self, X, y=None):
            assert isinstance(X, csr_array)
            assert X.dtype == np.float32
            return super().fit_predict(X)

    parts = divide(csr_array(instances()), Seen(2, n_init=1), 0)
    assert sorted(np.concatenate(parts)) == list(range(60))
