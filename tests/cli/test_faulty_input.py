"""Whatever is wrong with the input: one line that says it, exit code 2, and nothing left behind."""

import gzip
import os
from pathlib import Path

import pytest
from faults import Case, case, check_refused, check_refused_by_process, enter, fill, lines

FIT = "--model mmmf --reg 1 --factors 2 --out new.marginmf"


def grid(n_users: int, n_items: int) -> list[str]:
    return [f"u{u},{i},{1 + (u * i) % 5}" for u in range(n_users) for i in range(n_items)]


GOOD = lines("user,item,rating", *grid(12, 25))

#: Every file that the cases speak of.
FILES: dict[str, bytes] = {
    "ratings.csv": GOOD,
    "empty.csv": b"",
    "blank.csv": b"\n\n\n",
    "header.csv": b"user,item,rating\n",
    "nan.csv": lines("a,x,4", "a,y,nan"),
    "infinite.csv": lines("a,x,4", "a,y,inf"),
    "words.csv": lines("a,x,4", "b,x,good"),
    "no-rating.csv": lines("a,x,4", "b,x,"),
    "no-user.csv": lines("a,x,4", ",x,3"),
    "one-level.csv": lines(*(f"a,{k},4" for k in range(30))),
    "measured.csv": lines(*(f"a,{k},{k / 7:.5f}" for k in range(1100))),
    "twice.csv": lines("user,item,rating", *grid(12, 25), "u1,3,2"),
    "narrow.csv": lines("a,x", "b,y"),
    "ragged.csv": lines("a,x,4", "b,y"),
    "quote.csv": lines("a,x,4", 'b,"y,5'),
    "few.csv": lines("a,x,4", "b,x,3"),
    "two-levels.csv": lines(*(f"u{k % 6},{k},{k % 2}" for k in range(60))),
    "thin.csv": lines(*(f"u{k},{k},{1 + k % 5}" for k in range(40))),
    "missing-column.csv": lines("rating,who,when", "4,a,x", "5,b,y"),
    "junk.csv": bytes(range(256)) * 20,
    "bomb.csv.gz": gzip.compress(GOOD * 100),
    "long-id.csv": lines("user,item,rating", f"{'a' * 1001},x,4", "b,y,5"),
    "huge.csv": lines("a,x,4", "a,y,1e200"),
    "cut.csv.gz": gzip.compress(GOOD)[:-40],
    "fake.csv.gz": b"\x1f\x8b" + b"not gzip at all",
    "damaged.parquet": b"PAR1" + bytes(500) + b"PAR1",
    "renamed.parquet": b"\x00\x01" * 400,
    "pairs.csv": lines("user,item", "u1,3", "u2,4"),
    "strangers.csv": lines("user,item", "u1,3", "u99,4"),
    "no-pairs.csv": b"user,item\n",
    "half-pairs.csv": lines("user,item", "u1,3", "u2"),
    "no-ids.txt": b"\n",
    "strange-ids.txt": lines("3", "9999"),
    "ids.txt": lines("3", "4", "5"),
    "text.marginmf": b"I am a text, not a model.\n",
    "empty.marginmf": b"",
    "zip.marginmf": b"PK\x03\x04" + bytes(60),
    "pickle.marginmf": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00",
}

