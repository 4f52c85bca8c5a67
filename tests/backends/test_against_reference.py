"""The processor's backend against the one spelled out in NumPy, on random ragged problems."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginmf.backends import Backend, get_backend
from marginmf.backends.cpu import gradients
from marginmf.backends.cpu.backend import CpuBackend
from marginmf.backends.cpu.gradients import BlockSizes, RatingBlocks
from marginmf.backends.reference import ReferenceBackend
from marginmf.backends.rows import Rows
from marginmf.backends.specs import Anchored, Proximal, Real, Spec, Thresholds, TwoLevel
from marginmf.losses import REAL, TWO_LEVEL, RealLoss, TwoLevelLoss, beta_divergence, squared
from marginmf.thresholds import REACH, ProximalLoss, ThresholdLoss

CPU, REFERENCE = CpuBackend(1), ReferenceBackend()

OWN = TwoLevelLoss("exponential", lambda z: np.exp(-z), lambda z: -np.exp(-z))
TWO_LEVEL_LOSSES = [*TWO_LEVEL.values(), OWN]
REAL_LOSSES = [*REAL.values(), beta_divergence(1.5)]
SMOOTH = TWO_LEVEL["smooth_hinge"]
# Every loss is judged by `test_two_level_gradient`; elsewhere three say how losses are looked up.
SOME_LOSSES = [SMOOTH, TWO_LEVEL["logistic"], OWN]
# Losses that are also tested in single precision.  The kernels of others differ from these in an
# expression alone, take long to compile, or have a jump across which rounding could carry a score.
SINGLE_TOO = ("smooth_hinge", "logistic", "squared")

N_COLUMNS, REG = 7, 0.6

sample = settings(max_examples=15, deadline=None)
dtypes = st.sampled_from([np.float32, np.float64])
seeds = st.integers(0, 2**32 - 1)


class Problem(NamedTuple):
    """A ragged random problem; rows may be empty, also all of them."""

    rows: Rows
    scores: np.ndarray
    thresholds: np.ndarray
    U: np.ndarray
    V: np.ndarray

    def with_dtype(self, dtype: type) -> "Problem":
        return Problem(self.rows, *(array.astype(dtype) for array in self[1:]))

    def positive(self) -> "Problem":
        """Return the same with positive scores, as some real losses want them."""
        arrays = {name: np.abs(getattr(self, name)) for name in ("scores", "U", "V")}
        return self._replace(**{name: a + a.dtype.type(0.2) for name, a in arrays.items()})

    @property
    def targets(self) -> np.ndarray:
        return (self.rows.codes + 1).astype(self.U.dtype)

    def parameters(self, spec: Spec) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n_thresholds = spec.n_thresholds(self.rows.n_levels)
        return self.U, self.V, np.ascontiguousarray(self.thresholds[:, :n_thresholds])


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    rng = np.random.default_rng(draw(seeds))
    lengths = draw(st.lists(st.integers(0, 12), min_size=1, max_size=8))
    # Factors are worked on in vectors: whole ones, several at a time, and what is left over.
    n_factors = draw(st.one_of(st.integers(1, 9), st.sampled_from([16, 24, 35, 64, 71])))
    n_levels, dtype = draw(st.integers(2, 6)), draw(dtypes)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    n, n_rows = int(indptr[-1]), len(lengths)
    scale = n_factors**-0.25  # so that scores are about one, whatever the number of factors
    return Problem(
        rows=Rows(
            levels=np.arange(1.0, n_levels + 1),
            indptr=indptr,
            indices=rng.integers(N_COLUMNS, size=n).astype(np.int32),
            codes=rng.integers(n_levels, size=n).astype(np.int16),
        ),
        scores=rng.normal(scale=1.5, size=n).astype(dtype),
        thresholds=rng.normal(size=(n_rows, n_levels - 1)).astype(dtype),
        U=rng.normal(scale=scale, size=(n_rows, n_factors)).astype(dtype),
        V=rng.normal(scale=scale, size=(N_COLUMNS, n_factors)).astype(dtype),
    )


@dataclass(frozen=True)
class Exactly(BlockSizes):
    """As many blocks as it is told, whatever the matrix."""

    n: int = 1

    def n_blocks(self, *shape: int) -> int:
        return self.n


@contextmanager
def in_blocks(n: int, band: int = 2) -> Iterator[None]:
    """Place matrices in n blocks of columns, with bands of a few entries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gradients, "SIZES", Exactly(band=band, n=n))
        yield


