"""One look for every figure; no other module of the package imports Matplotlib by itself."""

from collections.abc import Iterable, Iterator
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

Item = TypeVar("Item")

#: Okabe and Ito's colours, which people with any kind of colour vision can tell apart; the two
#: that are hard to see on white, yellow and sky blue, come last.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442")
INK = "#303030"
PALE_INK = "#9A9A9A"
FAINT = "#DADADA"
TITLE_SIZE, LABEL_SIZE, TICK_SIZE = 12, 11, 10
DOTS_PER_INCH = 120


def require_matplotlib() -> None:
    """Raise ImportError with a sentence that says what to install, if Matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Figures need Matplotlib, which is not installed: pip install 'marginmf[plots]'."
        ) from error


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure, in inches, that belongs to no window and no backend."""
    require_matplotlib()
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.1)
    return Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout=layout)


def axes_or_new(ax: "Axes | None") -> "Axes":
    """Return the given Axes, or the only one of a new figure."""
    return new_figure(5.5, 4.5).subplots() if ax is None else ax


def label_axes(
    ax: "Axes",
    title: str | None,
    x_label: str,
    y_label: str,
    *,
    grid: Literal["both", "x"] | None = None,
    spines: bool = True,
) -> None:
    """Label the Axes, and take away every line that carries no information."""
    if title:
        ax.set_title(title, fontsize=TITLE_SIZE, color=INK, loc="left", pad=10)
    ax.set_xlabel(x_label, fontsize=LABEL_SIZE, color=INK)
    ax.set_ylabel(y_label, fontsize=LABEL_SIZE, color=INK, labelpad=8)
    ax.tick_params(labelsize=TICK_SIZE, colors=INK, length=0)
    ax.spines[["top", "right"] if spines else slice(None)].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.set_axisbelow(True)
    if grid is not None:
        ax.grid(axis=grid, color=FAINT, linewidth=0.6)


def write_text(
    ax: "Axes", x: float, y: float, text: str, *, colour: str = INK, va: str = "center", **look: Any
) -> None:
    """Write small centred words into the Axes."""
    ax.text(x, y, text, ha="center", va=va, fontsize=TICK_SIZE, color=colour, **look)


def with_colours(items: Iterable[Item]) -> Iterator[tuple[Item, str]]:
    """Yield items, each with a colour of its own as far as there are any."""
    return zip(items, cycle(COLOURS), strict=False)


def shades() -> "Colormap":
    """Return the colours from white to the first of `COLOURS`, for shares from 0 to 1."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("marginmf", ["#FFFFFF", COLOURS[0]])


def level_colours(n: int) -> list[tuple[float, ...]]:
    """Return a colour for each of n ordered levels, from orange for low to blue for high."""
    from matplotlib.colors import LinearSegmentedColormap

    ends = [COLOURS[1], "#D9C9A3", COLOURS[0]]
    ordered = LinearSegmentedColormap.from_list("marginmf-levels", ends)
    return [ordered(index / max(1, n - 1)) for index in range(n)]


def legend_below(ax: "Axes", columns: int = 2, title: str | None = None) -> None:
    """Put the legend below the Axes, because curves may be anywhere inside."""
    position: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14), "ncols": columns}
    legend = ax.legend(frameon=False, fontsize=TICK_SIZE, labelcolor=INK, title=title, **position)
    legend.get_title().set(fontsize=TICK_SIZE, color=INK)


def make_logarithmic(ax: "Axes", which: Literal["x", "y"]) -> None:
    """Make an axis logarithmic, with plain numbers that do not overlap; call it after drawing."""
    from matplotlib.ticker import LogLocator, NullFormatter

    getattr(ax, f"set_{which}scale")("log")
    axis = getattr(ax, f"{which}axis")
    low, high = axis.get_view_interval()
    wide = high / low > 1e3
    axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())
    axis.set_tick_params(which="minor", length=0)
