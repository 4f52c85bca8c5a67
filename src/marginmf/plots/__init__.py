"""Figures of what was fitted.

Every function draws into the Axes it is given, or into a new figure of its own, and returns the
Axes: ``ax.figure.savefig("figure.png")`` keeps it.  Matplotlib is imported when something is
drawn, and its global state is never touched.
"""

from marginmf.plots.confusion import level_confusion
from marginmf.plots.groups import group_sparsity
from marginmf.plots.scores import error_bars
from marginmf.plots.selection import regularisation_path
from marginmf.plots.training import training_curves
from marginmf.plots.tree import embedding_tree

__all__ = [
    "embedding_tree",
    "error_bars",
    "group_sparsity",
    "level_confusion",
    "regularisation_path",
    "training_curves",
]
