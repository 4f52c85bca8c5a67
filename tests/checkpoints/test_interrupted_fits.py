"""A fit that is interrupted anywhere, and called again, ends at the same answer to the last bit."""

import signal
import threading
import time
from functools import partial

import numpy as np
import pytest

from contracts import assert_same_fit, synthetic
from marginmf.backends.cpu.backend import CpuBackend
from marginmf.checkpoints import Checkpoint
from marginmf.ratings import ALS, BMMMF, HMF, MMMF, PMF, PMMMF, BiasOnly

DATA = synthetic((1, 2, 3, 4, 5))
FEW = {"n_factors": 4, "reg": 0.5, "random_state": 0, "max_iter": 12, "tol": 0.0}
FEW["calibrate"] = False

MAKERS = {
    "mmmf": partial(MMMF, **FEW),
    "mmmf cg": partial(MMMF, solver="cg", **FEW),
    "mmmf gd": partial(MMMF, solver="gd", **FEW),
    "mmmf immediate": partial(MMMF, threshold="immediate", dtype="float64", **FEW),
    "mmmf calibrated": partial(MMMF, **FEW | {"calibrate": True}),
    "pmmmf": partial(PMMMF, **FEW),
    "pmf": partial(PMF, **FEW),
    "pmf bias": partial(PMF, bias=True, **FEW),
    "als bias": partial(ALS, bias=True, **FEW),
    "hmf": partial(HMF, **FEW),
    "hmf cg": partial(HMF, solver="cg", **FEW),
    "hmf independent": partial(HMF, schedule="independent", **FEW),
    "hmf threads": partial(HMF, schedule="independent", n_jobs=2, **FEW),
}


def n_callbacks(model):
    """Return how many iterations the callbacks saw, the start of every stage included."""
    return int(np.sum(np.asarray(model.n_iter_) + 1))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_interrupted_once(make, path, interrupt_after):
    whole = make().fit(*DATA)
    for n in np.unique(np.linspace(0, n_callbacks(whole) - 1, 5, dtype=int)):
        with pytest.raises(KeyboardInterrupt):
            make(callbacks=[interrupt_after(n)]).fit(*DATA, checkpoint=path)
        assert_same_fit(make().fit(*DATA, checkpoint=path), whole)
        assert not path.exists()


@pytest.mark.parametrize(
    ("name", "seconds"), [*((name, 0.0) for name in MAKERS), ("mmmf", 5.0), ("hmf", 5.0)]
)
def test_interrupted_again_and_again(name, seconds, path, interrupt_after):
    make = MAKERS[name]
    whole, resumed, calls = make().fit(*DATA), None, 0
    while resumed is None:
        calls += 1
        try:
            model = make(callbacks=[interrupt_after(5)])
            resumed = model.fit(*DATA, checkpoint=Checkpoint(path, seconds=seconds))
        except KeyboardInterrupt:
            assert calls < n_callbacks(whole)
    assert calls >= n_callbacks(whole) // 6
    assert_same_fit(resumed, whole)


def test_two_levels(path, interrupt_after):
    data, params = synthetic((0, 1)), {"n_factors": 3, "reg": 0.5, "random_state": 0}
    with pytest.raises(KeyboardInterrupt):
        BMMMF(**params, callbacks=[interrupt_after(7)]).fit(*data, checkpoint=path)
    assert_same_fit(BMMMF(**params).fit(*data, checkpoint=path), BMMMF(**params).fit(*data))


def test_finished_stages_are_not_made_again(path, interrupt_after):
    whole = HMF(**FEW).fit(*DATA)
    with pytest.raises(KeyboardInterrupt):
        HMF(**FEW, callbacks=[interrupt_after(30)]).fit(*DATA, checkpoint=path)
    seen = []
    HMF(**FEW, callbacks=[lambda progress: seen.append(progress.record)]).fit(
        *DATA, checkpoint=path
    )
    assert len(seen) == n_callbacks(whole) - 30
    # The iteration that was interrupted is seen again; those before it are not.
    assert seen[0].iteration == 30 % 13


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, KeyboardInterrupt])
def test_any_error_leaves_a_checkpoint(path, interrupt_after, error):
    with pytest.raises(error):
        MMMF(**FEW, callbacks=[interrupt_after(5, error)]).fit(*DATA, checkpoint=path)
    assert len(list(path.iterdir())) == 2
    assert_same_fit(MMMF(**FEW).fit(*DATA, checkpoint=path), MMMF(**FEW).fit(*DATA))


