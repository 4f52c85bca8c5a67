"""The factors that each group of labels uses."""

from typing import TYPE_CHECKING, Any

import numpy as np

from marginmf._utils.types import Float64Array
from marginmf.plots.style import INK, axes_or_new, calm, shades

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The faintest shade of a factor that is not zero, so that it can be told from one that is.
FAINTEST = 0.25
#: A group narrower than this share of the picture has no room for its number.
NARROWEST = 0.02


def group_sparsity(model: Any, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
    """Draw the factors of all labels, group by group: white where a group does not use a factor.

    Parameters
    ----------
    model : fitted GroPLE
        The model whose ``label_factors_`` are drawn.
    ax : Axes, optional
        Where to draw; by default a new figure.
    title : str, optional
        A title.

    Returns
    -------
    Axes
        Columns are labels, with lines between their groups; rows are factors, shaded by their
        size, the factor's largest being the darkest.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from marginmf.labels import GroPLE
    >>> X, Y = make_multilabel_classification(n_classes=8, random_state=0)
    >>> ax = group_sparsity(GroPLE(n_groups=3, reg_group=5.0, random_state=0).fit(X, Y))
    >>> ax.get_xlabel(), len(ax.lines)  # a line between any two groups
    ('labels, by group', 2)
    """
    factors = getattr(model, "label_factors_", None)
    if factors is None:
        raise ValueError(
            f"{type(model).__name__} has no factors of labels to draw: fit a GroPLE first."
        )
    groups = np.asarray(model.label_groups_)
    order = np.argsort(groups, kind="stable")
    names, starts = np.unique(groups[order], return_index=True)
    bounds = np.append(starts, len(groups))
    ax = axes_or_new(ax)
    ax.imshow(
        shading(np.asarray(factors)[:, order]),
        cmap=shades(),
        vmin=0,
        vmax=1,
        aspect="auto",
        interpolation="nearest",
    )
    for bound in bounds[1:-1]:
        ax.axvline(bound - 0.5, color=INK, linewidth=0.8)
    wide = np.diff(bounds) >= NARROWEST * len(groups)
    centres = (bounds[:-1] + bounds[1:] - 1) / 2
    ax.set_xticks(centres[wide], [str(name) for name in names[wide]])
    calm(ax, title, "labels, by group", "factors")
    ax.spines[:].set_visible(False)
    return ax


def shading(factors: Float64Array) -> Float64Array:
    """Return 0 for zeros, and for others a shade from faint to 1, the largest of its row.

    >>> shading(np.array([[0.0, -2.0, 1.0], [0.0, 0.0, 0.0]]))
    array([[0.   , 1.   , 0.625],
           [0.   , 0.   , 0.   ]])
    """
    sizes = np.abs(factors)
    largest = sizes.max(axis=1, keepdims=True, initial=0.0)
    shares = np.divide(sizes, largest, out=np.zeros_like(sizes), where=largest > 0)
    shades_: Float64Array = np.where(sizes > 0, FAINTEST + (1.0 - FAINTEST) * shares, 0.0)
    return shades_
