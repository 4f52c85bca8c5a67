"""Label sets to learn from, in files of any usual kind.

Every kind of file (`arff`, `svmlight`, `tabular`, `arrays`, `archives`) becomes a `LabelsTable`
(`table`); `read` tells the kinds apart, and `columns` finds the columns that are labels.
"""

from marginmf.datasets.labels.read import read_labels
from marginmf.datasets.labels.table import LabelsTable

__all__ = ["LabelsTable", "read_labels"]
