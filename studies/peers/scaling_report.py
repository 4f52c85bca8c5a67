"""Power laws through measurements, as tables and as a picture."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from studies.harness.drawing import COLOURS, FAINT, INK, label_axes, new_figure, save_svg
from studies.harness.markdown import make_table

#: The exponents and the memory that HMF is to stay below.
GOALS = {"ratings": 1.05, "factors": 1.1, "levels": 1.0, "levels, until done": 1.0}
MEMORY_GOAL = 2.5
LARGE_GOAL_BYTES = 12e9

#: What an axis is called in pictures, and the letter of its law.
TITLES = {
    "ratings": "ratings",
    "factors": "factors d",
    "levels": "levels R",
    "levels, until done": "levels R, until done",
    "users": "users N",
    "items": "items M",
}

#: Parts of the library by the file that asked for memory, as seen from its innermost line.
GUILTY = {
    "the ratings as given": "input",
    "_ids.py": "data container",
    "ratings/ids.py": "data container",
    "ratings/columns.py": "data container",
    "ratings/data.py": "data container",
    "ratings/rows.py": "data container",
    "ratings/changes.py": "data container",
    "ratings/fallback.py": "data container",
    "solvers/": "solver vectors",
    "ratings/objective.py": "solver vectors",
    "backends/": "scratch",
    "ratings/factoriser.py": "model",
    "ratings/hmf.py": "model",
    "ratings/mmmf.py": "model",
    "ratings/pmmmf.py": "model",
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

    Costs that do not grow bend the lower end of a law; they no longer matter here.

    >>> upper_half([1, 10, 100, 1000, 10_000], [5, 5, 6, 7, 8])
    ([100, 1000, 10000], [6, 7, 8])
    """
    middle = math.sqrt(min(x) * max(x)) * (1 - 1e-9)
    kept = [(a, b) for a, b in zip(x, y, strict=True) if a >= middle]
    return [a for a, _ in kept], [b for _, b in kept]


def needed_bytes(n_ratings: int, parameter_bytes: int) -> int:
    """Return the bytes that there must be: the ratings as given and the parameters as learned.

    >>> needed_bytes(1000, 8000)
    20000
    """
    return BYTES_PER_RATING * n_ratings + parameter_bytes


def memory_ratio(peak_bytes: int, n_ratings: int, parameter_bytes: int) -> float:
    """Return how many times the bytes that there must be a fit takes.

    >>> memory_ratio(50_000, 1000, 8000)
    2.5
    """
    return peak_bytes / needed_bytes(n_ratings, parameter_bytes)


class Curve(NamedTuple):
    """One method along one axis: where, and there the CPU seconds, bytes and memory ratios."""

    method: str
    axis: str
    x: list[float]
    seconds: list[float]
    peaks: list[float]
    ratios: list[float]


def curves(results: dict[str, Any]) -> Iterator[Curve]:
    """Yield a curve for each axis and method, of the medians over repetitions."""
    points = results["points"]
    for axis, method in dict.fromkeys((point["axis"], point["method"]) for point in points):
        own = [point for point in points if (point["axis"], point["method"]) == (axis, method)]
        x = sorted({point["value"] for point in own})
        at = [[point for point in own if point["value"] == value] for value in x]
        yield Curve(
            method,
            axis,
            x,
            [median(point["cpu"] for point in group) for group in at],
            [median(point["peak_bytes"] for point in group) for group in at],
            [median(_ratio(point) for point in group) for group in at],
        )


def _ratio(point: dict[str, Any]) -> float:
    return memory_ratio(point["peak_bytes"], point["n_ratings"], point["parameter_bytes"])


