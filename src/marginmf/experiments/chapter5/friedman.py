"""Friedman's test over the twelve label sets of chapter 5."""

from marginmf.experiments.chapter5.contenders import QUICK, TABLE
from marginmf.experiments.label_exhibits import friedman_exhibit

EXHIBIT = friedman_exhibit("mlc-hmf-friedman", 5, TABLE, quick=QUICK)
