"""The checkpoint runs each named minimisation once over all calls of a fit."""

import json
import threading
import time

import numpy as np
import pytest

from marginmf._utils.random import BIT_GENERATORS, GeneratorState
from marginmf.checkpoints import Checkpoint, OpenCheckpoint, open_checkpoint
from marginmf.checkpoints.store import CheckpointStore, read_content, write_content
from marginmf.ratings import MMMF
from marginmf.solvers import (
    LBFGS,
    SOLVERS,
    EarlyStopping,
    Result,
    State,
    Stopping,
    StopReason,
    minimise,
)

START = np.linspace(-2, 3, 15)
SHAPE = np.geomspace(1.0, 300.0, 15)


def smooth(x):
    return float(np.sum(SHAPE * x**2 + np.cos(3 * x))), 2 * SHAPE * x - 3 * np.sin(3 * x)


class Counted:
    """An objective that counts its evaluations and may fail at one of them."""

    def __init__(self, fail_at=None):
        self.n, self.fail_at = 0, fail_at

    def __call__(self, x):
        self.n += 1
        if self.n == self.fail_at:
            raise KeyboardInterrupt
        return smooth(x)


@pytest.fixture
def opened(path):
    """Return an opener of the checkpoint of one and the same fit."""
    return lambda seconds=5.0: open_checkpoint(Checkpoint(path, seconds), MMMF(), {"x": START})


def fail(opened, run):
    def call():
        with opened() as checkpoint:
            run(checkpoint)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call()


def test_without_a_store_it_only_minimises():
    checkpoint, objective = OpenCheckpoint().scope("inner"), Counted()
    for _ in range(2):
        result = checkpoint.minimise("same name", LBFGS(), objective, START)
    assert result.reason == StopReason.OBJECTIVE
    assert objective.n == 2 * result.n_evaluations
    first, again = (checkpoint.generator("start", 3).random() for _ in range(2))
    assert first == again


@pytest.mark.parametrize("name", SOLVERS)
def test_what_is_finished_is_not_done_again(opened, name):
    found = []
    for _ in range(2):
        objective = Counted()

        def run(checkpoint, objective=objective):
            found.append(checkpoint.minimise("first", SOLVERS[name](), objective, START))

        fail(opened, run)
    first, stored = found
    assert objective.n == 0
    assert stored.point.tobytes() == first.point.tobytes()
    assert stored.point.flags.writeable
    assert (stored.history, stored.reason) == (first.history, first.reason)
    assert stored.n_evaluations == first.n_evaluations


