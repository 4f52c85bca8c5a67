"""Scaling laws, the roofline, synthetic ratings, and their tables."""

import math
import shutil

import numpy as np
import pytest

from marginmf.backends import get_backend
from marginmf.ratings import Ratings
from marginmf.ratings.fitting.objective import FactorObjective, Parameters
from studies.peers import cold_start, roofline, scaling
from studies.peers.roofline import ROW_LOSSES, NoCompiler, PlainGradient, compile_loops
from studies.peers.scaling import (
    BYTES_PER_RATING,
    fit_law,
    memory_ratio,
    upper_half,
)
from studies.peers.synthetic import Shape, make, ratings_per_user


def point(axis: str, value: int, cpu: float, peak: int, repetition: int = 0) -> dict[str, object]:
    return {
        "method": "HMF",
        "axis": axis,
        "value": value,
        "cpu": cpu,
        "peak_bytes": peak,
        "n_ratings": value,
        "parameter_bytes": 8 * value,
        "repetition": repetition,
    }


def points() -> dict[str, list[dict[str, object]]]:
    found = [point("ratings", n, 1e-6 * n, 40 * n) for n in (1000, 10_000, 100_000)]
    slow = [point("ratings", n, 9.0, 40 * n, 1) for n in (1000, 10_000, 100_000)]
    quick = [point("ratings", n, 1e-6 * n, 40 * n, 2) for n in (1000, 10_000, 100_000)]
    return {"points": found + slow + quick, "threads": []}


