"""The JSON document that describes a model: what stands in it, and which versions can be read."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from marginmf import __version__
from marginmf.persistence.classes import class_named
from marginmf.persistence.encoder import Encoder
from marginmf.persistence.errors import ModelFileError
from marginmf.ratings.base import RatingsEstimator

FORMAT = "marginmf model"
#: Raised when files change so that an older marginmf could not read them rightly.
VERSION = 1


@dataclass(frozen=True)
class Counts:
    """How many users, items, ratings and levels a model was learned from."""

    users: int
    items: int
    ratings: int
    levels: int

    @classmethod
    def of(cls, model: RatingsEstimator) -> "Counts":
        """Count those of a fitted model."""
        return cls(
            len(model.users_), len(model.items_), len(model.ratings_), model.ratings_.n_levels
        )


@dataclass(frozen=True)
class Document:
    """A document that was looked at; ``model`` is still to be decoded."""

    marginmf_version: str
    format_version: int
    counts: Counts
    class_name: str
    params: dict[str, Any]
    model: dict[str, Any]


def make_document(model: RatingsEstimator, encoder: Encoder) -> dict[str, Any]:
    """Return the document of a fitted model; its arrays are then in the encoder."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "marginmf": __version__,
        "counts": asdict(Counts.of(model)),
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
    class_name, params = _read_class(document["model"])
    counts = _read_counts(document["counts"])
    return Document(written_by, version, counts, class_name, params, document["model"])


def _read_class(node: Any) -> tuple[str, dict[str, Any]]:
    match node:
        case {"object": [str(name), dict(params), dict()]}:
            kind = class_named(name)
            if kind is not None and issubclass(kind, RatingsEstimator):
                return name, params
            raise ModelFileError(f"{name!r:.60} is not an estimator that this marginmf knows")
    raise ModelFileError("it holds no model")


def _read_counts(node: Any) -> Counts:
    names = [field.name for field in fields(Counts)]
    if not isinstance(node, dict) or sorted(node) != sorted(names):
        raise ModelFileError("its counts cannot be understood")
    if not all(type(n) is int and n >= 0 for n in node.values()):
        raise ModelFileError("its counts cannot be understood")
    return Counts(**node)
