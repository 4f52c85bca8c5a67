"""What every study shares: cells, the store they are kept in, the runner, the Markdown writer."""

from studies.harness.cell import Cell, Values, make_splits
from studies.harness.running import Finding, Summary, run
from studies.harness.store import Store

__all__ = ["Cell", "Finding", "Store", "Summary", "Values", "make_splits", "run"]
