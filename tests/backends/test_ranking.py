"""Expected ratings and the n best: the compiled functions against ones spelled out in NumPy."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from marginmf.backends import ranking, threads
from marginmf.backends.ranking import Best, expected_ratings, top_n

sample = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**32 - 1)
NOTHING = np.empty(0, np.int32)


def expected_by_numpy(
    scores: np.ndarray,
    offsets: np.ndarray,
    bounds: np.ndarray,
    weights: np.ndarray,
    user_terms: np.ndarray,
    item_terms: np.ndarray,
    steps: np.ndarray,
    near: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The oracle of `expected_ratings`, in float64.

    If ``near`` is given, distributions are made unimodal: of the modes that are this near to being
    the most probable level, with the one that has the highest answer.
    """
    margins = scores.astype(np.float64) + offsets.T[:, :, None]
    ties = np.where(np.isfinite(margins), margins, 0.0).sum(axis=0)
    logits = np.einsum("qp,pij->qij", weights, np.clip(margins.T, *bounds).T)
    logits += user_terms.T[:, :, None] + item_terms[:, None, :]
    chances = np.minimum.accumulate(expit(logits), axis=0)
    expected = np.tensordot(steps, chances, axes=1)
    if near is not None:
        levels = -np.diff(chances, axis=0, prepend=1.0, append=0.0)
        values = np.append(0.0, np.cumsum(steps, dtype=np.float64))
        answers = [np.tensordot(values, unimodal(levels, k), axes=1) for k in range(len(levels))]
        expected = np.where(levels < levels.max(axis=0) - near, 0.0, answers).max(axis=0)
    return expected.astype(np.float32), ties.astype(np.float32)


def rising(values: np.ndarray) -> np.ndarray:
    """Return isotonic regressions along the first axis, by the max-min formula."""
    n = len(values)
    means = {(i, k): values[i : k + 1].mean(axis=0) for i in range(n) for k in range(i, n)}
    lowest = {
        (i, j): np.min([means[i, k] for k in range(j, n)], axis=0)
        for i in range(n)
        for j in range(i, n)
    }
    return np.array([np.max([lowest[i, j] for i in range(j + 1)], axis=0) for j in range(n)])


def unimodal(levels: np.ndarray, mode: int) -> np.ndarray:
    """Return the nearest distributions, along the first axis, that rise to the mode and fall."""
    before, after = levels[:mode], levels[mode + 1 :]
    parts = rising(before), levels[mode : mode + 1], rising(after[::-1])[::-1]
    return np.concatenate([part.reshape(-1, *levels.shape[1:]) for part in parts])


def top_by_numpy(
    scores: np.ndarray,
    ties: np.ndarray,
    indptr: np.ndarray,
    excluded: np.ndarray,
    best: Best,
    first: int = 0,
) -> None:
    """The oracle of `top_n`: everything is sorted."""
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


COMPILED = ranking
ORACLE = SimpleNamespace(expected_ratings=expected_by_numpy, top_n=top_by_numpy)


def block(
    seed: int, n_rows: int, n_columns: int, n_steps: int, shared: bool, n_margins: int = 4
) -> tuple[Any, ...]:
    """Return random arguments of `expected_ratings`, some of them extreme."""
    rng = np.random.default_rng(seed)
    normal = lambda *shape: rng.normal(scale=2.0, size=shape).astype(np.float32)  # noqa: E731
    offsets = normal(n_rows, n_margins)
    offsets[rng.random(offsets.shape) < 0.1] = np.inf
    offsets[rng.random(offsets.shape) < 0.1] = -np.inf
    weights = normal(n_steps, n_margins) * (rng.random((n_steps, n_margins)) < rng.random())
    return (
        normal(1 if shared else n_margins, n_rows, n_columns) * 10.0 ** rng.integers(-3, 3),
        offsets,
        rng.choice([0.5, 5.0, 30.0], size=(2, n_margins)).astype(np.float32)
        * np.array([[-1], [1]], np.float32),
        weights,
        normal(n_rows, n_steps),
        normal(n_steps, n_columns),
        rng.random(n_steps).astype(np.float32),
    )