def by_name(loss: TwoLevelLoss | RealLoss) -> str:
    return loss.name


def assert_same(ours: Sequence[Any], expected: Sequence[Any]) -> None:
    assert len(ours) == len(expected)
    for a, b in zip(ours, expected, strict=True):
        if a is None or b is None:
            assert a is b
            continue
        assert a.dtype == b.dtype
        single = any(c is not None and c.dtype == np.float32 for c in ours)
        tolerance = 2e-4 if single else 1e-10
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def gradient_of(
    backend: Backend, p: Problem, spec: Spec, reg: float = REG
) -> tuple[np.ndarray, ...]:
    """Return the objective and its gradient's parts, from a fresh placing."""
    resident = backend.place(p.rows, spec, reg, p.V.shape, p.V.dtype)
    value, gradient = backend.gradient(resident, resident.layout.join(p.parameters(spec)))
    return np.array(value), *resident.layout.split(gradient)


def assert_same_gradients(p: Problem, spec: Spec) -> None:
    """Compare the gradient of everything, and that of rows alone."""
    ours = gradient_of(CPU, p, spec)
    assert_same(ours, gradient_of(REFERENCE, p, spec))
    for a, b in zip(ours, gradient_of(CpuBackend(3), p, spec), strict=True):
        np.testing.assert_array_equal(a, b)
    assert_same_row_gradients(p, spec)


def assert_same_row_gradients(p: Problem, spec: Spec) -> None:
    U, V, thresholds = p.parameters(spec)
    arguments = (p.rows, spec, U, V, thresholds)
    ours, expected = CPU.row_gradients(*arguments), REFERENCE.row_gradients(*arguments)
    assert_same(ours, expected)
    assert ours.losses.dtype == np.float64


def test_backends_are_found_by_name_or_are_objects() -> None:
    found = get_backend("cpu", 3)
    assert isinstance(found, CpuBackend)
    assert found.n_threads == 3
    assert isinstance(get_backend("reference"), ReferenceBackend)
    assert get_backend(REFERENCE) is REFERENCE
    assert get_backend(CPU, 2).n_threads == 2
    for unknown in ("abacus", CpuBackend, 3):
        with pytest.raises(ValueError, match=r"is not known\. Choose one of 'cpu', 'reference'"):
            get_backend(unknown)


@given(p=problems())
@sample
def test_scores(p: Problem) -> None:
    arguments = (p.rows.rows, p.rows.indices, p.U, p.V)
    assert_same((CPU.scores(*arguments),), (REFERENCE.scores(*arguments),))


@pytest.mark.parametrize("loss", TWO_LEVEL_LOSSES, ids=by_name)
@given(p=problems(), data=st.data())
@sample
def test_two_level_gradient(loss: TwoLevelLoss, p: Problem, data: st.DataObject) -> None:
    p = p if loss.name in SINGLE_TOO else p.with_dtype(np.float64)
    cut = data.draw(st.integers(0, p.thresholds.shape[1] - 1))
    assert_same_gradients(p, TwoLevel(loss, cut))


@pytest.mark.parametrize("reach", REACH.values(), ids=REACH)
@pytest.mark.parametrize("loss", SOME_LOSSES, ids=by_name)
@given(p=problems())
@sample
def test_threshold_gradient(loss: TwoLevelLoss, reach: float, p: Problem) -> None:
    p = p if loss.name in SINGLE_TOO else p.with_dtype(np.float64)
    assert_same_gradients(p, Thresholds(loss, reach))


