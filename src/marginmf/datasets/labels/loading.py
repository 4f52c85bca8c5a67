"""Load a label dataset by name from the first source that has it."""

from marginmf.datasets.cache import AnyPath
from marginmf.datasets.labels.table import LabelsTable
from marginmf.datasets.loading import load


def load_labels(
    name: str,
    *,
    data_dir: AnyPath | None = None,
    cache_dir: AnyPath | None = None,
    offline: bool = False,
    progress: bool = True,
) -> LabelsTable:
    """Load a label dataset by its name, downloading it the first time.

    The sources, in order: the data folder (``labels/<name>.npz``, else ``original/<name>.zip``,
    an archive of ARFF files as MULAN publishes them); the cache; a collection of zip files;
    mirrors. Whatever the source, the counts of rows, features and labels are checked. What was
    downloaded goes into the cache, after its terms were shown on standard error.

    Parameters
    ----------
    name : str
        Such as ``"yeast"``; see `dataset_names` and `dataset_info`. A data folder may have
        others.
    data_dir : path-like, optional
        The data folder; by default the one that the environment variable ``MARGINMF_DATA`` names.
    cache_dir : path-like, optional
        Folder of the cache; by default the user's cache folder of the operating system.
    offline : bool
        Do not download. The environment variable ``MARGINMF_OFFLINE=1`` says the same.
    progress : bool
        Say on standard error that something is downloaded, if that is a terminal.

    Returns
    -------
    LabelsTable
        Features and labels. Copies may differ in the order of rows and in digits; then `source`
        says so.

    Raises
    ------
    ValueError
        If the name is not known.
    DatasetUnavailable
        If no source has the dataset, or there is no such folder.

    Examples
    --------
    >>> load_labels("yeast")  # doctest: +SKIP
    LabelsTable('yeast': 2,417 samples, 103 features (dense), 14 labels, 4.237 a sample; ...)
    """
    table: LabelsTable = load("labels", name, data_dir, cache_dir, offline, progress)
    return table