@given(
    seed=seeds,
    n_rows=st.integers(0, 4),
    # Across the tiles that columns are worked on in.
    n_columns=st.one_of(st.integers(0, 20), st.sampled_from([255, 256, 257, 700])),
    n_steps=st.integers(1, 6),
    shared=st.booleans(),
    n_margins=st.integers(1, 6),
)
@sample
def test_expected_ratings(
    seed: int, n_rows: int, n_columns: int, n_steps: int, shared: bool, n_margins: int
) -> None:
    arguments = block(seed, n_rows, n_columns, n_steps, shared, n_margins)
    ours, expected = expected_ratings(*arguments), expected_by_numpy(*arguments)
    for a, b in zip(ours, expected, strict=True):
        assert a.dtype == b.dtype == np.float32
        assert a.shape == (n_rows, n_columns)
    # Log-odds are sums of large terms here: their rounding is what differs.
    np.testing.assert_allclose(ours[0], expected[0], atol=1e-4)
    scale = np.abs(arguments[0]).max(initial=1.0)
    np.testing.assert_allclose(ours[1], expected[1], rtol=1e-5, atol=1e-5 * scale)


@given(
    seed=seeds,
    n_columns=st.sampled_from([1, 7, 257]),
    n_steps=st.integers(1, 6),
    n_margins=st.integers(1, 6),
)
@sample
def test_expected_ratings_of_unimodal_distributions(
    seed: int, n_columns: int, n_steps: int, n_margins: int
) -> None:
    arguments = block(seed, 3, n_columns, n_steps, False, n_margins)
    ours, ties = expected_ratings(*arguments, unimodal=True)
    # Whether two levels are about as likely may itself be a matter of rounding.
    least, most = (expected_by_numpy(*arguments, near=near)[0] for near in (3e-5, 3e-4))
    assert (ours >= least - 1e-4).all()
    assert (ours <= most + 1e-4).all()
    np.testing.assert_array_equal(ties, expected_ratings(*arguments)[1])


def test_of_two_modes_the_one_that_lists_an_item_is_taken() -> None:
    # Chances of 0.4, 0.2 and 0.4, give or take rounding: 0.4, 0.3, 0.3 or 0.3, 0.3, 0.4.
    scores = np.zeros((1, 1, 1), np.float32)
    terms = np.array([[np.log(1.5), -np.log(1.5)]], np.float32)
    zeros, ones = np.zeros((2, 1), np.float32), np.ones(2, np.float32)
    for near in (-1e-6, 0.0, 1e-6):
        given = (scores, zeros[:1], zeros, zeros, terms + np.float32(near), zeros, ones)
        assert expected_ratings(*given, unimodal=True)[0] == pytest.approx(1.1, abs=1e-5)
    for clear, answer in ((0.01, 1.1), (-0.01, 0.9)):
        given = (scores, zeros[:1], zeros, zeros, terms + np.float32(clear), zeros, ones)
        assert expected_ratings(*given, unimodal=True)[0] == pytest.approx(answer, abs=0.01)


def test_chances_are_exact_to_five_digits_from_end_to_end() -> None:
    x = np.linspace(-200, 200, 40_001, dtype=np.float32)[None, None]
    one, zeros = np.ones((1, 1), np.float32), np.zeros((1, x.size), np.float32)
    expected, ties = expected_ratings(
        x, 0 * one, np.array([[-1e30], [1e30]], np.float32), one, 0 * one, zeros, one[0]
    )
    np.testing.assert_allclose(expected[0], expit(x[0, 0].astype(float)), rtol=5e-6, atol=1e-30)
    np.testing.assert_array_equal(ties, x[0])


def test_a_higher_level_is_never_more_likely() -> None:
    # "Above level 1" has even odds, "above level 2" is certain: so it has even odds as well.
    scores = np.array([0.0, 50.0], np.float32).reshape(2, 1, 1)
    zeros, weights = np.zeros((1, 2), np.float32), np.eye(2, dtype=np.float32)
    steps = np.array([1.0, 3.0], np.float32)
    bounds = np.array([[-100, -100], [100, 100]], np.float32)
    for functions in (COMPILED, ORACLE):
        expected, ties = functions.expected_ratings(
            scores,
            zeros,
            bounds,
            weights,
            zeros,
            zeros.T.copy(),
            steps,
        )
        assert expected[0, 0] == pytest.approx(2.0)
        assert ties[0, 0] == 50.0


