"""``marginmf compare``: several methods on the same splits of the same ratings."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginmf.cli.options import (
    METHODS,
    POSITIVE,
    DataOptions,
    ListOptions,
    ModelOptions,
    ProtocolOptions,
    TalkOptions,
    takes_groups,
)

if TYPE_CHECKING:
    from rich.console import Console

    from marginmf.cli.scores import Scores

EXAMPLE = "marginmf compare ratings.csv --models mmmf,als,bias --out table.md"
#: What is compared unless told: by errors, and by lists.
RATED, LISTED = "hmf,pmmmf,mmmf,als", "hmf,mmmf,ease,itemknn,popular"
SHOWN = ("mae", "zero_one", "rmse", "nmae", "seconds")
#: Narrower terminals do without the NMAE, which is the MAE in another unit.
WIDE = 96


@takes_groups
def compare(
    *,
    names: Annotated[
        str | None,
        typer.Option(
            "--models",
            metavar="NAME,NAME,...",
            help=f"Some of {', '.join(METHODS)}; with --lists, of {', '.join(POSITIVE)} too.  By "
            f"default {RATED}, or {LISTED}.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Keep the table: a .csv, .md, .json, .png, .svg or .pdf file."),
    ] = None,
    lists: ListOptions,
    protocol: ProtocolOptions,
    model: ModelOptions,
    data: DataOptions,
    talk: TalkOptions,
) -> None:
    """Fit several methods to the same ratings and put their errors into one table.

    Every cell is a mean and, after ±, the standard deviation over the splits; the best of each
    column is marked. Seconds are those of a fit. With --lists, the lists that the methods
    recommend are judged: every cell is a mean over users and its 95 % interval, and p that of the
    difference from the best.
    """
    from marginmf.cli import comparison
    from marginmf.cli.data import checked_for_lists
    from marginmf.cli.destination import refuse_same
    from marginmf.cli.kept import check_kept
    from marginmf.cli.list_tables import ListTable
    from marginmf.cli.making import names_in
    from marginmf.cli.models import make_models
    from marginmf.cli.printing import to_json
    from marginmf.cli.steps import steps

    rule = lists.rule
    protocol = protocol if rule is None else protocol.for_lists()
    refuse_same(out, data.file, *data.feature_files.values())
    check_kept(out)
    usual = RATED if rule is None else ",".join(POSITIVE) if lists.positive_only else LISTED
    named = usual if names is None else names
    chosen = names_in(named, "--models", "hmf,als")
    models = make_models(chosen, model, lists=rule is not None)
    splitter = comparison.make_protocol(protocol, model.seed)
    source, ratings = checked_for_lists(data, models, lists.positive_only, talk.progress)
    lists.check_scale(ratings)
    work = models, source.table, splitter
    judged: _ErrorTable | ListTable
    with steps(protocol.splits * len(models) + 1, talk.progress) as step:
        if rule is None:
            judged = _ErrorTable(comparison.compare(*work, step, source.features))
        else:
            judged = ListTable(comparison.compare_lists(*work, rule, step, source.features))
    result = {
        "data": source.summary(),
        "protocol": protocol.summary(),
        "seed": model.seed,
        **judged.result(),
        "out": None if out is None else str(out),
    }
    if out is not None:
        judged.keep(result, out)
    if talk.as_json:
        typer.echo(to_json(result))
        return
    talk.out.print(source.lines(), markup=False, soft_wrap=True)
    talk.out.print(f"Protocol {protocol.words()}{lists.words()}.", markup=False, soft_wrap=True)
    judged.show(talk.out)
    if out is not None:
        talk.out.print(f"The table is in {out}.", markup=False, soft_wrap=True)


@dataclass(frozen=True)
class _ErrorTable:
    """The errors of several methods on held-out ratings; `ListTable` is the same for lists."""

    scores: "dict[str, Scores]"

    def result(self) -> dict[str, Any]:
        """Return every number, and the best of each measure."""
        from marginmf.cli.scores import best
        from marginmf.cli.tables import summary

        return {
            "models": {name: summary(own) for name, own in self.scores.items()},
            "best": {metric: best(self.scores, metric) for metric in SHOWN},
        }

    def keep(self, result: dict[str, Any], out: Path) -> None:
        """Write the table into a file, in the form of its ending."""
        from marginmf.cli.kept import keep_table

        drawn = [metric for metric in SHOWN if metric != "nmae"]
        keep_table(self.scores, result, out, SHOWN, drawn)

    def show(self, console: "Console") -> None:
        """Print the table."""
        from marginmf.cli.tables import show_scores

        wide = console.width >= WIDE
        show_scores(console, self.scores, tuple(name for name in SHOWN if wide or name != "nmae"))
