"""Model files that are changed anywhere, and everything that is asked of what loads."""

import os
import random
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from typer.testing import CliRunner

import label_models
import marginmf
from fuzz import corpus
from fuzz.judging import FailedAttackError, attempt, in_proportion
from marginmf.cli.app import app
from marginmf.persistence import ModelFileError, describe
from tampering import COMMON_JUNK, ZEROS, ModelParts, every_node, sealed

TITLE = "Mutated model files"
N = 20_000

#: What may stand in a document.
JUNK = [
    *COMMON_JUNK,
    *(0, 1, 2, 7, -7, 0.5, 10**7, 2**31, 2**63 - 1, -(2**63), 1e-308, 1e100, False),
    *("\x00", "\x1b[31m", "=1+1", "a" * 5_000, "\udcff", "auto", "nan", "cpu", "lbfgs"),
    *({"float": "7ff8000000000000"}, {"int": "0x" + "f" * 5_000}, {"tuple": [[]]}),
    *({"dtype": "<f8"}, {"numpy": ["<i8", "ff" * 8]}, {"numpy": ["<f4", "0000c07f"]}),
    {"generator": {"bit_generator": "PCG64"}},
    {"array": {"tensor": "user_factors_"}},
    {"csr": {"shape": [10**9, 10**9], "data": 0, "indices": 0, "indptr": 0}},
    {"object": ["ids", {"values": [1]}]},
    {"object": ["MMMF", {}, {}]},
]
for depth in (40, 400):
    node: Any = 0
    for _ in range(depth):
        node = [node]
    JUNK.append(node)
#: What a terminal obeys.
CONTROLS = "[\x00-\x08\x0b-\x1f\x7f-\x9f]"
#: What may stand in an array.
NUMBERS = (0, 1, -1, 2, np.nan, np.inf, -np.inf, 1e308, 1e-308, 3e38, 127, 255, 2**31 - 1, 2**62)


def prepare(folder: Path) -> None:
    """Save the honest models."""
    corpus.save_all(folder)


def attack(seed: int, number: int, folder: Path) -> str:
    """Change a model file; load it, and ask everything."""
    warm_up(folder)
    rng = random.Random(f"{seed} {number}")
    name = rng.choice(corpus.NAMES)
    content = mutated(rng, name, folder)
    path = folder / f"attacked-{os.getpid()}.marginmf"
    path.write_bytes(content)
    try:
        return load_and_ask(path)
    finally:
        path.unlink()


@cache
def warm_up(folder: Path) -> None:
    """Load every honest file: what is imported for a class is not what a file costs."""
    for name in corpus.NAMES:
        marginmf.load(corpus.path_of(folder, name))


def load_and_ask(path: Path) -> str:
    """Load a file and ask everything of the model; say whether it was refused."""
    size = path.stat().st_size
    with in_proportion(size):
        attempt(describe, path)
    if size % 4 == 0:
        shown_by_info(path)
    model = None
    with in_proportion(size):
        try:
            model = marginmf.load(path)
        except ModelFileError as error:
            refusal = str(error)
    if model is None:
        if not refusal.startswith(str(path)) or len(refusal) > len(str(path)) + 400:
            raise FailedAttackError(f"a refusal that names no file, or is long: {refusal:.1000}")
        return "refused"
    ask(model, path)
    return "loaded"


def shown_by_info(path: Path) -> None:
    """Run the command that describes a model: it ends well, or with a message."""
    result = CliRunner().invoke(app, ["info", str(path)])
    if result.exit_code not in (0, 1, 2) or not isinstance(result.exception, SystemExit | None):
        raise FailedAttackError(f"info ends with {result.exit_code}: {result.exception!r:.300}")
    if "Traceback" in result.output or re.search(CONTROLS, result.output):
        raise FailedAttackError(f"info prints {result.output!r:.500}")


def ask(model: Any, path: Path) -> list[str]:
    """Ask a model all that users ask; return the sentences with which it refused."""
    refusals = []
    with np.errstate(all="ignore"):
        for method, *given in calls_of(model):
            if hasattr(model, method):
                answer, refused = attempt(getattr(model, method), *given[:-1], **given[-1])
                refusals.append(refused)
                if method in NEW_ROWS and not refused:
                    attempt(answer.recommend, [given[0][0][0]], n=2)
                    if hasattr(answer, "predict"):
                        attempt(answer.predict, given[0])
        attempt(repr, model)
        attempt(model.get_params)
        again = path.with_suffix(".again")
        _, refused = attempt(model.save, again)
        if not refused:
            marginmf.load(again)
            again.unlink()
    return [each for each in refusals if each]


