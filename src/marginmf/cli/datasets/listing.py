"""``marginmf datasets list``: what there is, and where it is now."""

from typing import Annotated, Literal

import typer

from marginmf.cli.options import TalkOptions, takes_groups

EXAMPLE = "marginmf datasets list --kind labels"


@takes_groups
def list_(
    *,
    kind: Annotated[
        Literal["ratings", "labels"] | None,
        typer.Option(help="Only datasets of this kind.", show_default=False),
    ] = None,
    talk: TalkOptions,
) -> None:
    """List all datasets known by name, and where each is now.

    A dataset is in the data folder ($MARGINMF_DATA), in the cache, to be downloaded, or to be had
    by hand, which marginmf datasets info explains.
    """
    from marginmf.cli.datasets.words import summary, what, whereabouts
    from marginmf.cli.printing import new_table, size, to_json
    from marginmf.datasets import dataset_info, dataset_names

    entries = [dataset_info(name) for name in dataset_names(kind)]
    if talk.as_json:
        typer.echo(to_json({"datasets": [summary(entry) for entry in entries]}))
        return
    table = new_table("name", "what", "size", "where")
    for entry in entries:
        written = "" if entry.size is None else size(entry.size)
        table.add_row(entry.name, what(entry), written, whereabouts(entry))
    table.columns[2].justify = "right"
    for column in (0, 2, 3):
        table.columns[column].no_wrap = True
    talk.out.print(table)
