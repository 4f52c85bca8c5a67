"""Models to files and back, and what a file holds from its header alone."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, fields, replace
from io import BufferedReader
from pathlib import Path
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from marginmf import __version__
from marginmf._utils.files import check_destination
from marginmf._utils.printable import printable
from marginmf._utils.tensor_files import (
    InvalidFileError,
    TensorHeader,
    read_header,
    read_tensors,
    write_tensor_file,
)
from marginmf.persistence.classes import check_model, class_named
from marginmf.persistence.codec import HeaderDecoder, ModelDecoder, ModelEncoder

FORMAT = "marginmf model"
#: Raised when files change so that an older marginmf could not read them.
VERSION = 1
#: How many characters of a reason why a file cannot be loaded are shown.
LONGEST = 300


class ModelFileError(ValueError):
    """A file that is not a model, or is damaged, cut short, or malicious."""


# What a model was learned from is in the header, so that no array must be read for it.


@dataclass(frozen=True)
class Counts:
    """How many users, items, ratings and levels a model was learned from."""

    users: int
    items: int
    ratings: int
    levels: int


@dataclass(frozen=True)
class PairCounts:
    """How many users and items a model of who has what was learned from, and how many pairs."""

    users: int
    items: int
    pairs: int


@dataclass(frozen=True)
class LabelCounts:
    """How many labels, features and rows a model was learned from, and what it calls a label.

    Parameters
    ----------
    labels, features, rows : int
        How many there are; of targets that are a vector, ``labels`` are the classes.
    lowest_threshold, highest_threshold : float or None
        Between what numbers the thresholds of the decision rule lie, labels aside that are never
        predicted; None if there are none.
    """

    labels: int
    features: int
    rows: int
    lowest_threshold: float | None = None
    highest_threshold: float | None = None


AnyCounts = Counts | PairCounts | LabelCounts


class Savable:
    """An estimator with the method `save`.

    What a file holds of it is declared in ``_saved`` and ``_flaws`` (see `marginmf._utils.saved`).
    """

    #: What `_learned_from` returns.
    _counts_type: ClassVar[type[AnyCounts]]
    #: Whether one that was learned inside another may be unfitted.
    _unfitted_inside: ClassVar[bool] = False

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this fitted model to a file that `marginmf.load` reads.

        The file appears whole or not at all.  It holds everything that the model has learned,
        ratings and rows included where predictions need them, and the loaded model predicts the
        same to the last bit.  ``callbacks``, which are code, are not kept, and a ``random_state``
        that is a random generator becomes None.

        Parameters
        ----------
        path : str or path
            The file; what was there before is replaced.  Its folder must be there.

        Raises
        ------
        OSError
            If the path is a folder, or in a folder that is not there (FileNotFoundError).
        ValueError
            If the model is not fitted, or holds what a file cannot: a loss or a solver of your
            own, ids that are not text, numbers, booleans or tuples of these, or a classifier
            that is not linear.  Nothing is written then.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> import marginmf
        >>> model = marginmf.ratings.BiasOnly(reg=0.1).fit([("ann", "x"), ("bob", "x")], [5, 3])
        >>> with TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/stars.marginmf")
        ...     marginmf.load(f"{folder}/stars.marginmf")
        BiasOnly(reg=0.1)
        """
        check_destination(Path(path))  # before what may take long
        save(self._to_save(), path)

    def _to_save(self) -> Any:
        """Return what stands in the file: this model, or one that is the same there."""
        return self

    def _after_load(self) -> None:
        """Take note that this model was read from a file."""

    def _learned_from(self) -> AnyCounts:
        """Count what this fitted model was learned from."""
        raise NotImplementedError

    def _check_loaded(self) -> None:
        """Raise an error if the parameters of this fitted model cannot be used."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file; the same as its method ``save``."""
    if not isinstance(model, Savable):
        raise ValueError(f"A {type(model).__name__} is not a model of marginmf.")
    check_is_fitted(model)
    model = copy(model)  # other threads may ask it meanwhile, and so make it learn
    vars(model).pop("_from_file", None)
    destination = Path(path)
    check_destination(destination)
    encoder = ModelEncoder()
    node = encoder.encode(model, "")
    try:
        check_model(model)
    except InvalidFileError as error:
        raise ValueError(
            f"This {type(model).__name__} cannot be saved, because it could not be loaded again: "
            f"{error}."
        ) from None
    document = {
        "format": FORMAT,
        "version": VERSION,
        "marginmf": __version__,
        "counts": asdict(model._learned_from()),
        "model": node,
    }
    write_tensor_file(destination, document, encoder.tensors, encoder.ask)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file that its method ``save`` wrote.

    Nothing in the file is run, so files from elsewhere can be loaded: one that is damaged or
    malicious gives an error.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        A fitted estimator that predicts as the saved one did, to the last bit.  It learns nothing
        by itself: what its file lacks, such as `fit_exposure` learns, must be asked for.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, or needs a newer marginmf.  It is a ValueError.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from marginmf.ratings import BiasOnly
    >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y")]
    >>> with TemporaryDirectory() as folder:
    ...     BiasOnly(reg=0.1).fit(pairs, [5, 3, 4, 2]).save(f"{folder}/stars.marginmf")
    ...     model = load(f"{folder}/stars.marginmf")
    >>> model.predict([("bob", "y"), ("ann", "x")], output="rule")
    array([2., 5.])
    """
    with _opened(Path(path)) as file:
        header = read_header(file)
        about = _read_description(file, header)
        decoder = ModelDecoder(read_tensors(file, header), header.allowance)
        model = decoder.decode(header.document["model"])
        decoder.finish()
        check_model(model)
        if model._learned_from() != about.counts:
            raise InvalidFileError("its counts are not those of its model")
    model._after_load()
    return model


@dataclass(frozen=True)
class ModelDescription:
    """A model file in short.

    Parameters
    ----------
    class_name : str
        The estimator.
    params : dict
        Its parameters; arrays are described in words.
    counts : Counts, PairCounts or LabelCounts
        What it was learned from.
    file_size : int
        In bytes.
    marginmf_version : str
        Which marginmf wrote the file.
    format_version : int
        Which version of the format it has.
    learned : dict
        Those of its learned attributes that are single numbers or words, such as the decision rule
        of a label model.
    """

    class_name: str
    params: dict[str, Any]
    counts: AnyCounts
    file_size: int
    marginmf_version: str
    format_version: int
    learned: dict[str, Any]


def describe(path: str | os.PathLike[str]) -> ModelDescription:
    """Return what a model file holds, reading its header alone.

    The arrays are not checked, so a file that can be described may still fail to load.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from marginmf.ratings import BiasOnly
    >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y")]
    >>> with TemporaryDirectory() as folder:
    ...     BiasOnly(reg=0.1).fit(pairs, [5, 3, 4, 2]).save(f"{folder}/m.marginmf")
    ...     about = describe(f"{folder}/m.marginmf")
    >>> about.class_name, about.params["reg"], about.counts
    ('BiasOnly', 0.1, Counts(users=2, items=2, ratings=4, levels=4))
    """
    with _opened(Path(path)) as file:
        header = read_header(file)
        about = _read_description(file, header)
        return replace(about, params=HeaderDecoder(header).decode({"dict": about.params}))


def _read_description(file: BufferedReader, header: TensorHeader) -> ModelDescription:
    """Check the document of a file, its versions first; the parameters are still to be decoded."""
    document, size = header.document, os.fstat(file.fileno()).st_size
    if document.get("format") != FORMAT:  # a checkpoint, for example
        raise InvalidFileError("it holds no model")
    version, written_by = document.get("version"), document.get("marginmf")
    if type(version) is not int or version < 1 or not isinstance(written_by, str):
        raise InvalidFileError("it does not say which version of the format it has")
    if version > VERSION:
        raise InvalidFileError(
            f"it has version {version} of the format, written by marginmf {written_by:.20}, and "
            f"this is marginmf {__version__}, which reads version {VERSION}: update marginmf"
        )
    if document.keys() != {"format", "version", "marginmf", "counts", "model"}:
        raise InvalidFileError("its description of the model has too few parts, or too many")
    match document["model"]:
        case {"object": [str(name), dict(params), dict(fitted)]}:
            kind: Any = class_named(name) or object
        case _:
            raise InvalidFileError("it holds no model")
    if not issubclass(kind, Savable):
        raise InvalidFileError(f"{name!r:.60} is not an estimator that this marginmf knows")
    counts = _read_counts(document["counts"], kind._counts_type)
    learned = {key: value for key, value in fitted.items() if isinstance(value, str | int | float)}
    return ModelDescription(name, params, counts, size, written_by, version, learned)


def _read_counts(node: Any, kind: type[Any]) -> Any:
    known = {field.name: field.type for field in fields(kind)}
    if not isinstance(node, dict) or node.keys() != known.keys():
        raise InvalidFileError("its counts cannot be understood")
    for name, value in node.items():
        whole = type(value) is int and value >= 0
        if not (whole if known[name] is int else value is None or type(value) is float):
            raise InvalidFileError("its counts cannot be understood")
    return kind(**node)


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """Open a file to read a model from; every fault that is found names the file."""
    # Looked at before it is opened, because opening a pipe waits for somebody to write to it.
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise ModelFileError(f"{path} is a folder, not a model file.")
    if not stat.S_ISREG(mode):
        raise ModelFileError(f"{path} is a device or a pipe, not a model file.")
    with open(path, "rb") as file:
        try:
            yield file
        except InvalidFileError as error:
            reason = printable(" ".join(str(error).split()), LONGEST)
            raise ModelFileError(f"{path} cannot be loaded: {reason}.") from None