#: A method, its arguments, and those that have names.
Call = tuple[Any, ...]
NEW_ROWS = ("fold_in", "update_users", "fold_in_items", "update_items")


def calls_of(model: Any) -> Iterator[Call]:
    """Yield what a model is asked, whatever it learned from."""
    return ratings_calls(model) if hasattr(model, "users_") else label_calls(model)


def label_calls(model: Any) -> Iterator[Call]:
    """Yield what a label estimator is asked."""
    X, _ = label_models.labelled()
    for rows in (X[:3], csr_array(X[:2]), np.ones((2, min(model.n_features_in_, 1_000)))):
        for method in ("predict", "decision_function", "predict_proba"):
            yield method, rows, {}


def ratings_calls(model: Any) -> Iterator[Call]:
    """Yield what an estimator of ratings, or of who has what, is asked."""
    users, items = (getattr(model, each).ids[:2].tolist() for each in ("users_", "items_"))
    user, item = users[0], items[0]
    known = corpus.PAIRS if isinstance(user, str) else corpus.TABLE.pairs.tolist()
    nobody, nothing = ("nobody", "nothing") if isinstance(user, str) else (10**6, 10**6)
    pairs = [*known[:10], (user, item), (user, nothing), (nobody, item)]
    for output in ("median", "mode", "mean", "rule"):
        yield "predict", pairs, {"output": output}
    for method in ("decision_function", "predict_proba", "credible_interval"):
        yield method, pairs, {}
    yield "fit_calibrator", {}
    yield "fit_exposure", {}
    yield "recommend", [user], {"n": 3}
    yield "recommend", {"n": 1}
    for by in ("relevance", "expected", "chance") if hasattr(model, "predict") else ():
        yield "recommend", users, {"n": 2, "by": by}
    yield "similar_items", [item], {"n": 3}
    yield "similar_users", [user], {"n": 3}
    yield "explain", user, item, {}
    yield "score", known[:50], corpus.STARS[:50], {}
    levels = getattr(model, "levels_", np.array([4.0]))
    for method in NEW_ROWS:
        rows = [(one, nothing) for one in users]
        if method in ("fold_in", "update_users"):
            rows = [(nobody, one) for one in items]
        yield method, rows, np.repeat(levels[-1], len(rows)), {}


# --- changes ------------------------------------------------------------------------------------


@cache
def whole(name: str, folder: Path) -> ModelParts:
    """Return the parts of an honest file."""
    return ModelParts(corpus.path_of(folder, name))


def mutated(rng: random.Random, name: str, folder: Path) -> bytes:
    """Return the bytes of a changed model file."""
    if rng.random() < 0.2:
        return change_bytes(rng, corpus.path_of(folder, name).read_bytes())
    parts = whole(name, folder).copy()
    changes = (change_parameter, change_node, change_tensor, change_tensor, change_tensor, splice)
    for _ in range(rng.choice((1, 1, 1, 1, 2, 4))):
        rng.choice(changes)(rng, parts, folder)
    written = folder / f"written-{os.getpid()}"
    try:
        parts.write(written, change_entry(rng) if rng.random() < 0.05 else lambda entries: None)
        return written.read_bytes()
    finally:
        written.unlink(missing_ok=True)


def change_bytes(rng: random.Random, content: bytes) -> bytes:
    """Change bytes anywhere; mostly the checksum is mended."""
    made = bytearray(content)
    length = int.from_bytes(made[:8], "little")
    for _ in range(rng.choice((1, 1, 2, 8))):
        place = rng.randrange(min(8 + length, len(made) - 1), len(made))
        if rng.random() < 0.4:  # in the header most often a number, which leaves it valid
            place = rng.randrange(8, 8 + length)
            digits = [k for k in range(8, 8 + length) if 48 <= made[k] < 58]
            if digits and rng.random() < 0.7:
                made[rng.choice(digits)] = rng.randrange(48, 58)
                continue
        made[place] = rng.choice((rng.randrange(256), made[place] ^ 1 << rng.randrange(8)))
    if rng.random() < 0.05:
        del made[rng.randrange(len(made)) :]
    if rng.random() < 0.1 or len(made) < 8 + length:
        return bytes(made)
    header = bytes(made[8 : 8 + length])
    before, mark, rest = header.partition(b'"checksum":"')
    return sealed(before + mark + ZEROS.encode() + rest[64:], bytes(made[8 + length :]))


