"""Whatever is wrong with a file of labels or with the arguments: one line, and exit code 2."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
from faults import Case, case, check_refused, enter, fill, lines
from labels_inputs import as_csv, as_svmlight, songs

FIT = "--model plst --out new.marginmf"
TAGS = "--labels tag_*"
FORCE = "--model plst --force --out"
ARFF = lines(
    "@relation songs",
    "@attribute tempo numeric",
    "@attribute calm {0,1}",
    "@attribute sad {0,1}",
    "@data",
    *(f"{k},{k % 2},{k // 2 % 2}" for k in range(20)),
)
XML = b'<labels><label name="calm"/><label name="sad"/></labels>'


def arrays() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, X=np.eye(3), Y=np.eye(3), feature_names=["a", "b", "c"])
    return buffer.getvalue()


FILES: dict[str, bytes] = {
    "songs.csv": as_csv(songs()).encode(),
    "songs.svm": as_svmlight(songs()).encode(),
    "songs.arff": ARFF,
    "good.arff": ARFF,
    "good.xml": XML,
    "cut.arff": ARFF[:-3],
    "cut.xml": XML,
    "header.arff": ARFF[: ARFF.index(b"@data")],
    "other.arff": ARFF,
    "other.xml": XML.replace(b"sad", b"angry"),
    "broken.arff": ARFF,
    "broken.xml": XML[:-9],
    "empty.csv": b"",
    "alike.csv": lines("a,b,a,tag_x", "1,2,3,0", "2,3,4,1"),
    "songs.npz": arrays(),
    "few.csv": lines("a,tag_x", "1,0", "2,1"),
    "words.csv": lines("a,tag_x", "1,0", "fast,1"),
    "stars.csv": lines("a,tag_x", "1,5", "2,1"),
    "nan.csv": lines("a,tag_x", "nan,0", "2,1"),
    "ratings.json": b'{"user": 1, "item": 2, "rating": 3}\n',
    "junk.csv": bytes(range(256)) * 20,
    "narrow.csv": lines("tempo,loudness", "1,2"),
    "bare.csv": lines("1,2", "3,4"),
    "text.marginmf": b"I am a text, not a model.\n",
}

DATA = [
    case("no-such-file", f"labels fit absent.csv {FIT}", "There is no file absent.csv; check the"),
    case("no-such-name", f"labels fit absent {FIT}", "There is no label dataset 'absent'; the nam"),
    case("columns-of-nothing", f"labels fit absent {TAGS} {FIT}", "There is no file absent; check"),
    case("a-folder", f"labels fit folder {FIT}", "folder is a folder; name the file of labels"),
    case("empty", f"labels fit empty.csv {TAGS} {FIT}", "empty.csv is empty"),
    case("labels-not-named", f"labels fit songs.csv {FIT}", "does not say which of its columns"),
    case(
        "arff-not-named", f"labels fit songs.arff {FIT}", "songs.arff does not say which attribut"
    ),
    case("arff-cut", f"labels fit cut.arff {FIT}", "cut.arff, line 25: "),
    case("arff-header", f"labels fit header.arff --labels 2 {FIT}", "the file ends in its header"),
    case("xml-of-another", f"labels fit other.arff {FIT}", "other.xml names the label 'angry'"),
    case("xml-cut", f"labels fit broken.arff {FIT}", "broken.xml is not XML, or is cut short"),
    case("no-such-xml", f"labels fit songs.arff --xml no.xml {FIT}", "There is no file no.xml"),
    case("words", f"labels fit words.csv {TAGS} {FIT}", "words.csv, line 3: 'fast' in the column"),
    case("label-5", f"labels fit stars.csv {TAGS} {FIT}", "stars.csv, line 2: 5 in the column 'ta"),
    case("nan", f"labels fit nan.csv {TAGS} {FIT}", "nan.csv, line 2: 'nan' in the column 'a'"),
    case("json", f"labels fit ratings.json {FIT}", "ratings.json is JSON, which is not read for"),
    case("junk", f"labels fit junk.csv {TAGS} {FIT}", "junk.csv is not a text file"),
    case("no-such-label", f"labels fit songs.csv --labels rock {FIT}", "no column 'rock'"),
    case("all-labels", f"labels fit songs.csv --labels * {FIT}", "labels but no features"),
    case("too-many", f"labels fit songs.csv --labels 8 {FIT}", "does not leave a label and a feat"),
    case("ignored", f"labels fit songs.csv {TAGS} --ignore id {FIT}", "there is no column 'id'"),
    case("alike", f"labels fit alike.csv {TAGS} {FIT}", "columns 1 and 3 are both called 'a'"),
    case("xml-of-text", f"labels fit songs.csv {TAGS} --xml good.xml {FIT}", "is not an ARFF file"),
    case("labels-of-npz", f"labels fit songs.npz {TAGS} {FIT}", "says itself which labels it has"),
    case("evaluate-words", f"labels evaluate words.csv {TAGS}", "'fast' in the column 'a' is not"),
    case("compare-nothing", f"labels compare empty.csv {TAGS}", "empty.csv is empty"),
]
ARGUMENTS = [
    case("unknown-model", f"labels fit songs.csv {TAGS} {FIT} --model plts", "no model 'plts'"),
    case("nearest", f"labels fit songs.csv {TAGS} {FIT} --model gropel", "Did you mean grople?"),
    case("a-wrapper", f"labels evaluate songs.csv {TAGS} --model scaled", "no model 'scaled'"),
    case("ratings-model", f"labels evaluate songs.csv {TAGS} --model hmf", "no model 'hmf'"),
    case(
        "decision", f"labels fit songs.csv {TAGS} {FIT} --decision best", "marginmf: --decision: '"
    ),
    case(
        "tune-for", f"labels fit songs.csv {TAGS} {FIT} --tune-for mae", "marginmf: --tune-for: '"
    ),
    case("scale", f"labels fit songs.csv {TAGS} {FIT} --scale big", "marginmf: --scale: '"),
    case("set-unknown", f"labels fit songs.csv {TAGS} {FIT} --set lost=1", "no parameter 'lost'"),
    case("set-bad", f"labels fit songs.csv {TAGS} {FIT} --set n_factors=0", "n_factors=0"),
    case("set-words", f"labels fit songs.csv {TAGS} {FIT} --set reg=much", "--set reg=much must"),
    case("set-rule", f"labels fit songs.csv {TAGS} {FIT} --set decision=sign", "with --decision."),
    case("set-tuned", f"labels fit songs.csv {TAGS} {FIT} --set tune_for=hamming", "--tune-for."),
    case("set-top1", f"labels evaluate songs.csv {TAGS} --set grople.top1_if_empty=1", "--top1."),
    case("set-no-value", f"labels fit songs.csv {TAGS} {FIT} --set reg", "write it as name=value"),
    case("no-threads", f"labels fit songs.csv {TAGS} {FIT} --threads 0", "marginmf: --threads: '"),
    case("one-fold", f"labels evaluate songs.csv {TAGS} --cv 1", "marginmf: --cv: '"),
    case(
        "many-folds", f"labels evaluate few.csv {TAGS}", "few.csv has 2 rows, too few for 5 folds"
    ),
    case("many-strata", f"labels evaluate few.csv {TAGS} --stratified", "too few for 5 folds"),
    case("no-split", f"labels evaluate songs.csv {TAGS} --split", "no training and test rows"),
    case("no-models", f"labels compare songs.csv {TAGS} --models ,", "--models names no method"),
    case("twice", f"labels compare songs.csv {TAGS} --models plst,plst", "named twice"),
    case(
        "set-for-another", f"labels compare songs.csv {TAGS} --models plst --set mlknn.cv=2", "mlk"
    ),
    case("unknown-command", "labels guess songs.csv", "No such command 'guess'"),
    case("unknown-option", f"labels fit songs.csv {TAGS} {FIT} --speed 3", "--speed"),
    case("missing-file", "labels fit --out new.marginmf", "Missing argument 'FILE'"),
    case("missing-out", f"labels fit songs.csv {TAGS}", "Missing option '--out'"),
]
DESTINATIONS = [
    case("out-exists", f"labels fit songs.csv {TAGS} --out l.marginmf", "is there already"),
    case("out-is-data", f"labels fit songs.csv {TAGS} --force --out songs.csv", "is read by this "),
    case("out-is-xml", f"labels fit good.arff --xml good.xml {FORCE} good.xml", "is read by this "),
    case(
        "table-is-data", f"labels compare songs.csv {TAGS} --out songs.csv", "is read by this com"
    ),
    case("predict-is-data", "labels predict l.marginmf songs.csv --out songs.csv", "is read by th"),
    case("predict-is-model", "labels predict m.csv songs.csv --out m.csv", "m.csv is read by this"),
    case("predict-is-link", "labels predict m.csv songs.csv --out link.csv", "link.csv is read by"),
    case(
        "arrays-top", "labels predict l.marginmf songs.csv --top 2 --out p.npz", "leave --top and"
    ),
    case("arrays-as", "labels predict l.marginmf songs.csv --as table --out p.npz", "and --as out"),
    case("out-folder", f"labels fit songs.csv {TAGS} --out folder", "folder is a folder"),
    case("out-nowhere", f"labels fit songs.csv {TAGS} --out no/m.marginmf", "There is no folder"),
    case("out-locked", f"labels fit songs.csv {TAGS} --out locked/m.marginmf", "cannot be written"),
    case("table-ending", f"labels compare songs.csv {TAGS} --out t.doc", "must end in one of .csv"),
    case("predict-ending", "labels predict l.marginmf songs.csv --out p.doc", "must end in one of"),
    case("predict-folder", "labels predict l.marginmf songs.csv --out f.csv", "f.csv is a folder"),
]
PIPES = [
    case("out-pipe", f"labels fit songs.csv {TAGS} {FORCE} pipe", "pipe is a pipe or a device; na"),
    case("table-pipe", f"labels compare songs.csv {TAGS} --out pipe.md", "pipe.md is a pipe or a"),
    case("arrays-pipe", "labels predict l.marginmf songs.csv --out pipe.npz", "pipe.npz is a pipe"),
]
PIPE_NAMES = ("pipe", "pipe.md", "pipe.npz") if hasattr(os, "mkfifo") else ()
MODELS = [
    case("no-such-model", "labels predict no.marginmf songs.csv", "no.marginmf: No such file"),
    case("text", "labels predict text.marginmf songs.csv", "text.marginmf cannot be loaded"),
    case("cut", "labels predict cut.marginmf songs.csv", "it is cut short"),
    case("of-ratings", "labels predict r.marginmf songs.csv", "predicts ratings and not labels"),
    case("for-ratings", "predict l.marginmf songs.csv", "predicts labels and not ratings"),
    case("no-rows-file", "labels predict l.marginmf absent.csv", "There is no file absent.csv"),
    case(
        "narrow", "labels predict l.marginmf narrow.csv", "narrow.csv has no feature 'brightness'"
    ),
    case("bare", "labels predict l.marginmf bare.csv", "bare.csv has 2 features, but the model ha"),
    case("words", "labels predict l.marginmf words.csv", "'fast' in the column 'a'"),
    case("top-0", "labels predict l.marginmf songs.csv --top 0", "marginmf: --top: '"),
    case(
        "top-scores", "labels predict l.marginmf songs.csv --top 2 --scores", "leave --scores and"
    ),
    case("as", "labels predict l.marginmf songs.csv --as list", "marginmf: --as: '"),
]
CASES = [*DATA, *ARGUMENTS, *DESTINATIONS, *(PIPES if PIPE_NAMES else ()), *MODELS]


@pytest.fixture(scope="module")
def model_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A model of labels, what is left of it when it is cut, and a model of ratings."""
    from marginmf.cli.estimators import set_names
    from marginmf.labels import PLST, Scaled
    from marginmf.ratings import BiasOnly

    folder = tmp_path_factory.mktemp("models")
    table = songs()
    model = Scaled(PLST(), decision="sign").fit(table.X, table.Y)
    set_names(model, table)
    model.save(folder / "l.marginmf")
    pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y")]
    BiasOnly(reg=0.1).fit(pairs, [5, 3, 4, 2]).save(folder / "r.marginmf")
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    return {**found, "cut.marginmf": found["l.marginmf"][:-100]}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, model_files: dict[str, bytes]) -> Path:
    """Every file that the cases speak of; they leave the folder as it is."""
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "m.csv").write_bytes(model_files["l.marginmf"])
    (folder / "link.csv").symlink_to("songs.csv")
    for name in PIPE_NAMES:
        os.mkfifo(folder / name)
    fill(folder, {**FILES, **model_files})
    return folder


@pytest.fixture
def folder(files: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with those files, and the way there."""
    monkeypatch.delenv("MARGINMF_DATA", raising=False)
    return enter(files, monkeypatch)


@pytest.mark.parametrize("faulty", CASES)
def test_one_line_and_2_and_nothing_left_behind(folder: Path, faulty: Case) -> None:
    check_refused(folder, faulty)


def test_a_name_that_no_folder_has_lists_those_it_has(run, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "songs.npz").write_bytes(b"")
    monkeypatch.setenv("MARGINMF_DATA", str(tmp_path))
    outcome = run("labels", "evaluate", "films")
    assert outcome.code == 2
    assert "There is no file films; " in outcome.err
    assert "dataset 'films'; the data folder has 'songs'; " in outcome.err
