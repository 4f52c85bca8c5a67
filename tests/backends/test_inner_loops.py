"""The vector code against plain loops, and plain loops where there is no vector code."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

import marginmf
from marginmf.backends.cpu import inner_loops, vector_code

SOURCES = Path(marginmf.__file__).parents[1]

LENGTHS = [*range(1, 10), 12, 13, 15, 16, 17, 20, 24, 28, 31, 32, 33, 36, 41, 63, 64, 71, 128]
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
# Neither depends on the other.
types = pytest.mark.parametrize(
    ("dtype", "index"), [(np.float32, np.int32), (np.float64, np.int64)]
)


def compiled(loops: Any) -> Any:
    """Return three of the loops as functions that Python can call."""
    dot_at, score_row, scatter_row = loops.dot_at, loops.score_row, loops.scatter_row

    @njit
    def dot(a, first_a, b, first_b, n):
        return dot_at(a, first_a, b, first_b, n)

    @njit
    def score(row, first, n, indices, U, V, out):
        score_row(row, first, n, indices, U, V, out)

    @njit
    def scatter(row, first, n, indices, weights, U, V, by_U, by_V):
        scatter_row(row, first, n, indices, weights, U, V, by_U, by_V)

    return dot, score, scatter


VECTOR, PLAIN = compiled(vector_code), compiled(inner_loops.PLAIN)


def tolerance(dtype: type) -> float:
    return 1e-4 if dtype is np.float32 else 1e-12


def test_vector_code_is_used_unless_plain_loops_are_asked_for() -> None:
    asked = bool(os.environ.get("MARGINMF_PLAIN_KERNELS"))
    assert (not asked) == inner_loops.VECTOR_CODE
    assert inner_loops.score_row is (inner_loops.PLAIN if asked else vector_code).score_row


@dtypes
def test_dot_at(dtype: type) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 200)).astype(dtype)
    for n in (0, *LENGTHS):
        for first_a, first_b in ((0, 0), (1, 0), (3, 7), (200 - n, 200 - n)):
            ours, expected = (dot(a, first_a, b, first_b, n) for dot in (VECTOR[0], PLAIN[0]))
            exact = a[first_a : first_a + n].astype(float) @ b[first_b : first_b + n].astype(float)
            assert type(ours) is type(expected)
            assert ours == pytest.approx(expected, abs=tolerance(dtype))
            assert ours == pytest.approx(exact, abs=tolerance(dtype))


@types
def test_score_row(dtype: type, index: type) -> None:
    rng = np.random.default_rng(1)
    for n_factors in LENGTHS:
        U, V = (rng.normal(size=(n, n_factors)).astype(dtype) for n in (3, 5))
        indices = rng.integers(5, size=12).astype(index)
        for n in range(10):
            ours, expected = np.full((2, 14), 9.0, dtype)
            for out, functions in ((ours, VECTOR), (expected, PLAIN)):
                functions[1](1, 2, n, indices, U, V, out[1 : n + 1])
            np.testing.assert_allclose(ours, expected, atol=tolerance(dtype))
            np.testing.assert_allclose(ours[1 : n + 1], V[indices[2 : 2 + n]] @ U[1], rtol=1e-3)
            assert (ours[n + 1 :] == 9.0).all()
            assert ours[0] == 9.0


@types
@pytest.mark.parametrize("both", [True, False])
def test_scatter_row(both: bool, dtype: type, index: type) -> None:
    rng = np.random.default_rng(2)
    for n_factors in LENGTHS:
        U, V = (rng.normal(size=(n, n_factors)).astype(dtype) for n in (3, 5))
        start_U, start_V = (rng.normal(size=a.shape).astype(dtype) for a in (U, V))
        weights, indices = rng.normal(size=12).astype(dtype), rng.integers(5, size=12).astype(index)
        for n in (0, 1, 2, 3, 4, 9):
            found = []
            for functions in (VECTOR, PLAIN):
                by_U, by_V = start_U.copy(), start_V.copy() if both else start_V[:0].copy()
                functions[2](1, 2, n, indices, weights[:n], U, V, by_U, by_V)
                found.append((by_U, by_V))
            for ours, expected in zip(*found, strict=True):
                np.testing.assert_allclose(ours, expected, atol=tolerance(dtype))
            # The other rows, and columns that are not among the entries, are left alone.
            by_U, by_V = found[0]
            np.testing.assert_array_equal(by_U[[0, 2]], start_U[[0, 2]])
            if both:
                others = np.setdiff1d(np.arange(5), indices[2 : 2 + n])
                np.testing.assert_array_equal(by_V[others], start_V[others])


@dtypes
def test_numbers_that_are_not_finite_stay_what_they_are(dtype: type) -> None:
    U, V = np.ones((1, 19), dtype), np.ones((5, 19), dtype)
    V[1, 18], V[3, 2], V[4, 8] = np.nan, np.inf, -np.inf
    out, indices = np.empty(5, dtype), np.arange(5)
    for functions in (VECTOR, PLAIN):
        functions[1](0, 0, 5, indices, U, V, out)
        np.testing.assert_array_equal(out, np.array([19, np.nan, 19, np.inf, -np.inf], dtype))


@pytest.mark.parametrize("loops", [vector_code, inner_loops.PLAIN])
def test_what_is_stored_for_other_threads_is_loaded(loops: Any) -> None:
    load, store = loops.load_acquire, loops.store_release

    @njit
    def there_and_back(array, value):
        store(array, 3, value)
        return load(array, 3)

    array = np.zeros(5, np.int64)
    assert there_and_back(array, 7) == 7
    assert array.tolist() == [0, 0, 0, 7, 0]


# A small fit.
PROGRAM = """
import json
import numpy as np
from marginmf.backends.cpu import compiling, inner_loops
from marginmf.backends.cpu.backend import CpuBackend
from marginmf.backends.rows import Rows
from marginmf.backends.specs import TwoLevel
from marginmf.losses import smooth_hinge
from marginmf.ratings import HMF

