import pytest

from studies.peers import cold_start, roofline, scaling_report


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
    (curve,) = scaling_report.find_curves(points())
    assert curve.x == [1000, 10_000, 100_000]
    assert curve.seconds == pytest.approx([1e-3, 1e-2, 1e-1])
    assert curve.ratios == pytest.approx([2.0, 2.0, 2.0])


def test_the_exponents_stand_beside_their_goals() -> None:
    row = cells(scaling_report.parts(points())["exponents"], "HMF, ratings |")
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
    table = scaling_report.parts({"points": [], "threads": fits})["threads"]
    assert cells(table, "HMF, n_jobs=2") == ["HMF, n_jobs=2", "3.00", "0.60"]


def test_a_picture_of_the_laws_is_drawn(tmp_path) -> None:
    file = tmp_path / "new" / "scaling.svg"
    scaling_report.draw(points(), file)
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
    table = cold_start.repeated(kernels)
    assert "once" not in table
    assert cells(table, "twice")[1:] == ["2", "1: array(float32, 1d, C) / array(float64, 1d, A)"]
