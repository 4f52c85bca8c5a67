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
from marginmf.ratings.fitting.objective import FactorObjective, Parameters, first_thresholds
from marginmf.solvers import LBFGS, Stopping, minimise

SOURCE = Path(__file__).with_name("roofline.c")
# Sums may be reordered.  Not -ffast-math, which makes whoever loads the library flush tiny numbers.
FLAGS = (
    *("-O3", "-march=native", "-funroll-loops", "-shared", "-fPIC"),
    *("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno"),
    *("-ffinite-math-only", "-ffp-contract=fast"),
)
#: What each method asks of a user's scores; HMF asks it of every stage, here of the middle one.
ROW_LOSSES: dict[str, Callable[[int], Spec]] = {
    "HMF": lambda n_levels: TwoLevel(smooth_hinge, cut=(n_levels - 1) // 2),
    "MMMF": lambda n_levels: Thresholds(smooth_hinge),
    "PMMMF": lambda n_levels: Proximal(smooth_hinge),
}
#: Repetitions of a measurement, and the least CPU seconds of each.
REPEATS, LEAST_SECONDS = 5, 0.1
REG, N_ITERATIONS = 10.0, 20


def seconds_each(call: Callable[[], Any]) -> float:
    """Return the median over some repetitions of the CPU seconds of one call.

    CPU seconds, because what else the machine does counts less in them.
    """

    def clock(calls: int) -> float:
        begin = time.process_time()
        for _ in range(calls):
            call()
        return time.process_time() - begin

    call()  # compiles, and brings the data near
    calls = max(1, round(LEAST_SECONDS / max(clock(1), 1e-6)))
    return median(clock(calls) / calls for _ in range(REPEATS))


class NoCompiler(Exception):  # noqa: N818, a state of the world more than an error
    """There is no C compiler here, or it fails; the message says which."""


@dataclass(frozen=True)
class Loops:
    """The plain C loops that kernels are measured against."""

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

    def measure_vectors(self, n_bytes: int) -> dict[str, float]:
        """Return the GFLOP/s of inner products and sums of two vectors of n bytes in all."""
        n = n_bytes // 8
        a, b = np.full((2, n), 1e-3, np.float32)
        rounds = max(1, 20_000_000 // n)
        sizes, vectors = (ctypes.c_int64(n), ctypes.c_int64(rounds)), (_pointer(a), _pointer(b))
        scale = ctypes.c_float(1e-6)
        calls: dict[str, Callable[[], Any]] = {
            "dot": lambda: self.library.dot(*sizes, *vectors),
            "axpy": lambda: self.library.axpy(*sizes, scale, *vectors),
        }
        return {name: 2e-9 * n * rounds / seconds_each(call) for name, call in calls.items()}


def measure_plain_gradients(data: Ratings, n_factors: int) -> dict[str, float]:
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
        self._library = library
        self.U, self.V = draw_factors(data, n_factors)
        self.by_users, self.by_items = np.empty_like(self.U), np.empty_like(self.V)
        signs = np.where(data.codes > (data.n_levels - 1) // 2, 1, -1).astype(np.int8)
        sizes = [ctypes.c_int64(n) for n in (data.n_users, data.n_items, n_factors)]
        rows = [_contiguous(data.indptr, np.int64), _contiguous(data.indices, np.int32), signs]
        columns = [
            _contiguous(data.item_indptr, np.int64),
            _contiguous(data.item_indices, np.int32),
            _contiguous(data.item_order, np.int32),
        ]
        factors = [self.U, self.V, self.by_users, self.by_items]
        # ctypes keeps no reference to the arrays: they live as long as this object.
        self._arrays = [*rows, *columns, *factors, np.empty(len(data), np.float32)]
        self._one = [*sizes, *map(_pointer, [*rows, *factors])]
        self._three = [*sizes, *map(_pointer, self._arrays)]

    def one_pass(self) -> None:
        """Go once through the ratings, with both gradients written as it goes."""
        self._library.one_pass(*self._one)

    def three_passes(self) -> None:
        """Go through the ratings three times: scores, gradient by users, gradient by items."""
        self._library.three_passes(*self._three)


def draw_factors(data: Ratings, n_factors: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random factors as a fit starts from; every weight is active there."""
    generator = np.random.default_rng(0)
    users, items = (
        np.float32(0.1) * generator.standard_normal((n, n_factors), np.float32)
        for n in (data.n_users, data.n_items)
    )
    return users, items


def _contiguous(array: Any, dtype: Any) -> np.ndarray:
    return np.ascontiguousarray(array, dtype)


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def measure_gradients(
    data: Ratings, n_factors: int, method: str, trained: bool = True
) -> Iterator[dict[str, Any]]:
    """Yield the rate of a method's gradient at a random start, and after some iterations."""
    spec, cpu = ROW_LOSSES[method](data.n_levels), get_backend("cpu", 1)
    objective = FactorObjective(
        cpu, cpu.place(data, spec, REG, (data.n_items, n_factors), np.float32)
    )
    start = Parameters(*draw_factors(data, n_factors), first_thresholds(data, spec))
    points = {"random start": objective.join(start)}
    if trained:
        stopping = Stopping(max_iter=N_ITERATIONS, tol=0.0, gradient_tol=0.0)
        found = minimise(LBFGS(), objective, points["random start"], stopping, vectors=cpu)
        points[f"after {N_ITERATIONS} iterations"] = found.point
    for state, point in points.items():
        seconds = seconds_each(lambda point=point: objective(point))
        yield {"state": state, "seconds": seconds, "gflops": 6e-9 * n_factors * len(data) / seconds}


def measure_vectors(n_bytes: int) -> dict[str, float]:
    """Return the GFLOP/s of our arithmetic on two vectors of n bytes in all, as called."""
    cpu = get_backend("cpu", 1)
    a, b = np.full((2, n_bytes // 8), 1e-3, np.float32)
    return {
        "dot": 2e-9 * len(a) / seconds_each(lambda: cpu.dots((a,), b)),
        "axpy": 2e-9 * len(a) / seconds_each(lambda: cpu.combine((1.0, 1e-6), (b, a), out=b)),
    }
