"""Fits with vectors that nobody but their backend can look into, as those of a cluster."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginmf.backends import get_backend
from marginmf.backends.cpu.backend import CpuBackend
from marginmf.backends.rows import Rows
from marginmf.backends.specs import Spec
from marginmf.checkpoints import Checkpoint
from marginmf.ratings import HMF, MMMF, PMMMF


class Touched(Exception):  # noqa: N818, what happened more than an error
    """Somebody other than the backend looked into a vector."""


def _refuse(self: Any, *args: Any, **options: Any) -> Any:
    raise Touched("a vector was used without its backend")


class Opaque:
    """A vector in blocks: an object with an identity, and nothing else that can be seen."""

    __slots__ = ("__blocks",)

    def __init__(self, blocks: Sequence[np.ndarray]) -> None:
        object.__setattr__(self, "_Opaque__blocks", list(blocks))

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":  # isinstance may ask
            return Opaque
        raise Touched(f"{name!r} of a vector was used without its backend")

    __hash__ = None  # type: ignore[assignment]
    __setattr__ = __eq__ = __bool__ = __len__ = __iter__ = __getitem__ = _refuse
    __array__ = __copy__ = __deepcopy__ = __reduce_ex__ = __repr__ = _refuse


def blocks_of(vector: Opaque) -> list[np.ndarray]:
    """Return what is in a vector: for its backend and for this file's tests."""
    assert type(vector) is Opaque
    found: list[np.ndarray] = object.__getattribute__(vector, "_Opaque__blocks")
    return found


