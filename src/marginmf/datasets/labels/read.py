"""Read a user's own file of features and labels, in any of the formats that label sets have."""

from collections.abc import Sequence
from os import PathLike

import numpy as np

from marginmf.datasets.files.formats import ARFF, JSON_LINES, ending, looks_like_svmlight, recognise
from marginmf.datasets.files.packed import Size
from marginmf.datasets.files.source import Source
from marginmf.datasets.labels.archives import open_archive, read_archive
from marginmf.datasets.labels.arff import read_arff
from marginmf.datasets.labels.arrays import read_labels_npz
from marginmf.datasets.labels.columns import Ignored, IgnoredChoice, LabelsChoice, no_labels
from marginmf.datasets.labels.matlab import looks_like_mat, read_mat
from marginmf.datasets.labels.svmlight import read_svmlight
from marginmf.datasets.labels.table import LabelsTable, drop_features
from marginmf.datasets.labels.tabular import read_columnar, read_delimited

ZIP_MARKS = (b"PK\x03\x04", b"PK\x05\x06")
SVMLIGHT_ENDINGS = (".svm", ".svmlight", ".libsvm")
#: The formats that each option goes with, and why it does not go with the others.
OPTIONS = {
    "xml": ("archive arff", "not an ARFF file, and only those have labels that an XML file names"),
    "zero_based": ("svmlight", "not an svmlight file, and only those count from 0 or 1"),
    "labels": (
        "archive arff columnar delimited svmlight",
        "a file of arrays, which says itself which labels it has",
    ),
}


