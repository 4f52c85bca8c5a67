"""What the commands for datasets say of one: in words, and for programs."""

from dataclasses import asdict
from typing import Any

from marginmf.datasets import DatasetInfo
from marginmf.datasets.cache import find_copy


def whereabouts(info: DatasetInfo) -> str:
    """Return where a dataset is now: data folder, cache, to download, or by hand."""
    place = find_copy(info)
    if place is not None:
        return place.where
    return "to download" if info.can_be_downloaded else "by hand"


def what(info: DatasetInfo) -> str:
    """Return how much there is of a dataset, or what it is called where that is not fixed."""
    return ", ".join(info.facts.count_words()) or info.title


def summary(info: DatasetInfo) -> dict[str, Any]:
    """Return all that is known of a dataset as values of JSON."""
    place = find_copy(info)
    return {
        "name": info.name,
        "title": info.title,
        "kind": info.kind,
        "where": whereabouts(info),
        "path": None if place is None else str(place.path),
        "address": info.address,
        "by_hand": info.by_hand or None,
        "size": info.size,
        "sha256": info.sha256,
        "fingerprint": info.fingerprint,
        "mirrors": [mirror.phrase for mirror in info.mirrors],
        "terms": info.terms,
        "citation": info.citation,
        "note": info.note or None,
        "expected": asdict(info.facts),
    }
