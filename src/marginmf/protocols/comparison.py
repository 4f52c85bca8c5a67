"""`Comparison`: what several models reached on the same splits, as frames, tables and tests."""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from marginmf._utils.types import Float64Array
from marginmf.metrics import Metric, metric
from marginmf.metrics.table import MetricKind
from marginmf.protocols.lists import ListRule, ListScores
from marginmf.ratings.base import Output
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.tables import make_frame
from marginmf.stats import bootstrap_interval, holm, paired_comparison, paired_randomisation_test


@dataclass(eq=False, repr=False)
class Comparison:
    """What several models reached on the same splits; `compare` and `compare_labels` make it.

    Means and standard deviations are over the splits.  Metrics of lists are averaged for every user
    over the splits that judged the user; means and intervals are over users.

    Parameters
    ----------
    kind : {"ratings", "labels", "lists"}
        What was measured.
    metrics : sequence of str
        The metrics that tables show; the first one decides which model is the best.
    values : dict of str to dict of str to list of float
        By method, by metric, the value on every split: those that tables do not show too.
    test_size : float, optional
        The share of the data that a split tests on, which the test of differences needs.
    baseline : str, optional
        The method that the others are tested against; by default the best.
    rule : ListRule, optional
        The length of the lists, and what is relevant.
    lists : dict of str to list of ListScores
        By method, the metrics of every user on every split, where lists were judged.
    output : {"median", "mode", "mean", "rule"}
        Which point of the predicted distribution was judged, as in ``predict``.
    unknown_share : float, optional
        The mean share of the test ratings whose user or item was in no training rating: what
        ``predict`` falls back on was judged there.

    Examples
    --------
    >>> errors = {"A": {"mae": [0.70, 0.72, 0.71]}, "B": {"mae": [0.74, 0.75, 0.76]}}
    >>> found = Comparison("ratings", ("mae",), errors, test_size=0.2)
    >>> print(found)
    method  MAE               p
    A       *0.7100 ± 0.0100  best
    B       0.7500 ± 0.0100   0.035
    3 splits; * marks the best; p: difference from the best by MAE.
    """

    kind: MetricKind
    metrics: Iterable[str]
    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    test_size: float | None = None
    baseline: str | None = None
    rule: ListRule | None = None
    lists: dict[str, list[ListScores]] = field(default_factory=dict)
    output: Output = "median"
    unknown_share: float | None = None
    _known: dict[Any, Any] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.metrics = tuple(one.name for one in self._metrics(self.metrics))
        if self.baseline is not None:
            self._against(self._metric(None))

    def __repr__(self) -> str:
        return f"Comparison({self.kind} of {', '.join(self.values)}: {self.n_splits} splits)"

    def add(
        self, method: str, values: Mapping[str, float], lists: ListScores | None = None
    ) -> None:
        """Add what a method reached on another split."""
        own = self.values.setdefault(method, {})
        for name, value in values.items():
            own.setdefault(name, []).append(float(value))
        if lists is not None:
            self.lists.setdefault(method, []).append(lists)
        self._known.clear()

    @property
    def methods(self) -> list[str]:
        """The names of the models."""
        return list(self.values)

    @property
    def n_splits(self) -> int:
        """How many splits there are."""
        return max((len(own) for one in self.values.values() for own in one.values()), default=0)

    def user_values(self, method: str, name: str | None = None) -> Float64Array:
        """Return a metric for every user: the mean over the splits that judged the user."""
        wanted = self._metric(name).name
        key = "users", method, wanted
        if key not in self._known:
            splits = self.lists[method]
            users = reduce(IdIndex.union, (IdIndex(own.users, "user") for own in splits))
            totals, times = np.zeros((2, len(users)))
            for own in splits:
                rows = users.encode(own.users)
                totals[rows] += own.values[wanted]
                times[rows] += 1
            self._known[key] = totals / times
        return self._known[key]

    def mean(self, method: str, name: str | None = None) -> float:
        """Return a method's mean of a metric, by default of the first one."""
        wanted = self._metric(name)
        if wanted.is_per_user and method in self.lists:
            return float(self.user_values(method, wanted.name).mean())
        return float(np.mean(self.values[method].get(wanted.name, [np.nan])))

    def deviation(self, method: str, name: str | None = None) -> float | None:
        """Return the standard deviation over the splits; None if there is only one."""
        values = self.values[method].get(self._metric(name).name, [])
        return float(np.std(values, ddof=1)) if len(values) > 1 else None

    def interval(self, method: str, name: str | None = None) -> tuple[float, float] | None:
        """Return the 95 % interval of a mean over users, by the bootstrap; None without users."""
        wanted = self._metric(name)
        if not wanted.is_per_user or method not in self.lists:
            return None
        key = "interval", method, wanted.name
        if key not in self._known:
            self._known[key] = bootstrap_interval(self.user_values(method, wanted.name), 0.95)
        return self._known[key]

    def best(self, name: str | None = None) -> str | None:
        """Return the method with the best mean; None where no direction is better."""
        wanted = self._metric(name)
        return wanted.best({method: self.mean(method, wanted.name) for method in self.values})

    def p_values(self, name: str | None = None, baseline: str | None = None) -> dict[str, float]:
        """Return how likely a difference as large is if two methods are equally good, by method.

        By the randomisation test of pairs for values of users, and the t-test that is corrected for
        overlapping training sets for values of splits; with Holm's correction.

        Parameters
        ----------
        name : str, optional
            The metric; by default the first one.
        baseline : str, optional
            What the others are compared with; by default that of the comparison, or the best.

        Returns
        -------
        dict of str to float
            1 for the baseline itself; NaN where there is nothing to test, as with a single split.
        """
        wanted = self._metric(name)
        against = self._against(wanted, baseline)
        key = "p", wanted.name, against
        if key not in self._known:
            self._known[key] = self._tested(wanted, against)
        return dict(self._known[key])

    def _against(self, wanted: Metric, baseline: str | None = None) -> str | None:
        """Return the method that the others are compared with."""
        name = baseline or self.baseline
        if name and name not in self.values:
            methods = ", ".join(self.values)
            raise ValueError(f"baseline={name!r} is not one of the methods: {methods}.")
        return name or self.best(wanted.name)

    def _tested(self, wanted: Metric, against: str | None) -> dict[str, float]:
        if against is None or wanted.kind == "seconds":
            return dict.fromkeys(self.values, np.nan)
        others = [method for method in self.values if method != against]
        found = {method: self._p_value(method, against, wanted) for method in others}
        tested = {method: p for method, p in found.items() if not np.isnan(p)}
        found |= zip(tested, holm(list(tested.values())), strict=True)
        alone = 1.0 if tested or not others else np.nan
        return {method: found.get(method, alone) for method in self.values}

    def _p_value(self, method: str, against: str, wanted: Metric) -> float:
        if wanted.is_per_user and self.lists:
            own, others = (self.user_values(one, wanted.name) for one in (method, against))
            return paired_randomisation_test(own, others)
        first, second = (self.values[one].get(wanted.name, []) for one in (method, against))
        if min(len(first), len(second)) < 2 or not np.isfinite([*first, *second]).all():
            return float("nan")
        return paired_comparison(first, second, test_size=self.test_size).p_value

    def frame(self, metrics: Iterable[str] | None = None, baseline: str | None = None) -> Any:
        """Return a table with a row for each method and metric.

        Parameters
        ----------
        metrics : sequence of str, optional
            By default those of the comparison.
        baseline : str, optional
            What the others are compared with; by default that of the comparison, or the best by
            each metric.

        Returns
        -------
        frame
            ``method``, ``metric``, ``mean``, ``sd`` (over the splits), ``n_splits``, ``best``,
            ``difference`` and ``p_value``; for lists also ``low`` and ``high``, the ends of the
            95 % interval over users.  It is of the first library of pandas, polars and pyarrow
            that is installed; else, a dictionary of arrays.
        """
        rows = []
        for one in self._metrics(metrics):
            best, p_values = self.best(one.name), self.p_values(one.name, baseline)
            against = self._against(one, baseline)
            for method in self.values:
                mean, deviation = self.mean(method, one.name), self.deviation(method, one.name)
                row = {
                    "method": method,
                    "metric": one.name,
                    "mean": mean,
                    "sd": np.nan if deviation is None else deviation,
                    "n_splits": len(self.values[method].get(one.name, [])),
                    "best": best is not None and mean == self.mean(best, one.name),
                    "difference": mean - self.mean(against, one.name) if against else np.nan,
                    "p_value": p_values[method],
                }
                if self.kind == "lists":
                    row["low"], row["high"] = self.interval(method, one.name) or (np.nan, np.nan)
                rows.append(row)
        return make_frame({key: np.array([row[key] for row in rows]) for key in rows[0]})

    def cell(self, method: str, name: str | None = None) -> str:
        """Write a mean with its standard deviation after ±, or its interval in brackets.

        The cell is empty where a method has no value: not all of them give probabilities.
        """
        wanted = self._metric(name)
        if wanted.name not in self.values[method] and method not in self.lists:
            return ""
        text = wanted.format(self.mean(method, wanted.name))
        if (ends := self.interval(method, wanted.name)) is not None:
            return f"{text} [{', '.join(map(wanted.format, ends))}]"
        deviation = self.deviation(method, wanted.name)
        if deviation is None or self.kind == "lists":
            return text
        return f"{text} ± {wanted.format(deviation)}"

    def winners(self, name: str | None = None) -> set[str]:
        """Return the best methods: all whose mean has the printed digits of the best mean."""
        wanted, best = self._metric(name), self.best(name)
        written = {one: wanted.format(self.mean(one, wanted.name)) for one in self.values}
        return {one for one in self.values if best and written[one] == written[best]}

    def p_cells(self) -> dict[str, str] | None:
        """Write the p-values of the first metric by method; None where nothing could be tested."""
        p_values, against = self.p_values(), self._against(self._metric(None))
        if len(self.values) < 2 or np.isnan(list(p_values.values())).all():
            return None
        own = "baseline" if self.baseline else "best"
        texts = {
            name: "" if np.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"
            for name, p in p_values.items()
        }
        return {**texts, str(against): own}

    def rows(
        self, metrics: Iterable[str] | None = None, mark: tuple[str, str] = ("*", "")
    ) -> list[list[str]]:
        """Return a table as texts: the headings, then a row for each method.

        Parameters
        ----------
        metrics : sequence of str, optional
            The columns; by default those of the comparison.  The p-values of the first metric of
            the comparison come before the seconds.
        mark : tuple of str
            What is written before and after the best of each column.
        """
        columns = {}
        for one in self._metrics(metrics):
            cells = {method: self.cell(method, one.name) for method in self.values}
            for method in self.winners(one.name):
                cells[method] = f"{mark[0]}{cells[method]}{mark[1]}"
            columns[self._title(one)] = cells
        if (p_cells := self.p_cells()) is not None:
            seconds = {name: columns.pop(name) for name in ("seconds",) if name in columns}
            columns |= {"p": p_cells, **seconds}
        body = [[method, *(own[method] for own in columns.values())] for method in self.values]
        return [["method", *columns], *body]

    def _title(self, wanted: Metric) -> str:
        return wanted.title(None if self.rule is None else self.rule.k)

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        notes = [f"{self.n_splits} split{'s' * (self.n_splits != 1)}", "* marks the best"]
        if self.output != "median":
            notes.insert(1, f"output {self.output}")
        if "p" in rows[0]:
            first = self._title(self._metric(None))
            notes.append(f"p: difference from the {self.baseline or 'best'} by {first}")
        return "\n".join([*lines, "; ".join(notes) + "."])

    def to_markdown(self, metrics: Iterable[str] | None = None) -> str:
        """Return a Markdown table with the best of each column in bold."""
        lines = [f"| {' | '.join(row)} |" for row in self.rows(metrics, ("**", "**"))]
        rule = "|---|" + "---:|" * (lines[0].count("|") - 2)
        return "\n".join([lines[0], rule, *lines[1:]]) + "\n"

    _repr_markdown_ = to_markdown

    def to_csv(self, metrics: Iterable[str] | None = None) -> str:
        """Return comma-separated values with a row for each method.

        Each metric has its mean and its standard deviation (``mae``, ``mae_sd``) or, over users,
        its interval (``ndcg``, ``ndcg_low``, ``ndcg_high``); ``difference`` and ``p_value`` are
        those of the comparison's first metric.
        """
        rows = []
        for method, tested in self._tested_values().items():
            row: dict[str, Any] = {"method": method}
            for one in self._metrics(metrics):
                row[one.name] = self.mean(method, one.name)
                spread = self._spread(method, one.name)
                row |= {f"{one.name}_{key}": value for key, value in spread.items()}
            rows.append(row | tested if tested["difference"] is not None else row)
        file = io.StringIO()
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return file.getvalue()

    def as_dict(self) -> dict[str, Any]:
        """Return every number as plain data, ready for JSON.

        ``models`` has, by method and metric, the ``mean``, the ``sd``, the value on each of the
        ``splits`` and, over users, ``low`` and ``high``; ``best`` has the best method by metric;
        ``tested`` has differences and p-values by the first metric.
        """
        first, best = self._metric(None), {name: self.best(name) for name in self.metrics}
        return {
            **({"lists": asdict(self.rule)} if self.rule is not None else {}),
            **({"output": self.output} if self.kind == "ratings" else {}),
            "models": {method: self.summary(method) for method in self.values},
            "best": {name: method for name, method in best.items() if method},
            "tested": {
                "metric": first.name,
                "against": self._against(first),
                "models": {
                    method: {key: _number(value) for key, value in tested.items()}
                    for method, tested in self._tested_values().items()
                },
            },
        }

    def summary(self, method: str) -> dict[str, dict[str, Any]]:
        """Return everything that was measured of one method, by metric."""
        return {
            name: {
                "mean": _number(self.mean(method, name)),
                "splits": [_number(value) for value in values],
                **{key: _number(value) for key, value in self._spread(method, name).items()},
            }
            for name, values in self.values[method].items()
        }

    def _spread(self, method: str, name: str) -> dict[str, float | None]:
        """Return the ends of the interval over users or, without users, the deviation."""
        if (ends := self.interval(method, name)) is not None:
            return {"low": ends[0], "high": ends[1]}
        return {"sd": self.deviation(method, name)}

    def _tested_values(self) -> dict[str, dict[str, float | None]]:
        """Return differences and p-values by the first metric."""
        against = self._against(self._metric(None))
        return {
            method: {
                "difference": self.mean(method) - self.mean(against) if against else None,
                "p_value": _number(p),
            }
            for method, p in self.p_values().items()
        }

    def _metric(self, name: str | None) -> Metric:
        return metric(next(iter(self.metrics)) if name is None else name, self.kind)

    def _metrics(self, names: Iterable[str] | None) -> list[Metric]:
        wanted = self.metrics if names is None else names
        found = [] if isinstance(wanted, str) else [metric(name, self.kind) for name in wanted]
        if not found:
            raise ValueError(f"metrics={wanted!r} must be a sequence of metrics, one at least.")
        return found


def _number(value: float | None) -> float | None:
    """Return None for NaN, which JSON does not have."""
    return None if value is None or np.isnan(value) else value
