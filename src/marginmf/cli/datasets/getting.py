"""``marginmf datasets get``: download datasets, or take in copies of one's own."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from marginmf.cli.options import TalkOptions, takes_groups

EXAMPLE = "marginmf datasets get ml-100k yeast"
Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="Datasets, by name.")]


@takes_groups
def get(
    names: Names,
    *,
    copy: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="A copy of your own: the owner's file, or what has it inside.",
            show_default=False,
        ),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Download nothing; check what is here.")
    ] = False,
    talk: TalkOptions,
) -> None:
    """Download datasets, check them, and keep them in the cache.

    A dataset that is here already is checked again. With --from, a file that you have is checked
    and kept instead.
    """
    from marginmf.cli.datasets.words import whereabouts
    from marginmf.cli.printing import to_json
    from marginmf.datasets import dataset_info, dataset_path, keep_copy
    from marginmf.datasets.cache import STORAGE
    from marginmf.datasets.loading import load

    entries = [dataset_info(name) for name in dict.fromkeys(names)]
    if copy is not None:
        if len(entries) > 1:
            raise ValueError("--from is a copy of one dataset; name that one alone.")
        kept = keep_copy(entries[0].name, copy)
        talk.notes.print(f"Kept as {kept}.", markup=False, soft_wrap=True)
    got = []
    for info in entries:
        table = load(info.kind, info.name, None, None, offline, talk.progress)
        facts = STORAGE[info.kind].facts(table)
        got.append(
            {
                "name": info.name,
                "where": whereabouts(info),
                "path": str(dataset_path(info.name)),
                "source": table.source,
                "found": asdict(facts),
            }
        )
        talk.out.print(
            f"{info.title}: {facts.words()}; {table.source}.", markup=False, soft_wrap=True
        )
    if talk.as_json:
        typer.echo(to_json({"datasets": got}))
