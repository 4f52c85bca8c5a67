"""Critical-difference diagrams of chapter 6."""

from marginmf.experiments.chapter6.contenders import QUICK, TABLE
from marginmf.experiments.label_exhibits import critical_difference_exhibit

EXHIBIT = critical_difference_exhibit("grople-critical-difference", 6, TABLE, quick=QUICK)
