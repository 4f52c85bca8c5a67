"""Models in files: one safetensors file holds everything, and loading one runs nothing.

A file holds the arrays as tensors, and in the metadata of its header one JSON document: versions,
the class, the parameters, the fitted attributes, and how the arrays belong to them.  Loading
believes nothing: lengths, positions, types and shapes are compared with the file before memory is
taken, a checksum tells whether a byte has changed, only classes on a list are made, and codes must
lie within their arrays.

- `container` writes and reads the file; `document` is the JSON, `encoder` and `decoder` make it
  from a model and a model from it, with `arrays`, `sparse`, `atoms` (single values), `ids` and
  `generators`;
- `classes` lists the classes that may occur, `state` the fitted attributes and what they must be;
  label methods declare both themselves, in the words of `marginmf._utils.saved`;
- `families` are ratings models, models of who has what, label models and estimators of
  scikit-learn inside those; what is special about each is in `ratings_parts`, `label_parts` and
  `foreign_parts`;
- `checks` compares the parts of a model with one another, with `shapes` for arrays; `counts` and
  `description` tell what a file holds.
"""

import os
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from marginmf.persistence.checks import check_model
from marginmf.persistence.container import opened, read_header, read_tensors, write_container
from marginmf.persistence.counts import Counts, LabelCounts, PairCounts, counts_of
from marginmf.persistence.decoder import Decoder
from marginmf.persistence.description import ModelDescription, describe
from marginmf.persistence.document import make_document, read_document
from marginmf.persistence.encoder import Encoder
from marginmf.persistence.errors import ModelFileError

__all__ = [
    "Counts",
    "LabelCounts",
    "ModelDescription",
    "ModelFileError",
    "PairCounts",
    "describe",
    "load",
    "save",
]


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file; the same as its method ``save``."""
    check_is_fitted(model)
    destination = Path(path)
    if destination.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    encoder = Encoder()
    document = make_document(model, encoder)
    try:
        check_model(model)
    except ModelFileError as error:
        raise ValueError(
            f"This {type(model).__name__} cannot be saved, because it could not be loaded again: "
            f"{error}."
        ) from None
    write_container(destination, document, encoder.tensors)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file that its method ``save`` wrote.

    Nothing in the file is run, so files from elsewhere can be loaded: one that is damaged or made
    with ill intent gives an error.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        A fitted estimator that predicts as the saved one did, to the last bit.

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
    with opened(Path(path)) as file:
        header = read_header(file)
        document = read_document(header.document)
        decoder = Decoder(read_tensors(file, header))
        model = decoder.decode(document.model)
        decoder.finish()
        check_model(model)
        if counts_of(model) != document.counts:
            raise ModelFileError("its counts are not those of its model")
    return model
