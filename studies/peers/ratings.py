"""Accuracy against time of ratings methods and peers: tables, a verdict and the Pareto picture.

Time is what it takes to build the library's own form of the data from arrays, and to fit.  Every
measurement is a process of its own, under the library's own interpreter.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise, product
from typing import Any, NamedTuple

from marginmf.metrics import metric
from marginmf.plots.style import COLOURS, INK, PALE_INK, label_axes, make_logarithmic
from studies.harness.drawing import draw_panels, save_svg
from studies.harness.markdown import publish
from studies.peers import comparison
from studies.peers.bench import Task, interleave
from studies.peers.comparison import LEARNING, Column, Row, error_column, times_column
from studies.peers.methods import RATINGS
from studies.peers.problems import ORDERS, SPLITS, TITLES

NOTE = """\
Integer predictions are those of a method's own rule, or the nearest star; of a distribution, the
median for the MAE and the mode for the zero-one error.  Real-valued predictions of methods that
answer with stars are means of probabilities, which cost another fit that is not in the times.
Times are medians, with the range; errors are means over n splits."""
ERRORS = ("mae", "zero_one")
OURS, THEIRS = COLOURS[0], COLOURS[1]
LABEL_SIZE = 8.5
#: Where a label may stand: its distance from the point, and how it is aligned there.
POSITIONS = [
    (distance * x, distance * y, horizontal, vertical)
    for distance in (6, 13, 22, 34)
    for x, y, horizontal, vertical in (
        (1, 0, "left", "center"),
        (0.7, 0.7, "left", "bottom"),
        (0.7, -0.7, "left", "top"),
        (0, 1, "center", "bottom"),
        (0, -1, "center", "top"),
        (-0.7, 0.7, "right", "bottom"),
        (-0.7, -0.7, "right", "top"),
        (-1, 0, "right", "center"),
    )
]
NEAR = 10


class Point(NamedTuple):
    """A method: what it costs, how wrong it is, and whether it is ours."""

    name: str
    cost: float
    error: float
    ours: bool = False

    def answers(self, other: "Point") -> bool:
        """Return whether this point is at most as slow and at most as wrong as another."""
        return self.cost <= other.cost and self.error <= other.error


def find_envelope(points: Iterable[Point]) -> list[Point]:
    """Return the points that none other is as good as, from the cheapest to the most accurate."""
    best: list[Point] = []
    for point in sorted(points, key=lambda p: (p.cost, p.error)):
        if not best or point.error < best[-1].error:
            best.append(point)
    return best


def find_unanswered(points: Sequence[Point]) -> list[Point]:
    """Return the points of others that lie below our curve, the cheapest first."""
    ours = [point for point in points if point.ours]
    below = [p for p in points if not p.ours and not any(own.answers(p) for own in ours)]
    return sorted(below, key=lambda point: point.cost)


def add_arguments(parser: ArgumentParser) -> None:
    comparison.add_peer_arguments(parser, RATINGS)
    parser.add_argument("--data", nargs="+", default=["ml-100k", "ml-1m"])
    parser.add_argument("--split", nargs="+", default=list(SPLITS), choices=SPLITS)
    parser.add_argument("--order", default=ORDERS[0], choices=ORDERS, help="of the training rows")
    parser.add_argument("--baseline", default="Surprise SVD", help="what times are compared with")


def main(args: Namespace) -> None:
    if args.quick:
        args.data, args.split, args.threads, args.repeats = ["ml-100k"], ["80/20"], [1], 1
    methods = comparison.choose_methods(RATINGS, args)
    splits = product(args.data, args.split)
    tasks = [Task("ratings", data, split, args.order) for data, split in splits]
    cells = interleave(methods, tasks, args.threads, args.repeats)
    rows, machine = comparison.compare(args, "ratings", cells)
    names = {method.name for method in methods}
    rows = [row for row in rows if row.method in names]  # the store has those of ``accuracy`` too
    tables = comparison.split_tables(rows, lambda own: make_columns(own, args.baseline))
    publish(args.out / "ratings.md", [*tables, NOTE, describe_verdict(rows), *machine])
    draw_pictures(rows, args)


def make_columns(rows: Sequence[Row], baseline: str) -> list[Column]:
    return [
        *(error_column(metric(name).heading, name) for name in ("mae", "nmae", "zero_one")),
        *(error_column("RMSE, integer", "rmse"), error_column("RMSE, real", "rmse_real")),
        comparison.FIT_CPU,
        times_column(rows, baseline, lambda row: row.seconds("cpu", *LEARNING).median),
        *(comparison.FIT_WALL, comparison.PREDICT, comparison.PEAK, comparison.IMPORT),
    ]


def find_points(rows: Iterable[Row], data: str, split: str, error: str) -> list[Point]:
    """Return what the picture shows of one split: CPU seconds on one thread, and an error."""
    return [
        Point(row.method, row.seconds("cpu", *LEARNING).median, wrong, not row.peer)
        for row in rows
        if (row.data, row.split, row.threads) == (data, split, 1)
        and (wrong := row.error(error)) is not None
    ]


def find_below(rows: list[Row], data: str, split: str, error: str) -> list[Point]:
    """Return the peers that no setting of ours answers.

    A slow peer may have been measured on fewer splits than ours: then those alone are compared.
    """
    found = []
    for peer in rows:
        if peer.peer and (own := find_points([peer], data, split, error)):
            repetitions = {one["repetition"] for one in peer.records}
            ours = [row.on(repetitions) for row in rows if not row.peer]
            points = find_points((row for row in ours if row.n), data, split, error)
            found += find_unanswered(points + own)
    return sorted(found, key=lambda point: point.cost)


def describe_verdict(rows: list[Row]) -> str:
    """Return, for each split and error, which peers lie below our curve."""
    lines = ["## Who lies below our curve\n"]
    for data, split in dict.fromkeys((row.data, row.split) for row in rows):
        for error in ERRORS:
            shown = find_points(rows, data, split, error)
            if not any(p.ours for p in shown) or all(p.ours for p in shown):
                continue
            found = find_below(rows, data, split, error)
            below = [f"{p.name} ({p.cost:.3g} s, {p.error:.4f})" for p in found]
            lines.append(
                f"- {data}, {split}, {metric(error).heading}: {'; '.join(below) or 'nobody'}"
            )
    if len(lines) == 1:
        lines.append("Nobody to compare: it takes ours and a peer on one thread.")
    return "\n".join(lines)


def draw_pictures(rows: list[Row], args: Namespace) -> None:
    for error in ERRORS:
        panels = {
            f"{TITLES.get(data, data)}, {split}": shown
            for data, split in dict.fromkeys((row.data, row.split) for row in rows)
            if (shown := find_points(rows, data, split, error))
        }
        if panels:
            figure = pareto_picture(panels, metric(error).heading)
            file = args.out / f"pareto-{error.replace('_', '-')}.svg"
            save_svg(figure, file)
            figure.savefig(file.with_suffix(".png"))
            print(f"\n{file} and .png")


def pareto_picture(panels: Mapping[str, Sequence[Point]], error: str, columns: int = 2) -> Any:
    """Return a figure with a panel for each set of points.

    Our settings are joined along their lower envelope; whatever lies below that line is better
    than ours.
    """
    draws = [partial(_draw_panel, title, points, error) for title, points in panels.items()]
    figure = draw_panels(draws, columns, 5.2, 4.0)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper right", ncols=2, frameon=False, labelcolor=INK)
    # Labels are placed by where things are, so the layout must be settled first, and stay.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for ax, points in zip(figure.axes, panels.values(), strict=True):
        _label(ax, points)
    return figure


def _draw_panel(title: str, points: Sequence[Point], error: str, ax: Any) -> None:
    ours = [point for point in points if point.ours]
    others = [point for point in points if not point.ours]
    curve = find_envelope(ours)
    label_axes(ax, title, "CPU seconds to prepare and fit, one thread", error, grid="both")
    ax.set_xscale("log")
    ax.plot(*_columns(curve), color=OURS, linewidth=1.8, drawstyle="steps-post", zorder=2)
    ax.scatter(*_columns(others), s=26, color=THEIRS, marker="D", zorder=3, label="peers")
    ax.scatter(*_columns(ours), s=34, color=OURS, zorder=4, label="marginmf")
    ax.margins(x=0.16, y=0.12)
    make_logarithmic(ax, "x")


def _columns(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    return [point.cost for point in points], [point.error for point in points]


def _label(ax: Any, points: Sequence[Point]) -> None:
    """Write the names where they cover neither points nor names, the crowded ones last.

    Of ours only those on the curve have a name: there is little room.
    """
    from matplotlib.transforms import Bbox

    curve = find_envelope([point for point in points if point.ours])
    named = [point for point in points if not point.ours or point in curve]

    spots = {point: ax.transData.transform((point.cost, point.error)) for point in points}
    # With a margin, so that a name does not seem to be that of a neighbour.
    around = {point: Bbox.from_bounds(x - 10, y - 10, 20, 20) for point, (x, y) in spots.items()}
    taken = _along(ax, curve)
    frame = ax.get_window_extent()
    crowd = {
        point: sum(abs(x - own_x) < 90 and abs(y - own_y) < 40 for x, y in spots.values())
        for point, (own_x, own_y) in spots.items()
    }
    for point in sorted(named, key=crowd.__getitem__):
        near = {"xy": (point.cost, point.error), "textcoords": "offset points"}
        look = {"fontsize": LABEL_SIZE, "color": OURS if point.ours else INK, "zorder": 5}
        text = ax.annotate(point.name, xytext=(0, 0), **near, **look)
        best, least = POSITIONS[0], float("inf")
        for position in POSITIONS:
            _move(text, position)
            box = text.get_window_extent().expanded(1.02, 1.05)
            others = [spot for other, spot in around.items() if other is not point]
            lost = sum(_overlap(box, other) for other in [*taken, *others])
            lost += box.width * box.height - _overlap(box, frame)
            if lost < least:
                best, least = position, lost
            if lost <= 0:
                break
        _move(text, best)
        taken.append(text.get_window_extent())
        if max(map(abs, best[:2])) > NEAR:
            line = {"arrowstyle": "-", "color": PALE_INK, "linewidth": 0.6}
            ax.annotate("", xytext=best[:2], **near, arrowprops=line, zorder=1)


def _along(ax: Any, curve: Sequence[Point]) -> list[Any]:
    """Return thin boxes that cover the steps of our curve."""
    from matplotlib.transforms import Bbox

    spots = [ax.transData.transform((point.cost, point.error)) for point in curve]
    boxes = []
    for (x, y), (next_x, next_y) in pairwise(spots):
        boxes.append(Bbox.from_extents(x, y - 1, next_x, y + 1))
        boxes.append(Bbox.from_extents(next_x - 1, next_y, next_x + 1, y))
    return boxes


def _move(text: Any, position: tuple[float, float, str, str]) -> None:
    text.set_position(position[:2])
    text.set(ha=position[2], va=position[3])


def _overlap(one: Any, other: Any) -> float:
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return float(width * height) if width > 0 and height > 0 else 0.0
