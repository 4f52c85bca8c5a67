"""Label sets to learn from: by name, or from a file of any usual kind.

Every kind of file (`arff`, `svmlight`, `delimited`, `columnar`, `npz`, `archives`) becomes one
form, the `LabelsTable` (`table`); `reading` tells the kinds apart, and `choice` says which columns
of a file are labels.
"""

from marginmf.datasets.labels.loading import load_labels
from marginmf.datasets.labels.reading import read_labels
from marginmf.datasets.labels.table import LabelsTable

__all__ = ["LabelsTable", "load_labels", "read_labels"]
