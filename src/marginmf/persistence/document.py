"""The JSON document that describes a model: what stands in it, and which versions can be read."""

from dataclasses import asdict, dataclass
from typing import Any

from marginmf import __version__
from marginmf.persistence.classes import class_named
from marginmf.persistence.counts import AnyCounts, counts_of, read_counts
from marginmf.persistence.encoder import Encoder
from marginmf.persistence.errors import ModelFileError
from marginmf.persistence.families import family_of

FORMAT = "marginmf model"
#: Raised when files change so that an older marginmf could not read them rightly.
VERSION = 1


@dataclass(frozen=True)
class Document:
    """A document that was looked at; ``model`` is still to be decoded."""

    marginmf_version: str
    format_version: int
    counts: AnyCounts
    class_name: str
    params: dict[str, Any]
    model: dict[str, Any]


def make_document(model: Any, encoder: Encoder) -> dict[str, Any]:
    """Return the document of a fitted model; its arrays are then in the encoder."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "marginmf": __version__,
        "counts": asdict(counts_of(model)),
        "model": encoder.encode(model, ""),
    }


def read_document(document: dict[str, Any]) -> Document:
    """Look at a document, its versions first."""
    if document.get("format") != FORMAT:
        raise ModelFileError("it was not written by marginmf")
    version, written_by = document.get("version"), document.get("marginmf")
    if type(version) is not int or version < 1 or not isinstance(written_by, str):
        raise ModelFileError("it does not say which version of the format it has")
    if version > VERSION:
        raise ModelFileError(
            f"it has version {version} of the format, written by marginmf {written_by:.20}, and "
            f"this is marginmf {__version__}, which reads version {VERSION}: update marginmf"
        )
    if document.keys() != {"format", "version", "marginmf", "counts", "model"}:
        raise ModelFileError("its description of the model has too few parts, or too many")
    class_name, params, kind = _read_class(document["model"])
    counts = read_counts(document["counts"], kind)
    return Document(written_by, version, counts, class_name, params, document["model"])


def _read_class(node: Any) -> tuple[str, dict[str, Any], type[Any]]:
    """Return the name and the parameters of the estimator, and what is counted of it."""
    match node:
        case {"object": [str(name), dict(params), dict()]}:
            kind = class_named(name)
            family = None if kind is None else family_of(kind)
            if family is not None and family.counts is not None:
                return name, params, family.counts
            raise ModelFileError(f"{name!r:.60} is not an estimator that this marginmf knows")
    raise ModelFileError("it holds no model")
