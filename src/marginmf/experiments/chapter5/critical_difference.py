"""Critical-difference diagrams of chapter 5."""

from marginmf.experiments.chapter5.contenders import QUICK, TABLE
from marginmf.experiments.label_exhibits import critical_difference_exhibit

EXHIBIT = critical_difference_exhibit("mlc-hmf-critical-difference", 5, TABLE, quick=QUICK)
