"""The compiled kernels against the ones spelled out in NumPy, on random ragged problems."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginmf.backends import get_kernels
from marginmf.backends.cpu import CpuKernels
from marginmf.backends.interface import Entries, Sides
from marginmf.backends.reference import ReferenceKernels
from marginmf.losses import REAL, TWO_LEVEL, RealLoss, TwoLevelLoss, beta_divergence, squared
from marginmf.ratings.rows import Rows
from marginmf.thresholds import REACH

CPU, REFERENCE = CpuKernels(1), ReferenceKernels()

OWN = TwoLevelLoss("exponential", lambda z: np.exp(-z), lambda z: -np.exp(-z))
TWO_LEVEL_LOSSES = [*TWO_LEVEL.values(), OWN]
# Where rounding cannot carry a score across a jump of the derivative.
SMOOTH_LOSSES = [TWO_LEVEL["smooth_hinge"], TWO_LEVEL["logistic"], TWO_LEVEL["modified_square"]]
REAL_LOSSES = [*REAL.values(), beta_divergence(1.5)]

sample = settings(max_examples=30, deadline=None)
dtypes = st.sampled_from([np.float32, np.float64])
seeds = st.integers(0, 2**32 - 1)


class Problem(NamedTuple):
    """A ragged random problem; rows may be empty, also all of them."""

    indptr: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    levels: np.ndarray
    scores: np.ndarray
    thresholds: np.ndarray
    U: np.ndarray
    V: np.ndarray


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    rng = np.random.default_rng(draw(seeds))
    lengths = draw(st.lists(st.integers(0, 12), min_size=1, max_size=8))
    # Factors are worked on in vectors: whole ones, several at a time, and what is left over.
    n_factors = draw(st.one_of(st.integers(1, 9), st.sampled_from([16, 24, 35, 64, 71])))
    n_levels, dtype = draw(st.integers(2, 6)), draw(dtypes)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    n, n_rows, n_columns = int(indptr[-1]), len(lengths), 7
    return Problem(
        indptr=indptr,
        rows=np.repeat(np.arange(n_rows, dtype=np.int32), lengths),
        columns=rng.integers(n_columns, size=n).astype(np.int32),
        levels=rng.integers(n_levels, size=n).astype(np.int32),
        scores=rng.normal(scale=1.5, size=n).astype(dtype),
        thresholds=rng.normal(size=(n_rows, n_levels - 1)).astype(dtype),
        U=rng.normal(size=(n_rows, n_factors)).astype(dtype),
        V=rng.normal(size=(n_columns, n_factors)).astype(dtype),
    )


def by_name(loss: TwoLevelLoss | RealLoss) -> str:
    return loss.name


def assert_same(ours: tuple[np.ndarray, ...], expected: tuple[np.ndarray, ...]) -> None:
    assert len(ours) == len(expected)
    for a, b in zip(ours, expected, strict=True):
        assert a.dtype == b.dtype
        tolerance = 2e-4 if _is_single(ours) else 1e-10
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def _is_single(arrays: tuple[np.ndarray, ...]) -> bool:
    return any(a.dtype == np.float32 for a in arrays)


def test_kernels_are_found_by_name() -> None:
    assert isinstance(get_kernels("cpu", 3), CpuKernels)
    assert isinstance(get_kernels("reference"), ReferenceKernels)
    with pytest.raises(ValueError, match=r"There are no 'abacus' kernels\. Choose 'cpu'"):
        get_kernels("abacus")


@given(p=problems())
@sample
def test_scores(p: Problem) -> None:
    assert_same(
        (CPU.scores(p.rows, p.columns, p.U, p.V),),
        (REFERENCE.scores(p.rows, p.columns, p.U, p.V),),
    )


@given(p=problems())
@sample
def test_gather(p: Problem) -> None:
    order = np.random.default_rng(0).permutation(len(p.scores)).astype(np.int32)
    np.testing.assert_array_equal(CPU.gather(p.scores, order), p.scores[order])
    np.testing.assert_array_equal(REFERENCE.gather(p.scores, order), p.scores[order])


@pytest.mark.parametrize("loss", TWO_LEVEL_LOSSES, ids=by_name)
@given(p=problems(), data=st.data())
@sample
def test_two_level_rows(loss: TwoLevelLoss, p: Problem, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, p.thresholds.shape[1] - 1))
    arguments = (p.indptr, p.scores, p.levels, cut, loss)
    assert_same(CPU.two_level_rows(*arguments), REFERENCE.two_level_rows(*arguments))


@pytest.mark.parametrize("reach", REACH.values(), ids=REACH)
@pytest.mark.parametrize("loss", TWO_LEVEL_LOSSES, ids=by_name)
@given(p=problems())
@sample
def test_threshold_rows(loss: TwoLevelLoss, reach: float, p: Problem) -> None:
    arguments = (p.indptr, p.scores, p.levels, p.thresholds, reach, loss)
    assert_same(CPU.threshold_rows(*arguments), REFERENCE.threshold_rows(*arguments))


# The zero-one loss jumps: where a score sits on its own level's mean, rounding decides.
@pytest.mark.parametrize("loss", [*TWO_LEVEL_LOSSES[:-2], OWN], ids=by_name)
@given(p=problems())
@sample
def test_proximal_rows(loss: TwoLevelLoss, p: Problem) -> None:
    arguments = (p.indptr, p.scores, p.levels, p.thresholds.shape[1] + 1, loss)
    assert_same(CPU.proximal_rows(*arguments), REFERENCE.proximal_rows(*arguments))


@pytest.mark.parametrize("loss", REAL_LOSSES, ids=by_name)
@given(p=problems())
@sample
def test_real_rows(loss: RealLoss, p: Problem) -> None:
    scores, targets = np.abs(p.scores) + p.scores.dtype.type(0.2), p.levels + 1
    arguments = (p.indptr, scores, targets.astype(scores.dtype), loss)
    assert_same(CPU.real_rows(*arguments), REFERENCE.real_rows(*arguments))


@pytest.mark.parametrize("loss", REAL_LOSSES[1:], ids=by_name)
def test_real_rows_outside_the_domain_have_no_finite_loss(loss: RealLoss) -> None:
    indptr, scores, targets = np.array([0, 1, 2]), np.array([-1.0, 1.0]), np.array([2.0, 2.0])
    losses, _ = CPU.real_rows(indptr, scores, targets, loss)
    assert not np.isfinite(losses[0])
    assert np.isfinite(losses[1])


def assert_same_gradient(p: Problem, both: bool, gradient: Callable[..., Any]) -> None:
    """Compare losses, derivatives by thresholds, and what is added to gradients that are there."""
    entries, factors = Entries(p.indptr[None], p.columns), Sides(p.U, p.V)
    results = []
    for kernels in (CpuKernels(1), CpuKernels(3), REFERENCE):
        gradients = Sides(p.V[0] + 0 * p.U, p.V.copy() if both else p.V[:0].copy())
        found = gradient(kernels, entries, factors, gradients)
        found = found if isinstance(found, tuple) else (found,)
        results.append((*(part for part in found if part is not None), *gradients))
    for ours, threads in zip(*results[:2], strict=True):
        np.testing.assert_array_equal(ours, threads)
    scale = np.sqrt(p.U.shape[1])
    assert_same(*(tuple(a / a.dtype.type(scale) for a in found) for found in results[1:]))


@given(p=problems(), both=st.booleans())
@sample
def test_spread(p: Problem, both: bool) -> None:
    def gradient(kernels: Any, entries: Entries, factors: Sides, gradients: Sides) -> Any:
        return kernels.spread(entries, p.scores, factors, gradients)

    assert_same_gradient(p, both, gradient)


@pytest.mark.parametrize("loss", SMOOTH_LOSSES, ids=by_name)
@given(p=problems(), both=st.booleans(), data=st.data())
@sample
def test_two_level_gradient(
    loss: TwoLevelLoss, p: Problem, both: bool, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, p.thresholds.shape[1] - 1))

    def gradient(kernels: Any, entries: Entries, factors: Sides, gradients: Sides) -> Any:
        return kernels.two_level_gradient(entries, p.levels, cut, loss, factors, gradients)

    assert_same_gradient(p, both, gradient)


@pytest.mark.parametrize("reach", REACH.values(), ids=REACH)
@pytest.mark.parametrize("loss", SMOOTH_LOSSES, ids=by_name)
@given(p=problems(), both=st.booleans())
@sample
def test_threshold_gradient(loss: TwoLevelLoss, reach: float, p: Problem, both: bool) -> None:
    def gradient(kernels: Any, entries: Entries, factors: Sides, gradients: Sides) -> Any:
        return kernels.threshold_gradient(
            entries, p.levels, p.thresholds, reach, loss, factors, gradients
        )

    assert_same_gradient(p, both, gradient)


@given(p=problems(), both=st.booleans())
@sample
def test_real_gradient(p: Problem, both: bool) -> None:
    targets = p.levels.astype(p.U.dtype)

    def gradient(kernels: Any, entries: Entries, factors: Sides, gradients: Sides) -> Any:
        return kernels.real_gradient(entries, targets, squared, factors, gradients)

    assert_same_gradient(p, both, gradient)


def test_columns_gradient_of_many_parts_does_not_depend_on_threads() -> None:
    rng = np.random.default_rng(0)
    n_rows, n_columns, n_factors = 400, 9, 17
    indptr = np.concatenate(([0], np.cumsum(rng.integers(0, n_columns, n_rows))))
    columns = rng.integers(n_columns, size=indptr[-1]).astype(np.int32)
    levels = rng.integers(5, size=len(columns)).astype(np.int32)
    U, V = (rng.normal(size=(n, n_factors)).astype(np.float32) for n in (n_rows, n_columns))
    results = []
    for kernels in (CpuKernels(1), CpuKernels(2), CpuKernels(5), REFERENCE):
        gradients = Sides(np.zeros_like(U), np.zeros_like(V))
        kernels.two_level_gradient(
            Entries(indptr[None], columns),
            levels,
            2,
            TWO_LEVEL["smooth_hinge"],
            Sides(U, V),
            gradients,
        )
        results.append(gradients.columns)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_allclose(results[0], results[3], atol=2e-3)


@given(p=problems(), ridge=st.floats(0.1, 10))
@sample
def test_solve_rows(p: Problem, ridge: float) -> None:
    targets = p.levels.astype(p.V.dtype)
    arguments = (p.indptr, p.columns, targets, p.V, ridge)
    assert_same((CPU.solve_rows(*arguments),), (REFERENCE.solve_rows(*arguments),))


@given(seed=seeds, n=st.integers(0, 40_000), dtype=dtypes, scale=st.floats(-3, 3))
@sample
def test_vector_arithmetic(seed: int, n: int, dtype: type, scale: float) -> None:
    a, b = np.random.default_rng(seed).normal(size=(2, n)).astype(dtype)
    # Products of float32 numbers are exact in float64: that is where sums have to be made.
    assert CPU.dot(a, b) == pytest.approx(float(a.astype(float) @ b.astype(float)), abs=1e-9)
    assert CPU.dot(a, b) == pytest.approx(REFERENCE.dot(a, b), abs=1e-9)
    ours, expected = b.copy(), b.copy()
    CPU.axpy(scale, a, ours)
    REFERENCE.axpy(scale, a, expected)
    assert_same((ours,), (expected,))
    CPU.scale(scale, ours)
    REFERENCE.scale(scale, expected)
    assert_same((ours,), (expected,))
    assert not np.shares_memory(CPU.copy(a), a)


def test_arguments_may_be_read_only() -> None:
    rng = np.random.default_rng(0)
    U, V = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    rows, columns = np.array([0, 1], np.int32), np.array([1, 0], np.int32)
    for array in (U, V, rows, columns):
        array.setflags(write=False)
    np.testing.assert_allclose(CPU.scores(rows, columns, U, V), (U * V[::-1]).sum(axis=1))


@given(p=problems(), n_blocks=st.integers(2, 4))
@sample
def test_gradients_are_the_same_in_blocks_of_columns(p: Problem, n_blocks: int) -> None:
    order = np.lexsort((p.columns, p.rows))
    rows = Rows(np.arange(9.0), p.indptr, p.columns[order], p.levels[order])
    entries, codes = rows.in_blocks(len(p.V), n_blocks)
    loss = TWO_LEVEL["smooth_hinge"]
    for kernels in (CPU, REFERENCE):
        whole, blocked = (Sides(np.zeros_like(p.U), np.zeros_like(p.V)) for _ in range(2))
        found = [
            kernels.threshold_gradient(*what, p.thresholds, np.inf, loss, Sides(p.U, p.V), into)
            for what, into in (((rows.entries, rows.codes), whole), ((entries, codes), blocked))
        ]
        for a, b in zip((*found[0], *whole), (*found[1], *blocked), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)