RATINGS = [
    case("no-such-file", f"fit absent.csv {FIT}", "There is no file absent.csv; check the name"),
    case("bomb", f"fit bomb.csv.gz --max-bytes 10kB {FIT}", "allow more with --max-bytes."),
    case("bomb-pairs", "predict m.marginmf bomb.csv.gz --max-bytes 10kB", "more with --max-bytes."),
    case(
        "bomb-features", f"fit ratings.csv --items bomb.csv.gz --max-bytes 1kB {FIT}", "unpacks to"
    ),
    case("bomb-labels", "labels info bomb.csv.gz --labels 1 --max-bytes 10kB", "unpacks to more"),
    case("no-size", f"fit bomb.csv.gz --max-bytes big {FIT}", "--max-bytes big must be a number"),
    case("device", f"fit /dev/zero {FIT}", "is a device" if os.name == "posix" else "no file"),
    case("long-name", f"fit {'x' * 3000} {FIT}", "There is no file xxx"),
    case("long-id", f"fit long-id.csv {FIT}", "line 2: the user id 'aaaaa"),
    case("huge-rating", f"fit huge.csv {FIT}", "line 2: the rating '1e200' is beyond 1e+30"),
    case("a-folder", f"fit folder {FIT}", "folder is a folder"),
    case("empty", f"fit empty.csv {FIT}", "empty.csv is empty"),
    case("blank-lines", f"fit blank.csv {FIT}", "blank.csv is empty"),
    case("header-only", f"fit header.csv {FIT}", "no ratings after its header"),
    case("nan", f"fit nan.csv {FIT}", "nan.csv, line 2: the rating 'nan' is not a finite number"),
    case("infinite", f"fit infinite.csv {FIT}", "the rating 'inf' is not a finite number"),
    case("text-rating", f"fit words.csv {FIT}", "line 2: the rating 'good' is not a number"),
    case("no-rating", f"fit no-rating.csv {FIT}", "no-rating.csv, line 2: the rating"),
    case("no-user", f"fit no-user.csv {FIT}", "line 2: the user id is empty"),
    case("one-level", f"fit one-level.csv {FIT}", "Every rating is 4"),
    case("measured", f"fit measured.csv {FIT}", "1100 distinct values"),
    case("repeated", f"fit twice.csv {FIT}", "('u1', 3). Remove the repeats, or choose with --dup"),
    case("narrow", f"fit narrow.csv {FIT}", "2 column(s) found where 3 are needed"),
    case("ragged", f"fit ragged.csv {FIT}", "ragged.csv, line 2: 2 column(s) found"),
    case("open-quote", f"fit quote.csv {FIT}", "line 2: the quotes do not match"),
    case("missing-column", f"fit missing-column.csv {FIT}", "missing-column.csv, line 1: "),
    case("named-column", f"fit ratings.csv --user who {FIT}", "'who'"),
    case("junk", f"fit junk.csv {FIT}", "junk.csv is not a text file"),
    case("cut-gzip", f"fit cut.csv.gz {FIT}", "cut.csv.gz is a damaged gzip file"),
    case("fake-gzip", f"fit fake.csv.gz {FIT}", "fake.csv.gz is a damaged gzip file"),
    case("damaged-parquet", f"fit damaged.parquet {FIT}", "damaged.parquet"),
    case("renamed-parquet", f"fit renamed.parquet {FIT}", "renamed.parquet"),
    case("columns-of-a-dataset", f"fit ml-100k --user who {FIT}", "is a dataset; --user"),
    case("no-such-dataset", "info ml-200k", "There is no ratings dataset 'ml-200k'; did you mean "),
    case("info-of-nothing", "info absent.csv", "There is no file absent.csv"),
    case("info-of-junk", "info junk.csv", "junk.csv is not a text file"),
    case("demo-of-words", "demo words.csv", "the rating 'good' is not a number"),
]
ARGUMENTS = [
    case("unknown-model", "fit ratings.csv --model hfm --out new.marginmf", "no model 'hfm'"),
    case("bad-reg", f"fit ratings.csv {FIT} --reg much", "'much' is not a number >= 0"),
    case("negative-reg", f"fit ratings.csv {FIT} --reg=-1", "'-1' is not a number >= 0"),
    case("zero-reg-for-als", "evaluate ratings.csv --model als --reg 0", "give a positive reg"),
    case(
        "wrong-number-of-regs",
        "fit ratings.csv --model hmf --reg 1,2 --out new.marginmf",
        "--reg 1,2 has 2 values, but the 5 levels of these ratings make 4 stages",
    ),
    case("regs-without-stages", f"fit ratings.csv {FIT} --reg 1,2", "must be a number >= 0"),
    case("no-factors", f"fit ratings.csv {FIT} --factors 0", "marginmf: --factors: '"),
    case("negative-factors", f"fit ratings.csv {FIT} --factors=-3", "marginmf: --factors"),
    case("factors-in-words", f"fit ratings.csv {FIT} --factors few", "marginmf: --fac"),
    case("no-iterations", f"fit ratings.csv {FIT} --max-iter 0", "marginmf: --max-iter: '"),
    case(
        "predict-over-pairs",
        "predict good.marginmf pairs.csv --out pairs.csv",
        "pairs.csv is read by this command",
    ),
    case(
        "compare-over-ratings",
        "compare ratings.csv --models bias --out ratings.csv",
        "ratings.csv is read by this command",
    ),
    case("no-threads", f"fit ratings.csv {FIT} --threads 0", "marginmf: --threads: '"),
    case("negative-seed", f"fit ratings.csv {FIT} --seed=-1", "marginmf: --seed: '"),
    case("unknown-rule", f"fit ratings.csv {FIT} --duplicates first", "--duplicates: 'first' is"),
    case("set-without-value", f"fit ratings.csv {FIT} --set loss", "write it as name=value"),
    case("set-unknown", f"fit ratings.csv {FIT} --set lost=1", "no parameter 'lost'"),
    case("set-unknown-loss", f"fit ratings.csv {FIT} --set loss=big", "loss=big is not known"),
    case(
        "set-bad-type", f"fit ratings.csv {FIT} --set tol=soon", "--set tol=soon must be a number"
    ),
    case("set-bad-dtype", f"fit ratings.csv {FIT} --set dtype=float16", "--set dtype=float16 is"),
    case("set-callbacks", f"fit ratings.csv {FIT} --set callbacks=3", "no parameter 'callbacks'"),
    case("too-many-levels", f"fit ratings.csv {FIT} --model bmmmf", "BMMMF tells two levels apart"),
    case("unknown-option", f"fit ratings.csv {FIT} --speed 3", "No such option: --speed"),
    case("missing-argument", "fit --out new.marginmf", "Missing argument 'FILE'"),
    case("missing-out", "fit ratings.csv", "Missing option '--out'"),
    case("unknown-command", "guess ratings.csv", "No such command 'guess'"),
    case("one-argument-too-many", f"fit ratings.csv more.csv {FIT}", "more.csv"),
]
PROTOCOLS = [
    case("unknown-protocol", "evaluate ratings.csv --protocol odd", "marginmf: --proto"),
    case("no-splits", "evaluate ratings.csv --splits 0", "marginmf: --splits: '"),
    case("one-fold", "evaluate ratings.csv --protocol kfold --splits 1", "2 splits or more"),
    case("folds", "evaluate few.csv --protocol kfold", "few.csv has 2 ratings, too few"),
    case(
        "whole-test",
        "evaluate ratings.csv --protocol holdout --test-size 1",
        "--test-size 1 must",
    ),
    case("thin", "evaluate thin.csv --protocol weak --model bias", "no user has enough ratings"),
    case("strong", "evaluate thin.csv --protocol strong --model bias", "0 users with at least 20"),
    case("no-models", "compare ratings.csv --models ,", "--models names no method"),
    case("model-twice", "compare ratings.csv --models als,als", "named twice"),
    case("one-unknown", "compare ratings.csv --models als,svdpp", "There is no model 'svdpp'"),
    case("set-for-another", "compare ratings.csv --models als --set hmf.tol=1", "hmf is not one"),
    case("tune-unknown", "tune ratings.csv --model hfm", "There is no model 'hfm'"),
    case("tune-given", "tune ratings.csv --reg 3", "--reg is what tune looks for"),
    case(
        "tune-nothing",
        "tune ratings.csv --model bias",
        "--model bias: tune is for hmf, mmmf, ",
    ),
    case("no-holdouts", "tune ratings.csv --holdouts 0", "marginmf: --holdouts: '"),
]
DESTINATIONS = [
    case("out-exists", f"fit ratings.csv {FIT} --out m.marginmf", "m.marginmf is there already"),
    case("out-is-the-data", f"fit ratings.csv {FIT} --force --out ratings.csv", "is read by this"),
    case("out-is-a-folder", f"fit ratings.csv {FIT} --out folder", "folder is a folder; name a f"),
    case("out-in-no-folder", f"fit ratings.csv {FIT} --out no/m.marginmf", "There is no folder"),
    case("out-locked", f"fit ratings.csv {FIT} --out locked/m.marginmf", "cannot be written to"),
    case("table-ending", "compare ratings.csv --out table.doc", "must end in one of .csv, .md"),
    case("table-in-no-folder", "compare ratings.csv --out no/t.csv", "There is no folder"),
    case("picture-ending", "demo ratings.csv --picture p.gif", "must end in one of .png, .svg"),
    case("tune-picture", "tune ratings.csv --picture p.gif", "must end in one of .png, .svg"),
    case("predict-ending", "predict m.marginmf pairs.csv --out p.doc", "must end in one of .csv"),
    case("predict-to-folder", "predict m.marginmf pairs.csv --out f.csv", "f.csv is a folder"),
    case("lists-ending", "recommend m.marginmf --user u1 --out l.xls", "must end in one of .csv"),
]
MODELS = [
    case("no-such-model", "predict no.marginmf pairs.csv", "no.marginmf: No such file"),
    case("model-is-a-folder", "predict folder pairs.csv", "folder is a folder, not a model file"),
    case("model-is-text", "predict text.marginmf pairs.csv", "text.marginmf cannot be loaded"),
    case("model-is-empty", "info empty.marginmf", "empty.marginmf cannot be loaded: the file is e"),
    case("model-is-zip", "similar zip.marginmf --item 3", "it is a zip archive"),
    case("model-is-pickle", "recommend pickle.marginmf --user 1", "it is a Python pickle"),
    case("model-is-ratings", "predict ratings.csv pairs.csv", "ratings.csv cannot be loaded"),
    case("model-cut", "predict cut.marginmf pairs.csv", "it is cut short"),
    case("model-damaged", "predict damaged.marginmf pairs.csv", "it is damaged: its checksum"),
    case("foreign-class", "predict foreign.marginmf pairs.csv", "'Popen' is not an estimator"),
    case("foreign-class-info", "info foreign.marginmf", "'Popen' is not an estimator"),
    case("foreign-tensors", "info tensors.marginmf", "it was not written by marginmf"),
]
QUESTIONS = [
    case("no-pairs-file", "predict m.marginmf absent.csv", "There is no file absent.csv"),
    case("no-pairs", "predict m.marginmf no-pairs.csv", "no-pairs.csv"),
    case("half-pairs", "predict m.marginmf half-pairs.csv", "half-pairs.csv, line 3"),
    case("strangers", "predict m.marginmf strangers.csv --unknown raise", "user 'u99' of pair 2"),
    case("unknown-answer", "predict m.marginmf pairs.csv --answer best", "marginmf: --answer"),
    case("renamed", "predict m.marginmf pairs.csv --output mean", "--output is now --answer"),
    case("nobody", "recommend m.marginmf", "Name the users: --user ID"),
    case("unknown-user", "recommend m.marginmf --user u111", "the user 'u111'. Did you mean 'u11'"),
    case("unknown-users", "recommend m.marginmf --users strange-ids.txt", "the user '3'"),
    case("users-empty", "recommend m.marginmf --users no-ids.txt", "no-ids.txt names no user"),
    case("users-absent", "recommend m.marginmf --users no.txt", "There is no file no.txt"),
    case("empty-list", "recommend m.marginmf --user u1 -n 0", "marginmf: -n: '"),
    case("no-candidates", "recommend m.marginmf --user u1 --candidates no-ids.txt", "no item"),
    case(
        "strange-candidate",
        "recommend m.marginmf --user u1 --candidates strange-ids.txt --out lists.csv",
        "The model does not know the item '9999'",
    ),
    case("neither", "similar m.marginmf", "either --item ID or --user ID"),
    case("both", "similar m.marginmf --item 3 --user u1", "either --item ID or --user ID"),
    case(
        "unknown-item", "similar m.marginmf --item 33", "'33'. The model's items are numbers from 0"
    ),
    case("similar-none", "similar m.marginmf --item 3 -n 0", "marginmf: -n: '"),
    case("explain-whom", "explain m.marginmf --item 3", "Missing option '--user'"),
    case("titles-absent", "similar m.marginmf --item 3 --items no.csv", "no file no.csv"),
    case("title-of-what", "similar m.marginmf --item 3 --title t", "name that with --items FILE"),
]
CASES = [*RATINGS, *ARGUMENTS, *PROTOCOLS, *DESTINATIONS, *MODELS, *QUESTIONS]


