"""A small file of ratings, and a way to run the command line inside this process."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from marginmf.cli import main
from marginmf.cli.demo import demo_methods
from marginmf.datasets import make_ratings, read_ratings
from marginmf.ratings import MMMF


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run ``marginmf ...`` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS"):  # each of them asks for colours
        monkeypatch.delenv(name, raising=False)

    def outcome(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["marginmf", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        code = stop.value.code
        assert isinstance(code, int)
        return Outcome(code, *capsys.readouterr())

    return outcome


@pytest.fixture(scope="session")
def ratings_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few hundred ratings by 30 users of 25 items, with a header."""
    table = make_ratings(30, 25, n_factors=2, observed=0.5, random_state=0)
    rows = zip(table.users, table.items, table.ratings, strict=True)
    path = tmp_path_factory.mktemp("ratings") / "small.csv"
    lines = [f"u{user},{item},{rating:g}" for user, item, rating in rows]
    path.write_text("\n".join(["user,item,rating", *lines]) + "\n")
    return path


@pytest.fixture(scope="session")
def model_file(ratings_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of those ratings: its users are text, its items whole numbers."""
    table = read_ratings(ratings_file)
    path = tmp_path_factory.mktemp("model") / "m.marginmf"
    MMMF(3, 1.0, random_state=0).fit(table.pairs, table.ratings).fit_exposure().save(path)
    return path


@pytest.fixture
def quick_demo(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``marginmf demo`` fit small models, without a search for the regularisation strength."""
    few = {"n_factors": 3, "reg": 1.0, "max_iter": 3, "n_estimators": 2, "calibrate": False}
    settings = getattr(request, "param", few)

    def make(*arguments: object) -> dict[str, object]:
        models = demo_methods(*arguments)
        for model in models.values():
            has = model.get_params()
            model.set_params(**{name: settings[name] for name in settings if name in has})
        return models

    monkeypatch.setattr("marginmf.cli.demo.demo_methods", make)
