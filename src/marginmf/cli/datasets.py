"""``marginmf datasets list``, ``get``, ``info`` and ``path``: the datasets known by name."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from marginmf.cli.commands import command
from marginmf.cli.options import ConsoleOptions

if TYPE_CHECKING:
    from marginmf.datasets import DatasetInfo

Name = Annotated[str, Argument(metavar="NAME", help="A dataset, by name.")]


@command("marginmf datasets list --kind labels", name="list")
def list_datasets(
    *,
    kind: Annotated[
        Literal["ratings", "labels"] | None, Option(help="Only datasets of this kind.")
    ] = None,
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
        table.add_row(entry.name, counts, size, _where(entry))
    table.columns[2].justify = "right"
    for column in (0, 2, 3):
        table.columns[column].no_wrap = True
    console.out.print(table)


@command("marginmf datasets get ml-100k yeast", name="get")
def get_datasets(
    names: Annotated[list[str], Argument(metavar="NAME...", help="Datasets, by name.")],
    *,
    copy: Annotated[
        Path | None,
        Option(
            "--from",
            metavar="PATH",
            help="Your own copy: the owner's file, or an archive that contains it.",
        ),
    ] = None,
    offline: Annotated[
        bool, Option("--offline", help="Download nothing; check what is here.")
    ] = False,
    console: ConsoleOptions,
) -> None:
    """Download datasets, check them, and keep them in the cache.

    A dataset that is here already is checked again. With --from, a file that you have is checked
    and kept instead.
    """
    from marginmf.datasets import dataset_info, dataset_path, keep_copy
    from marginmf.datasets.cache import STORAGE
    from marginmf.datasets.loading import load

    entries = [dataset_info(name) for name in dict.fromkeys(names)]
    if copy is not None:
        if len(entries) > 1:
            raise ValueError("--from is a copy of one dataset; name that one alone.")
        console.note(f"Kept as {keep_copy(entries[0].name, copy)}.", None)
    got = []
    for about in entries:
        table = load(about.kind, about.name, None, None, offline, console.progress)
        facts = STORAGE[about.kind].facts(table)
        got.append(
            {
                "name": about.name,
                "where": _where(about),
                "path": str(dataset_path(about.name)),
                "source": table.source,
                "found": asdict(facts),
            }
        )
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
        how = about.by_hand
        if about.can_be_downloaded:
            how = f"Get it with: marginmf datasets get {name}"
        raise FileNotFoundError(f"{about.title} is not on this machine. {how}")
    console.print_json({"name": name, "path": str(file)})
    console.print(str(file))


def _where(about: "DatasetInfo") -> str:
    """Return where a dataset is now: data folder, cache, to download, or by hand."""
    from marginmf.datasets.cache import find_copy

    found = find_copy(about)
    if found is not None:
        return found.where
    return "to download" if about.can_be_downloaded else "by hand"


def _summarise(about: "DatasetInfo") -> dict[str, Any]:
    """Return all that is known of a dataset for programs."""
    from marginmf.datasets import dataset_path

    path = dataset_path(about.name)
    same = ("name", "title", "kind", "address", "size", "sha256", "fingerprint", "terms")
    return {
        **{name: getattr(about, name) for name in same},
        "citation": about.citation,
        "where": _where(about),
        "path": None if path is None else str(path),
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

    known = {
        "name": f"{about.name} ({about.kind})",
        "where": _where(about),
        "file": "" if found is None else found["path"],
        "address": about.address or "",
        "by hand": about.by_hand,
        "size": "" if about.size is None else f"{format_size(about.size)} ({about.size:,} bytes)",
        "SHA-256": about.sha256 or "",
        "mirrors": "; ".join(mirror.phrase for mirror in about.mirrors),
        "expected": about.facts.words(),
        "found": "" if found is None else _judge_copy(found),
        "terms": about.terms,
        "cite": about.citation,
        "note": about.note,
    }
    return {name: text for name, text in known.items() if text}


def _judge_copy(found: dict[str, Any]) -> str:
    if found["fault"]:
        return f"not as expected. {found['fault']}"
    values = {
        True: "; the same to the last value",
        False: "; not all values are those of the copy known to marginmf",
        None: "",
    }
    return f"{found['words']}; as expected{values[found['same_values']]}"
