"""The tables of results."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from marginmf.experiments.published.reading import Content, Slip, read

TABLES = ("nmae", "mae-rmse", "mlc-hmf", "grople")


@dataclass(frozen=True)
class PublishedFigure:
    """One place of a table, as printed.

    Parameters
    ----------
    mean, std : float
        Over the runs or folds.
    rank : float or None
        The printed rank among the methods, if the table has ranks.
    bold : bool
        Whether it is printed as the best.
    """

    mean: float
    std: float
    rank: float | None = None
    bold: bool = False


@dataclass(frozen=True)
class PublishedTable:
    """A table of results: measures by data sets by methods.

    Parameters
    ----------
    name : str
        Which table.
    chapter : int
        Where it stands.
    higher_is_better : mapping of str to bool
        For each measure, whether more is better.
    datasets, methods : tuple of str
        In the order of the thesis.
    figures : mapping of (str, str, str) to PublishedFigure
        By measure, data set and method; without those that could not be run.
    slips : tuple of Slip
        What is printed wrong.
    """

    name: str
    chapter: int
    higher_is_better: Mapping[str, bool]
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    figures: Mapping[tuple[str, str, str], PublishedFigure] = field(repr=False)
    slips: tuple[Slip, ...] = field(repr=False)

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures, in the order of the thesis."""
        return tuple(self.higher_is_better)

    def at(self, measure: str, dataset: str, method: str) -> PublishedFigure | None:
        """Return what is printed there; None if the method could not be run on the data set."""
        for what, given, known in (
            ("measure", measure, self.measures),
            ("data set", dataset, self.datasets),
            ("method", method, self.methods),
        ):
            if given not in known:
                raise KeyError(
                    f"The table {self.name!r} has no {what} {given!r}, but: {', '.join(known)}."
                )
        return self.figures.get((measure, dataset, method))

    def scores(self, measure: str, leave_out: Iterable[str] = ()) -> dict[str, dict[str, float]]:
        """Return the means of one measure by method and data set, as `marginmf.stats` takes them.

        What could not be run is NaN; ``leave_out`` names data sets to leave out.
        """
        left = set(leave_out)
        kept = [dataset for dataset in self.datasets if dataset not in left]
        return {
            method: {dataset: self._mean(measure, dataset, method) for dataset in kept}
            for method in self.methods
        }

    def _mean(self, measure: str, dataset: str, method: str) -> float:
        figure = self.at(measure, dataset, method)
        return float("nan") if figure is None else figure.mean


@lru_cache
def published(name: str) -> PublishedTable:
    """Return a table of results of the thesis.

    Parameters
    ----------
    name : {"nmae", "mae-rmse", "mlc-hmf", "grople"}
        The NMAE of ten methods under weak and strong generalisation (chapter 3; the "measures" are
        ``"weak"`` and ``"strong"``); MAE and RMSE of three (chapter 4); six measures of seven
        methods on twelve sets of labels (chapter 5); four of eight on twelve (chapter 6).  Measures
        of labels are named as in `marginmf.metrics.labels_report`, and sets of labels as in
        `marginmf.datasets`, as far as they are there.

    Returns
    -------
    PublishedTable

    Examples
    --------
    >>> table = published("nmae")
    >>> table.at("weak", "MovieLens", "HMF")
    PublishedFigure(mean=0.4019, std=0.0044, rank=None, bold=True)
    >>> print(published("grople").at("accuracy", "bookmarks", "BSVM"))
    None
    """
    content, slips = read(name, TABLES)
    by_measure = content["mean"]
    return PublishedTable(
        name=name,
        chapter=content["chapter"],
        higher_is_better=content["higher_is_better"],
        datasets=tuple(next(iter(by_measure.values()))),
        methods=tuple(content["methods"]),
        figures=_figures(content),
        slips=slips,
    )


def _figures(content: Content) -> dict[tuple[str, str, str], PublishedFigure]:
    ranks: Any = content.get("rank")
    bold: Any = content.get("bold")
    return {
        (measure, dataset, method): PublishedFigure(
            mean,
            content["std"][measure][dataset][place],
            ranks[measure][dataset][place] if ranks else None,
            bool(bold) and method in bold[measure][dataset],
        )
        for measure, by_dataset in content["mean"].items()
        for dataset, means in by_dataset.items()
        for place, (method, mean) in enumerate(zip(content["methods"], means, strict=True))
        if mean is not None
    }
