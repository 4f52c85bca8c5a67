"""``marginmf info`` and ``marginmf datasets``: what is in a file, a model, or a known dataset."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from marginmf.cli.commands import command
from marginmf.cli.options import (
    ConsoleOptions,
    LabelDataOptions,
    ScaledColumns,
    complete_data,
    describe_rule,
)

if TYPE_CHECKING:
    from marginmf._utils.types import IntArray
    from marginmf.datasets import DatasetInfo, LabelsTable, RatingsTable
    from marginmf.persistence import LabelCounts, ModelDescription

SUFFIX = ".marginmf"
#: The most levels that are listed one by one, and the most repeated pairs.
MOST_LEVELS, MOST_REPEATS = 20, 3
Name = Annotated[
    str, Argument(metavar="NAME", help="A dataset, by name.", autocompletion=complete_data(None))
]
RatingsOrModel = Annotated[
    str,
    Argument(
        metavar="FILE",
        help="Ratings, - for standard input; a model; or a dataset, such as ml-100k.",
        autocompletion=complete_data("ratings"),
    ),
]


@command("marginmf info ratings.csv")
def info(file: RatingsOrModel, columns: ScaledColumns, console: ConsoleOptions) -> None:
    """Show what is in a file of ratings, or in a saved model.

    Of ratings: how many there are, by whom, of what, at which levels, and whether pairs occur
    again. Of a model: what it is and what it was learned from, from the head of the file alone.
    """
    if _is_model(Path(file)):
        _report_model(file, console)
        return
    from marginmf.cli.inputs import read_source
    from marginmf.cli.output import show_facts

    source = read_source(file, columns.reading(), console.progress)
    facts = ratings_facts(source.table)
    console.print_json({"kind": "ratings", **facts})
    show_facts(console.out, source.title, _describe_ratings(facts))


@command("marginmf labels info l.marginmf", name="info")
def info_labels(data: LabelDataOptions, console: ConsoleOptions) -> None:
    """Show what is in a saved model, or in a file of features and labels.

    Of a model: what it is and what it was learned from, from the head of the file alone. Of
    labels: how many rows, features and labels there are, and how often labels occur.
    """
    if _is_model(Path(data.file)):
        _report_model(data.file, console)
        return
    from marginmf.cli.inputs import read_label_table, summarise_labels
    from marginmf.cli.output import show_facts

    table = read_label_table(data, console.progress)
    facts = {**summarise_labels(table), **label_facts(table)}
    console.print_json({"kind": "labels", **facts})
    show_facts(console.out, table.name, _describe_labels(facts))


def _report_model(file: str, console: ConsoleOptions) -> None:
    """Print what a model file holds."""
    from marginmf.cli.output import show_facts
    from marginmf.persistence import describe

    about = describe(file)
    # Parameters may be objects, such as solvers and clusterers, which are shown as they print.
    facts = {**asdict(replace(about, params={})), "params": about.params}
    console.print_json({"kind": "model", **facts})
    show_facts(console.out, file, _describe_model(about))


def _is_model(path: Path) -> bool:
    """Whether a file is called a model or begins as one: eight bytes of length, then JSON."""
    if path.suffix == SUFFIX or not path.is_file():
        return path.suffix == SUFFIX
    with path.open("rb") as file:
        return file.read(9)[4:] == bytes(4) + b"{"


def _describe_model(about: "ModelDescription") -> dict[str, str]:
    from marginmf.cli.output import format_size
    from marginmf.persistence import Counts, LabelCounts

    counts, params, decision = about.counts, about.params, ""
    if isinstance(counts, LabelCounts):
        learned = f"{counts.rows:,} rows, {counts.features:,} features, {counts.labels:,} labels"
        decision = _describe_decision(about, counts)
    else:
        learned = f"{counts.items:,} items by {counts.users:,} users"
        if isinstance(counts, Counts):
            learned = f"{counts.ratings:,} ratings of {learned}, {counts.levels} levels"
        else:
            learned = f"{counts.pairs:,} pairs of {learned}"
    return {
        "method": about.class_name,
        "learned from": learned,
        **({"decision": decision} if decision else {}),
        "file": f"{format_size(about.file_size)}, format {about.format_version}, written by "
        f"marginmf {about.marginmf_version}",
        **{f"  {name}": str(value) for name, value in params.items()},
    }


def _describe_decision(about: "ModelDescription", counts: "LabelCounts") -> str:
    """Write the decision rule of a label model; nothing if it has none, as one of classes."""
    low, high, params = counts.lowest_threshold, counts.highest_threshold, about.params
    if low is None or high is None:
        return ""
    # Older files say in their parameters alone which rule they follow, and have thresholds.
    rule = about.learned.get("decision_", _value_in_force(params, "decision"))
    if rule == "auto":
        rule = "global" if low == high else "per_label"
    top1 = about.learned.get("top1_if_empty_", params.get("top1_if_empty") is True)
    tune_for, shift = _value_in_force(params, "tune_for"), about.learned.get("shift_", 0.0)
    # The head of a file may say anything; only loading compares it with the model.
    if not all(map(isinstance, (rule, tune_for, shift), (str, str, float | int))):
        return ""
    return describe_rule(rule, tune_for, (low, high), shift, top1=bool(top1))


def _value_in_force(params: Mapping[str, Any], name: str) -> Any:
    """Return a parameter of a label model; None in one around another stands for the other's."""
    from marginmf.labels.base import LabelsEstimator

    if params.get(name) is not None:
        return params[name]
    inside = params.get("estimator")
    return (inside._rule if isinstance(inside, LabelsEstimator) else vars(LabelsEstimator))[name]