def cells(table: str, start: str) -> list[str]:
    (line,) = (line for line in table.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_laws_go_through_the_medians() -> None:
    (curve,) = scaling.find_curves(points())
    assert curve.x == [1000, 10_000, 100_000]
    assert curve.seconds == pytest.approx([1e-3, 1e-2, 1e-1])
    assert curve.ratios == pytest.approx([2.0, 2.0, 2.0])


def test_the_exponents_stand_beside_their_goals() -> None:
    row = cells(scaling.parts(points())["exponents"], "HMF, ratings |")
    assert row == [
        "HMF, ratings",
        "1,000 to 100,000",
        *("1.00", "1.00", "1.05", "1.00", "1.00", "2.0"),
    ]


def test_threads_are_compared_with_one() -> None:
    walls = {1: (4.0, 5.0, 9.0), 2: (3.0, 2.5, 8.0)}
    fits = [
        {"method": "HMF", "n_jobs": n_jobs, "wall": wall}
        for n_jobs, seconds in walls.items()
        for wall in seconds
    ]
    table = scaling.parts({"points": [], "threads": fits})["threads"]
    assert cells(table, "HMF, n_jobs=2") == ["HMF, n_jobs=2", "3.00", "0.60"]


def test_a_picture_of_the_laws_is_drawn(tmp_path) -> None:
    file = tmp_path / "new" / "scaling.svg"
    scaling.draw(points(), file)
    assert "<svg" in file.read_text()


def gradient(d: int, rate: float) -> dict[str, object]:
    where = {"shape": "ml-1m", "method": "HMF", "state": "random start"}
    return {**where, "d": d, "gflops": rate, "in L2": 20.0}


def test_gradients_are_shown_as_shares_of_the_plain_loop() -> None:
    results = {
        "compiler": "",
        "rates": [],
        "loops": [],
        "gradients": [gradient(64, 13.0), gradient(128, 11.0)],
    }
    table = roofline.parts(results)["gradients"]
    assert cells(table, "ml-1m, HMF") == ["ml-1m, HMF, random start", "13.0 (65%)", "11.0 (55%)"]
    assert "d = 64 yes, 65%; d = 128 no, 55%" in table


def test_the_caches_are_known_on_every_system() -> None:
    sizes = roofline.find_caches()
    assert 0 < sizes["L1"] < sizes["L2"] < sizes["L3"]


@pytest.mark.parametrize("n_factors", [16, 128])
def test_the_small_matrix_fits_the_cache(n_factors: int) -> None:
    cache = 512 << 10
    data = roofline.make_small(cache, n_factors)
    factors_and_gradients = 2 * 4 * n_factors * (data.n_users + data.n_items)
    assert 0.4 * cache < factors_and_gradients <= 0.5 * cache
    assert 0.1 * cache < 8 * len(data) < 0.3 * cache


def test_kernels_compiled_twice_are_listed_with_what_differs() -> None:
    kernels = {
        "once": ["int64, array(float32, 1d, C)"],
        "twice": ["int64, array(float32, 1d, C)", "int64, array(float64, 1d, A)"],
    }
    table = cold_start.repeated_table(kernels)
    assert "once" not in table
    assert cells(table, "twice")[1:] == ["2", "1: array(float32, 1d, C) / array(float64, 1d, A)"]


@pytest.mark.parametrize("exponent", [-0.5, 0.0, 1.0, 1.37])
def test_a_power_law_is_found_again(exponent: float) -> None:
    x = [2.0, 10.0, 70.0, 900.0]
    law = fit_law(x, [3.0 * value**exponent for value in x])
    assert law.exponent == pytest.approx(exponent, abs=1e-12)
    assert law.scale == pytest.approx(3.0)
    assert law.error == pytest.approx(1.0)


def test_the_error_is_the_worst_factor() -> None:
    # Through (1, 1), (10, 8), (100, 1) the best power law is the constant 2.
    law = fit_law([1, 10, 100], [1, 8, 1])
    assert law.exponent == pytest.approx(0.0)
    assert law.error == pytest.approx(4.0)


def test_scaling_either_axis_does_not_change_the_exponent() -> None:
    x, y = [1.0, 3.0, 10.0, 40.0], [2.0, 5.0, 30.0, 70.0]
    scaled = fit_law([1000 * value for value in x], [1e-6 * value for value in y])
    assert scaled.exponent == pytest.approx(fit_law(x, y).exponent)


def test_the_upper_half_is_free_of_a_constant_cost() -> None:
    x = [10.0**k for k in range(7)]
    y = [100.0 + value for value in x]
    upper = fit_law(*upper_half(x, y))
    assert fit_law(x, y).exponent < 0.8 < 0.95 < upper.exponent < 1.0


def test_the_upper_half_keeps_the_middle() -> None:
    assert upper_half([1, 10, 100], [7, 8, 9]) == ([10, 100], [8, 9])


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([1, 2], [1], "2 positions but 1 measurements"),
        ([3, 3], [1, 2], "two different positions"),
        ([1, 2], [0.0, 2], "positive numbers alone, not 0.0"),
        ([1, 2], [math.nan, 2], "not nan"),
    ],
)
def test_what_is_no_law_is_refused(x: list[float], y: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fit_law(x, y)


def test_memory_is_measured_in_ratings_and_parameters() -> None:
    needed = 10 * BYTES_PER_RATING + 4
    point = {"peak_bytes": 3 * needed, "n_ratings": 10, "parameter_bytes": 4}
    assert memory_ratio(point) == pytest.approx(3.0)


@pytest.mark.parametrize(
    "shape", [Shape(30, 50, 300), Shape(40, 20, 400, n_levels=2), Shape(1, 30, 15, n_levels=3)]
)
def test_the_shape_is_the_one_asked_for(shape: Shape) -> None:
    made = make(shape)
    assert made.pairs.shape == (shape.n_ratings, 2)
    assert len(np.unique(made.pairs, axis=0)) == shape.n_ratings
    assert set(made.pairs[:, 0]) == set(range(shape.n_users))
    assert made.pairs[:, 1].min() >= 0
    assert made.pairs[:, 1].max() < shape.n_items
    assert set(made.ratings.tolist()) == set(range(1, shape.n_levels + 1))


def test_the_same_seed_makes_the_same_ratings() -> None:
    first, again, other = (make(Shape(30, 50, 300), seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.pairs, again.pairs)
    np.testing.assert_array_equal(first.ratings, again.ratings)
    assert not np.array_equal(first.ratings, other.ratings)


def test_some_items_are_far_more_popular_than_others() -> None:
    made = make(Shape(400, 300, 12_000))
    counts = np.sort(np.bincount(made.pairs[:, 1], minlength=300))[::-1]
    assert counts[:30].sum() > 4 * counts[-30:].sum()


def test_users_give_at_least_one_and_at_most_half_of_all() -> None:
    counts = ratings_per_user(Shape(50, 40, 900), np.random.default_rng(0))
    assert counts.sum() == 900
    assert counts.min() >= 1
    assert counts.max() <= 20


@pytest.mark.parametrize("n_ratings", [9, 101])
def test_numbers_that_do_not_fit_are_refused(n_ratings: int) -> None:
    with pytest.raises(ValueError, match="every user gives 1 to 10 ratings"):
        make(Shape(10, 20, n_ratings))


@pytest.mark.parametrize("form", ["one_pass", "three_passes"])
@pytest.mark.parametrize("known", [False, True])
def test_plain_loops_and_our_gradient_agree(form: str, known: bool) -> None:
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        with pytest.raises(NoCompiler, match="no C compiler"):
            compile_loops()
        return
    generator = np.random.default_rng(0)
    pairs = np.argwhere(generator.random((20, 30)) < 0.4)
    data = Ratings.of(pairs, generator.integers(1, 5, len(pairs), endpoint=True))
    plain = PlainGradient(compile_loops(7 if known else 0).library, data, 7)
    # Scores of all sizes, so that every branch of the loss is taken.
    plain.U *= 10
    plain.V *= 10
    getattr(plain, form)()

    point = Parameters(plain.U, plain.V, np.empty((data.n_users, 0)))
    for backend in map(get_backend, ("reference", "cpu")):
        spec, shape = ROW_LOSSES["HMF"](data.n_levels), (data.n_items, 7)
        objective = FactorObjective(backend, backend.place(data, spec, 0.0, shape, np.float32))
        _, gradient = objective(objective.join(point))
        users, items, *_ = objective.split(gradient)
        np.testing.assert_allclose(plain.by_users, users, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(plain.by_items, items, rtol=1e-3, atol=1e-4)
