"""``marginmf reproduce run``: measure what has not been measured yet."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from marginmf.cli.commands import command
from marginmf.cli.errors import INTERRUPTED, describe_error, print_error
from marginmf.cli.options import ConsoleOptions
from marginmf.cli.reproduce.options import Names, ScaleOptions, count, named

if TYPE_CHECKING:
    from marginmf.experiments import Summary

EXAMPLE = "marginmf reproduce run nmae --quick"


@dataclass(frozen=True)
class WorkOptions:
    """How cells are run."""

    jobs: Annotated[
        int, typer.Option("--jobs", help="Cells side by side; -1 is one for each core.")
    ] = -1
    backend: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Where they run, as joblib names it: loky, threading, multiprocessing, dask.",
            show_default=False,
        ),
    ] = None
    again: Annotated[bool, typer.Option("--again", help="Run also what has been run before.")] = (
        False
    )


@command(EXAMPLE)
def run(
    names: Names = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All tables and figures.")] = False,
    place: ScaleOptions,
    work: WorkOptions,
    talk: ConsoleOptions,
) -> None:
    """Run the measurements that tables and figures need, and keep each as soon as it is done.

    A run that was interrupted, or killed, goes on from there when it is started again. Ends with
    exit code 1 if some measurements could not be made, and says why.
    """
    if bool(names) == every:
        raise ValueError(
            "Name tables and figures, or give --all; marginmf reproduce list has them."
        )
    if work.jobs == 0:
        raise ValueError(
            "--jobs 0 would run nothing; give a number from 1 on, or -1 for all cores."
        )
    from marginmf import experiments
    from marginmf.cli.output import to_json
    from marginmf.experiments.watching import silent, watched

    exhibits, store = named(names), place.opened()
    known = len(store.records)
    try:
        summary = experiments.run(
            exhibits,
            store,
            "quick" if place.quick else "full",
            n_jobs=work.jobs,
            backend=work.backend,
            again=work.again,
            watcher=watched if talk.progress else silent,
        )
    except KeyboardInterrupt:
        new = count(len(store.records) - known, "new cell")
        print_error(f"interrupted; {place.out} has {new}. The same command goes on from there.")
        raise typer.Exit(INTERRUPTED) from None
    if talk.as_json:
        facts = {"folder": place.out, "done": summary.done, "kept": summary.kept}
        failures = dict(summary.failures.most_common())
        typer.echo(to_json({**facts, "seconds": summary.seconds, "failures": failures}))
    for line in _lines(summary):
        talk.out.print(line, soft_wrap=True, markup=False)
    if summary.failures:
        raise typer.Exit(1)
    talk.notes.print(
        f"marginmf reproduce report --out {place.out} makes a page of it.",
        soft_wrap=True,
        markup=False,
    )


def _lines(summary: "Summary") -> list[str]:
    from marginmf.experiments.watching import duration

    took = f" in {duration(summary.seconds)}" if summary.done else ""
    lines = [f"{count(summary.done, 'cell')} run{took}, {summary.kept:,} kept from before."]
    for reason, number in summary.failures.most_common():
        lines.append(
            f"{count(number, 'cell')} could not be run: {describe_error(ValueError(reason))}"
        )
    return lines