@pytest.mark.parametrize(
    ("solver", "operation"),
    [
        *((s, o) for s in ("lbfgs", "cg", "gd") for o in ("dots", "combine", "_scatter")),
        ("als", "improve_rows"),
        ("als", "gradient"),
    ],
)
def test_interrupted_in_the_middle_of_an_iteration(path, monkeypatch, solver, operation):
    def make():
        return ALS(**FEW) if solver == "als" else PMMMF(solver=solver, **FEW)

    whole, plain, calls = make().fit(*DATA), getattr(CpuBackend, operation), []
    interrupt_at = [None]

    def counted(kernels, *args):
        calls.append(operation)
        if len(calls) == interrupt_at[0]:
            raise KeyboardInterrupt
        return plain(kernels, *args)

    monkeypatch.setattr(CpuBackend, operation, counted)
    make().fit(*DATA)
    for n in np.unique(np.linspace(1, len(calls), 6, dtype=int)):
        calls.clear()
        interrupt_at[0] = n
        with pytest.raises(KeyboardInterrupt):
            make().fit(*DATA, checkpoint=path)
        assert_same_fit(make().fit(*DATA, checkpoint=path), whole)


def test_a_keyboard_interrupt_stops_stages_side_by_side_at_once(path):
    params = {**FEW, "max_iter": 50, "schedule": "independent", "n_jobs": 2}
    seen = []

    def press_control_c(progress):
        seen.append(progress.record)
        if len(seen) == 10:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.01)  # kernels this small hardly let the main thread in

    # Again, because polars has put a handler of its own in its place, which does not wake threads.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        HMF(**params, callbacks=[press_control_c]).fit(*DATA, checkpoint=path)
    assert len(seen) < 100
    assert len([file for file in path.iterdir() if file.name.startswith("stage")]) == 2
    assert_same_fit(HMF(**params).fit(*DATA, checkpoint=path), HMF(**params).fit(*DATA))


def test_the_number_of_threads_may_change(path, interrupt_after):
    params = {**FEW, "schedule": "independent"}
    with pytest.raises(KeyboardInterrupt):
        HMF(**params, n_jobs=2, callbacks=[interrupt_after(20)]).fit(*DATA, checkpoint=path)
    resumed = HMF(**params, n_jobs=1, verbose=1).fit(*DATA, checkpoint=path)
    assert_same_fit(resumed, HMF(**params).fit(*DATA))


def test_a_callback_that_stops_is_a_part_of_the_fit(path, interrupt_after):
    def stop(progress):
        return progress.record.iteration == 6

    whole = HMF(**FEW, callbacks=[stop]).fit(*DATA)
    for n in (3, 6, 7, 15):
        with pytest.raises(KeyboardInterrupt):
            HMF(**FEW, callbacks=[stop, interrupt_after(n)]).fit(*DATA, checkpoint=path)
        assert_same_fit(HMF(**FEW, callbacks=[stop]).fit(*DATA, checkpoint=path), whole)


@pytest.mark.parametrize("schedule", ["warm", "independent"])
@pytest.mark.parametrize("fresh", [np.random.default_rng, np.random.RandomState])
def test_a_generator_is_taken_up_as_it_was(path, interrupt_after, schedule, fresh):
    params = {**FEW, "schedule": schedule}
    whole = HMF(**params | {"random_state": fresh(5)}).fit(*DATA)
    used = fresh(5)
    for _ in range(3):
        model = HMF(**params | {"random_state": used}, callbacks=[interrupt_after(15)])
        with pytest.raises(KeyboardInterrupt):
            model.fit(*DATA, checkpoint=path)
    assert_same_fit(HMF(**params | {"random_state": fresh(99)}).fit(*DATA, checkpoint=path), whole)


@pytest.mark.parametrize("schedule", ["warm", "independent"])
@pytest.mark.parametrize("iterations", [5, 15, 35])
def test_without_a_seed_the_first_call_draws_one_for_all(
    path, interrupt_after, monkeypatch, schedule, iterations
):
    # Every call that draws a seed gets another one.
    seeds = iter(range(100))
    monkeypatch.setattr(
        "marginmf.checkpoints.checkpoint.as_generator", lambda _: np.random.default_rng(next(seeds))
    )
    params = {**FEW, "schedule": schedule, "random_state": None}
    with pytest.raises(KeyboardInterrupt):
        HMF(**params, callbacks=[interrupt_after(iterations)]).fit(*DATA, checkpoint=path)
    resumed = HMF(**params).fit(*DATA, checkpoint=path)
    monkeypatch.undo()
    assert_same_fit(resumed, HMF(**params | {"random_state": 0}).fit(*DATA))


def test_an_estimator_without_iterations_to_keep_takes_a_checkpoint_too(path):
    assert_same_fit(BiasOnly().fit(*DATA, checkpoint=path), BiasOnly().fit(*DATA))
    assert not path.exists()


def test_an_interrupted_fit_leaves_the_model_without_a_checkpoint(path, interrupt_after):
    model = MMMF(**FEW).fit(*DATA)
    before = vars(model).copy()
    with pytest.raises(KeyboardInterrupt):
        model.set_params(callbacks=[interrupt_after(3)]).fit(*DATA, checkpoint=path)
    assert vars(model).keys() == before.keys()