# The zero-one loss jumps: where a score sits on another level's mean, rounding decides.
@pytest.mark.parametrize("loss", SOME_LOSSES, ids=by_name)
@given(p=problems())
@sample
def test_proximal_gradient(loss: TwoLevelLoss, p: Problem) -> None:
    p = p if loss.name in SINGLE_TOO else p.with_dtype(np.float64)
    assert_same_gradients(p, Proximal(loss))


@pytest.mark.parametrize("loss", REAL_LOSSES, ids=by_name)
@given(p=problems())
@sample
def test_real_gradient(loss: RealLoss, p: Problem) -> None:
    p = (p if loss.name in SINGLE_TOO else p.with_dtype(np.float64)).positive()
    assert_same_gradients(p, Real(loss, p.targets))


@pytest.mark.parametrize("construction", ["proximal", *REACH])
@given(p=problems(), seed=seeds)
@sample
def test_row_gradient_against_given_anchors(construction: str, p: Problem, seed: int) -> None:
    rng, n_levels = np.random.default_rng(seed), p.rows.n_levels
    if construction == "proximal":
        anchors = rng.normal(size=(len(p.rows), n_levels)).astype(p.U.dtype)
        anchors[rng.random(anchors.shape) < 0.2] = np.nan  # levels that a user never used
        # A user's own ratings have their own level's prototype.
        anchors[np.arange(len(p.rows)), p.rows.codes] = 0.3
        spec = Anchored(ProximalLoss(SMOOTH), anchors)
    else:
        anchors = rng.normal(size=(len(p.rows), n_levels - 1)).astype(p.U.dtype)
        spec = Anchored(ThresholdLoss(SMOOTH, REACH[construction]), anchors)
    assert_same_row_gradients(p, spec)


@pytest.mark.parametrize("loss", [SMOOTH, OWN], ids=by_name)
@given(p=problems(), data=st.data())
@sample
def test_row_losses_of_given_scores(loss: TwoLevelLoss, p: Problem, data: st.DataObject) -> None:
    p = p if loss.name in SINGLE_TOO else p.with_dtype(np.float64)
    cut = data.draw(st.integers(0, p.thresholds.shape[1] - 1))
    all_thresholds, immediate = (Thresholds(loss, reach) for reach in REACH.values())
    for spec in (TwoLevel(loss, cut), all_thresholds, immediate, Proximal(loss)):
        arguments = (p.rows, spec, p.scores, p.parameters(spec)[2])
        assert_same(CPU.row_losses(*arguments), REFERENCE.row_losses(*arguments))


@given(p=problems())
@sample
def test_means_of_levels_that_a_row_never_used_are_not_numbers(p: Problem) -> None:
    found = CPU.row_losses(p.rows, Proximal(SMOOTH), p.scores, p.thresholds)
    used = np.zeros((p.rows.n_rows, p.rows.n_levels), bool)
    used[p.rows.rows, p.rows.codes] = True
    assert found.means is not None
    np.testing.assert_array_equal(np.isnan(found.means), ~used)


@pytest.mark.parametrize("loss", REAL_LOSSES, ids=by_name)
@given(p=problems())
@sample
def test_row_losses_of_real_targets(loss: RealLoss, p: Problem) -> None:
    p = p.positive()
    arguments = (p.rows, Real(loss, p.targets), p.scores, p.thresholds[:, :0])
    assert_same(CPU.row_losses(*arguments), REFERENCE.row_losses(*arguments))


@pytest.mark.parametrize("loss", REAL_LOSSES[1:], ids=by_name)
def test_real_losses_outside_their_domain_are_not_finite(loss: RealLoss) -> None:
    rows = Rows(np.arange(1.0, 4.0), np.array([0, 1, 2]), np.zeros(2, np.int32), np.ones(2, int))
    spec, nothing = Real(loss, np.array([2.0, 2.0])), np.empty((2, 0))
    U, V = np.array([[-1.0], [1.0]]), np.ones((1, 1))
    for losses in (
        CPU.row_gradients(rows, spec, U, V, nothing).losses,
        CPU.row_losses(rows, spec, U[:, 0], nothing).losses,
    ):
        assert not np.isfinite(losses[0])
        assert np.isfinite(losses[1])
    resident = CPU.place(rows, spec, REG, V.shape, V.dtype)
    value, _ = CPU.gradient(resident, resident.layout.join([U, V, nothing]))
    assert not np.isfinite(value)


