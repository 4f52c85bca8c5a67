"""Models and files that the tests of persistence share; each is fitted once."""

from functools import cache

import numpy as np
import pytest

import marginmf
from label_models import fitted_labels
from marginmf.datasets import make_ratings
from marginmf.persistence import ModelFileError
from marginmf.ratings import ALS, EASE, HMF, MMMF, ItemKNN, MostPopular, OneClassMMMF
from tampering import ModelParts

RATINGS = {
    "mmmf": MMMF(n_factors=3, reg=1.0, random_state=0),
    "hmf": HMF(n_factors=3, reg=np.array([1.0, 2.0, 2.0, 1.0]), random_state=0),
    "als": ALS(n_factors=3, reg=2.0, bias=True, random_state=0),
}
POSITIVE = {
    "popular": MostPopular(),
    "itemknn": ItemKNN(5, level=3),
    "ease": EASE(reg=5.0, level=3),
    "oneclass": OneClassMMMF(3),
}


@pytest.fixture(scope="session")
def data():
    """Pairs of names, and stars."""
    table = make_ratings(30, 20, n_factors=2, observed=0.4, random_state=0)
    pairs = [(f"user {user:02d}", f"item {item:02d}") for user, item in table.pairs]
    return pairs, table.ratings


@pytest.fixture(scope="session")
def models(data):
    """Return one fitted ratings model of each kind that the files are made of."""
    return {name: model.fit(*data) for name, model in RATINGS.items()}


@pytest.fixture(scope="session")
def file_of(models, data, tmp_path_factory):
    """Return a function that gives the file of a model of ratings, of pairs or of labels."""
    folder = tmp_path_factory.mktemp("models")

    @cache
    def find(name):
        path = folder / f"{name}.marginmf"
        if name in POSITIVE:
            POSITIVE[name].fit(*data).save(path)
        else:
            (models.get(name) or fitted_labels(name)).save(path)
        return path

    return find


@pytest.fixture(scope="session")
def files(file_of):
    """Return the files of the ratings models."""
    return {name: file_of(name) for name in RATINGS}


@pytest.fixture(scope="session")
def parts(file_of):
    """Return a function that takes the file of a model apart."""
    whole = cache(lambda name: ModelParts(file_of(name)))
    return lambda name="mmmf": whole(name).copy()


@pytest.fixture
def path(tmp_path):
    """Return where a model may be saved."""
    return tmp_path / "model.marginmf"


@pytest.fixture
def refused(parts, path):
    """Return a function that tampers with a model and expects a sentence on loading it."""

    def check(name, tamper, sentence):
        made = parts(name)
        tamper(made)
        made.write(path)
        with pytest.raises(ModelFileError, match=sentence) as caught:
            marginmf.load(path)
        assert str(caught.value).startswith(f"{path} cannot be loaded: ")
        assert "\n" not in str(caught.value)

    return check
