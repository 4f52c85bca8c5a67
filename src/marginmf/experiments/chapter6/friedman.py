"""Friedman's test over the label sets of chapter 6."""

from marginmf.experiments.chapter6.contenders import QUICK, TABLE
from marginmf.experiments.label_exhibits import friedman_exhibit

EXHIBIT = friedman_exhibit("grople-friedman", 6, TABLE, quick=QUICK)