@given(p=problems(), which=st.sampled_from(["cpu", "reference"]))
@sample
def test_gradient_is_written_over_what_is_given_and_the_point_stays(p: Problem, which: str) -> None:
    backend, spec = get_backend(which), Thresholds(SMOOTH)
    resident = backend.place(p.rows, spec, REG, p.V.shape, p.V.dtype)
    at = resident.layout.join(p.parameters(spec))
    before, out = at.copy(), np.full_like(at, np.nan)
    value, gradient = backend.gradient(resident, at, out)
    assert gradient is out
    expected_value, expected = backend.gradient(resident, at)
    assert value == expected_value
    np.testing.assert_array_equal(gradient, expected)
    np.testing.assert_array_equal(at, before)


@given(p=problems())
@sample
def test_padding_of_the_ranks_stays_zero(p: Problem) -> None:
    spec = Thresholds(SMOOTH)
    resident = CPU.place(p.rows, spec, REG, p.V.shape, p.V.dtype)
    at = resident.layout.join(p.parameters(spec))
    _, gradient = CPU.gradient(resident, at)
    n_factors = p.V.shape[1]
    for padded in resident.layout.padded(gradient)[:2]:
        assert padded.shape[1] % 4 == 0
        assert 0 <= padded.shape[1] - n_factors < 32
        assert not padded[:, n_factors:].any()


@given(p=problems(), n_blocks=st.integers(1, N_COLUMNS))
@sample
def test_placed_data_can_be_asked_another_question(p: Problem, n_blocks: int) -> None:
    specs = [TwoLevel(SMOOTH), Thresholds(SMOOTH), Real(squared, p.targets), Proximal(SMOOTH)]
    with in_blocks(n_blocks):
        first = CPU.place(p.rows, specs[-1], 0.0, p.V.shape, p.V.dtype)
        for spec in specs:
            resident = first.asking(spec, REG)
            at = resident.layout.join(p.parameters(spec))
            value, gradient = CPU.gradient(resident, at)
            found = (np.array(value), *resident.layout.split(gradient))
            for a, b in zip(found, gradient_of(CPU, p, spec), strict=True):
                np.testing.assert_array_equal(a, b)


@given(p=problems(), n_blocks=st.integers(2, N_COLUMNS), band=st.integers(1, 5))
@sample
def test_gradients_are_the_same_in_blocks_of_columns(p: Problem, n_blocks: int, band: int) -> None:
    specs = [
        TwoLevel(SMOOTH, cut=0),
        *(Thresholds(SMOOTH, reach) for reach in REACH.values()),
        Proximal(SMOOTH),
        Real(squared, p.targets),
    ]
    for spec in specs:
        expected = gradient_of(REFERENCE, p, spec)
        assert_same(gradient_of(CPU, p, spec), expected)
        with in_blocks(n_blocks, band):
            ours = gradient_of(CPU, p, spec)
        assert_same(ours, expected)


