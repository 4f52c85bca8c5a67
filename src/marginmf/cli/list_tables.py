"""Measures of lists as tables: for terminals, for files, and for programs.

A summary is a mapping of measure to its ``mean``, the ``low`` and ``high`` end of its interval over
users, where it has one, and its value on each of the ``splits``.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from marginmf.cli.kept import write_form
from marginmf.cli.printing import new_table
from marginmf.cli.tables import MOST_LISTED
from marginmf.metrics import EXPOSURE_METRICS as OVERALL
from marginmf.metrics import LIST_METRICS
from marginmf.protocols import Comparison, ListRule

Summary = Mapping[str, Mapping[str, Any]]

#: What is shown of several methods; the first decides which of them is the best.
SHOWN = ("ndcg", "precision", "recall")
#: Narrower terminals do without the precision.
WIDE = 116
HEADINGS = {"ndcg": "nDCG", "map": "MAP", "mrr": "MRR", "hit_rate": "hit rate"}
DIGITS = {"seconds": 2, "novelty": 2}


@dataclass(frozen=True)
class ListTable:
    """How good the lists of methods are: the numbers, and the forms in which they are shown."""

    found: Comparison

    @property
    def rule(self) -> ListRule:
        """The length of the lists, and what is relevant."""
        return self.found.rule or ListRule()

    @cached_property
    def summaries(self) -> dict[str, Summary]:
        """Everything that was measured, by method."""
        return {name: summary(self.found, name) for name in self.found.values}

    @cached_property
    def tested(self) -> dict[str, Any]:
        """How far each method is below the best, and the p-value of that."""
        metric = SHOWN[0]
        best, p_values = str(self.found.best(metric)), self.found.p_values(metric)
        highest = self.summaries[best][metric]["mean"]
        return {
            "metric": metric,
            "best": best,
            "models": {
                name: {"difference": own[metric]["mean"] - highest, "p_value": p_values[name]}
                for name, own in self.summaries.items()
            },
        }

    def result(self) -> dict[str, Any]:
        """Return every number, the best of each measure, and the tests."""
        return {
            "lists": asdict(self.rule),
            "models": self.summaries,
            "best": {metric: self.found.best(metric) for metric in SHOWN},
            "tested": self.tested,
        }

    def result_of(self, name: str) -> dict[str, Any]:
        """Return every number of one method, and how many users were judged."""
        return {
            "lists": asdict(self.rule),
            "metrics": self.summaries[name],
            "n_users": len(self.found.user_values(name)),
        }

    def keep(self, result: dict[str, Any], out: Path) -> None:
        """Write the table into a file, in the form of its ending."""
        texts = {
            ".csv": lambda: as_csv(self.summaries, self.tested),
            ".md": lambda: as_markdown(self.summaries, self.tested, self.rule.k),
        }
        drawn = {
            name: {metric: own[metric]["splits"] for metric in (*SHOWN, "seconds")}
            for name, own in self.summaries.items()
        }
        write_form(out, texts, result, drawn)

    def show(self, console: Console) -> None:
        """Print a row for every method, with the best of each column marked."""
        k = self.rule.k
        metrics = _columns(SHOWN if console.width >= WIDE else (SHOWN[0], SHOWN[2]))
        headings = [heading(metric, k) for metric in metrics]
        table = new_table("method", *headings[:-1], "p", headings[-1], numbers=len(headings) + 1)
        winners = _winners(self.summaries, metrics)
        mark = "" if console.color_system else "*"
        for name, own in self.summaries.items():
            cells = []
            for metric in metrics:
                won = name in winners[metric]
                cells.append(Text(mark * won + _cell(own, metric), "bold green" if won else ""))
            table.add_row(name, *cells[:-1], _p_value(name, self.tested), cells[-1])
        console.print(table)
        console.print(f"p is that of the difference from the best {heading(SHOWN[0], k)}.")

    def show_one(self, console: Console, name: str) -> None:
        """Print a row for every measure, with that of each split where they are few."""
        own, k = self.summaries[name], self.rule.k
        n_splits = self.found.n_splits
        n_listed = n_splits if 1 < n_splits <= MOST_LISTED else 0
        listed = [f"split {number}" for number in range(1, n_listed + 1)]
        table = new_table("measure", name, "95 % interval", *listed, numbers=2 + n_listed)
        for metric, found in own.items():
            each = [_number(metric, value) for value in found["splits"][:n_listed]]
            ends = " to ".join(_number(metric, found[end]) for end in _ends(found))
            table.add_row(heading(metric, k), _number(metric, found["mean"]), ends, *each)
        console.print(table)
        n_users = len(self.found.user_values(name))
        console.print(f"Means and intervals are over {n_users:,} users with a relevant item.")


def summary(found: Comparison, name: str) -> dict[str, dict[str, Any]]:
    """Return everything that was measured of one method."""
    measures: dict[str, dict[str, Any]] = {}
    for metric in LIST_METRICS:
        low, high = found.interval(name, metric) or (0.0, 0.0)
        measures[metric] = {"mean": found.mean(name, metric), "low": low, "high": high}
    for metric in OVERALL:
        measures[metric] = {"mean": found.mean(name, metric)}
    for metric, own in measures.items():
        own["splits"] = found.values[name][metric]
    seconds = {"mean": found.mean(name, "seconds"), "splits": found.values[name]["seconds"]}
    return {**measures, "seconds": seconds}


def heading(metric: str, k: int) -> str:
    """Return how a measure is called.

    >>> heading("ndcg", 10), heading("hit_rate", 5), heading("coverage", 10)
    ('nDCG@10', 'hit rate@5', 'coverage')
    """
    name = HEADINGS.get(metric, metric)
    return f"{name}@{k}" if metric in LIST_METRICS else name


def as_markdown(summaries: Mapping[str, Summary], tested: Mapping[str, Any], k: int) -> str:
    """Return a Markdown table with the best of each column in bold."""
    metrics = _columns(SHOWN)
    headings = [heading(metric, k) for metric in metrics]
    winners = _winners(summaries, metrics)
    rows = [["method", *headings[:-1], "p", headings[-1]]]
    for name, own in summaries.items():
        cells = [
            f"**{_cell(own, metric)}**" if name in winners[metric] else _cell(own, metric)
            for metric in metrics
        ]
        rows.append([name, *cells[:-1], _p_value(name, tested), cells[-1]])
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---|" + "---:|" * (len(rows[0]) - 1), *lines[1:]]) + "\n"


def as_csv(summaries: Mapping[str, Summary], tested: Mapping[str, Any]) -> str:
    """Return the columns of `Comparison.frame`."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    ends = [f"{metric}{end}" for metric in LIST_METRICS for end in ("", "_low", "_high")]
    writer.writerow(["method", *ends, *OVERALL, "difference", "p_value", "seconds"])
    for name, own in summaries.items():
        means = [own[metric][end] for metric in LIST_METRICS for end in ("mean", "low", "high")]
        overall = [own[metric]["mean"] for metric in OVERALL]
        seconds = own["seconds"]["mean"]
        writer.writerow([name, *means, *overall, *tested["models"][name].values(), seconds])
    return file.getvalue()


