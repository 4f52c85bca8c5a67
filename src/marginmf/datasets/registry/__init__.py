"""The datasets known by name. To add one, add an entry to a module of this package."""

from difflib import get_close_matches

from marginmf.datasets.entry import DatasetInfo, Kind
from marginmf.datasets.registry.labels import LABELS
from marginmf.datasets.registry.movielens import MOVIELENS
from marginmf.datasets.registry.ratings import RATINGS

ENTRIES: dict[str, DatasetInfo] = {entry.name: entry for entry in (*MOVIELENS, *RATINGS, *LABELS)}
NOUNS = {"ratings": "ratings dataset", "labels": "label dataset", None: "dataset"}


def dataset_names(kind: Kind | None = None) -> list[str]:
    """Names that `load_ratings` and `load_labels` know.

    Parameters
    ----------
    kind : {"ratings", "labels"}, optional
        Only those of one kind.

    Returns
    -------
    list of str
        In alphabetical order.

    Examples
    --------
    >>> dataset_names("ratings")[-3:]
    ['ml-25m', 'ml-32m', 'ml-latest-small']
    >>> "yeast" in dataset_names("labels")
    True
    """
    return sorted(name for name, entry in ENTRIES.items() if kind in (None, entry.kind))


def dataset_info(name: str) -> DatasetInfo:
    """Look up a dataset: its address, terms, citation and expected counts.

    Parameters
    ----------
    name : str
        One of `dataset_names`.

    Returns
    -------
    DatasetInfo
        What is known of it.

    Raises
    ------
    ValueError
        If the name is unknown.

    Examples
    --------
    >>> info = dataset_info("ml-1m")
    >>> info.title, info.facts.n_ratings
    ('MovieLens 1M', 1000209)
    """
    try:
        return ENTRIES[name]
    except KeyError:
        raise ValueError(unknown(name)) from None


def unknown(name: str, kind: Kind | None = None, also: tuple[str, ...] = ()) -> str:
    """Say that a name is unknown and, of the known ones, which may have been meant.

    >>> unknown("ml-10", "ratings")
    "There is no ratings dataset 'ml-10'; did you mean 'ml-10m', 'ml-100k' or 'ml-1m'? ..."
    >>> unknown("films", also=("made", "mine"))
    "There is no dataset 'films'; the data folder has 'made' and 'mine'; the names of all ..."
    """
    other = ENTRIES.get(name)
    if other is not None and other.kind != kind:
        load = f"load_{other.kind}"
        return f"There is no {NOUNS[kind]} {name!r}: it has {other.kind}; load it with {load}."
    known = dataset_names(kind)
    close = get_close_matches(name, {*known, *also}, n=3, cutoff=0.6)
    listing = f"The names of all {len(known)} are shown by: marginmf datasets list"
    if close:
        return f"There is no {NOUNS[kind]} {name!r}; did you mean {_either(close, 'or')}? {listing}"
    folder = f" the data folder has {_either(list(also), 'and')};" if also else ""
    return f"There is no {NOUNS[kind]} {name!r};{folder} {listing[0].lower()}{listing[1:]}"


def _either(names: list[str], word: str) -> str:
    shown = [repr(name) for name in names]
    return f" {word} ".join([", ".join(shown[:-1]), shown[-1]] if shown[:-1] else shown)
