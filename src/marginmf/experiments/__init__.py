"""The tables and figures of the thesis, measured again: `exhibits`, `run` and a report.

An exhibit is a list of cells, each one measurement with everything that it depends on, and a way to
show what they found.  Cells are kept in a `Store` as they are done.
"""

from marginmf.experiments.cell import Cell
from marginmf.experiments.exhibit import Exhibit, exhibits
from marginmf.experiments.running import Summary, run
from marginmf.experiments.store import Store

__all__ = ["Cell", "Exhibit", "Store", "Summary", "exhibits", "run"]
