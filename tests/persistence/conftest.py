"""Models and files that the tests of persistence share."""

import numpy as np
import pytest
from label_models import fitted
from tampering import ModelParts

import marginmf
from marginmf.datasets import make_ratings
from marginmf.persistence import ModelFileError
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


@pytest.fixture(scope="session")
def label_files(tmp_path_factory):
    """Return the files of fitted label models, by name."""
    folder = tmp_path_factory.mktemp("labels")
    for name, model in fitted().items():
        model.save(folder / f"{name}.marginmf")
    return {path.stem: path for path in folder.glob("*.marginmf")}


@pytest.fixture
def refused(label_files, tmp_path):
    """Return a function that tampers with a label model and expects a sentence on loading it."""

    def check(name, tamper, sentence):
        made, path = ModelParts(label_files[name]), tmp_path / "model.marginmf"
        tamper(made)
        made.write(path)
        with pytest.raises(ModelFileError, match=sentence) as caught:
            marginmf.load(path)
        assert str(caught.value).startswith(f"{path} cannot be loaded: ")
        assert "\n" not in str(caught.value)

    return check
