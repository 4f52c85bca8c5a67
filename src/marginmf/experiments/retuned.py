"""A chapter's own method once more, tuned for a measure in which it falls short of the thesis."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from marginmf.experiments.blocks import Block, Entry, Table
from marginmf.experiments.cell import Cell
from marginmf.experiments.exhibit import Scale
from marginmf.experiments.label_tables import MEASURES, Contender, LabelTable
from marginmf.experiments.samples import Sample, at, beside, entry, sampled
from marginmf.experiments.store import Store


@dataclass(frozen=True)
class Retuned:
    """What a table's method reaches in a measure that its parameters are chosen for.

    The table chooses them for accuracy.  Where another measure falls short, this tells whether the
    choice is the reason.

    Parameters
    ----------
    table : LabelTable
        The table.
    measure : str
        The measure that parameters and thresholds are chosen for.
    titles : sequence of str
        The data sets of the table, by the names in the thesis.
    note : str
        Why these, if not all.
    """

    table: LabelTable
    measure: str
    titles: Sequence[str]
    note: str = ""

    @property
    def contender(self) -> Contender:
        """The method, in all else as in the table."""
        own = self.table.contenders[self.table.own]
        return replace(own, rule={**own.rule, "tune_for": self.measure})

    def cells(self, scale: Scale) -> list[Cell]:
        """Return the folds of all data sets; the quick version, which tunes nothing, has none."""
        if scale == "quick":
            return []
        return [cell for title in self.titles for cell in self._folds(title, scale)]

    def finding(self, store: Store, scale: Scale) -> str:
        """Return in words on how many sets the published figure is reached now, if any were run."""
        outcomes = []
        for title in self.titles if scale == "full" else ():
            ours, _ = self._pair(store, self._folds(title, scale))
            if (found := self.table.compared(self.measure, title, ours)) is not None:
                outcomes.append(found[0])
        if not outcomes:
            return ""
        name, reached = MEASURES[self.measure], len(outcomes) - outcomes.count("not reproduced")
        return (
            f" Tuned for {name} instead of accuracy, it is short of the published {name} by no "
            f"more than noise on {reached} of {len(outcomes)} sets: see the last table, "
            "also for what this costs in accuracy."
        )

    def show(self, store: Store, scale: Scale) -> list[Block]:
        """Set both choices beside the published figure, and what they cost in accuracy."""
        if scale == "quick":
            return []
        name = MEASURES[self.measure]
        headings = ["published", "for accuracy", "diff.", f"for {name}", "diff."]
        headings += ["accuracy, for accuracy", f"accuracy, for {name}"]
        return [
            Table(
                ["data set", *headings],
                [self._row(store, title, scale) for title in self.titles],
                f"{name} of {self.table.own} when it is tuned for {name} instead of accuracy",
                notes=[self.note] if self.note else [],
            )
        ]

    def _folds(self, title: str, scale: Scale) -> list[Cell]:
        return self.table.folds(title, self.contender, scale)

    def _row(self, store: Store, title: str, scale: Scale) -> list[Entry]:
        there = self.table.published.at(self.measure, title, self.table.own)
        before = self._pair(store, self.table.cells_for(title, self.table.own, scale))
        after = self._pair(store, self._folds(title, scale))
        printed, *first = beside(entry(before[0], 3), before[0], there, 3)
        _, *second = beside(entry(after[0], 3), after[0], there, 3)
        return [Entry(title), printed, *first, *second, entry(before[1], 3), entry(after[1], 3)]

    def _pair(self, store: Store, cells: list[Cell]) -> tuple[Sample | None, Sample | None]:
        return sampled(store, cells, at(self.measure)), sampled(store, cells, at("accuracy"))