def change_parameter(rng: random.Random, parts: ModelParts, folder: Path) -> None:
    """Give a parameter another value, or a number among what was learned."""
    nodes = every_node(parts.document, [])
    single = [(node, key) for node, key in nodes if not isinstance(node[key], list | dict)]
    container, key = rng.choice([(node, key) for node, key in single if key != "tensor"])
    value = container[key]
    if isinstance(value, int | float) and rng.random() < 0.6:
        container[key] = value * rng.choice((-1, 0, 2, 10, 10**6)) + rng.choice((0, 1, -1))
    else:
        container[key] = deepcopy(rng.choice(JUNK))


def change_node(rng: random.Random, parts: ModelParts, folder: Path) -> None:
    """Put something else into the document, or take a part of it away."""
    container, key = rng.choice(every_node(parts.document, []))
    match rng.randrange(4):
        case 0:
            del container[key]
        case 1:
            other, place = rng.choice(every_node(parts.document, []))
            container[key] = deepcopy(other[place])
        case _:
            container[key] = deepcopy(rng.choice(JUNK))


def change_tensor(rng: random.Random, parts: ModelParts, folder: Path) -> None:
    """Change the numbers of an array, or its shape."""
    name = rng.choice(list(parts.tensors))
    array = parts.tensors[name]
    with np.errstate(all="ignore"):
        parts.tensors[name] = np.ascontiguousarray(_changed(rng, array))


def _changed(rng: random.Random, array: Any) -> Any:
    axis = rng.randrange(array.ndim) if array.ndim else 0
    match rng.randrange(16):
        case 0 if array.ndim:
            return np.delete(array, rng.choice((0, -1)), axis) if array.shape[axis] else array
        case 1 if array.ndim:
            return np.concatenate([array, array], axis)
        case 2:
            return array[None] if rng.random() < 0.5 else array.reshape(-1)
        case 3:
            return np.moveaxis(array, 0, -1) if array.ndim > 1 else array[::-1]
        case 4:
            return array[:0] if array.ndim else array
        case 5:
            return array.astype(rng.choice(("f4", "f8", "i4", "i8", "u1", "?", "f2", "u8")))
        case 6:
            return np.full_like(array, rng.choice((0, 1)))
    array = array.copy()
    flat = array.reshape(-1)
    for _ in range(rng.choice((1, 1, 3, 10)) if flat.size else 0):
        place = rng.randrange(flat.size)
        match rng.randrange(4):
            case 0:
                flat[place] = np.array(rng.choice(NUMBERS)).astype(array.dtype)
            case 1 if array.dtype.kind == "f":
                flat[place] *= rng.choice((-1, 0, 2, 1e3, 1e-3, 1e30))
            case 1 | 2:
                flat[place] = flat[rng.randrange(flat.size)]
            case _:
                flat.view(np.uint8)[rng.randrange(array.nbytes)] = rng.randrange(256)
    return array


def splice(rng: random.Random, parts: ModelParts, folder: Path) -> None:
    """Take an array, or a part of the document, from another model; or let two arrays swap."""
    if rng.random() < 0.3:
        one, other = rng.choice(list(parts.tensors)), rng.choice(list(parts.tensors))
        parts.tensors[one], parts.tensors[other] = parts.tensors[other], parts.tensors[one]
        return
    donor = whole(rng.choice(corpus.NAMES), folder)
    shared = [name for name in parts.tensors if name in donor.tensors]
    if shared and rng.random() < 0.5:
        name = rng.choice(shared)
        parts.tensors[name] = donor.tensors[name]
    else:
        container, key = rng.choice(every_node(parts.document, []))
        other, place = rng.choice(every_node(donor.copy().document, []))
        container[key] = deepcopy(other[place])


def change_entry(rng: random.Random) -> Callable[[dict[str, Any]], None]:
    """Return a change of what the header says of one array."""

    def change(entries: dict[str, Any]) -> None:
        entry = entries[rng.choice(list(entries))]
        match rng.randrange(4):
            case 0:
                entry["shape"] = rng.choice(([0, 2**62], [2**31, 2**31], [], [-1], [1] * 40, ["a"]))
            case 1:
                entry["data_offsets"] = rng.choice(([0, 0], [0, 10**15], [-8, 0], [8], [5, 1]))
            case 2:
                entry["dtype"] = rng.choice(("F64", "I64", "U8", "BOOL", "F16", "BF16", "O", 3))
            case _:
                entry[rng.choice(("shape", "dtype", "extra"))] = rng.choice(JUNK)

    return change