@pytest.fixture(scope="module")
def model_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A model as it should be, and what can become of one."""
    import numpy as np
    from safetensors.numpy import save

    from marginmf.datasets import read_ratings
    from marginmf.ratings import MMMF

    folder = tmp_path_factory.mktemp("models")
    (folder / "ratings.csv").write_bytes(GOOD)
    table = read_ratings(folder / "ratings.csv")
    MMMF(2, 1.0, random_state=0).fit(table.pairs, table.ratings).save(folder / "m.marginmf")
    good = (folder / "m.marginmf").read_bytes()
    return {
        "m.marginmf": good,
        "cut.marginmf": good[:-100],
        "damaged.marginmf": good[:-1] + bytes([good[-1] ^ 1]),
        "foreign.marginmf": _renamed(good, b"MMMF", b"Popen"),
        "tensors.marginmf": save({"weights": np.zeros(3)}),
    }


def _renamed(model: bytes, old: bytes, new: bytes) -> bytes:
    """Return a model file whose header calls a class by another name."""
    length = int.from_bytes(model[:8], "little")
    header = model[8 : 8 + length].replace(old, new)
    return len(header).to_bytes(8, "little") + header + model[8 + length :]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, model_files: dict[str, bytes]) -> Path:
    """Every file that the cases speak of; they leave the folder as it is."""
    folder = tmp_path_factory.mktemp("faulty")
    fill(folder, {**FILES, **model_files})
    return folder


@pytest.fixture
def folder(files: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with those files, and the way there."""
    return enter(files, monkeypatch)


@pytest.mark.parametrize("faulty", CASES)
def test_one_line_and_2_and_nothing_left_behind(folder: Path, faulty: Case) -> None:
    check_refused(folder, faulty)


def test_there_are_many_cases() -> None:
    assert len(CASES) >= 60


def test_the_same_from_a_process_of_its_own(folder: Path) -> None:
    faulty = Case("similar m.marginmf --item 33", "'33'. The model's items are numbers")
    check_refused_by_process(folder, faulty)
