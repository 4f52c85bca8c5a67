"""One section for each table or figure: what is in the store, shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from marginmf.experiments.blocks import Outcome, Verdict
from marginmf.experiments.cell import Cell
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.report.pictures import Shown, drawn
from marginmf.experiments.store import Store
from marginmf.experiments.watching import duration

CHAPTERS = {
    3: "Hierarchical matrix factorisation",
    4: "Proximal margins",
    5: "Label sets by hierarchical factorisation",
    6: "Label sets by groups of labels",
}

#: What may become of an exhibit: the verdicts, and what there is where there is none.
OUTCOMES = (*get_args(Outcome), "in part", "shown", "not shown")


@dataclass(frozen=True)
class Section:
    """A table or figure as the report has it."""

    exhibit: Exhibit
    cells: Sequence[Cell]
    #: How many of its cells the store has, and how long those took.
    done: int
    seconds: float
    #: Everything but the verdict, which has a place of its own.
    blocks: tuple[Shown, ...]
    verdict: Verdict | None
    #: Why it could not be shown.
    failure: str = ""

    @property
    def name(self) -> str:
        """What the exhibit is asked for by."""
        return self.exhibit.name

    @property
    def outcome(self) -> str:
        """The verdict in a word or two, or what there is instead."""
        if self.failure:
            return "not shown"
        if self.verdict:
            return self.verdict.outcome
        if self.cells and not self.done:
            return "not run"
        return "shown" if self.done == len(self.cells) else "in part"

    @property
    def why(self) -> str:
        """Why that is the outcome."""
        if self.failure:
            return f"It could not be shown. {self.failure}"
        said = self.verdict.why if self.verdict else ""
        missing = len(self.cells) - self.done
        if not missing:
            return said
        if not self.done:
            return said or "None of its cells has been run."
        return f"{said} Of its {len(self.cells):,} cells, {missing:,} have not been run.".strip()

    @property
    def work(self) -> str:
        """How many cells there are, and how long they took."""
        if not self.cells:
            return "needs nothing measured"
        noun = "cell" if len(self.cells) == 1 else "cells"
        took = f", {self.time} of computing" if self.done else ""
        return f"{self.count} {noun}{took}"

    @property
    def time(self) -> str:
        """How long the cells took, if there are any."""
        return duration(self.seconds) if self.done else ""

    @property
    def count(self) -> str:
        """How many cells have been run, of how many where some have not."""
        needed = len(self.cells)
        if not needed:
            return "none"
        return f"{needed:,}" if self.done == needed else f"{self.done:,} of {needed:,}"


def sections_of(exhibits: Sequence[Exhibit], store: Store, scale: Scale) -> list[Section]:
    """Return the sections of exhibits; what goes wrong in one is said there, and others go on."""
    return [_section(one, store, scale) for one in exhibits]


def _section(exhibit: Exhibit, store: Store, scale: Scale) -> Section:
    cells: Sequence[Cell] = ()
    seconds: list[float] = []
    try:
        cells = exhibit.cells(scale)
        seconds = [found for cell in cells if (found := store.seconds(cell)) is not None]
        # Also where nothing was run: what follows from published figures needs no cells of ours.
        blocks = exhibit.show(store, scale)
        verdict = next((one for one in blocks if isinstance(one, Verdict)), None)
        rest = drawn((one for one in blocks if one is not verdict), exhibit.name)
        failure = ""
    except Exception as error:
        rest, verdict, failure = (), None, f"{type(error).__name__}: {error}"
    return Section(exhibit, cells, len(seconds), sum(seconds), rest, verdict, failure)