@pytest.mark.parametrize("name", SOLVERS)
def test_what_is_in_progress_goes_on(opened, name):
    whole = minimise(SOLVERS[name](), smooth, START)
    # The evaluation that fails is made again, and perhaps some before it in the same line search.
    failing, rest = Counted(whole.n_evaluations // 2), Counted()
    with pytest.raises(KeyboardInterrupt), opened() as checkpoint:
        checkpoint.minimise("first", SOLVERS[name](), failing, START)
    with opened() as checkpoint:
        result = checkpoint.minimise("first", SOLVERS[name](), rest, START)
    assert result.point.tobytes() == whole.point.tobytes()
    assert rest.n <= whole.n_evaluations - failing.n + 25
    assert rest.n < whole.n_evaluations


def test_scopes_keep_equal_names_apart(opened):
    starts = {"bag 1": START, "bag 2": -START}

    def run(checkpoint):
        for name, start in starts.items():
            checkpoint.scope(name).minimise("stage 1", LBFGS(), smooth, start)

    fail(opened, run)
    with opened() as checkpoint:
        for name, start in starts.items():
            expected = minimise(LBFGS(), smooth, start)
            found = checkpoint.scope(name).minimise("stage 1", LBFGS(), None, start)
            np.testing.assert_array_equal(found.point, expected.point)


def test_an_inner_fit_uses_the_checkpoint_of_the_outer_one(opened, path, interrupt_after):
    pairs, ratings = [(u, i) for u in range(9) for i in range(7)], [1, 2, 3] * 21
    model = MMMF(n_factors=3, reg=0.1, random_state=None)

    def run(checkpoint):
        model.fit(pairs, ratings, checkpoint=checkpoint.scope("bag 1"))

    fail(opened, run)
    assert path.exists()
    inner = model.user_factors_
    with opened() as checkpoint:
        model.fit(pairs, ratings, checkpoint=checkpoint.scope("bag 1"))
        np.testing.assert_array_equal(model.user_factors_, inner)
        model.fit(pairs, ratings, checkpoint=checkpoint.scope("bag 2"))
        assert not np.array_equal(model.user_factors_, inner)
        assert path.exists()
    assert not path.exists()


def test_one_name_for_two_parts_is_refused(opened):
    with opened() as checkpoint:
        checkpoint.scope("a").minimise("b", LBFGS(), smooth, START)
        with pytest.raises(RuntimeError, match="Two parts of one fit have the same name, 'a, b'"):
            checkpoint.minimise("a, b", LBFGS(), smooth, START)


def test_names_may_hold_anything(opened):
    names = ["holdout 0, stage 2, reg 31.6", "../..", "a/b", "a:b", "ä" * 300, "A", "a", ""]

    def run(checkpoint):
        for number, name in enumerate(names):
            checkpoint.minimise(name, LBFGS(), smooth, START + number)

    fail(opened, run)
    with opened() as checkpoint:
        for number, name in enumerate(names):
            found = checkpoint.minimise(name, LBFGS(), None, START)
            expected = minimise(LBFGS(), smooth, START + number)
            np.testing.assert_array_equal(found.point, expected.point)


def test_a_solver_that_only_knows_its_point_begins_there(opened):
    class Own:
        def steps(self, objective, start, vectors):
            return LBFGS().steps(
                objective, start.point if isinstance(start, State) else start, vectors
            )

    whole = minimise(LBFGS(), smooth, START)

    def run(checkpoint):
        checkpoint.minimise("first", Own(), smooth, START)
        checkpoint.minimise("second", Own(), Counted(5), START)

    fail(opened, run)
    with opened() as checkpoint:
        assert checkpoint.minimise("first", Own(), None, START).reason == whole.reason
        found = checkpoint.minimise("second", Own(), smooth, START)
        assert found.objective == pytest.approx(whole.objective, rel=1e-3)


@pytest.mark.parametrize("start", [np.arange(3), np.zeros(3, np.float16)])
def test_vectors_that_cannot_be_stored_are_refused_at_once(opened, start):
    def still(x):
        return 1.0, np.ones_like(x)

    with (
        opened() as checkpoint,
        pytest.raises(TypeError, match="holds vectors of float32 or float64"),
    ):
        checkpoint.minimise("first", LBFGS(), still, start)


class Halves:
    """Vectors of another kind than NumPy's: pairs of arrays."""

    def dots(self, vectors, b):
        return [sum(float(x @ y) for x, y in zip(a, b, strict=True)) for a in vectors]

    def combine(self, scales, vectors, out=None):
        halves = zip(*vectors, strict=True)
        return tuple(sum(s * x for s, x in zip(scales, half, strict=True)) for half in halves)

    def to_host(self, vector):
        return np.concatenate(vector)

    def from_host(self, array):
        return array[:7].copy(), array[7:].copy()


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("rule", [None, EarlyStopping(lambda x: -float(x[0][0]), 1000)])
def test_vectors_of_any_kind_are_stored(opened, name, rule):
    vectors, n = Halves(), [0, None]

    def objective(point):
        n[0] += 1
        if n[0] == n[1]:
            raise KeyboardInterrupt
        value, gradient = smooth(vectors.to_host(point))
        return value, vectors.from_host(gradient)

    def run(checkpoint):
        start = vectors.from_host(START)
        return checkpoint.minimise(
            "first", SOLVERS[name](), objective, start, None, (), vectors, rule
        )

    whole = run(OpenCheckpoint())
    n[:] = 0, whole.n_evaluations // 2
    with pytest.raises(KeyboardInterrupt), opened() as checkpoint:
        run(checkpoint)
    n[1] = None
    with opened() as checkpoint:
        found = run(checkpoint)
    for one, other in zip(found.point, whole.point, strict=True):
        np.testing.assert_array_equal(one, other)
    assert found.errors == whole.errors
    assert (found.reason, found.n_evaluations) == (whole.reason, whole.n_evaluations)


class RandomWalk:
    """A solver whose states are samples: it goes on with the generator of its state."""

    def steps(self, objective, start, vectors):
        resumes = isinstance(start, State)
        point = start.point if resumes else start
        rng = start.generators["walk"].generator() if resumes else np.random.default_rng(3)
        while True:
            point = vectors.combine((1.0, 1.0), (point, rng.standard_normal(len(point))))
            value, _ = objective(point)
            yield State(point, value, 1.0, generators={"walk": GeneratorState.of(rng)})


def test_random_generators_of_states_are_stored(opened):
    rules = Stopping(max_iter=30, tol=-np.inf)
    whole = minimise(RandomWalk(), smooth, START, rules)
    for fail_at in (5, 20):
        with pytest.raises(KeyboardInterrupt), opened() as checkpoint:
            checkpoint.minimise("walk", RandomWalk(), Counted(fail_at), START, rules)
    with opened() as checkpoint:
        found = checkpoint.minimise("walk", RandomWalk(), smooth, START, rules)
    assert found.point.tobytes() == whole.point.tobytes()
    assert found.n_evaluations == whole.n_evaluations


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes only when it is told to."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_results_and_states_wait_in_memory_until_it_is_time(opened, path, clock):
    def files():
        return {file.name.split("-")[0] for file in path.iterdir()}

    with opened(seconds=10) as checkpoint:
        for name in "abc":
            checkpoint.minimise(name, LBFGS(), smooth, START)
        assert files() == {"fit"}

        def later(progress):
            clock[0] += 4
            assert files() == ({"fit"} if clock[0] <= 12 else {"fit", "a", "b", "c", "d"})

        checkpoint.minimise("d", LBFGS(), smooth, START, callbacks=[later])
        assert files() == {"fit", "a", "b", "c", "d"}


def test_seconds_0_writes_after_every_iteration(opened, path):
    written = []

    def watch(progress):
        written.extend(len(read_content(file, "first").history) for file in path.glob("first-*"))

    with opened(seconds=0) as checkpoint:
        result = checkpoint.minimise("first", LBFGS(), smooth, START, callbacks=[watch])
    assert written == list(range(1, result.n_iter + 1))


def test_a_slow_disk_is_given_rest(tmp_path, monkeypatch, clock):
    writes = []

    def slow_write(path, name, content, vectors):
        clock[0] += 2.0
        writes.append(name)

    monkeypatch.setattr("marginmf.checkpoints.store.write_content", slow_write)
    store = CheckpointStore(tmp_path, seconds=5.0)
    for _ in range(1000):
        clock[0] += 1.0
        store.note("state", Result(START, [], StopReason.GRADIENT, 1))
    # Two seconds a write and at most a twentieth of the time: one write in some forty seconds.
    assert 20 <= len(writes) <= 25


def test_parts_side_by_side_share_a_checkpoint(opened):
    starts = {f"part {n}": START + n for n in range(8)}

    def run(checkpoint):
        def work(name):
            return checkpoint.minimise(name, LBFGS(), smooth, starts[name])

        return checkpoint.side_by_side(work, starts, n_threads=3)

    fail(opened, run)
    with opened() as checkpoint:
        found = run(checkpoint)
    for start, result in zip(starts.values(), found, strict=True):
        np.testing.assert_array_equal(result.point, minimise(LBFGS(), smooth, start).point)


@pytest.mark.parametrize("failing", [0, 1])
def test_when_one_part_fails_the_others_give_up_and_its_error_is_raised(failing):
    checkpoint, n = OpenCheckpoint(), [0, 0]
    both_run = threading.Barrier(2)

    def work(part):
        def callback(progress):
            n[part] += 1
            if n[part] == 2:
                both_run.wait()
            if part == failing and n[part] == 5:
                raise ZeroDivisionError
            time.sleep(0.001)

        # Without an end of its own.
        rules = Stopping(max_iter=100_000, tol=-np.inf, gradient_tol=0.0)
        return checkpoint.minimise(str(part), Endless(), smooth, START, rules, [callback])

    with pytest.raises(ZeroDivisionError):
        checkpoint.side_by_side(work, [0, 1], n_threads=2)
    assert n[failing] == 5


class Endless:
    """A solver that stays where it is until a callback has had enough."""

    def steps(self, objective, start, vectors):
        while True:
            yield State(start, 1.0, 1.0)


# --- random generators as plain data --------------------------------------------------------------


@pytest.mark.parametrize("kind", BIT_GENERATORS.values(), ids=BIT_GENERATORS)
def test_every_kind_goes_on_as_it_would_have(kind):
    rng = np.random.Generator(kind(7))
    rng.standard_normal(5)
    rng.spawn(2)
    text = json.dumps(vars(GeneratorState.of(rng)))
    again = GeneratorState(**json.loads(text)).generator()
    np.testing.assert_array_equal(again.standard_normal(9), rng.standard_normal(9))
    for a, b in zip(again.spawn(3), rng.spawn(3), strict=True):
        np.testing.assert_array_equal(a.random(4), b.random(4))


def test_a_spawned_generator_goes_on_too():
    rng = np.random.default_rng().spawn(3)[2]
    again = GeneratorState.of(rng).generator()
    assert again.random() == rng.random()
    assert again.spawn(1)[0].random() == rng.spawn(1)[0].random()


def test_bits_that_are_not_from_numpy_are_refused():
    class Own(np.random.PCG64):
        pass

    with pytest.raises(ValueError, match=r"cannot be kept in a checkpoint: give a whole number"):
        GeneratorState.of(np.random.Generator(Own(1)))


FORGED = {
    "another kind": (
        "PCG64",
        lambda kept: kept.update(kind="Popen"),
        "no random generator 'Popen'",
    ),
    "a state of another kind": ("PCG64", lambda kept: kept.update(kind="SFC64"), "this state"),
    "an even increment": ("PCG64", lambda kept: kept["state"]["state"].update(inc=2), "this state"),
    "a state too long": (
        "PCG64DXSM",
        lambda kept: kept["state"]["state"].update(state=2**128),
        "this state",
    ),
    "a position beyond": ("MT19937", lambda kept: kept["state"]["state"].update(pos=625), "state"),
    "a key too few": ("MT19937", lambda kept: kept["state"]["state"]["key"].pop(), "this state"),
    "a buffer beyond": ("Philox", lambda kept: kept["state"].update(buffer_pos=5), "this state"),
    "a flag of 2": ("SFC64", lambda kept: kept["state"].update(has_uint32=2), "this state"),
    "a float": ("SFC64", lambda kept: kept["state"].update(uinteger=0.5), "this state"),
    "a part more": ("PCG64", lambda kept: kept["state"].update(more=1), "this state"),
    "a part less": ("PCG64", lambda kept: kept["state"].pop("uinteger"), "this state"),
    "a pool without end": ("PCG64", lambda kept: kept["seeds"].update(pool_size=2**40), "seeds"),
    "no pool": ("PCG64", lambda kept: kept["seeds"].update(pool_size=0), "these seeds"),
    "digits without end": ("PCG64", lambda kept: kept["seeds"].update(entropy=10**2000), "seeds"),
    "seeds in words": ("PCG64", lambda kept: kept.update(seeds="many"), "these seeds"),
}


@pytest.mark.parametrize(("kind", "forge", "sentence"), FORGED.values(), ids=FORGED)
def test_a_forged_state_gets_a_sentence(kind, forge, sentence, tmp_path):
    kept = json.loads(
        json.dumps(vars(GeneratorState.of(np.random.Generator(BIT_GENERATORS[kind](7)))))
    )
    path = tmp_path / "state.safetensors"
    write_content(path, "walk", GeneratorState(**kept))
    assert read_content(path, "walk").generator().random() >= 0
    forge(kept)
    write_content(path, "walk", GeneratorState(**kept))
    with pytest.raises(ValueError, match=f"is damaged .*{sentence}"):
        read_content(path, "walk")