def tables(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    return "\n\n".join(parts(results).values())


def parts(results: dict[str, Any]) -> dict[str, str]:
    """Return the tables by name."""
    if "large" in results:
        return {"large": _large(results["large"])}
    found = {"exponents": _exponents(results), "points": _points(results)}
    if results["threads"]:
        found["threads"] = _threads(results)
    return {**found, "traces": "\n\n".join(_trace(trace) for trace in results["traces"])}


def _threads(results: dict[str, Any]) -> str:
    """Show the wall seconds on one and on several threads, and what that saves."""
    found = results["threads"]
    rows = []
    for method in dict.fromkeys(fit["method"] for fit in found):
        own = [fit for fit in found if fit["method"] == method]
        seconds = {
            n_jobs: median(fit["wall"] for fit in own if fit["n_jobs"] == n_jobs)
            for n_jobs in sorted({fit["n_jobs"] for fit in own})
        }
        one = seconds[min(seconds)]
        rows += [
            [f"{method}, n_jobs={n_jobs}", f"{wall:.2f}", f"{wall / one:.2f}"]
            for n_jobs, wall in seconds.items()
        ]
    return make_table(["fit", "wall seconds", "times one thread"], rows)


def _exponents(results: dict[str, Any]) -> str:
    rows = []
    for curve in curves(results):
        whole, upper = _laws(curve.x, curve.seconds)
        memory, memory_upper = _laws(curve.x, curve.peaks)
        goal = GOALS.get(curve.axis) if curve.method == "HMF" else None
        rows.append(
            [
                f"{curve.method}, {TITLES[curve.axis]}",
                f"{curve.x[0]:,} to {curve.x[-1]:,}",
                f"{whole.exponent:.2f}",
                f"{upper.exponent:.2f}",
                "" if goal is None else f"{goal:.2f}",
                f"{memory.exponent:.2f}",
                f"{memory_upper.exponent:.2f}",
                f"{curve.ratios[-1]:.1f}",
            ]
        )
    heads = [
        "time and memory against",
        "from, to",
        "time exponent, all",
        "upper half",
        "goal",
        "memory exponent, all",
        "upper half",
        "memory ratio at the end",
    ]
    return make_table(heads, rows)


def _laws(x: list[float], y: list[float]) -> tuple[Law, Law]:
    return fit_law(x, y), fit_law(*upper_half(x, y))


def _points(results: dict[str, Any]) -> str:
    rows = []
    for curve in curves(results):
        for value, seconds, peak, ratio in zip(
            curve.x, curve.seconds, curve.peaks, curve.ratios, strict=True
        ):
            where = f"{curve.method}, {TITLES[curve.axis]} = {value:,}"
            rows.append([where, f"{seconds:.3f}", f"{peak / 1e6:.1f}", f"{ratio:.2f}"])
    heads = ["fit", "CPU seconds", "peak MB", f"times ratings + parameters (goal {MEMORY_GOAL})"]
    return make_table(heads, rows)


def culprit(site: str) -> str:
    """Return which part of the library a line belongs to.

    >>> culprit("solvers/vectors.py:56 < solvers/lbfgs.py:67"), culprit("cli/fit.py:3")
    ('solver vectors', 'other')
    """
    return next((part for file, part in GUILTY.items() if site.startswith(file)), "other")


def _trace(trace: dict[str, Any]) -> str:
    """Show who holds memory at the peak, in bytes a rating and in parameter vectors."""
    n_ratings = trace["n_ratings"]
    vector = 4 * trace["n_factors"] * (trace["n_users"] + trace["n_items"])
    by_part: dict[str, int] = {}
    for site, size in trace["sites"].items():
        by_part[culprit(site)] = by_part.get(culprit(site), 0) + size
    top = list(trace["sites"].items())[:12]
    rows = [
        [name, f"{size / 1e6:.1f}", f"{size / n_ratings:.1f}", f"{size / vector:.2f}"]
        for name, size in [*sorted(by_part.items(), key=lambda pair: -pair[1]), *top]
    ]
    ratio = trace["peak_bytes"] / needed_bytes(n_ratings, trace["parameter_bytes"])
    heads = ["alive at the peak", "MB", "bytes a rating", "parameter vectors"]
    title = (
        f"{trace['method']}, {trace['name']} ({n_ratings:,} ratings, d = {trace['n_factors']}): "
        f"peak {trace['peak_bytes'] / 1e6:.0f} MB, {ratio:.2f} times ratings + parameters; "
        "the parts, then the lines."
    )
    return f"{title}\n\n{make_table(heads, rows)}"


def _large(found: dict[str, Any]) -> str:
    verdict = "within" if found["peak_bytes"] < LARGE_GOAL_BYTES else "beyond"
    heads = ["large fit", "wall minutes", "CPU minutes", "iterations", "peak GB", "ratio"]
    row = [
        f"HMF, {found['n_users']:,} x {found['n_items']:,}, {found['n_ratings']:,} ratings, "
        f"d = {found['n_factors']}, {found['n_jobs']} threads",
        f"{found['wall'] / 60:.1f}",
        f"{found['cpu'] / 60:.1f}",
        ", ".join(map(str, found["n_iter"])),
        f"{found['peak_bytes'] / 1e9:.2f} ({verdict} {LARGE_GOAL_BYTES / 1e9:.0f})",
        f"{_ratio(found):.2f}",
    ]
    return make_table(heads, [row])


def picture(results: dict[str, Any], file: Path) -> None:
    """Draw a panel for each axis: time above, memory below, with the laws of the upper half."""
    found = list(curves(results))
    axes_of = list(dict.fromkeys(curve.axis for curve in found))
    colours = dict(zip(dict.fromkeys(curve.method for curve in found), COLOURS, strict=False))
    figure = new_figure(2.9 * len(axes_of), 6.0)
    panels = figure.subplots(2, len(axes_of), sharex="col", sharey="row", squeeze=False)
    for row, label in enumerate(("CPU seconds", "peak memory, MB")):
        for column, axis in enumerate(axes_of):
            ax = panels[row, column]
            ax.set(xscale="log", yscale="log")
            for curve in (curve for curve in found if curve.axis == axis):
                y = curve.seconds if row == 0 else [peak / 1e6 for peak in curve.peaks]
                x_upper, y_upper = upper_half(curve.x, y)
                law = fit_law(x_upper, y_upper)
                colour = colours[curve.method]
                name = f"{curve.method}  {law.exponent:.2f}"
                line = [law.scale * x**law.exponent for x in x_upper]
                ax.plot(x_upper, line, color=colour, linewidth=1.4, label=name)
                ax.plot(curve.x, y, "o", color=colour, markersize=4.5, alpha=0.85)
            label_axes(ax, TITLES[axis] if row == 0 else None, "", label if column == 0 else "")
            ax.grid(True, color=FAINT, linewidth=0.6, alpha=0.7)
            ax.minorticks_off()
            values = next(curve.x for curve in found if curve.axis == axis)
            if max(values) < 1000:  # powers of ten would be few
                ax.set_xticks(values, [f"{value:g}" for value in values])
            ax.legend(loc="upper left", fontsize=8, frameon=False, labelcolor=INK)
    save_svg(figure, file)
