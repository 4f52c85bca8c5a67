"""Models and files that the tests of persistence share."""

import numpy as np
import pytest
from tampering import ModelParts

from marginmf.datasets import make_ratings
from marginmf.ratings import ALS, HMF, MMMF


@pytest.fixture(scope="session")
def data():
    """Pairs of names, and stars."""
    table = make_ratings(30, 20, n_factors=2, observed=0.4, random_state=0)
    pairs = [(f"user {user:02d}", f"item {item:02d}") for user, item in table.pairs]
    return pairs, table.ratings


@pytest.fixture(scope="session")
def models(data):
    """Return one fitted model of each kind that the files are made of."""
    made = {
        "mmmf": MMMF(n_factors=3, reg=1.0, random_state=0),
        "hmf": HMF(n_factors=3, reg=np.array([1.0, 2.0, 2.0, 1.0]), random_state=0),
        "als": ALS(n_factors=3, reg=2.0, bias=True, random_state=0),
    }
    return {name: model.fit(*data) for name, model in made.items()}


@pytest.fixture(scope="session")
def files(models, tmp_path_factory):
    """Return their files."""
    folder = tmp_path_factory.mktemp("models")
    for name, model in models.items():
        model.save(folder / f"{name}.marginmf")
    return {name: folder / f"{name}.marginmf" for name in models}


@pytest.fixture
def parts(files):
    """Return a function that takes one of the files apart."""
    return lambda name="mmmf": ModelParts(files[name])
