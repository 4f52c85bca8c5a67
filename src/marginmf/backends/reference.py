"""The kernels spelled out in NumPy: slow, obvious, and the oracle for every other set."""

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from marginmf._typing import FloatArray, IntArray
from marginmf.backends.interface import Best, Entries, Sides
from marginmf.losses import RealLoss, TwoLevelLoss
from marginmf.solvers.vector import NumpyVectors
from marginmf.thresholds import ProximalLoss, ThresholdLoss


class ReferenceKernels(NumpyVectors):
    """The NumPy implementation of `marginmf.backends.Kernels`."""

    def scores(self, rows: IntArray, columns: IntArray, U: FloatArray, V: FloatArray) -> FloatArray:
        """Return ``U[rows[k]] . V[columns[k]]`` for every k."""
        scores: FloatArray = np.einsum("kd,kd->k", U[rows], V[columns])
        return scores

    def n_blocks(self, n_columns: int, n_factors: int, row_length: float) -> int:
        """Return one: NumPy does not care."""
        return 1

    def spread(
        self, entries: Entries, weights: FloatArray, factors: Sides, gradients: Sides
    ) -> None:
        """Add to both sides' gradients what the derivatives by the scores give."""
        rows = _rows_of(entries)
        np.add.at(gradients.rows, rows, weights[:, None] * factors.columns[entries.indices])
        if len(gradients.columns):
            np.add.at(gradients.columns, entries.indices, weights[:, None] * factors.rows[rows])

    def two_level_gradient(
        self,
        entries: Entries,
        levels: IntArray,
        cut: int,
        loss: TwoLevelLoss,
        factors: Sides,
        gradients: Sides,
    ) -> FloatArray:
        """Do `scores`, `two_level_rows` and `spread` in one pass; return the rows' losses."""
        (losses,) = self._in_one_pass(
            *(entries, factors, gradients),
            lambda indptr, x, part: self.two_level_rows(indptr, x, levels[part], cut, loss),
        )
        return losses

    def threshold_gradient(
        self,
        entries: Entries,
        levels: IntArray,
        thresholds: FloatArray,
        reach: float,
        loss: TwoLevelLoss,
        factors: Sides,
        gradients: Sides,
    ) -> tuple[FloatArray, FloatArray]:
        """Do `scores`, `threshold_rows` and `spread` in one pass."""
        losses, by_threshold = self._in_one_pass(
            *(entries, factors, gradients),
            lambda indptr, x, part: self.threshold_rows(
                indptr, x, levels[part], thresholds, reach, loss
            ),
        )
        return losses, by_threshold

    def real_gradient(
        self,
        entries: Entries,
        targets: FloatArray,
        loss: RealLoss,
        factors: Sides,
        gradients: Sides,
    ) -> FloatArray:
        """Do `scores`, `real_rows` and `spread` in one pass; return the rows' losses."""
        (losses,) = self._in_one_pass(
            *(entries, factors, gradients),
            lambda indptr, x, part: self.real_rows(indptr, x, targets[part], loss),
        )
        return losses

    def _in_one_pass(
        self,
        entries: Entries,
        factors: Sides,
        gradients: Sides,
        row_loss: Callable[[IntArray, FloatArray, slice], tuple[FloatArray, ...]],
    ) -> list[FloatArray]:
        """Score, judge and spread; return what the row loss gives beside weights, over blocks."""
        scores = self.scores(_rows_of(entries), entries.indices, *factors)
        weights, sums = np.zeros_like(scores), []
        for indptr, part in _blocks_of(entries):
            losses, weights[part], *others = row_loss(indptr, scores[part], part)
            sums.append([losses, *others])
        self.spread(entries, weights, factors, gradients)
        return [np.sum(parts, axis=0) for parts in zip(*sums, strict=True)]

    def gather(self, values: FloatArray, order: IntArray) -> FloatArray:
        """Return ``values[order]``."""
        return values[order]

    def two_level_rows(
        self, indptr: IntArray, scores: FloatArray, levels: IntArray, cut: int, loss: TwoLevelLoss
    ) -> tuple[FloatArray, FloatArray]:
        """Loss of the question "is the level above ``cut``?", answered by the score's sign."""
        y = np.where(levels > cut, 1.0, -1.0)
        weights = y * loss.derivative(y * scores)
        return _row_sums(indptr, loss.value(y * scores)), weights.astype(scores.dtype)

    def threshold_rows(
        self,
        indptr: IntArray,
        scores: FloatArray,
        levels: IntArray,
        thresholds: FloatArray,
        reach: float,
        loss: TwoLevelLoss,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Loss against each row's thresholds; returns also the derivative by the thresholds."""
        rows = _rows(indptr)
        ordinal = ThresholdLoss(loss, reach)
        weights, by_entry = ordinal.derivatives(scores, levels, thresholds[rows])
        by_threshold = np.zeros_like(thresholds)
        np.add.at(by_threshold, rows, by_entry)
        losses = _row_sums(indptr, ordinal.value(scores, levels, thresholds[rows]))
        return losses, weights.astype(scores.dtype), by_threshold

    def proximal_rows(
        self,
        indptr: IntArray,
        scores: FloatArray,
        levels: IntArray,
        n_levels: int,
        loss: TwoLevelLoss,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Loss against each row's level means; returns also those means (NaN where unused)."""
        rows = _rows(indptr)
        shape = (len(indptr) - 1, n_levels)
        counts, sums, pushes = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        np.add.at(counts, (rows, levels), 1.0)
        np.add.at(sums, (rows, levels), scores)
        means = np.divide(sums, counts, out=np.full(shape, np.nan), where=counts > 0)
        ordinal = ProximalLoss(loss)
        weights, push = ordinal.derivatives(scores, levels, means[rows])
        np.add.at(pushes, rows, push)
        # Every score moves its own level's mean, and with it what the other levels feel.
        weights = weights - (pushes / np.maximum(counts, 1.0))[rows, levels]
        losses = _row_sums(indptr, ordinal.value(scores, levels, means[rows]))
        return losses, weights.astype(scores.dtype), means.astype(scores.dtype)

    def real_rows(
        self, indptr: IntArray, scores: FloatArray, targets: FloatArray, loss: RealLoss
    ) -> tuple[FloatArray, FloatArray]:
        """Loss of real scores against real targets."""
        with np.errstate(invalid="ignore", divide="ignore"):
            losses = _row_sums(indptr, loss.value(targets, scores))
            return losses, loss.derivative(targets, scores).astype(scores.dtype)

    def label_rows(
        self, indptr: IntArray, indices: IntArray, scores: FloatArray, loss: TwoLevelLoss
    ) -> FloatArray:
        """Loss of rows with a score for every label; the scores become derivatives, in place."""
        y = np.full(scores.shape, -1.0)
        y[_rows(indptr), indices[indptr[0] : indptr[-1]]] = 1.0
        losses: FloatArray = loss.value(y * scores).sum(axis=1, dtype=np.float64)
        scores[:] = y * loss.derivative(y * scores)
        return losses

    def solve_rows(
        self,
        indptr: IntArray,
        indices: IntArray,
        targets: FloatArray,
        factors: FloatArray,
        ridge: float,
    ) -> FloatArray:
        """Return, for every row, the ridge regression of its targets on its columns' factors."""
        n_factors = factors.shape[1]
        solved = np.zeros((len(indptr) - 1, n_factors), factors.dtype)
        for i in range(len(solved)):
            entries = slice(indptr[i], indptr[i + 1])
            rows = factors[indices[entries]]
            gram = rows.T @ rows + ridge * np.eye(n_factors)
            solved[i] = np.linalg.solve(gram, rows.T @ targets[entries])
        return solved

    def expected_ratings(
        self,
        scores: FloatArray,
        offsets: FloatArray,
        bounds: FloatArray,
        weights: FloatArray,
        user_terms: FloatArray,
        item_terms: FloatArray,
        steps: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the expected ratings of a block of users and items, and what breaks their ties."""
        margins = scores.astype(np.float64) + offsets.T[:, :, None]
        ties = np.where(np.isfinite(margins), margins, 0.0).sum(axis=0)
        logits = np.einsum("qp,pij->qij", weights, np.clip(margins.T, *bounds).T)
        logits += user_terms.T[:, :, None] + item_terms[:, None, :]
        chances = np.minimum.accumulate(expit(logits), axis=0)
        expected = np.tensordot(steps, chances, axes=1)
        return expected.astype(np.float32), ties.astype(np.float32)

    def top_n(
        self,
        scores: FloatArray,
        ties: FloatArray,
        indptr: IntArray,
        excluded: IntArray,
        best: Best,
        first: int = 0,
    ) -> None:
        """Improve, in place, the best columns of every row that were found so far."""
        numbers = np.arange(first, first + scores.shape[1])
        for i, (found, *found_values) in enumerate(zip(*best, strict=True)):
            left_out = np.isin(numbers, excluded[indptr[i] : indptr[i + 1]])
            kept = (scores[i] > -np.inf) & ~left_out
            columns = np.concatenate([found[found >= 0], numbers[kept]])
            score, tie = (
                np.concatenate([old[found >= 0], new[i, kept]])
                for old, new in zip(found_values, (scores, ties), strict=True)
            )
            order = np.lexsort((columns, -tie, -score))[: len(found)]
            for row, values in zip((found, *found_values), (columns, score, tie), strict=True):
                row[: len(order)] = values[order]


def _rows(indptr: IntArray) -> IntArray:
    """Return the row of every entry."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def _row_sums(indptr: IntArray, values: FloatArray) -> FloatArray:
    return np.bincount(_rows(indptr), values, len(indptr) - 1).astype(np.float64)


def _blocks_of(entries: Entries) -> list[tuple[IntArray, slice]]:
    """Return, for every block, where its rows begin in it, and where it is among the entries."""
    return [
        (indptr - indptr[0], slice(int(indptr[0]), int(indptr[-1]))) for indptr in entries.indptr
    ]


def _rows_of(entries: Entries) -> IntArray:
    """Return the row of every entry; blocks follow one another."""
    return np.concatenate([_rows(indptr) for indptr in entries.indptr])
