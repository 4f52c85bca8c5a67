"""Power laws through measurements, as tables and as a picture."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from marginmf.plots.style import INK, label_axes, new_figure, with_colours
from studies.harness.drawing import save_svg
from studies.harness.markdown import make_table

#: The exponents and the memory that HMF should stay below.
GOALS = {"ratings": 1.05, "factors": 1.1, "levels": 1.0, "levels, until done": 1.0}
MEMORY_GOAL = 2.5
LARGE_GOAL_BYTES = 12e9
#: What an axis is called, with the letter of its law.
TITLES = {
    "ratings": "ratings",
    "factors": "factors d",
    "levels": "levels R",
    "levels, until done": "levels R, until done",
    "users": "users N",
    "items": "items M",
}
#: A rating as it is given: user and item code and the rating, four bytes each.
BYTES_PER_RATING = 12


class Law(NamedTuple):
    """``y = scale * x ** exponent``, and how far the points lie from it at most, as a factor."""

    exponent: float
    scale: float
    error: float


def fit_law(x: Sequence[float], y: Sequence[float]) -> Law:
    """Fit a power law by least squares on the logarithms.

    >>> law = fit_law([1, 10, 100], [2, 20, 200])
    >>> round(law.exponent, 6), round(law.scale, 6), round(law.error, 6)
    (1.0, 2.0, 1.0)
    """
    if len(x) != len(y):
        raise ValueError(f"There are {len(x)} positions but {len(y)} measurements.")
    if len(set(x)) < 2:
        raise ValueError("A law needs measurements at two different positions at least.")
    for value in (*x, *y):
        if not value > 0:
            raise ValueError(f"A power law goes through positive numbers alone, not {value!r}.")
    across, up = [math.log(value) for value in x], [math.log(value) for value in y]
    middle, height = sum(across) / len(x), sum(up) / len(y)
    products = ((a - middle) * (b - height) for a, b in zip(across, up, strict=True))
    exponent = sum(products) / sum((a - middle) ** 2 for a in across)
    offset = height - exponent * middle
    misses = (abs(b - offset - exponent * a) for a, b in zip(across, up, strict=True))
    return Law(exponent, math.exp(offset), math.exp(max(misses)))


def upper_half(x: Sequence[float], y: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the points in the upper half of the range of x, in logarithms.

    >>> upper_half([1, 10, 100, 1000, 10_000], [5, 5, 6, 7, 8])
    ([100, 1000, 10000], [6, 7, 8])
    """
    middle = math.sqrt(min(x) * max(x)) * (1 - 1e-9)
    kept = [(a, b) for a, b in zip(x, y, strict=True) if a >= middle]
    return [a for a, _ in kept], [b for _, b in kept]


def memory_ratio(point: dict[str, Any]) -> float:
    """Return a fit's peak beside the bytes of the ratings as given and the parameters as learned.

    >>> memory_ratio({"peak_bytes": 50_000, "n_ratings": 1000, "parameter_bytes": 8000})
    2.5
    """
    needed = BYTES_PER_RATING * point["n_ratings"] + point["parameter_bytes"]
    return float(point["peak_bytes"] / needed)


class Curve(NamedTuple):
    """One method along one axis: where, and there the CPU seconds, bytes and memory ratios."""

    method: str
    axis: str
    x: list[float]
    seconds: list[float]
    peaks: list[float]
    ratios: list[float]


def find_curves(results: dict[str, Any]) -> Iterator[Curve]:
    """Yield a curve for each axis and method, of the medians over repetitions."""
    points = results["points"]
    for axis, method in dict.fromkeys((point["axis"], point["method"]) for point in points):
        own = [point for point in points if (point["axis"], point["method"]) == (axis, method)]
        x = sorted({point["value"] for point in own})
        groups = [[point for point in own if point["value"] == value] for value in x]
        yield Curve(
            method,
            axis,
            x,
            [median(point["cpu"] for point in group) for group in groups],
            [median(point["peak_bytes"] for point in group) for group in groups],
            [median(map(memory_ratio, group)) for group in groups],
        )


def parts(results: dict[str, Any]) -> dict[str, str]:
    if "large" in results:
        return {"large": _large_table(results["large"])}
    found = {"exponents": _exponents_table(results), "points": _points_table(results)}
    return {**found, "threads": _threads_table(results)} if results["threads"] else found


