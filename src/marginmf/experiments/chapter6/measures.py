"""Accuracy and three kinds of F1 on twelve label sets."""

from marginmf.experiments.chapter6.contenders import PROTOCOL, QUICK, TABLE
from marginmf.experiments.label_exhibits import measures_exhibit
from marginmf.experiments.retuned import Retuned

EXHIBIT = measures_exhibit(
    "grople-measures",
    6,
    "Accuracy and F1 of GroPLE",
    TABLE,
    ("accuracy", "example_f1", "macro_f1", "micro_f1"),
    quick=QUICK,
    protocol=PROTOCOL,
    retuned=Retuned(TABLE, "macro_f1", [title for title, there in TABLE.data.items() if there]),
)
