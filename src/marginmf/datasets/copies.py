"""Copies of datasets on this machine: where they are, and how to take one in."""

from pathlib import Path

from marginmf.datasets.entry import DatasetInfo
from marginmf.datasets.forms import FORMS
from marginmf.datasets.places import AnyPath, Place, kept_file, places, read_original
from marginmf.datasets.registry import dataset_info
from marginmf.datasets.verification import reason, verify


def keep_copy(name: str, path: AnyPath, *, cache_dir: AnyPath | None = None) -> Path:
    """Take a dataset from a file of your own into the cache, where it is found by its name.

    Parameters
    ----------
    name : str
        One of `dataset_names`.
    path : path-like
        The file of its owner, such as ``Vote.txt`` of EachMovie or an archive fetched by hand.
    cache_dir : path-like, optional
        Folder of the cache; by default the user's cache folder of the operating system.

    Returns
    -------
    Path
        The file that it is kept as.

    Raises
    ------
    ValueError
        If the name is unknown, or the file is not the dataset.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> keep_copy("eachmovie", "Vote.txt")  # doctest: +SKIP
    PosixPath('/home/ann/.cache/marginmf/ratings/eachmovie.npz')
    """
    info, file = dataset_info(name), Path(path)
    if not file.exists():
        raise FileNotFoundError(
            f"There is no file {file}; check the name and the folder (now in {Path.cwd()})."
        )
    try:
        table = verify(read_original(info, file), info)
    except Exception as error:  # a damaged file can fail anywhere in zipfile, zlib or NumPy
        raise ValueError(f"{file} is not {info.title}: {reason(error)}") from error
    kept = kept_file(info, cache_dir)
    FORMS[info.kind].write_arrays(table, kept)
    return kept


def dataset_path(
    name: str, *, data_dir: AnyPath | None = None, cache_dir: AnyPath | None = None
) -> Path | None:
    """Return the file that a dataset is read from on this machine, or None if there is none.

    Parameters
    ----------
    name : str
        One of `dataset_names`.
    data_dir, cache_dir : path-like, optional
        As for `load_ratings`.

    Returns
    -------
    Path or None
        The first file that is there; nothing is read of it.

    Examples
    --------
    >>> dataset_path("ml-100k", cache_dir="/nowhere", data_dir="/nowhere") is None
    True
    """
    place = present(dataset_info(name), data_dir, cache_dir)
    return None if place is None else place.path


def present(
    info: DatasetInfo, data_dir: AnyPath | None = None, cache_dir: AnyPath | None = None
) -> Place | None:
    """Return the first place that has a file of a dataset."""
    there = (one for one in places(info, data_dir, cache_dir) if one.path.is_file())
    return next(there, None)
