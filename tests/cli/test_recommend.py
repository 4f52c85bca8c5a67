import csv
import json
from pathlib import Path

import pytest

import marginmf
from marginmf.cli.output import as_columns


def rows_of(frame: object) -> list[tuple[object, ...]]:
    return list(zip(*(column.tolist() for column in as_columns(frame).values()), strict=True))


def rows_in(result: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in result]


def test_a_table_for_each_user(run, model_file: Path) -> None:
    outcome = run("recommend", model_file, "--user", "u3", "--user", "u1", "-n", 2)
    assert (outcome.code, outcome.err) == (0, "")
    lines = [line.strip() for line in outcome.out.splitlines() if line.strip()]
    assert [line for line in lines if line.startswith("user")] == ["user u3", "user u1"]
    chances = ["take", "like", "expected", "rating", "chance", "of", "top"]
    assert lines[1].split() == ["rank", "item", "score", *chances]
    assert [line.split()[0] for line in lines[3:5]] == ["1", "2"]


def test_json_is_what_the_library_recommends(run, model_file: Path) -> None:
    outcome = run("recommend", model_file, "--user", "u1", "-n", 3, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    model = marginmf.load(model_file)
    expected = rows_of(model.recommend(["u1"], 3).drop(columns="known"))
    assert rows_in(result["recommendations"]) == expected
    assert len(expected) == 3


def test_by_expected_rating_or_by_chance(run, model_file: Path) -> None:
    model = marginmf.load(model_file)
    for by, level in (("expected", None), ("chance", 3.0)):
        options = ["--by", by, *([] if level is None else ["--level", level])]
        outcome = run("recommend", model_file, "--user", "u1", "-n", 3, "--json", *options)
        frame = model.recommend(["u1"], 3, by=by, level=level)
        expected = rows_of(frame.drop(columns="known"))
        assert rows_in(json.loads(outcome.out)["recommendations"]) == expected
    outcome = run("recommend", model_file, "--user", "u1", "--by", "chance", "--level", 77)
    assert outcome.code == 2
    assert "must be a level above the lowest" in outcome.err


def test_items_that_were_rated_only_when_asked(run, model_file: Path) -> None:
    model = marginmf.load(model_file)
    seen = set(model.items_.ids[model.ratings_.indices[model.ratings_.rows == 0]].tolist())
    user = model.users_.ids[0]

    def items(*arguments: object) -> set[object]:
        outcome = run("recommend", model_file, "--user", user, "-n", 99, "--json", *arguments)
        return {row["item"] for row in json.loads(outcome.out)["recommendations"]}

    assert items().isdisjoint(seen)
    assert items("--include-seen") == set(model.items_.ids.tolist())


def test_among_candidates(run, model_file: Path) -> None:
    Path("items.txt").write_text("item\n3\n5\n8\n")
    arguments = ["--user", "u1", "--include-seen", "--candidates", "items.txt", "--json"]
    result = json.loads(run("recommend", model_file, *arguments).out)
    assert sorted(row["item"] for row in result["recommendations"]) == [3, 5, 8]


def test_users_from_a_file_and_one_by_one(run, model_file: Path) -> None:
    Path("users.txt").write_text("u2\nu3\n")
    arguments = ["--user", "u1", "--user", "u2", "--users", "users.txt", "-n", 1, "--json"]
    result = json.loads(run("recommend", model_file, *arguments).out)
    assert [row["user"] for row in result["recommendations"]] == ["u1", "u2", "u3"]


def test_everybody_is_printed_as_csv(run, model_file: Path) -> None:
    outcome = run("recommend", model_file, "--users", "all", "-n", 2)
    rows = list(csv.DictReader(outcome.out.splitlines()))
    assert len({row["user"] for row in rows}) == 30
    assert {row["rank"] for row in rows} == {"1", "2"}


@pytest.mark.parametrize("name", ["lists.csv", "lists.jsonl", "lists.parquet"])
def test_everybody_into_a_file_in_batches(
    run, model_file: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("marginmf.cli.lists.BATCH_USERS", 4)
    outcome = run("recommend", model_file, "--users", "all", "-n", 2, "--out", name)
    assert (outcome.code, outcome.out) == (0, f"Lists for 30 users are in {name}.\n")
    content = Path(name).read_bytes()
    if name.endswith("parquet"):
        import polars

        assert polars.read_parquet(name).shape == (60, 9)
    else:
        assert content.count(b"\n") == 60 + name.endswith("csv")


def test_ids_that_are_numbers(run) -> None:
    rows = [f"{u},{i},{1 + (u + i) % 3}" for u in range(40, 46) for i in range(6)]
    Path("r.csv").write_text("\n".join(rows))
    run("fit", "r.csv", "--model", "bias", "--out", "b.marginmf")
    arguments = ["--user", "42", "--include-seen", "-n", 1, "--json"]
    (row,) = json.loads(run("recommend", "b.marginmf", *arguments).out)["recommendations"]
    assert row["user"] == 42


def test_similar_items_and_users(run, model_file: Path) -> None:
    model = marginmf.load(model_file)
    items = json.loads(run("similar", model_file, "--item", "3", "-n", 4, "--json").out)
    assert rows_in(items["similar"]) == rows_of(model.similar_items([3], 4))
    users = json.loads(run("similar", model_file, "--user", "u3", "-n", 4, "--json").out)
    assert rows_in(users["similar"]) == rows_of(model.similar_users(["u3"], 4))


def test_similar_in_a_table(run, model_file: Path) -> None:
    outcome = run("similar", model_file, "--item", "3", "-n", 2)
    assert (outcome.code, outcome.err) == (0, "")
    lines = [line.strip() for line in outcome.out.splitlines() if line.strip()]
    assert lines[0] == "item 3"
    assert lines[1].split() == ["rank", "similar", "similarity"]
    assert len(lines) == 5


def test_the_file_of_users_is_not_written_over(run, model_file: Path, tmp_path: Path) -> None:
    users = tmp_path / "users.csv"
    users.write_text("u1\n")
    outcome = run("recommend", model_file, "--users", users, "--out", users)
    assert outcome.code == 2
    assert users.read_text() == "u1\n"


def test_what_the_model_file_lacks_is_learned_and_said_where_it_is_needed(
    run, model_file: Path
) -> None:
    model = marginmf.load(model_file)
    bare = model.set_params(calibrate=False).fit(model.ratings_)
    bare.save("bare.marginmf")
    Path("pairs.csv").write_text("user,item\nu1,3\n")
    probabilities, lists = "does not hold calibrated probabilities", "does not hold who takes what"
    of_user = ("bare.marginmf", "--user", "u1")
    needed = {
        ("recommend", *of_user): (True, True),
        ("recommend", *of_user, "--by", "expected"): (True, False),
        ("explain", *of_user, "--item", "3"): (True, True),
        ("similar", *of_user): (False, False),
        ("predict", "bare.marginmf", "pairs.csv"): (True, False),
        ("predict", "bare.marginmf", "pairs.csv", "--answer", "rule"): (False, False),
        ("fold-in", "bare.marginmf", "new.csv"): (True, True),
    }
    Path("new.csv").write_text("user,item,rating\nann,3,1\nann,4,2\n")
    for words, expected in needed.items():
        outcome = run(*words)
        assert outcome.code == 0, outcome.err
        assert (probabilities in outcome.err, lists in outcome.err) == expected, words
    assert "--no-lists saves it" in run("recommend", *of_user).err
    assert run("recommend", *of_user, "--quiet").err == ""
