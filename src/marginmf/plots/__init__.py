"""Figures of what was fitted, and of how methods compare.

Every function draws into the Axes it is given, or into a new figure of its own, and returns the
Axes: ``ax.figure.savefig("figure.png")`` keeps it.  Matplotlib is imported when something is
drawn, and its global state is never touched.
"""

from marginmf.plots.confusion import level_confusion
from marginmf.plots.curves import curves
from marginmf.plots.geometry import item_map, user_map
from marginmf.plots.groups import group_sparsity
from marginmf.plots.heat import heat_map
from marginmf.plots.losses import loss_curves
from marginmf.plots.ranks import critical_difference
from marginmf.plots.scores import error_bars
from marginmf.plots.selection import regularisation_path
from marginmf.plots.training import training_curves
from marginmf.plots.tree import embedding_tree

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
