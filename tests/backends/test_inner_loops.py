"""The vector code against plain loops, and plain loops where there is no vector code."""

import json
import os
import shutil
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

LENGTHS = [*range(1, 42), 63, 64, 65, 71, 100, 128]
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
index_types = pytest.mark.parametrize("index", [np.int32, np.int64])


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


@index_types
@dtypes
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


@index_types
@dtypes
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


# A small fit; "without" says how the vector code is made to fail before it is imported.
PROGRAM = """
import json, sys, warnings

without = sys.argv[1] if len(sys.argv) > 1 else ""
if without == "import":
    sys.modules["marginmf.backends.cpu.vector_code"] = None
elif without == "compile":
    from llvmlite import ir
    del ir.IRBuilder.shuffle_vector  # as if a newer version had none

import numpy as np

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
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
    "warnings": [[each.category.__name__, str(each.message)] for each in caught],
    "factors": [model.user_factors_.tolist(), model.item_factors_.tolist()],
    "read-only": read_only,
}))
"""


def fit(cache: Path, *arguments: str, plain_kernels: bool = False) -> dict[str, Any]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(SOURCES)}
    environment.pop("MARGINMF_PLAIN_KERNELS", None)
    if plain_kernels:
        environment["MARGINMF_PLAIN_KERNELS"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def assert_same_fit(ours: dict[str, Any], expected: dict[str, Any]) -> None:
    for a, b in zip(ours["factors"], expected["factors"], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.fixture(scope="module")
def plain_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache that has had plain kernels alone."""
    return tmp_path_factory.mktemp("plain")


@pytest.fixture(scope="module")
def with_plain_loops(plain_cache: Path) -> dict[str, Any]:
    return fit(plain_cache, plain_kernels=True)


@pytest.fixture(scope="module")
def cache(
    plain_cache: Path, with_plain_loops: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a cache that has the plain kernels, for the vector code's beside them."""
    return Path(shutil.copytree(plain_cache, tmp_path_factory.mktemp("both") / "cache"))


@pytest.fixture(scope="module")
def with_vector_code(cache: Path) -> dict[str, Any]:
    found = fit(cache)
    assert found["vector code"]
    assert found["warnings"] == []
    return found


def test_plain_loops_give_the_same_fit(
    with_plain_loops: dict[str, Any], with_vector_code: dict[str, Any]
) -> None:
    assert not with_plain_loops["vector code"]
    assert with_plain_loops["warnings"] == []
    assert with_plain_loops["compiled"] > 0
    assert with_vector_code["compiled"] > 0
    assert_same_fit(with_plain_loops, with_vector_code)


def test_each_kind_of_loops_finds_its_own_kernels_in_the_cache(
    cache: Path, with_plain_loops: dict[str, Any], with_vector_code: dict[str, Any]
) -> None:
    for plain_kernels, expected in ((False, with_vector_code), (True, with_plain_loops)):
        again = fit(cache, plain_kernels=plain_kernels)
        assert again["vector code"] != plain_kernels
        assert again["compiled"] == 0
        assert again["factors"] == expected["factors"]


def test_given_factors_may_be_read_only(
    with_plain_loops: dict[str, Any], with_vector_code: dict[str, Any]
) -> None:
    # Scores of three: the lower level costs 1/2 + 3, the upper one nothing.
    assert with_vector_code["read-only"] == [3.5]
    assert with_plain_loops["read-only"] == [3.5]


@pytest.mark.parametrize("without", ["import", "compile"])
def test_vector_code_that_fails_is_replaced_by_plain_loops_with_a_warning(
    without: str, plain_cache: Path, with_plain_loops: dict[str, Any]
) -> None:
    found = fit(plain_cache, without)
    assert not found["vector code"]
    ((category, message),) = found["warnings"]
    assert category == "RuntimeWarning"
    assert "plain loops are used" in message
    assert found["factors"] == with_plain_loops["factors"]
