"""CSV and TSV for spreadsheets: no cell is a formula, unless the cells are wanted raw."""

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pytest

import marginmf
from hostile import HONEST, HOSTILE, TYPED, obeyed, write_features, write_labels, write_ratings
from marginmf.cli.estimators import set_names
from marginmf.datasets import read_labels, read_ratings
from marginmf.labels import PLST
from marginmf.ratings import MMMF

IDS = HOSTILE + HONEST
FORMULA = tuple("=@\uff1d\uff0b\uff0d\uff20\t\r")
pytestmark = pytest.mark.filterwarnings("default:Cells that a spreadsheet")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cells")
    table = read_ratings(write_ratings(folder / "r.csv"))
    MMMF(2, 1.0, max_iter=3, random_state=0).fit(table).fit_exposure().save(folder / "m.marginmf")
    write_features(folder / "i.csv", "item")
    labelled = read_labels(write_labels(folder / "l.csv"), labels=len(IDS))
    tags = PLST(n_factors=8, decision="sign", top1_if_empty=True).fit(labelled.X, labelled.Y)
    set_names(tags, labelled)
    tags.save(folder / "l.marginmf")
    return folder


#: Each command that writes cells, to standard output.
COMMANDS = {
    "predict": "predict {}/m.marginmf {}/r.csv",
    "recommend": "recommend {}/m.marginmf --users all -n 2",
    "titles": "recommend {}/m.marginmf --users all -n 2 --items {}/i.csv",
    "similar": "similar {}/m.marginmf -n 2",
    "fold-in": "fold-in {}/m.marginmf {}/r.csv -n 2 --quiet",
    "labels": "labels predict {}/l.marginmf {}/l.csv",
    "table": "labels predict {}/l.marginmf {}/l.csv --as table --scores",
    "top": "labels predict {}/l.marginmf {}/l.csv --top 3",
}
TO_FILES = ("predict", "recommend", "titles", "labels", "table", "top")


def words(name: str, folder: Path) -> list[str]:
    items = [word for one in IDS for word in ("--item", one)] if name == "similar" else []
    return [*(word.replace("{}", str(folder)) for word in COMMANDS[name].split()), *items]


def check_cells(text: str, separator: str = ",") -> None:
    """No cell is a formula, also where the spreadsheet splits at semicolons, and none obeyed."""
    assert obeyed(text.replace(separator, "")) == []
    rows = list(csv.reader(text.splitlines(), delimiter=separator))
    assert len({len(row) for row in rows}) == 1
    for part in ";".join(cell for row in rows for cell in row).split(";"):
        first = part.strip()[:1]
        assert first not in FORMULA or len(part) == 1, part
        if first in ("+", "-"):
            float(part)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_cell_of_standard_output_is_a_formula(run, made: Path, name: str) -> None:
    outcome = run(*words(name, made))
    assert outcome.code == 0, outcome.err
    check_cells(outcome.out)
    (note,) = outcome.err.splitlines()
    assert note.startswith("marginmf: Cells that a spreadsheet or a terminal would obey")
    assert note.endswith("they differ from the data. Add --raw to keep them.")
    raw = run(*words(name, made), "--raw")
    assert raw.err == ""
    before, after = (
        [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
        for text in (raw.out, outcome.out)
    )
    changed = sum(one != other for one, other in zip(before, after, strict=True))
    assert f"escaped ({changed:,}; the first is " in note


@pytest.mark.parametrize("name", TO_FILES)
@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz"])
def test_no_cell_of_a_file_is_a_formula(run, made: Path, name: str, kind: str) -> None:
    outcome = run(*words(name, made), "--out", f"o.{kind}", "--json", "--quiet")
    assert outcome.err.count("\n") == 1
    if kind != "csv.gz":
        check_cells(Path(f"o.{kind}").read_text("utf-8"), {"csv": ",", "tsv": "\t"}[kind])
    n_escaped = json.loads(outcome.out)["n_escaped"]
    assert f"({n_escaped:,}; " in outcome.err
    assert n_escaped > 0
    run(*words(name, made), "--out", f"r.{kind}", "--raw")
    assert Path(f"r.{kind}").read_bytes() != Path(f"o.{kind}").read_bytes()


@pytest.mark.parametrize("name", TO_FILES)
@pytest.mark.parametrize("kind", ["jsonl", "parquet", "arrow"])
def test_formats_with_types_are_as_they_are(run, made: Path, name: str, kind: str) -> None:
    outcome = run(*words(name, made), "--out", f"o.{kind}", "--json")
    assert (outcome.err, json.loads(outcome.out)["n_escaped"]) == ("", 0)
    run(*words(name, made), "--out", f"r.{kind}", "--raw")
    assert Path(f"r.{kind}").read_bytes() == Path(f"o.{kind}").read_bytes()


def test_raw_predictions_have_the_ids_of_the_pairs_and_are_read_again(run, made: Path) -> None:
    run("predict", made / "m.marginmf", made / "r.csv", "--out", "p.csv", "--raw")
    again, first = read_ratings("p.csv"), read_ratings(made / "r.csv")
    assert again.users.tolist() == first.users.tolist()
    assert again.items.tolist() == first.items.tolist()
    outcome = run("predict", made / "m.marginmf", "p.csv", "--unknown", "raise", "--raw")
    assert outcome.code == 0
    ids = pd.read_csv("p.csv", dtype=str, keep_default_na=False, lineterminator="\n")["user"]
    assert ids.tolist() == first.users.tolist()


def test_honest_ids_and_numbers_need_no_flag(run, tmp_path: Path) -> None:
    write_ratings(tmp_path / "r.csv", (*HONEST, "7", "a-b", "a;b", "a,b", 'a"b', "x=1"))
    table = read_ratings(tmp_path / "r.csv")
    model = MMMF(2, 1.0, max_iter=3, random_state=0).fit(table).fit_exposure()
    model.save(tmp_path / "m.marginmf")
    for command in ("predict m.marginmf r.csv", "recommend m.marginmf --users all"):
        outcome = run(*command.split())
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out == run(*command.split(), "--raw").out


def test_negative_numbers_stay_numbers(run, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(
        "user,item,rating\n"
        + "".join(
            f"{user},{item},{(user * item) % 3 - 1}\n"
            for user in range(-9, 0)
            for item in range(-9, 0)
        )
    )
    run("fit", "r.csv", "--model", "bias", "--out", "m.marginmf")
    outcome = run("predict", "m.marginmf", "r.csv", "--out", "p.csv")
    assert (outcome.code, outcome.err) == (0, "")
    assert read_ratings("p.csv").users.tolist() == read_ratings("r.csv").users.tolist()
    assert set(marginmf.load("m.marginmf").levels_) == {-1.0, 0.0, 1.0}


def test_ids_that_no_line_of_text_can_hold(run, tmp_path: Path) -> None:
    table = read_ratings(write_ratings(tmp_path / "t.jsonl", TYPED + HONEST))
    MMMF(2, 1.0, max_iter=3, random_state=0).fit(table).save(tmp_path / "m.marginmf")
    outcome = run("predict", "m.marginmf", "t.jsonl")
    check_cells(outcome.out)
    assert "new\\x0aline" in outcome.out
    raw = run("predict", "m.marginmf", "t.jsonl", "--raw")
    assert '"new\nline"' in raw.out