@given(p=problems(), n_blocks=st.integers(1, N_COLUMNS), at_a_time=st.sampled_from([1, 5, 1 << 18]))
@sample
def test_blocks_hold_every_entry_once_in_its_order(
    p: Problem, n_blocks: int, at_a_time: int
) -> None:
    rows, entries = p.rows, np.arange(len(p.rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("marginmf.backends.rows.BLOCK", at_a_time)
        found = RatingBlocks.of(rows, N_COLUMNS, n_blocks)
        dealt = found.deal(rows, entries)
    np.testing.assert_array_equal(rows.indices[dealt], found.indices)
    np.testing.assert_array_equal(np.sort(dealt), entries)
    np.testing.assert_array_equal(found.row_ends, rows.indptr)
    assert found.edges[0] == 0
    assert found.edges[-1] == N_COLUMNS
    for block, indptr in enumerate(found.indptr):
        for row in range(rows.n_rows):
            own = slice(indptr[row], indptr[row + 1])
            assert (rows.rows[dealt[own]] == row).all()
            assert (np.diff(dealt[own]) > 0).all()
            assert (found.indices[own] >= found.edges[block]).all()
            assert (found.indices[own] < found.edges[block + 1]).all()


def test_large_matrices_are_cut_into_blocks_and_small_ones_are_not() -> None:
    sizes = BlockSizes()
    assert sizes.n_blocks(100_000, 1_000, 1_700, 8) == 1
    assert sizes.n_blocks(0, 0, 5, 8) == 1
    assert 2 <= sizes.n_blocks(50_000_000, 200_000, 50_000, 64) <= sizes.most
    assert sizes.n_blocks(50_000_000, 200_000, 3, 10**9) <= 3


@given(p=problems(), ridge=st.floats(0.1, 10))
@sample
def test_solve_rows(p: Problem, ridge: float) -> None:
    arguments = (p.rows, Real(squared, p.targets), p.V, ridge)
    assert_same((CPU.solve_rows(*arguments),), (REFERENCE.solve_rows(*arguments),))


@given(p=problems(), ridge=st.floats(0.1, 10), n_steps=st.integers(0, 3))
@sample
def test_improve_rows(p: Problem, ridge: float, n_steps: int) -> None:
    arguments = (p.rows, Real(squared, p.targets), p.V, ridge, p.U, n_steps)
    start = p.U.copy()
    assert_same((CPU.improve_rows(*arguments),), (REFERENCE.improve_rows(*arguments),))
    np.testing.assert_array_equal(p.U, start)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_improve_long_rows(dtype: type) -> None:
    rng = np.random.default_rng(0)
    indptr = np.concatenate(([0], rng.integers(0, 600, size=300).cumsum()))
    columns = rng.integers(900, size=indptr[-1]).astype(np.int32)
    rows = Rows(np.arange(2.0), indptr, columns, np.zeros(len(columns), np.int16))
    U, V = (rng.normal(size=(n, 35)).astype(dtype) for n in (300, 900))
    problem = (rows, Real(squared, rng.normal(size=indptr[-1]).astype(dtype)), V, 0.7)
    improved = CPU.improve_rows(*problem, U, 3)
    np.testing.assert_allclose(improved, REFERENCE.improve_rows(*problem, U, 3), atol=2e-4)
    for n_threads in (2, 5):
        threaded = CpuBackend(n_threads).improve_rows(*problem, U, 3)
        np.testing.assert_array_equal(threaded, improved)
    solved = REFERENCE.solve_rows(*problem)
    np.testing.assert_allclose(CPU.improve_rows(*problem, U, 200), solved, atol=1e-4)
    # As near as makes no difference, more steps do no harm.
    np.testing.assert_allclose(CPU.improve_rows(*problem, solved, 200), solved, atol=1e-4)


scales = st.floats(-3, 3)


@given(
    seed=seeds,
    n=st.one_of(st.integers(0, 40), st.integers(0, 40_000), st.sampled_from([4096, 8192])),
    dtype=dtypes,
    scales=st.lists(scales, min_size=1, max_size=4),
)
@sample
def test_vector_arithmetic(seed: int, n: int, dtype: type, scales: list[float]) -> None:
    b, *vectors = np.random.default_rng(seed).normal(size=(len(scales) + 1, n)).astype(dtype)
    # Products of float32 numbers are exact in float64: that is where sums have to be made.
    exact = [float(a.astype(float) @ b.astype(float)) for a in vectors]
    assert CPU.dots(vectors, b) == pytest.approx(exact, abs=1e-9)
    assert CPU.dots(vectors, b) == pytest.approx(REFERENCE.dots(vectors, b), abs=1e-9)
    before = [a.copy() for a in vectors]
    expected = sum(scale * a.astype(float) for scale, a in zip(scales, vectors, strict=True))
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    for arithmetic in (CPU, REFERENCE):
        new = arithmetic.combine(scales, vectors)
        assert new.dtype == dtype
        assert not any(np.shares_memory(new, a) for a in vectors)
        np.testing.assert_allclose(new, expected, atol=tolerance)
        over = np.full_like(b, np.nan)
        assert arithmetic.combine(scales, vectors, over) is over
        np.testing.assert_array_equal(over, new)
        first = vectors[0].copy()
        assert arithmetic.combine(scales, [first, *vectors[1:]], first) is first
        np.testing.assert_array_equal(first, new)
    for a, kept in zip(vectors, before, strict=True):
        np.testing.assert_array_equal(a, kept)


@given(n=st.integers(0, 5000), dtype=dtypes)
@sample
def test_a_vector_may_be_combined_with_itself(n: int, dtype: type) -> None:
    a = np.random.default_rng(n).normal(size=n).astype(dtype)
    for arithmetic in (CPU, REFERENCE):
        np.testing.assert_array_equal(arithmetic.combine((1.0, 1.0), (a, a)), 2 * a)
        assert arithmetic.dots((a, a), a) == pytest.approx(
            [float(a.astype(float) @ a)] * 2, rel=1e-5
        )


def test_vectors_of_another_kind_are_refused() -> None:
    a = np.ones(6)
    for other in (np.ones(12)[::2], np.ones(6, np.float32)):
        with pytest.raises(ValueError, match="contiguous and of one type"):
            CPU.dots((a, other), a)
        with pytest.raises(ValueError, match="contiguous and of one type"):
            CPU.combine((1.0, 1.0), (a, other))


@pytest.mark.parametrize("which", ["cpu", "reference"])
@given(
    shapes=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 20)), min_size=1, max_size=4),
    dtype=dtypes,
)
@sample
def test_layouts_split_what_they_joined(
    which: str, shapes: list[tuple[int, int]], dtype: type
) -> None:
    layout, rng = get_backend(which).layout(shapes, dtype), np.random.default_rng(0)
    parts = [rng.normal(size=shape).astype(dtype) for shape in shapes]
    joined = layout.join(parts)
    assert joined.dtype == dtype
    for part, expected in zip(layout.split(joined), parts, strict=True):
        np.testing.assert_array_equal(part, expected)
    zeros = layout.zeros()
    assert zeros.shape == joined.shape
    assert [part.shape for part in layout.split(zeros)] == shapes
    assert not zeros.any()
    # What is not in any part takes no part in the arithmetic: it is zero.
    assert (joined != 0).sum() == sum((part != 0).sum() for part in parts)


