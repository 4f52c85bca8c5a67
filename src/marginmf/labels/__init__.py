"""Labels: rows that have sets of labels, and a decision rule that every method shares."""

from marginmf.labels.grople import GroPLE
from marginmf.labels.tuned import DecisionTuned

__all__ = ["DecisionTuned", "GroPLE"]
