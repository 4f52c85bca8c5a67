"""``marginmf datasets info`` and ``path``: what is known of a dataset, and where it is."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginmf.cli.options import TalkOptions, takes_groups

if TYPE_CHECKING:
    from marginmf.datasets import DatasetInfo

INFO_EXAMPLE = "marginmf datasets info ml-1m"
PATH_EXAMPLE = "marginmf datasets path yeast"
Name = Annotated[str, typer.Argument(metavar="NAME", help="A dataset, by name.")]


@takes_groups
def info(name: Name, talk: TalkOptions) -> None:
    """Show what is known of a dataset: its terms, address, checksum, counts and citation.

    If it is on this machine, it is read, and what was found is held against what is expected.
    """
    from marginmf.cli.datasets.words import summary
    from marginmf.cli.printing import show_facts, to_json
    from marginmf.datasets import dataset_info

    about = dataset_info(name)
    found = _found(about)
    if talk.as_json:
        typer.echo(to_json({**summary(about), "found": found}))
    show_facts(talk.out, about.title, _in_words(about, found))


@takes_groups
def path(name: Name, talk: TalkOptions) -> None:
    """Print the file that a dataset is read from; exit code 2 if it is not on this machine."""
    from marginmf.cli.printing import to_json
    from marginmf.datasets import dataset_info, dataset_path

    about, file = dataset_info(name), dataset_path(name)
    if file is None:
        how = about.by_hand
        if about.can_be_downloaded:
            how = f"Get it with: marginmf datasets get {name}"
        raise FileNotFoundError(f"{about.title} is not on this machine. {how}")
    typer.echo(to_json({"name": name, "path": str(file)}) if talk.as_json else file)


def _found(about: "DatasetInfo") -> dict[str, Any] | None:
    """Read the copy on this machine, and return what it contains or why it cannot be used."""
    from dataclasses import asdict

    from marginmf.datasets.cache import STORAGE, find_copy, reason

    place, form = find_copy(about), STORAGE[about.kind]
    if place is None:
        return None
    try:
        table = place.read()
    except Exception as error:  # a damaged file can fail anywhere in zipfile, zlib or NumPy
        return {"path": str(place.path), "fault": reason(error)}
    facts = form.facts(table)
    same = None if about.fingerprint is None else form.fingerprint(table) == about.fingerprint
    return {
        "path": str(place.path),
        "words": facts.words(),
        "facts": asdict(facts),
        "fault": about.facts.difference(facts, about.title),
        "same_values": same,
    }


def _in_words(about: "DatasetInfo", found: dict[str, Any] | None) -> dict[str, str]:
    from marginmf.cli.datasets.words import whereabouts
    from marginmf.cli.printing import size

    known = {
        "name": f"{about.name} ({about.kind})",
        "where": whereabouts(about),
        "file": "" if found is None else found["path"],
        "address": about.address or "",
        "by hand": about.by_hand,
        "size": "" if about.size is None else f"{size(about.size)} ({about.size:,} bytes)",
        "SHA-256": about.sha256 or "",
        "mirrors": "; ".join(mirror.phrase for mirror in about.mirrors),
        "expected": about.facts.words(),
        "found": "" if found is None else _verdict(found),
        "terms": about.terms,
        "cite": about.citation,
        "note": about.note,
    }
    return {name: words for name, words in known.items() if words}


def _verdict(found: dict[str, Any]) -> str:
    if found["fault"]:
        return f"not as expected. {found['fault']}"
    values = {
        True: "; the same to the last value",
        False: "; not all values are those of the copy known to marginmf",
        None: "",
    }
    return f"{found['words']}; as expected{values[found['same_values']]}"