def halves(part: np.ndarray) -> list[np.ndarray]:
    """Return a matrix as two vectors of its own: the first rows, and the others."""
    return [half.ravel().copy() for half in np.split(part, [len(part) // 2])]


@dataclass(frozen=True)
class OpaqueLayout:
    """Every matrix in two blocks."""

    shapes: Sequence[tuple[int, int]]
    dtype: Any

    def zeros(self) -> Opaque:
        return self.join([np.zeros(shape) for shape in self.shapes])

    def join(self, parts: Sequence[np.ndarray]) -> Opaque:
        assert [np.shape(part) for part in parts] == list(self.shapes)
        matrices = [np.asarray(part, self.dtype) for part in parts]
        return Opaque([half for matrix in matrices for half in halves(matrix)])

    def split(self, vector: Opaque) -> list[np.ndarray]:
        blocks = blocks_of(vector)
        pairs = zip(blocks[::2], blocks[1::2], self.shapes, strict=True)
        return [np.concatenate((a, b)).reshape(shape) for a, b, shape in pairs]


@dataclass(frozen=True, eq=False)
class OpaqueResident:
    """What the processor's backend made of the data."""

    inner: Any

    @property
    def layout(self) -> OpaqueLayout:
        return OpaqueLayout(self.inner.layout.shapes, self.inner.layout.dtype)

    def asking(self, spec: Spec, reg: float) -> "OpaqueResident":
        return replace(self, inner=self.inner.asking(spec, reg))


class OpaqueBackend:
    """The processor's backend behind opaque vectors.

    Parameters
    ----------
    in_place : bool
        Whether results are written over ``out``.  If not they are in new vectors, and ``out``,
        which may be written over, holds nonsense afterwards: callers must use what is returned.
    """

    def __init__(self, in_place: bool = True, inner: CpuBackend | None = None) -> None:
        self.in_place, self.inner = in_place, inner or CpuBackend()
        # These take and return host arrays.
        self.row_gradients, self.row_losses = self.inner.row_gradients, self.inner.row_losses
        self.scores, self.solve_rows = self.inner.scores, self.inner.solve_rows
        self.improve_rows = self.inner.improve_rows

    def limited(self, n_threads: int) -> "OpaqueBackend":
        return OpaqueBackend(self.in_place, self.inner.limited(n_threads))

    def layout(self, shapes: Sequence[tuple[int, int]], dtype: Any) -> OpaqueLayout:
        return OpaqueLayout(tuple(shapes), np.dtype(dtype))

    def place(
        self, rows: Rows, spec: Spec, reg: float, shape: tuple[int, int], dtype: Any
    ) -> OpaqueResident:
        return OpaqueResident(self.inner.place(rows, spec, reg, shape, dtype))

    def gradient(
        self, resident: OpaqueResident, at: Opaque, out: Opaque | None = None
    ) -> tuple[float, Opaque]:
        layout = resident.inner.layout
        value, gradient = self.inner.gradient(
            resident.inner, layout.join(resident.layout.split(at))
        )
        return value, self._result(blocks_of(resident.layout.join(layout.split(gradient))), out)

    def dots(self, vectors: Sequence[Opaque], b: Opaque) -> list[float]:
        other, of_vectors = blocks_of(b), [blocks_of(vector) for vector in vectors]
        parts = [
            self.inner.dots([blocks[k] for blocks in of_vectors], block)
            for k, block in enumerate(other)
        ]
        totals: list[float] = np.sum(parts, axis=0).tolist()
        return totals

    def combine(
        self, scales: Sequence[float], vectors: Sequence[Opaque], out: Opaque | None = None
    ) -> Opaque:
        assert not any(out is vector for vector in vectors[1:])
        same_blocks = zip(*(blocks_of(vector) for vector in vectors), strict=True)
        return self._result([self.inner.combine(scales, blocks) for blocks in same_blocks], out)

    def to_host(self, vector: Opaque) -> np.ndarray:
        # Where the blocks end is told by numbers in front, so that any layout comes back.
        blocks = blocks_of(vector)
        lengths = np.array([len(blocks), *map(len, blocks)], blocks[0].dtype)
        return np.concatenate((lengths, *blocks))

    def from_host(self, array: np.ndarray) -> Opaque:
        n_blocks = int(array[0])
        ends = np.cumsum(array[1 : n_blocks + 1].astype(np.int64))
        return Opaque([block.copy() for block in np.split(array[n_blocks + 1 :], ends[:-1])])

    def _result(self, blocks: list[np.ndarray], out: Opaque | None) -> Opaque:
        if out is None:
            return Opaque(blocks)
        for old, new in zip(blocks_of(out), blocks, strict=True):
            old[:] = new if self.in_place else np.nan
        return out if self.in_place else Opaque(blocks)


backends = pytest.mark.parametrize("in_place", [True, False], ids=["in place", "new vectors"])


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    pairs = np.argwhere(rng.random((31, 25)) < 0.4)
    of_users, of_items = rng.normal(size=(31, 2)), rng.normal(size=(25, 2))
    scores = np.einsum("kd,kd->k", of_users[pairs[:, 0]], of_items[pairs[:, 1]])
    return pairs, np.searchsorted([-1.5, -0.4, 0.6], scores) + 1.0


def assert_same_fit(make: Callable[..., Any], in_place: bool, **fit: Any) -> None:
    pairs, ratings = data()
    ours = make(backend=OpaqueBackend(in_place)).fit(pairs, ratings, **fit)
    expected = make(backend="cpu").fit(pairs, ratings)
    np.testing.assert_allclose(ours.user_factors_, expected.user_factors_, atol=1e-5)
    np.testing.assert_allclose(ours.item_factors_, expected.item_factors_, atol=1e-5)
    np.testing.assert_array_equal(ours.reg_, expected.reg_)
    np.testing.assert_array_equal(ours.n_iter_, expected.n_iter_)
    np.testing.assert_array_equal(ours.predict(pairs), expected.predict(pairs))


@backends
@pytest.mark.parametrize("solver", ["lbfgs", "cg", "gd"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fit(dtype: str, solver: str, in_place: bool) -> None:
    # The last digits of long runs are chance: sums over blocks are rounded in another order.
    options = {"solver": solver, "dtype": dtype, "max_iter": 15, "random_state": 0}
    assert_same_fit(lambda **given: HMF(5, 1.0, **options, **given), in_place)


@backends
def test_fit_of_several_stages_side_by_side(in_place: bool) -> None:
    options = {"schedule": "independent", "n_jobs": 3, "max_iter": 15, "random_state": 0}
    assert_same_fit(lambda **given: HMF(5, 1.0, **options, **given), in_place)


@backends
def test_fit_that_stops_early(in_place: bool) -> None:
    options = {"early_stopping": True, "max_iter": 30, "random_state": 0}
    assert_same_fit(lambda **given: HMF(5, 0.3, **options, **given), in_place)


@backends
def test_fit_that_chooses_its_regularisation_strength(in_place: bool) -> None:
    options = {"random_state": 0, "max_iter": 15, "dtype": "float64"}
    assert_same_fit(lambda **given: HMF(5, "auto", **options, **given), in_place)


@backends
@pytest.mark.parametrize("method", [MMMF, PMMMF])
def test_fit_of_other_methods(method: type, in_place: bool) -> None:
    options = {"random_state": 0, "max_iter": 15}
    assert_same_fit(lambda **given: method(5, 1.0, **options, **given), in_place)


@backends
def test_fit_with_a_checkpoint(in_place: bool, tmp_path: Path) -> None:
    options = {"random_state": 0, "max_iter": 15}
    assert_same_fit(
        lambda **given: HMF(5, 1.0, **options, **given), in_place, checkpoint=tmp_path / "fit"
    )


@backends
@pytest.mark.parametrize("early_stopping", [True, False])
def test_fit_that_was_interrupted_goes_on(
    early_stopping: bool, in_place: bool, tmp_path: Path
) -> None:
    class Interrupted(Exception):  # noqa: N818
        pass

    def interrupt(progress: Any) -> None:
        if progress.record.iteration == 4 and not resumed:
            raise Interrupted

    make = partial(
        HMF, 5, 0.3, max_iter=12, random_state=0, early_stopping=early_stopping, calibrate=False
    )
    resumed, checkpoint = False, Checkpoint(tmp_path / "fit", seconds=0)
    with pytest.raises(Interrupted):
        make(backend=OpaqueBackend(in_place), callbacks=[interrupt]).fit(
            *data(), checkpoint=checkpoint
        )
    resumed = True
    ours = make(backend=OpaqueBackend(in_place), callbacks=[interrupt]).fit(
        *data(), checkpoint=checkpoint
    )
    expected = make(backend="cpu").fit(*data())
    np.testing.assert_allclose(ours.user_factors_, expected.user_factors_, atol=1e-5)
    np.testing.assert_array_equal(ours.n_iter_, expected.n_iter_)


def test_a_fit_that_touches_a_vector_is_caught() -> None:
    def touch(progress: Any) -> None:
        progress.point.copy()

    model = HMF(5, 1.0, random_state=0, backend=OpaqueBackend(), callbacks=[touch])
    with pytest.raises(Touched, match="'copy' of a vector"):
        model.fit(*data())


def test_opaque_vectors_come_back_from_the_host() -> None:
    backend = get_backend(OpaqueBackend())
    layout = backend.layout([(5, 3), (4, 3), (5, 0)], np.float32)
    parts = [np.random.default_rng(0).normal(size=shape) for shape in layout.shapes]
    vector = backend.from_host(backend.to_host(layout.join(parts)))
    for part, expected in zip(layout.split(vector), parts, strict=True):
        np.testing.assert_array_equal(part, expected.astype(np.float32))