def _columns(metrics: Sequence[str]) -> tuple[str, ...]:
    return (*metrics, "coverage", "seconds")


def _number(metric: str, value: float) -> str:
    return f"{value:.{DIGITS.get(metric, 4)}f}"


def _ends(found: Mapping[str, Any]) -> list[str]:
    """Return the ends of the interval that a measure has, or none."""
    return [end for end in ("low", "high") if end in found]


def _cell(own: Summary, metric: str) -> str:
    """Write a mean and, in brackets, its interval.

    >>> _cell({"ndcg": {"mean": 0.25, "low": 0.2, "high": 0.3}}, "ndcg")
    '0.2500 [0.2000, 0.3000]'
    """
    found = own[metric]
    ends = ", ".join(_number(metric, found[end]) for end in _ends(found))
    return _number(metric, found["mean"]) + (f" [{ends}]" if ends else "")


def _winners(summaries: Mapping[str, Summary], metrics: Sequence[str]) -> dict[str, set[str]]:
    """Return which methods are best by each measure: equal to the eye is equal."""
    winners: dict[str, set[str]] = {}
    for metric in metrics:
        means = {name: own[metric]["mean"] for name, own in summaries.items()}
        best = min(means.values()) if metric == "seconds" else max(means.values())
        written = _number(metric, best)
        winners[metric] = {name for name in means if _number(metric, means[name]) == written}
    # A catalogue that is covered more is not better by itself.
    return {**winners, "coverage": set()}


def _p_value(name: str, tested: Mapping[str, Any]) -> str:
    if name == tested["best"]:
        return "best"
    p = tested["models"][name]["p_value"]
    return "<0.001" if p < 0.001 else f"{p:.3f}"
