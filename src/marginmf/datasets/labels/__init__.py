"""Label sets to learn from: by name, or from a file of any usual kind.

Every kind of file (`arff`, `svmlight`, `tabular`, `npz`, `mat`, `archives`) becomes a `LabelsTable`
(`table`); `read` tells the kinds apart, and `columns` finds the columns that are labels.
"""

from marginmf.datasets.labels.loading import load_labels
from marginmf.datasets.labels.read import read_labels
from marginmf.datasets.labels.table import LabelsTable

__all__ = ["LabelsTable", "load_labels", "read_labels"]