def _exponents_table(results: dict[str, Any]) -> str:
    rows = []
    for curve in find_curves(results):
        exponents = [
            f"{fit_law(*points).exponent:.2f}"
            for y in (curve.seconds, curve.peaks)
            for points in ((curve.x, y), upper_half(curve.x, y))
        ]
        goal = GOALS.get(curve.axis) if curve.method == "HMF" else None
        exponents.insert(2, "" if goal is None else f"{goal:.2f}")
        where = [f"{curve.method}, {TITLES[curve.axis]}", f"{curve.x[0]:,} to {curve.x[-1]:,}"]
        rows.append([*where, *exponents, f"{curve.ratios[-1]:.1f}"])
    heads = ["time and memory against", "from, to", "time exponent, all", "upper half", "goal"]
    heads += ["memory exponent, all", "upper half", "memory ratio at the end"]
    return make_table(heads, rows)


def _points_table(results: dict[str, Any]) -> str:
    rows = []
    for curve in find_curves(results):
        points = zip(curve.x, curve.seconds, curve.peaks, curve.ratios, strict=True)
        for value, seconds, peak, ratio in points:
            where = f"{curve.method}, {TITLES[curve.axis]} = {value:,}"
            rows.append([where, f"{seconds:.3f}", f"{peak / 1e6:.1f}", f"{ratio:.2f}"])
    ratio_head = f"times ratings + parameters (goal {MEMORY_GOAL})"
    return make_table(["fit", "CPU seconds", "peak MB", ratio_head], rows)


def _threads_table(results: dict[str, Any]) -> str:
    """Show the wall seconds on one and on several threads, and what that saves."""
    found, rows = results["threads"], []
    for method in dict.fromkeys(fit["method"] for fit in found):
        own = [fit for fit in found if fit["method"] == method]
        seconds = {
            n_jobs: median(fit["wall"] for fit in own if fit["n_jobs"] == n_jobs)
            for n_jobs in sorted({fit["n_jobs"] for fit in own})
        }
        one = seconds[min(seconds)]
        for n_jobs, wall in seconds.items():
            rows.append([f"{method}, n_jobs={n_jobs}", f"{wall:.2f}", f"{wall / one:.2f}"])
    return make_table(["fit", "wall seconds", "times one thread"], rows)


def _large_table(found: dict[str, Any]) -> str:
    verdict = "within" if found["peak_bytes"] < LARGE_GOAL_BYTES else "beyond"
    row = [
        f"HMF, {found['n_users']:,} x {found['n_items']:,}, {found['n_ratings']:,} ratings, "
        f"d = {found['n_factors']}, {found['n_jobs']} threads",
        f"{found['wall'] / 60:.1f}",
        f"{found['cpu'] / 60:.1f}",
        ", ".join(map(str, found["n_iter"])),
        f"{found['peak_bytes'] / 1e9:.2f} ({verdict} {LARGE_GOAL_BYTES / 1e9:.0f})",
        f"{memory_ratio(found):.2f}",
    ]
    heads = ["large fit", "wall minutes", "CPU minutes", "iterations", "peak GB", "ratio"]
    return make_table(heads, [row])


def draw(results: dict[str, Any], file: Path) -> None:
    """Draw a panel for each axis: time above, memory below, with the laws of the upper half."""
    found = list(find_curves(results))
    axes = list(dict.fromkeys(curve.axis for curve in found))
    colours = dict(with_colours(dict.fromkeys(curve.method for curve in found)))
    figure = new_figure(2.9 * len(axes), 6.0)
    panels = figure.subplots(2, len(axes), sharex="col", sharey="row", squeeze=False)
    for row, label in enumerate(("CPU seconds", "peak memory, MB")):
        for column, axis in enumerate(axes):
            ax = panels[row, column]
            ax.set(xscale="log", yscale="log")
            for curve in (curve for curve in found if curve.axis == axis):
                y = curve.seconds if row == 0 else [peak / 1e6 for peak in curve.peaks]
                x_upper, y_upper = upper_half(curve.x, y)
                law, colour = fit_law(x_upper, y_upper), colours[curve.method]
                line = [law.scale * x**law.exponent for x in x_upper]
                name = f"{curve.method}  {law.exponent:.2f}"
                ax.plot(x_upper, line, color=colour, linewidth=1.4, label=name)
                ax.plot(curve.x, y, "o", color=colour, markersize=4.5, alpha=0.85)
            title, y_label = TITLES[axis] if row == 0 else None, label if column == 0 else ""
            label_axes(ax, title, "", y_label, grid="both")
            ax.minorticks_off()
            values = next(curve.x for curve in found if curve.axis == axis)
            if max(values) < 1000:  # powers of ten would be few
                ax.set_xticks(values, [f"{value:g}" for value in values])
            ax.legend(loc="upper left", fontsize=8, frameon=False, labelcolor=INK)
    save_svg(figure, file)
