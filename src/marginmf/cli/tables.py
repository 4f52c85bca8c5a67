"""Measures of methods as tables: for terminals, for files, and for programs."""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from marginmf.cli.printing import new_table
from marginmf.cli.scores import MEASURES, Scores, best

#: More splits than this are not listed one by one.
MOST_LISTED = 5


def cell(scores: Scores, metric: str) -> str:
    """Write a mean and, after ±, the standard deviation.

    >>> cell(Scores({"mae": [0.5, 0.75]}), "mae"), cell(Scores({"mae": [0.5]}), "mae")
    ('0.6250 ± 0.1768', '0.5000')
    """
    digits, deviation = MEASURES[metric].digits, scores.deviation(metric)
    written = f"{scores.mean(metric):.{digits}f}"
    return written if deviation is None else f"{written} ± {deviation:.{digits}f}"


def show_scores(
    console: Console,
    scores: Mapping[str, Scores],
    metrics: tuple[str, ...],
    descriptions: Mapping[str, str] | None = None,
) -> None:
    """Print a row for every method, with the best of each column marked.

    In bold where there are colours, and with a star before it where there are none.
    """
    headings = [MEASURES[metric].heading for metric in metrics]
    described = ["what it is"] if descriptions else []
    table = new_table("method", *described, *headings, numbers=len(headings))
    winners = best_cells(scores, metrics)
    mark = "" if console.color_system else "*"
    for name, own in scores.items():
        cells = []
        for metric in metrics:
            written = cell(own, metric)
            won = written.split(" ")[0] == winners[metric]
            text = _plain(console, (mark if won else "") + written)
            cells.append(Text(text, "bold green" if won else ""))
        words = [Text(descriptions[name], "dim")] if descriptions else []
        table.add_row(name, *words, *cells)
    console.print(table)


def show_measures(console: Console, name: str, scores: Scores, metrics: Iterable[str]) -> None:
    """Print a row for every measure of one method, with that of each split where they are few."""
    n_splits = len(scores.values["seconds"])
    n_listed = n_splits if 1 < n_splits <= MOST_LISTED else 0
    listed = [f"split {number}" for number in range(1, n_listed + 1)]
    table = new_table("measure", name, *listed, numbers=1 + n_listed)
    for metric in metrics:
        digits = MEASURES[metric].digits
        each = [f"{value:.{digits}f}" for value in scores.values[metric][:n_listed]]
        table.add_row(MEASURES[metric].heading, _plain(console, cell(scores, metric)), *each)
    console.print(table)


def best_cells(scores: Mapping[str, Scores], metrics: tuple[str, ...]) -> dict[str, str]:
    """Return the best mean of each column as it is written: equal to the eye is equal."""
    return {metric: cell(scores[best(scores, metric)], metric).split(" ")[0] for metric in metrics}


def as_markdown(scores: Mapping[str, Scores], metrics: tuple[str, ...]) -> str:
    """Return a Markdown table with the best of each column in bold."""
    winners = best_cells(scores, metrics)
    lines = [
        "| method | " + " | ".join(MEASURES[metric].heading for metric in metrics) + " |",
        "|---|" + "---:|" * len(metrics),
    ]
    for name, own in scores.items():
        cells = [cell(own, metric) for metric in metrics]
        marked = [
            f"**{text}**" if text.split(" ")[0] == winners[metric] else text
            for metric, text in zip(metrics, cells, strict=True)
        ]
        lines.append(f"| {name} | " + " | ".join(marked) + " |")
    return "\n".join(lines) + "\n"


def as_csv(scores: Mapping[str, Scores], metrics: tuple[str, ...]) -> str:
    """Return a table with two columns for each metric: its mean and its standard deviation."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["method", *(f"{metric}{part}" for metric in metrics for part in ("", "_sd"))])
    for name, own in scores.items():
        writer.writerow(
            [name, *(x for metric in metrics for x in (own.mean(metric), own.deviation(metric)))]
        )
    return file.getvalue()


def summary(scores: Scores) -> dict[str, Any]:
    """Return means, standard deviations and the numbers they come from, by metric."""
    return {
        metric: {
            "mean": scores.mean(metric),
            "sd": scores.deviation(metric),
            "splits": scores.values[metric],
        }
        for metric in scores.values
    }


def _plain(console: Console, text: str) -> str:
    """Write ± as +- where the terminal does not have it."""
    return text.replace("±", "+-") if console.options.ascii_only else text