@st.composite
def rankings(draw: st.DrawFn) -> dict[str, Any]:
    """Draw scores with many ties, holes and exclusions."""
    rng = np.random.default_rng(draw(seeds))
    n_rows = draw(st.integers(1, 4))
    n_columns = draw(st.one_of(st.integers(0, 40), st.sampled_from([100, 333])))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    n_values = draw(st.sampled_from([1, 3, 1000]))
    scores = rng.integers(n_values, size=(n_rows, n_columns)).astype(dtype)
    scores[rng.random(scores.shape) < 0.05] = np.nan
    scores[rng.random(scores.shape) < 0.05] = -np.inf
    ties = rng.integers(3, size=scores.shape).astype(dtype)
    first = draw(st.sampled_from([0, 0, 7]))
    lists = [
        np.flatnonzero(rng.random(n_columns + first + 5) < rng.random()) for _ in range(n_rows)
    ]
    return {
        "scores": scores,
        "ties": ties,
        "indptr": np.cumsum([0, *map(len, lists)]),
        "excluded": np.concatenate(lists).astype(np.int32),
        "n": draw(st.sampled_from([1, 2, 5, 60])),
        "first": first,
        "dtype": dtype,
        "cut": draw(st.integers(0, n_columns)),
    }


@given(p=rankings())
@sample
def test_top_n(p: dict[str, Any]) -> None:
    arguments = p["scores"], p["ties"], p["indptr"], p["excluded"]
    ours, expected = (Best.none_yet(len(p["scores"]), p["n"], p["dtype"]) for _ in range(2))
    top_n(*arguments, ours, p["first"])
    top_by_numpy(*arguments, expected, p["first"])
    for a, b in zip(ours, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("functions", [COMPILED, ORACLE], ids=["compiled", "oracle"])
@given(p=rankings())
@sample
def test_top_n_of_two_parts_is_top_n_of_the_whole(functions: Any, p: dict[str, Any]) -> None:
    lists = p["indptr"], p["excluded"]
    whole, parts = (Best.none_yet(len(p["scores"]), p["n"], p["dtype"]) for _ in range(2))
    functions.top_n(p["scores"], p["ties"], *lists, whole, p["first"])
    for part in (slice(None, p["cut"]), slice(p["cut"], None)):
        scores, ties = p["scores"][:, part].copy(), p["ties"][:, part].copy()
        functions.top_n(scores, ties, *lists, parts, p["first"] + (part.start or 0))
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_order_is_score_then_tie_then_column() -> None:
    scores = np.array([[1.0, 2.0, 2.0, 2.0, 0.0, np.nan, -np.inf]])
    ties = np.array([[9.0, 1.0, 5.0, 5.0, 9.0, 9.0, 9.0]])
    for functions in (COMPILED, ORACLE):
        best = Best.none_yet(1, 7, np.float64)
        functions.top_n(scores, ties, np.array([0, 1]), np.array([4], np.int32), best)
        assert best.columns[0].tolist() == [2, 3, 1, 0, -1, -1, -1]
        assert best.scores[0].tolist() == [2.0, 2.0, 2.0, 1.0, -np.inf, -np.inf, -np.inf]


@pytest.mark.parametrize("n_threads", [2, 3])
def test_threads_with_rows_of_their_own_find_the_same(n_threads: int) -> None:
    # As lists are made: every thread is given some users, and a view of their lists.
    scores, offsets, bounds, weights, user_terms, *rest = block(0, 300, 500, 4, shared=False)
    results = []
    for n, bounds_of_rows in ((1, [0, 300]), (n_threads, [0, 1, 97, 97, 200, 300])):
        best = Best.none_yet(300, 20, np.float32)

        def work(start: int, stop: int, best: Best = best) -> None:
            part = slice(start, stop)
            own = (scores[:, part].copy(), offsets[part], bounds, weights, user_terms[part], *rest)
            nothing = np.zeros(stop - start + 1, np.int64), NOTHING
            top_n(*expected_ratings(*own), *nothing, best.rows(start, stop))

        threads.run(work, np.array(bounds_of_rows), n)
        results.append(best)
    assert (results[0].columns >= 0).all()
    for one, many in zip(*results, strict=True):
        np.testing.assert_array_equal(one, many)