def ratings_facts(table: "RatingsTable") -> dict[str, Any]:
    """Return counts, levels, density, repeated pairs and the range of times.

    Unlike `Ratings.of` it refuses nothing: a user may want to know why a fit was refused.

    >>> from marginmf.datasets import RatingsTable
    >>> table = RatingsTable("films", ["ann", "bob", "bob"], [7, 7, 7], [4, 5, 1])
    >>> facts = ratings_facts(table)
    >>> facts["density"], facts["duplicates"]["n_pairs"], facts["duplicates"]["first"]
    (1.0, 1, [["'bob'", '7']])
    """
    import numpy as np

    from marginmf._utils.ids import shown
    from marginmf.ratings.ids import IdIndex

    users, items = IdIndex(table.users, "user"), IdIndex(table.items, "item")
    rows, columns = users.encode(table.users), items.encode(table.items)
    pairs = rows.astype(np.int64) * len(items) + columns
    distinct, times = np.unique(pairs, return_counts=True)
    repeated = distinct[times > 1]
    levels, counts = np.unique(table.ratings, return_counts=True)
    listed = {f"{level:g}": int(n) for level, n in zip(levels, counts, strict=True)}
    moments = table.timestamps

    return {
        "name": table.name,
        "source": table.source,
        "n_ratings": len(table),
        "n_users": len(users),
        "n_items": len(items),
        "density": len(distinct) / (len(users) * len(items)),
        "n_levels": len(levels),
        "levels": listed if len(levels) <= MOST_LEVELS else None,
        "lowest": float(levels[0]),
        "highest": float(levels[-1]),
        "mean": float(table.ratings.mean()),
        "ratings_a_user": _spread(np.bincount(rows)),
        "ratings_an_item": _spread(np.bincount(columns)),
        **{
            f"{index.what}_ids": "whole numbers" if index.ids.dtype == np.int64 else "text"
            for index in (users, items)
        },
        "duplicates": {
            "n_pairs": len(repeated),
            "first": [
                [shown(users.ids[pair // len(items)]), shown(items.ids[pair % len(items)])]
                for pair in repeated[:MOST_REPEATS]
            ],
        },
        "titles": table.titles is not None,
        "timestamps": None if moments is None else [int(moments.min()), int(moments.max())],
    }


def _describe_ratings(facts: dict[str, Any]) -> dict[str, str]:
    each = "{fewest:,} to {most:,} ratings each (median {median:g})"
    shown = {
        "ratings": f"{facts['n_ratings']:,}, {facts['density']:.2%} of all pairs",
        "users": f"{facts['n_users']:,}, {each.format(**facts['ratings_a_user'])}",
        "items": f"{facts['n_items']:,}, {each.format(**facts['ratings_an_item'])}",
        "ids": f"users {facts['user_ids']}, items {facts['item_ids']}",
        "levels": f"{facts['n_levels']}, from {facts['lowest']:g} to {facts['highest']:g}, mean "
        f"{facts['mean']:.3f}",
    }
    for level, count in (facts["levels"] or {}).items():
        shown[f"  {level}"] = f"{count:,} ({count / facts['n_ratings']:.1%})"
    repeats = facts["duplicates"]
    named = ", ".join(f"({user}, {item})" for user, item in repeats["first"])
    shown["repeated pairs"] = f"{repeats['n_pairs']:,}" + (f": {named}" if named else "")
    if facts["timestamps"]:
        shown["times"] = " to ".join(map(_format_time, facts["timestamps"]))
    return shown


def label_facts(table: "LabelsTable") -> dict[str, Any]:
    """Return how often labels occur: in how many rows each, and how many rows have none.

    >>> from marginmf.datasets import LabelsTable
    >>> facts = label_facts(LabelsTable("songs", [[1.0], [2.0]], [[1, 0], [1, 0]]))
    >>> facts["rows_a_label"], facts["n_never"], facts["n_without_labels"]
    ({'fewest': 0, 'median': 1.0, 'most': 2}, 1, 0)
    """
    import numpy as np

    times, sizes = (np.asarray(table.Y.sum(axis=axis)).ravel() for axis in (0, 1))
    common = np.argsort(-times, kind="stable")[:MOST_LEVELS]
    return {
        "rows_a_label": _spread(times),
        "labels_a_row": _spread(sizes),
        "n_never": int((times == 0).sum()),
        "n_without_labels": int((sizes == 0).sum()),
        "most_frequent": {str(table.label_names[k]): int(times[k]) for k in common},
    }


def _describe_labels(facts: dict[str, Any]) -> dict[str, str]:
    each = "{fewest:,} to {most:,} {what} each (median {median:g})"
    labels = each.format(**facts["rows_a_label"], what="rows")
    rows = each.format(**facts["labels_a_row"], what="labels")
    shown = {
        "rows": f"{facts['n_rows']:,}, {rows}",
        "features": f"{facts['n_features']:,}, {'sparse' if facts['sparse'] else 'dense'}",
        "labels": f"{facts['n_labels']:,}, {labels}",
        "labels a row": f"{facts['cardinality']:.3g} on average",
        "rows without": f"{facts['n_without_labels']:,} rows have no label",
        "never": f"{facts['n_never']:,} labels occur in no row",
    }
    for label, count in facts["most_frequent"].items():
        shown[f"  {label}"] = f"{count:,} ({count / facts['n_rows']:.1%})"
    return shown


def _spread(counts: "IntArray") -> dict[str, float]:
    import numpy as np

    least, most = int(counts.min()), int(counts.max())
    return {"fewest": least, "median": float(np.median(counts)), "most": most}


def _format_time(seconds: int) -> str:
    """Write a time as a date if it is one in seconds since 1970, else as the number it is."""
    from datetime import UTC, datetime

    if not 0 < seconds < 2**32:
        return str(seconds)
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


# --- datasets known by name -----------------------------------------------------------------------


@command("marginmf datasets list --kind labels", name="list")
def list_datasets(
    *,
    kind: Annotated[Literal["ratings", "labels"] | None, Option(help="Only of this kind.")] = None,
    console: ConsoleOptions,
) -> None:
    """List all datasets known by name, and where each is now.

    A dataset is in the data folder ($MARGINMF_DATA), in the cache, to download, or to get by hand,
    which marginmf datasets info explains.
    """
    from marginmf.cli.output import format_size, new_table
    from marginmf.datasets import dataset_info, dataset_names

    entries = [dataset_info(name) for name in dataset_names(kind)]
    console.print_json({"datasets": [_summarise(entry) for entry in entries]})
    table = new_table("name", "what", "size", "where")
    for entry in entries:
        counts = ", ".join(entry.facts.count_words()) or entry.title
        size = "" if entry.size is None else format_size(entry.size)
        table.add_row(entry.name, counts, size, _locate(entry)["where"])
    table.columns[2].justify = "right"
    for column in (0, 2, 3):
        table.columns[column].no_wrap = True
    console.out.print(table)


@command("marginmf datasets get ml-100k yeast", name="get")
def get_datasets(
    names: Annotated[
        list[str],
        Argument(metavar="NAME...", help="Datasets, by name.", autocompletion=complete_data(None)),
    ],
    *,
    copy: Annotated[
        Path | None,
        Option("--from", metavar="PATH", help="Your copy: the owner's file, or an archive of it."),
    ] = None,
    offline: Annotated[bool, Option("--offline", help="Download nothing, only check.")] = False,
    verify: Annotated[bool, Option(help="Refuse what differs, or only warn.")] = True,
    console: ConsoleOptions,
) -> None:
    """Download datasets, check them, and keep them in the cache.

    A dataset that is here already is checked again. With --from, a file that you have is checked
    and kept instead.
    """
    from marginmf.datasets import dataset_info, keep_copy
    from marginmf.datasets.cache import STORAGE
    from marginmf.datasets.loading import load

    entries = [dataset_info(name) for name in dict.fromkeys(names)]
    if copy is not None:
        if len(entries) > 1:
            raise ValueError("--from is a copy of one dataset; name that one alone.")
        console.note(f"Kept as {keep_copy(entries[0].name, copy)}.", None)
    got: list[dict[str, Any]] = []
    for about in entries:
        table = load(about.kind, about.name, None, None, offline, console.progress, verify)
        facts = STORAGE[about.kind].facts(table)
        result = {"name": about.name, **_locate(about), "source": table.source}
        got.append({**result, "found": asdict(facts)})
        console.print(f"{about.title}: {facts.words()}; {table.source}.")
    console.print_json({"datasets": got})


@command("marginmf datasets info ml-1m", name="info")
def show_dataset(name: Name, console: ConsoleOptions) -> None:
    """Show what is known of a dataset: its terms, address, checksum, counts and citation.

    If it is on this machine, it is read and compared with what is expected.
    """
    from marginmf.cli.output import show_facts
    from marginmf.datasets import dataset_info

    about = dataset_info(name)
    found = _read_copy(about)
    console.print_json({**_summarise(about), "found": found})
    show_facts(console.out, about.title, _describe(about, found))


@command("marginmf datasets path yeast", name="path")
def show_path(name: Name, console: ConsoleOptions) -> None:
    """Print the file that a dataset is read from; exit code 2 if it is not on this machine."""
    from marginmf.datasets import dataset_info, dataset_path

    about, file = dataset_info(name), dataset_path(name)
    if file is None:
        get = f"Get it with: marginmf datasets get {name}"
        how = get if about.can_be_downloaded else about.by_hand
        raise FileNotFoundError(f"{about.title} is not on this machine. {how}")
    console.print_json({"name": name, "path": str(file)})
    console.print(str(file))


def _locate(about: "DatasetInfo") -> dict[str, str | None]:
    """Return where a dataset is now (data folder, cache, to download, or by hand), and its file."""
    from marginmf.datasets.cache import find_copy

    found = find_copy(about)
    if found is None:
        return {"where": "to download" if about.can_be_downloaded else "by hand", "path": None}
    return {"where": found.where, "path": str(found.path)}


def _summarise(about: "DatasetInfo") -> dict[str, Any]:
    """Return all that is known of a dataset for programs."""
    own = ["name", "title", "kind", "address", "size", "sha256", "fingerprint", "terms", "citation"]
    return {
        **{name: getattr(about, name) for name in own},
        **_locate(about),
        "by_hand": about.by_hand or None,
        "mirrors": [mirror.phrase for mirror in about.mirrors],
        "note": about.note or None,
        "expected": asdict(about.facts),
    }


def _read_copy(about: "DatasetInfo") -> dict[str, Any] | None:
    """Read the copy on this machine, and return what it contains or why it cannot be used."""
    from marginmf.datasets.cache import STORAGE, find_copy, reason

    copy, form = find_copy(about), STORAGE[about.kind]
    if copy is None:
        return None
    try:
        table = copy.read()
    except Exception as error:  # a damaged file can fail anywhere in zipfile, zlib or NumPy
        return {"path": str(copy.path), "fault": reason(error)}
    facts = form.facts(table)
    same = None if about.fingerprint is None else form.fingerprint(table) == about.fingerprint
    return {
        "path": str(copy.path),
        "words": facts.words(),
        "facts": asdict(facts),
        "fault": about.facts.difference(facts, about.title),
        "same_values": same,
    }


def _describe(about: "DatasetInfo", found: dict[str, Any] | None) -> dict[str, str]:
    from marginmf.cli.output import format_size

    values = {
        True: "; the same to the last value",
        False: "; not all values are those of the copy known to marginmf",
        None: "",
    }
    verdict = ""
    if found is not None and found["fault"]:
        verdict = f"not as expected. {found['fault']}"
    elif found is not None:
        verdict = f"{found['words']}; as expected{values[found['same_values']]}"
    known = {
        "name": f"{about.name} ({about.kind})",
        "where": str(_locate(about)["where"]),
        "file": "" if found is None else found["path"],
        "address": about.address or "",
        "by hand": about.by_hand,
        "size": "" if about.size is None else f"{format_size(about.size)} ({about.size:,} bytes)",
        "SHA-256": about.sha256 or "",
        "checked by": about.checked_by,
        "mirrors": "; ".join(mirror.phrase for mirror in about.mirrors),
        "expected": about.facts.words(),
        "found": verdict,
        "terms": about.terms,
        "cite": about.citation,
        "note": about.note,
    }
    return {name: text for name, text in known.items() if text}
