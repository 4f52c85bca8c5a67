"""The plain C loops that kernels are measured against, compiled on demand."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.roofline_clock import seconds_each
from marginmf.ratings.data import Ratings

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
