"""Figures of what was fitted, and of how methods compare.

Every function draws into the Axes it is given, or into a new figure of its own, and returns the
Axes: ``ax.figure.savefig("figure.png")`` keeps it.  Matplotlib is imported when something is
drawn, and its global state is never touched.
"""

from marginmf.plots.curves import curves, loss_curves, regularisation_path, training_curves
from marginmf.plots.models import embedding_tree, group_sparsity, item_map, user_map
from marginmf.plots.results import critical_difference, error_bars, heat_map, level_confusion

__all__ = [
    "critical_difference",
    "curves",
    "embedding_tree",
    "error_bars",
    "group_sparsity",
    "heat_map",
    "item_map",
    "level_confusion",
    "loss_curves",
    "regularisation_path",
    "training_curves",
    "user_map",
]