def read_labels(
    path: str | PathLike[str],
    *,
    labels: LabelsChoice | None = None,
    xml: str | PathLike[str] | None = None,
    ignore: IgnoredChoice = (),
    n_features: int | Sequence[str] | None = None,
    zero_based: bool | None = None,
    max_bytes: Size | None = None,
) -> LabelsTable:
    r"""Read a file of samples with features and labels.

    The format is found by the content, and by the name where the content does not tell:

    * ARFF, dense or sparse. Its labels are named by the XML file of MULAN beside it, counted by
      MEKA in the relation (``-C 6``), or given as `labels`; they keep the order of the ARFF file.
    * A zip archive of ARFF files and their XML file. A file of training rows and one of test rows
      become one table, which says which rows are which.
    * svmlight with several labels a line (``1,3 4:0.2 7:1``), also with the first line of sizes
      of extreme classification. Labels and features are called by their numbers. A blank line is a
      sample without labels and features; at the end of the file only if the sizes count it.
    * Delimited text, Parquet, Arrow or Feather, all of whose columns are numbers; `labels` says
      which of them are labels. The last three need the extra ``marginmf[io]``. A first line of
      text that counts three or more columns (``0,1,2`` or ``1,2,3``) holds names. An index of
      pandas is no feature: the one that Parquet files note, and a first column of text without a
      name (or ``Unnamed: 0``) that holds whole numbers, no two alike; ``source`` tells.
    * ``.npz`` with the arrays that `load_labels` reads; ``.mat`` of MATLAB up to version 7, with
      matrices ``data`` and ``target``, or ``X`` and ``Y``, of labels 0 and 1 or -1 and 1, a row or
      a column for each sample; or with ``train_data``, ``train_target``, ``test_data``,
      ``test_target``.

    Text may be compressed with gzip.

    Parameters
    ----------
    path : path-like
        The file.
    labels : int, str or sequence of str, optional
        The columns that are labels: the last n, or the first n as ``-n``; names; or a pattern of
        names such as ``"tag_*"``. A number beyond the columns may be the name of one. Of svmlight,
        how many labels there are, or their names: numbers as in the file, or names in the order of
        the numbers. ``.npz`` and ``.mat`` files say it themselves. An empty list reads all columns
        as features.
    xml : path-like, optional
        The XML file that names the labels of an ARFF file.
    ignore : str or sequence of str
        Columns that are neither features nor labels, by name or pattern.
    n_features : int or sequence of str, optional
        How many features an svmlight file has, of which its rows may not name the last; or their
        names: with ``n_features=train.feature_names``, a test file gets the columns of `train`.
    zero_based : bool, optional
        Whether the features of an svmlight file count from 0; by default if one of them is 0, or
        if there is a line of sizes.
    max_bytes : int or str, optional
        How much a packed file (gzip, zip, npz, Parquet, Arrow) may unpack to, such as ``"4GB"``; by
        default 256 MiB, or 100 times the size of the packed file if that is more.

    Returns
    -------
    LabelsTable
        Its features are sparse where the file is, or where nine in ten of them are zero.

    Raises
    ------
    FileNotFoundError, ImportError
        If there is no such file, or it needs pyarrow and that is not installed.
    ValueError
        If the file is damaged or does not say which columns are labels, if two columns have one
        name, if an argument does not go with the format, or if a value cannot be read; the message
        names the first line at fault and what to do.

    Notes
    -----
    Nominal attributes of ARFF that are 0 and 1, or yes and no in some words, become one feature;
    others one for each value, called ``name=value``. One with more than 100 values is left out,
    which ``source`` tells. A sparse row that leaves one out has the first of its declared values.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "songs.csv")
    ...     _ = path.write_text("tempo,loud,calm,sad\n0.5,1,1,0\n0.9,3,0,0\n")
    ...     table = read_labels(path, labels=["calm", "sad"])
    >>> table.X.tolist(), table.Y.toarray().tolist()
    ([[0.5, 1.0], [0.9, 3.0]], [[1, 0], [0, 0]])
    >>> table.feature_names, table.label_names
    (('tempo', 'loud'), ('calm', 'sad'))
    """
    labels = int(labels) if isinstance(labels, np.integer) else labels
    n_features = int(n_features) if isinstance(n_features, np.integer) else n_features
    source = Source(path, "labels", max_bytes=max_bytes)
    file_format = _find_format(source)
    given = {"labels": None if no_labels(labels) else labels, "xml": xml, "zero_based": zero_based}
    for option, (formats, why) in OPTIONS.items():
        if given[option] is not None and file_format not in formats.split():
            raise ValueError(f"{source.where} is {why}; leave {option}= out.")
    left_out, needs_labels = Ignored.of(ignore), not no_labels(labels)
    match file_format:
        case "npz":
            table = read_labels_npz(source, source.path.stem, needs_labels)
            return drop_features(table, left_out.required, source.where)
        case "mat":
            return drop_features(read_mat(source, needs_labels), left_out.required, source.where)
        case "archive":
            return read_archive(source, labels, xml, left_out)
        case "arff":
            return read_arff(source, labels, xml, left_out)
        case "svmlight":
            return read_svmlight(source, labels, n_features, zero_based, left_out.required)
    read = read_columnar if file_format == "columnar" else read_delimited
    return read(source, labels, left_out)


def _find_format(source: Source) -> str:
    """Return which reader a file is for, or raise an error if there is none."""
    if source.head.startswith(ZIP_MARKS):
        with open_archive(source) as archive:  # NumPy's files are archives too
            return "npz" if all(n.endswith(".npy") for n in archive.namelist()) else "archive"
    if looks_like_mat(source):
        return "mat"
    kind, name = recognise(source), ending(source.path.name)
    if kind.columnar:
        return "columnar"
    if kind is JSON_LINES and name != ".arff":
        raise ValueError(
            f"{source.where} is JSON, which is not read for labels; write it as CSV or Parquet."
        )
    text = source.head.decode(source.encoding, errors="ignore").replace("\r\n", "\n")
    if name == ".arff" or ARFF.match(text):
        return "arff"
    return "svmlight" if name in SVMLIGHT_ENDINGS or looks_like_svmlight(text) else "delimited"