def test_arguments_may_be_read_only() -> None:
    rng = np.random.default_rng(0)
    U, V = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    indptr, columns = np.array([0, 1, 2]), np.array([1, 0], np.int32)
    codes, targets, thresholds = np.array([0, 2], np.int16), np.ones(2), rng.normal(size=(2, 2))
    rows = Rows(np.arange(3.0), indptr, columns, codes)
    for array in (U, V, indptr, columns, codes, targets, thresholds, rows.rows):
        array.setflags(write=False)
    np.testing.assert_allclose(CPU.scores(rows.rows, columns, U, V), (U * V[::-1]).sum(axis=1))
    nothing = thresholds[:, :0]
    specs = {  # a question for each kernel: two levels have that of thresholds
        Thresholds(SMOOTH): thresholds,
        Proximal(SMOOTH): nothing,
        Real(squared, targets): nothing,
        Anchored(ThresholdLoss(SMOOTH), thresholds): nothing,
    }
    for spec, own in specs.items():
        arguments = (rows, spec, U, V, np.ascontiguousarray(own))
        assert_same(CPU.row_gradients(*arguments), REFERENCE.row_gradients(*arguments))
    for spec in list(specs)[:2]:
        resident = CPU.place(rows, spec, REG, V.shape, V.dtype)
        at = resident.layout.join([U, V, specs[spec]])
        at.setflags(write=False)
        assert np.isfinite(CPU.gradient(resident, at)[0])
    least = (rows, Real(squared, targets), V, 1.0)
    assert_same((CPU.solve_rows(*least),), (REFERENCE.solve_rows(*least),))
    assert_same((CPU.improve_rows(*least, U, 2),), (REFERENCE.improve_rows(*least, U, 2),))
