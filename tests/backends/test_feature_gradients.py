"""Objectives whose factors are built from features, against NumPy, slopes and other threads."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from marginmf.backends import Backend, threads
from marginmf.backends.cpu import gradients
from marginmf.backends.cpu.backend import CpuBackend
from marginmf.backends.cpu.gradients import BlockSizes
from marginmf.backends.reference import ReferenceBackend
from marginmf.backends.rows import Coordinates, FeatureMatrices, Rows
from marginmf.backends.specs import Proximal, Real, Spec, Thresholds, TwoLevel
from marginmf.losses import smooth_hinge, squared

CPU, REFERENCE = CpuBackend(1), ReferenceBackend()
N_LEVELS, REG = 4, 0.6
SPECS = ("two-level", "thresholds", "proximal", "real")

sample = settings(max_examples=40, deadline=None)
dtypes = st.sampled_from([np.float32, np.float64])
seeds = st.integers(0, 2**32 - 1)
specs = pytest.mark.parametrize("kind", SPECS)


class Problem(NamedTuple):
    """Random ratings, features of both sides, coordinates of their weights, and a point."""

    rows: Rows
    features: FeatureMatrices
    coordinates: tuple[Coordinates, Coordinates]
    parts: tuple[np.ndarray, ...]  # own factors of both sides, thresholds, parameters of weights

    def spec(self, kind: str) -> Spec:
        if kind == "real":
            return Real(squared, (self.rows.codes + 1).astype(self.parts[0].dtype))
        return {
            "two-level": TwoLevel(smooth_hinge, 1),
            "thresholds": Thresholds(smooth_hinge),
            "proximal": Proximal(smooth_hinge),
        }[kind]

    def resident(self, backend: Backend, spec: Spec) -> Any:
        shape, dtype = self.parts[1].shape, self.parts[1].dtype
        placed = backend.place(self.rows, spec, 0.0, shape, dtype, self.features)
        return placed.asking(spec, REG, self.coordinates)

    def point(self, resident: Any, spec: Spec) -> np.ndarray:
        users, items, thresholds, *parameters = self.parts
        own = thresholds[:, : spec.n_thresholds(N_LEVELS)]
        return resident.layout.join([users, items, own, *parameters])

    def gradient(self, backend: Backend, kind: str) -> list[np.ndarray]:
        """Return the objective and the parts of its gradient."""
        spec = self.spec(kind)
        resident = self.resident(backend, spec)
        value, gradient = backend.gradient(resident, self.point(resident, spec))
        return [np.array(value), *resident.layout.split(gradient)]


def make_coordinates(rng: np.random.Generator, n_features: int) -> Coordinates:
    """Return scales around one, a random unit vector, and some damping."""
    direction = rng.normal(size=n_features)
    length = np.linalg.norm(direction)
    direction = direction / length if n_features else direction
    return Coordinates(rng.uniform(0.3, 3, n_features), direction, float(rng.uniform(0.1, 1)))


def make_problem(
    seed: int,
    lengths: list[int],
    n_features: tuple[int, int],
    *,
    n_columns: int = 6,
    n_factors: int = 5,
    dtype: type = np.float64,
    plain: bool = False,
) -> Problem:
    rng = np.random.default_rng(seed)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    n, n_rows = int(indptr[-1]), len(lengths)
    matrices = [
        csr_array(random_array((height, width), density=0.5, rng=rng, dtype=np.float32))
        for height, width in zip((n_rows, n_columns), n_features, strict=True)
    ]
    shapes = [(n_rows, n_factors), (n_columns, n_factors), (n_rows, N_LEVELS - 1)]
    shapes += [(width, n_factors) for width in n_features]
    return Problem(
        rows=Rows(
            np.arange(1.0, N_LEVELS + 1),
            indptr,
            rng.integers(n_columns, size=n).astype(np.int32),
            rng.integers(N_LEVELS, size=n).astype(np.int16),
        ),
        features=FeatureMatrices(*matrices),
        coordinates=tuple(
            Coordinates.plain(width) if plain else make_coordinates(rng, width)
            for width in n_features
        ),
        parts=tuple(rng.normal(scale=0.6, size=shape).astype(dtype) for shape in shapes),
    )


@st.composite
def problems(draw: st.DrawFn, dtype: Any = dtypes) -> Problem:
    return make_problem(
        draw(seeds),
        draw(st.lists(st.integers(0, 9), min_size=1, max_size=7)),
        # One side, both sides, or neither.
        draw(st.tuples(st.integers(0, 6), st.integers(0, 6))),
        n_factors=draw(st.sampled_from([1, 3, 8, 35])),
        dtype=draw(dtype),
        plain=draw(st.booleans()),
    )


@specs
@given(p=problems())
@sample
def test_gradient_is_that_of_the_reference(kind: str, p: Problem) -> None:
    ours, expected = p.gradient(CPU, kind), p.gradient(REFERENCE, kind)
    tolerance = 3e-4 if p.parts[0].dtype == np.float32 else 1e-10
    for a, b in zip(ours, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("backend", [CPU, REFERENCE], ids=["cpu", "reference"])
@pytest.mark.parametrize("n_features", [(4, 0), (0, 5), (3, 6)])
@specs
def test_gradient_is_the_slope(kind: str, n_features: tuple[int, int], backend: Backend) -> None:
    p = make_problem(1, [5, 0, 7, 3, 9], n_features, n_factors=3)
    spec, rng, h = p.spec(kind), np.random.default_rng(2), 1e-6
    resident = p.resident(backend, spec)
    at = p.point(resident, spec)
    _, gradient = backend.gradient(resident, at)
    used = resident.layout.join([np.ones(shape) for shape in resident.layout.shapes])
    for _ in range(12):
        direction = rng.normal(size=len(at)) * used
        up, down = (backend.gradient(resident, at + step * direction)[0] for step in (h, -h))
        assert (up - down) / (2 * h) == pytest.approx(gradient @ direction, rel=1e-5, abs=1e-5)


@specs
@given(p=problems(st.just(np.float64)))
@sample
def test_objective_is_that_of_effective_factors_and_of_all_penalties(kind: str, p: Problem) -> None:
    # The same by dense matrices: factors are U + A Y and V + B X, and every penalty is a norm.
    users, items, _, *parameters = p.parts
    effective, penalty = [], np.sum(users**2) + np.sum(items**2)
    for own, matrix, x, (scales, d, damping) in zip(
        (users, items), p.features, parameters, p.coordinates, strict=True
    ):
        y = x - (1 - damping) * np.outer(d, d @ x)
        penalty += np.sum(y**2)
        effective.append(own + matrix.toarray() @ (scales[:, None] * y))
    spec = p.spec(kind)
    bare = REFERENCE.place(p.rows, spec, 0.0, items.shape, items.dtype)
    thresholds = p.parts[2][:, : spec.n_thresholds(N_LEVELS)]
    loss, _ = REFERENCE.gradient(bare, bare.layout.join([*effective, thresholds]))
    assert float(p.gradient(CPU, kind)[0]) == pytest.approx(loss + REG / 2 * penalty, rel=1e-9)


@given(p=problems(st.just(np.float64)))
@sample
def test_without_features_nothing_changes(p: Problem) -> None:
    empty = FeatureMatrices(*(csr_array((matrix.shape[0], 0)) for matrix in p.features))
    none = p._replace(
        features=empty,
        coordinates=(Coordinates.plain(0), Coordinates.plain(0)),
        parts=(*p.parts[:3], *(np.empty((0, p.parts[0].shape[1])),) * 2),
    )
    spec = p.spec("thresholds")
    plain = CPU.place(p.rows, spec, REG, p.parts[1].shape, np.float64)
    value, gradient = CPU.gradient(plain, plain.layout.join(p.parts[:3]))
    built = none.gradient(CPU, "thresholds")
    assert float(built[0]) == pytest.approx(value, rel=1e-12)
    for a, b in zip(built[1:4], plain.layout.split(gradient), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@given(p=problems(st.just(np.float64)), kind=st.sampled_from(SPECS))
@sample
def test_gradient_is_written_over_what_is_given_and_the_point_stays(p: Problem, kind: str) -> None:
    spec = p.spec(kind)
    for backend in (CPU, REFERENCE):
        resident = p.resident(backend, spec)
        at = p.point(resident, spec)
        before, out = at.copy(), np.full_like(at, np.nan)
        value, gradient = backend.gradient(resident, at, out)
        assert gradient is out
        again = backend.gradient(resident, at)
        assert value == again[0]
        np.testing.assert_array_equal(gradient, again[1])
        np.testing.assert_array_equal(at, before)


@given(p=problems(), kind=st.sampled_from(SPECS))
@sample
def test_padding_of_the_ranks_stays_zero(p: Problem, kind: str) -> None:
    spec = p.spec(kind)
    resident = p.resident(CPU, spec)
    _, gradient = CPU.gradient(resident, p.point(resident, spec))
    padded = resident.layout.padded(gradient)
    for part in (*padded[:2], *padded[3:]):
        assert not part[:, p.parts[0].shape[1] :].any()


# Threads


@dataclass(frozen=True)
class Many(BlockSizes):
    """Many blocks and bands, also of small matrices."""

    band: int = 60

    def n_blocks(self, n_entries: int, n_rows: int, n_columns: int, n_factors: int) -> int:
        return min(9, n_columns)


@specs
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_change_a_bit(
    kind: str, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "SMALLEST_TASK", 500)
    monkeypatch.setattr(gradients, "SIZES", Many())
    lengths = np.random.default_rng(0).geometric(1 / 20, size=400) - 1
    lengths[7] = 1500
    p = make_problem(3, lengths.tolist(), (70, 50), n_columns=90, n_factors=9, dtype=dtype)
    assert len(threads.row_bounds(p.features.rows.indptr, 3, 12)) > 3
    one = p.gradient(CPU, kind)
    for n_threads in (2, 3):
        for a, b in zip(p.gradient(CpuBackend(n_threads), kind), one, strict=True):
            np.testing.assert_array_equal(a, b)


# Coordinates


@st.composite
def coordinates(draw: st.DrawFn) -> tuple[Coordinates, np.ndarray, np.ndarray]:
    rng, n = np.random.default_rng(draw(seeds)), draw(st.integers(0, 12))
    x, z = rng.normal(size=(2, n, draw(st.integers(1, 5))))
    return make_coordinates(rng, n), x, z


@given(case=coordinates())
@sample
def test_coordinates_there_and_back(case: tuple[Coordinates, np.ndarray, np.ndarray]) -> None:
    own, x, _ = case
    np.testing.assert_allclose(own.parameters(own.weights(x)), x, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(own.weights(own.parameters(x)), x, rtol=1e-9, atol=1e-9)
    single = x.astype(np.float32)
    assert own.weights(single).dtype == own.parameters(single).dtype == np.float32


@given(case=coordinates())
@sample
def test_penalised_is_symmetric(case: tuple[Coordinates, np.ndarray, np.ndarray]) -> None:
    own, x, z = case
    there, back = np.sum(z * own.penalised(x)), np.sum(own.penalised(z) * x)
    assert there == pytest.approx(back, rel=1e-9, abs=1e-9)


@given(seed=seeds, n=st.integers(0, 8))
@sample
def test_plain_coordinates_are_the_weights(seed: int, n: int) -> None:
    x, plain = np.random.default_rng(seed).normal(size=(n, 3)), Coordinates.plain(n)
    for same in (plain.penalised, plain.weights, plain.parameters):
        np.testing.assert_array_equal(same(x), x)


def test_weights_with_a_scale_of_zero_have_parameters_of_zero() -> None:
    own = Coordinates(np.array([0.0, 2.0]), np.zeros(2), 1.0)
    np.testing.assert_array_equal(own.parameters(np.ones((2, 1))), [[0.0], [0.5]])
    np.testing.assert_array_equal(own.weights(np.ones((2, 1))), [[0.0], [2.0]])


def test_damping_shortens_the_common_direction_alone() -> None:
    direction = np.array([0.6, 0.8])
    own = Coordinates(np.ones(2), direction, 0.1)
    np.testing.assert_allclose(own.penalised(direction[:, None])[:, 0], 0.1 * direction)
    across = np.array([[-0.8], [0.6]])
    np.testing.assert_allclose(own.penalised(across), across)
