"""The gradient as plain C loops and as the library calls it, and how long each takes."""

import ctypes
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from marginmf.backends import get_backend
from marginmf.backends.specs import Proximal, Spec, Thresholds, TwoLevel
from marginmf.losses import smooth_hinge
from marginmf.ratings import Ratings
from marginmf.ratings.objective import FactorObjective, Parameters, first_thresholds
from marginmf.solvers import LBFGS, Stopping, minimise

REPEATS = 5
#: A repetition calls as often as fills so many seconds.
LEAST_SECONDS = 0.1


def seconds_each(call: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Return the median over some repetitions of the CPU seconds of one call."""
    call()  # compiles, and brings the data near
    calls = max(1, round(LEAST_SECONDS / max(_clocked(call, 1), 1e-6)))
    return median(_clocked(call, calls) / calls for _ in range(repeats))


def _clocked(call: Callable[[], Any], calls: int) -> float:
    begin = time.process_time()
    for _ in range(calls):
        call()
    return time.process_time() - begin


SOURCE = Path(__file__).with_name("roofline.c")
# Sums may be reordered.  Not -ffast-math, which makes whoever loads the library flush tiny numbers.
FLAGS = (
    *("-O3", "-march=native", "-funroll-loops", "-shared", "-fPIC"),
    *("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno"),
    *("-ffinite-math-only", "-ffp-contract=fast"),
)


class NoCompiler(Exception):  # noqa: N818, a state of the world more than an error
    """There is no C compiler here, or it fails; the message says which."""


@dataclass(frozen=True)
class Loops:
    """The compiled loops."""

    library: Any
    compiler: str

    @classmethod
    @cache
    def compiled(cls, n_factors: int = 0) -> "Loops":
        """Compile the loops in a temporary folder; by default for any number of factors."""
        compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
        if compiler is None:
            raise NoCompiler("There is no C compiler on the path (cc, gcc or clang).")
        with TemporaryDirectory(prefix="marginmf-roofline-") as folder:
            built = Path(folder) / "roofline.so"
            known = [f"-DFACTORS={n_factors}"] if n_factors else []
            command = [compiler, *FLAGS, *known, "-o", str(built), str(SOURCE)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise NoCompiler(f"{' '.join(command)} failed: {done.stderr.strip()[-300:]}")
            library = ctypes.CDLL(str(built))
        version = subprocess.run([compiler, "--version"], capture_output=True, text=True)
        library.dot.restype = ctypes.c_float
        return cls(library, version.stdout.splitlines()[0])

    def dot_gflops(self, n_bytes: int) -> float:
        """Return the rate of inner products of two vectors of so many bytes in all."""
        a, b, rounds = _vectors(n_bytes)
        n, arguments = ctypes.c_int64(len(a)), (_pointer(a), _pointer(b))
        seconds = seconds_each(lambda: self.library.dot(n, rounds, *arguments))
        return 2e-9 * len(a) * rounds.value / seconds

    def axpy_gflops(self, n_bytes: int) -> float:
        """Return the rate of adding multiples of one vector to another."""
        a, b, rounds = _vectors(n_bytes)
        n, arguments = ctypes.c_int64(len(a)), (_pointer(a), _pointer(b))
        scale = ctypes.c_float(1e-6)
        seconds = seconds_each(lambda: self.library.axpy(n, rounds, scale, *arguments))
        return 2e-9 * len(a) * rounds.value / seconds


def plain_gradients(data: Ratings, n_factors: int) -> dict[str, float]:
    """Return the GFLOP/s of every form of the gradient of a two-level factorisation."""
    any_length = PlainGradient(Loops.compiled().library, data, n_factors)
    this_length = PlainGradient(Loops.compiled(n_factors).library, data, n_factors)
    forms: dict[str, Callable[[], Any]] = {
        "one pass": any_length.one_pass,
        "one pass, d known to the compiler": this_length.one_pass,
        "three passes": any_length.three_passes,
    }
    work = 6e-9 * n_factors * len(data)
    return {name: work / seconds_each(form) for name, form in forms.items()}


class PlainGradient:
    """The gradient of the smooth hinge over some ratings, at a random point, by plain loops."""

    def __init__(self, library: Any, data: Ratings, n_factors: int) -> None:
        generator = np.random.default_rng(0)
        self._library = library
        self.U, self.V = (
            np.float32(0.1) * generator.standard_normal((n, n_factors), np.float32)
            for n in (data.n_users, data.n_items)
        )
        self.by_users, self.by_items = np.empty_like(self.U), np.empty_like(self.V)
        self.signs = np.where(data.codes > (data.n_levels - 1) // 2, 1, -1).astype(np.int8)
        sizes = [ctypes.c_int64(n) for n in (data.n_users, data.n_items, n_factors)]
        # ctypes keeps no reference to the arrays: they live as long as this object.
        self._rows = [np.ascontiguousarray(data.indptr, np.int64), _int32(data.indices), self.signs]
        self._columns = [
            np.ascontiguousarray(data.item_indptr, np.int64),
            _int32(data.item_indices),
            _int32(data.item_order),
        ]
        self._weights = np.empty(len(data), np.float32)
        factors = [self.U, self.V, self.by_users, self.by_items]
        self._one = [*sizes, *map(_pointer, [*self._rows, *factors])]
        three = [*self._rows, *self._columns, *factors, self._weights]
        self._three = [*sizes, *map(_pointer, three)]

    def one_pass(self) -> None:
        """Go once through the ratings, with both gradients written as it goes."""
        self._library.one_pass(*self._one)

    def three_passes(self) -> None:
        """Go through the ratings three times: scores, gradient by users, gradient by items."""
        self._library.three_passes(*self._three)


def _vectors(n_bytes: int) -> tuple[Any, Any, Any]:
    n = n_bytes // 8
    rounds = max(1, 20_000_000 // n)
    return np.full(n, 1e-3, np.float32), np.full(n, 1e-3, np.float32), ctypes.c_int64(rounds)


def _int32(array: Any) -> Any:
    return np.ascontiguousarray(array, np.int32)


def _pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


#: What each method asks of a user's scores; HMF asks it of every stage, here of the middle one.
ROW_LOSSES: dict[str, Callable[[int], Spec]] = {
    "HMF": lambda n_levels: TwoLevel(smooth_hinge, cut=(n_levels - 1) // 2),
    "MMMF": lambda n_levels: Thresholds(smooth_hinge),
    "PMMMF": lambda n_levels: Proximal(smooth_hinge),
}

REG = 10.0
TRAINED = 20
START_SCALE = 0.1


def gradients(
    data: Ratings, n_factors: int, method: str, trained: bool = True
) -> Iterator[dict[str, Any]]:
    """Yield the rate of a method's gradient at a random start, and after some iterations."""
    spec, cpu = ROW_LOSSES[method](data.n_levels), get_backend("cpu", 1)
    resident = cpu.place(data, spec, REG, (data.n_items, n_factors), np.float32)
    objective = FactorObjective(cpu, resident)
    point = objective.join(start(data, spec, n_factors))
    work = 6e-9 * n_factors * len(data)
    yield _measured(objective, point, work, "random start")
    if trained:
        stopping = Stopping(max_iter=TRAINED, tol=0.0, gradient_tol=0.0)
        point = minimise(LBFGS(), objective, point, stopping, vectors=cpu).point
        yield _measured(objective, point, work, f"after {TRAINED} iterations")


def _measured(objective: FactorObjective, point: Any, work: float, state: str) -> dict[str, Any]:
    seconds = seconds_each(lambda: objective(point))
    return {"state": state, "seconds": seconds, "gflops": work / seconds}


def start(data: Ratings, spec: Spec, n_factors: int) -> Parameters:
    """Return random factors as a fit starts from; every weight is active there."""
    generator = np.random.default_rng(0)
    users, items = (
        np.float32(START_SCALE) * generator.standard_normal((n, n_factors), np.float32)
        for n in (data.n_users, data.n_items)
    )
    return Parameters(users, items, first_thresholds(data, spec))


def kernels(data: Ratings, n_factors: int) -> Iterator[dict[str, Any]]:
    """Yield the rate of single operations on one thread: the one list of them, kept short.

    The operations are those of the arithmetic on factors; the rest of a gradient has next to none,
    and is shown in nanoseconds a rating.
    """
    cpu, generator = get_backend("cpu", 1), np.random.default_rng(0)
    U, V = (
        generator.standard_normal((n, n_factors), np.float32) for n in (data.n_users, data.n_items)
    )
    scores = generator.standard_normal(len(data), np.float32)
    two_level, proximal = (ROW_LOSSES[method](data.n_levels) for method in ("HMF", "PMMMF"))
    nothing = np.empty((data.n_users, 0), np.float32)
    calls: dict[str, tuple[int, Callable[[], Any]]] = {
        "scores": (2, lambda: cpu.scores(data.rows, data.indices, U, V)),
        "row_gradients, HMF": (4, lambda: cpu.row_gradients(data, two_level, U, V, nothing)),
        "row_losses, PMMMF": (0, lambda: cpu.row_losses(data, proximal, scores, nothing)),
    }
    for name, (operations, call) in calls.items():
        seconds = seconds_each(call)
        rate = 1e-9 * operations * n_factors * len(data) / seconds
        yield {"kernel": name, "seconds": seconds, "gflops": rate}


def vectors(n_bytes: int) -> dict[str, float]:
    """Return the rates of our arithmetic on two vectors of n bytes in all, as called."""
    cpu = get_backend("cpu", 1)
    a, b = np.full((2, n_bytes // 8), 1e-3, np.float32)
    return {
        "dot": 2e-9 * len(a) / seconds_each(lambda: cpu.dots((a,), b)),
        "axpy": 2e-9 * len(a) / seconds_each(lambda: cpu.combine((1.0, 1e-6), (b, a), out=b)),
    }