rng = np.random.default_rng(0)
pairs = np.argwhere(rng.random((40, 30)) < 0.4)
ratings = rng.integers(1, 5, size=len(pairs))
model = HMF(5, 1.0, random_state=0, calibrate=False, dtype="float64", n_jobs=2).fit(pairs, ratings)

# Given factors may be read-only, as those of a model that was mapped from a file.
rows = Rows(np.arange(2.0), np.array([0, 2]), np.arange(2), np.arange(2))
U, V = np.ones((1, 3)), np.ones((2, 3))
V.setflags(write=False)
try:
    found = CpuBackend().row_gradients(rows, TwoLevel(smooth_hinge), U, V, np.empty((1, 0)))
    read_only = found.losses.tolist()
except Exception as error:
    read_only = type(error).__name__

print(json.dumps({
    "vector code": inner_loops.VECTOR_CODE,
    "compiled": compiling.n_compilations(),
    "factors": [model.user_factors_.tolist(), model.item_factors_.tolist()],
    "read-only": read_only,
}))
"""

# The vector code is made to fail before it is imported.
FAILING = """
import json, sys, warnings

if sys.argv[1] == "import":
    sys.modules["marginmf.backends.cpu.vector_code"] = None
else:
    from llvmlite import ir
    del ir.IRBuilder.shuffle_vector  # as if a newer version had none

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from marginmf.backends.cpu import inner_loops
print(json.dumps({
    "vector code": inner_loops.VECTOR_CODE,
    "plain": inner_loops.score_row is inner_loops.PLAIN.score_row,
    "warnings": [[each.category.__name__, str(each.message)] for each in caught],
}))
"""


def process(program: str, *arguments: str, **variables: str) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    environment.pop("MARGINMF_PLAIN_KERNELS", None)
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", program, *arguments],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_plain_loops_and_vector_code_give_the_same_fit_from_one_cache() -> None:
    fits = {
        plain: [process(PROGRAM, **{"MARGINMF_PLAIN_KERNELS": "1"} if plain else {})]
        for plain in (True, False)
    }
    for plain, found in fits.items():
        # After both kinds are in the cache, each finds its own.
        found.append(process(PROGRAM, **{"MARGINMF_PLAIN_KERNELS": "1"} if plain else {}))
        assert found[1]["compiled"] == 0
        assert found[1]["factors"] == found[0]["factors"]
        for each in found:
            assert each["vector code"] != plain
            # Scores of three: the lower level costs 1/2 + 3, the upper one nothing.
            assert each["read-only"] == [3.5]
    for a, b in zip(fits[True][0]["factors"], fits[False][0]["factors"], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("without", ["import", "compile"])
def test_vector_code_that_fails_is_replaced_by_plain_loops_with_a_warning(
    without: str, tmp_path: Path
) -> None:
    found = process(FAILING, without, NUMBA_CACHE_DIR=str(tmp_path))
    assert not found["vector code"]
    assert found["plain"]
    ((category, message),) = found["warnings"]
    assert category == "RuntimeWarning"
    assert "plain loops are used" in message
