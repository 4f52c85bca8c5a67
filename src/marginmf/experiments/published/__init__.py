"""What the thesis prints: its tables and worked examples, as numbers, with the slips marked.

Files keep the numbers as printed.  Where one is wrong, or cannot be right, the file lists it as a
`Slip`: where it stands, what is printed, what is right (if that is known), and why.

>>> table = published("grople")
>>> table.at("accuracy", "corel5k", "GroPLE").mean
0.151
"""

from marginmf.experiments.published.examples import WorkedExample, worked_example
from marginmf.experiments.published.facts import (
    PublishedFriedman,
    published_datasets,
    published_friedman,
)
from marginmf.experiments.published.reading import Slip
from marginmf.experiments.published.table import PublishedFigure, PublishedTable, published

__all__ = [
    "PublishedFigure",
    "PublishedFriedman",
    "PublishedTable",
    "Slip",
    "WorkedExample",
    "published",
    "published_datasets",
    "published_friedman",
    "worked_example",
]
