"""The report: what the cells found, beside what the thesis prints, as one page of Markdown."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from marginmf._utils.files import atomic_write
from studies.harness import Cell, Store
from studies.harness.markdown import (
    Block,
    Details,
    Table,
    Text,
    Verdict,
    Writer,
    make_table,
    write_words,
)
from studies.harness.running import format_duration
from studies.thesis.exhibit import Exhibit, Scale
from studies.thesis.samples import NOISE

TITLE = "Kumar's thesis, measured again"
CHAPTERS = {
    3: "Hierarchical matrix factorisation",
    4: "Proximal margins",
    5: "Label sets by hierarchical factorisation",
    6: "Label sets by groups of labels",
}
INTRODUCTION = (
    "Every table and figure of the thesis that `marginmf` implements, measured with this library "
    "and set beside what the thesis prints. Each section ends with the command that makes its "
    "figures again. Verdicts go by standard errors: that a method is ahead of another is "
    f"*reproduced* if its lead is more than {NOISE:g} standard errors of the paired difference, "
    "*within noise* if the difference is no more than that, and *not reproduced* if it is behind. "
    "A printed figure is reproduced up to one standard error, and within noise up to "
    f"{NOISE:g}. A *slip in the thesis* is what contradicts the thesis's own tables. Most of these "
    "standard errors are of three splits whose training ratings overlap: a method that is level "
    "is ahead by more than two of them by chance about once in eleven times. Where the thesis "
    "leaves open what it measured, every reading is judged, and the worst decides."
)
QUICK = (
    "This is the quick version, with fewer repetitions and coarser grids: it shows that everything "
    "runs, and only roughly what comes out. `python -m studies thesis run --all` makes the full "
    "one."
)
CHECKING = (
    "To check a single figure, list the cells of its table with `python -m studies thesis list "
    "NAME --cells`, and run one of them again with `python -m studies thesis check KEY`: what is "
    "stored and what is found now are shown side by side."
)
#: More values of one setting than that are counted and not listed.
MAX_VALUES = 10


class Section(NamedTuple):
    """A table or figure as the report has it."""

    exhibit: Exhibit
    cells: Sequence[Cell]
    #: How many of its cells the store has, and how long those took.
    done: int
    seconds: float
    #: Everything but the verdict.
    blocks: Sequence[Block] = ()
    verdict: Verdict | None = None
    #: Why it could not be shown.
    failure: str = ""

    @property
    def name(self) -> str:
        return self.exhibit.name

    @property
    def outcome(self) -> str:
        if self.failure:
            return "not shown"
        if self.verdict:
            return self.verdict.outcome
        if self.cells and not self.done:
            return "not run"
        return "shown" if self.done == len(self.cells) else "in part"

    @property
    def why(self) -> str:
        if self.failure:
            return f"It could not be shown. {self.failure}"
        found = self.verdict.why if self.verdict else ""
        if not self.done and self.cells:
            return found or "None of its cells has been run."
        missing = len(self.cells) - self.done
        words = f" Of its {len(self.cells):,} cells, {missing:,} have not been run."
        return f"{found}{words}".strip() if missing else found

    @property
    def time(self) -> str:
        return format_duration(self.seconds) if self.done else ""

    @property
    def count(self) -> str:
        """How many cells have been run, of how many where some have not."""
        needed = len(self.cells)
        some = f"{self.done:,} of {needed:,}"
        return "none" if not needed else some if self.done < needed else f"{needed:,}"


def make_section(exhibit: Exhibit, store: Store, scale: Scale) -> Section:
    """Return the section of an exhibit; an exception becomes its failure, so that others go on."""
    cells: Sequence[Cell] = ()
    seconds: list[float] = []
    try:
        cells = exhibit.cells(scale)
        seconds = [found for cell in cells if (found := store.seconds(cell)) is not None]
        # Also where nothing was run: what follows from published figures needs no cells of ours.
        blocks = exhibit.show(store, scale)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
        return Section(exhibit, cells, len(seconds), sum(seconds), failure=failure)
    verdict = next((one for one in blocks if isinstance(one, Verdict)), None)
    rest = [one for one in blocks if one is not verdict]
    return Section(exhibit, cells, len(seconds), sum(seconds), rest, verdict)


def write_report(
    exhibits: Sequence[Exhibit], store: Store, scale: Scale, file: Path
) -> list[Section]:
    """Write what the store has of the exhibits into a Markdown file, with ``figures/`` beside it.

    The same store gives the same bytes.  Exhibits of which no cell has been run say so; one that
    cannot be shown says why, and the others are there all the same.
    """
    sections = [make_section(one, store, scale) for one in exhibits]
    parts = [f"# {TITLE}", summarise(sections), INTRODUCTION]
    parts += [QUICK] if scale == "quick" else []
    parts += ["## Overview", _overview(sections)]
    for number, title in CHAPTERS.items():
        own = [one for one in sections if one.exhibit.chapter == number]
        parts += [f"## Chapter {number}: {title}"] if own else []
        parts += [_write_section(one, scale, file.parent) for one in own]
    cells = [cell for one in sections for cell in one.cells]
    origins = [*describe_origins(cells, store), Text(CHECKING)]
    parts += ["## Where the figures come from", Writer(file.parent, "origins").write(origins)]
    with atomic_write(file) as opened:
        opened.write(("\n\n".join(parts) + "\n").encode())
    return sections


def summarise(sections: Sequence[Section]) -> str:
    """Return a few sentences: what was reproduced, what was not, and why."""
    bad = [one for one in sections if one.outcome == "not reproduced"]
    slips = [one for one in sections if one.outcome == "slip in the thesis"]
    counts = Counter(one.outcome for one in sections)
    good, near = counts["reproduced"], counts["within noise"]
    rest = len(sections) - good - near - len(bad) - len(slips)
    noise = f" and {near} more within noise" if near else ""
    unjudged = f"; {rest} cannot be judged yet" if rest else ""
    reproduced = f"{good} {'is' if good == 1 else 'are'} reproduced{noise}{unjudged}"
    sentences = [f"Of {len(sections)} tables and figures of Kumar's thesis, {reproduced}."]
    if slips:
        causes = [one.verdict.cause for one in slips if one.verdict and one.verdict.cause]
        why = f": {write_words('; '.join(causes))}" if causes else ""
        verb = "A slip in the thesis is" if len(slips) == 1 else "Slips in the thesis are"
        sentences.append(f"{verb} {'; '.join(map(_link, slips))}{why}.")
    if not bad:
        return " ".join([*sentences, "None of the others contradicts it."])
    verb = "is" if len(bad) == 1 else "are"
    sentences.append(f"Not reproduced {verb} {'; '.join(map(_link, bad))}.")
    causes = [one.verdict.cause for one in bad if one.verdict and one.verdict.cause]
    if causes:
        sentences.append(f"The reasons: {write_words('; '.join(causes))}.")
    return " ".join(sentences)


def _overview(sections: Sequence[Section]) -> str:
    rows = []
    for one in sections:
        link, name = _link(one), f"{one.exhibit.kind} `{one.name}`"
        rows.append([link, one.outcome, name, one.count, one.time])
    return make_table(("what it shows", "verdict", "name", "cells", "time"), rows, words=3)


def _link(section: Section) -> str:
    return f"[{write_words(section.exhibit.title)}](#{section.name})"


def _write_section(section: Section, scale: Scale, folder: Path) -> str:
    exhibit, writer = section.exhibit, Writer(folder, section.name)
    outcome = section.outcome.capitalize()
    # An anchor of its own: what sites make of a heading differs from one to the next.
    parts = [
        f'<a id="{section.name}"></a>',
        f"### {write_words(exhibit.title)}",
        f"{exhibit.kind.capitalize()} `{section.name}`",
        f"**{outcome}:** {write_words(section.why)}" if section.why else f"**{outcome}**",
    ]
    blocks = list(section.blocks)
    work, command = "needs nothing measured", "python -m studies thesis report"
    if section.cells:
        blocks.append(Details("What was measured", [describe_settings(section.cells)]))
        noun = "cell" if len(section.cells) == 1 else "cells"
        took = f", {section.time} of computing" if section.done else ""
        work = f"{section.count} {noun}{took}"
        quick = " --quick" if scale == "quick" else ""
        command = f"python -m studies thesis run {section.name}{quick}"
    if blocks:
        parts.append(writer.write(blocks))
    return "\n\n".join([*parts, f"`{command}`: {write_words(work)}."])


def describe_settings(cells: Iterable[Cell]) -> Table:
    """Return a table of what was measured, and for every setting the values that it takes."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for cell in cells:
        for name, value in cell.settings.items():
            values = found.setdefault((cell.measure, name), {})
            values[json.dumps(value, sort_keys=True)] = value
    rows = [(*setting, format_values(list(values.values()))) for setting, values in found.items()]
    return Table(("measured", "setting", "values"), rows, words=3)


def format_values(values: Sequence[Any]) -> str:
    """Write different values in a line: all of them, or the first and how many more there are.

    >>> format_values([3, 1, 2]), format_values([{"name": "weak"}]), format_values("abcdefghijkl")
    ('1 to 3', 'name weak', 'a, b, c, d, e, f, g, h, i, and 3 more')
    """
    if len(values) > 2 and all(type(value) is int for value in values):
        low, high = min(values), max(values)
        if high - low == len(values) - 1:
            return f"{low} to {high}"
    words = [format_value(value) for value in values]
    separator = "; " if any(", " in one for one in words) else ", "
    if len(words) > MAX_VALUES:
        words[MAX_VALUES - 1 :] = [f"and {len(words) - MAX_VALUES + 1} more"]
    return separator.join(words)


def format_value(value: Any) -> str:
    """Write one value of a setting.

    >>> format_value({"n_factors": 100, "reg": [1, 2]}), format_value({}), format_value(None)
    ('n_factors 100, reg 1 2', 'none', 'none')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {format_value(one)}" for name, one in value.items()) or "none"
    if isinstance(value, list | tuple):
        return " ".join(format_value(one) for one in value) or "none"
    return "none" if value is None else str(value)


def describe_origins(cells: Iterable[Cell], store: Store) -> list[Text | Table]:
    """Return where figures come from: machines, versions, code and days of the runs."""
    wanted = {cell.key for cell in cells}
    days: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for key in wanted & store.records.keys():
        run = store.runs.get(store.records[key]["run"], {})
        days[_describe_run(run)].append(str(run.get("date", "unknown"))[:10])
    if not days:
        return [Text("No cell has been run yet.")]
    rows = []
    for origin, own in sorted(days.items(), key=lambda pair: (min(pair[1]), pair[0])):
        span = " to ".join(dict.fromkeys((min(own), max(own))))
        rows.append((span, *origin, f"{len(own):,}"))
    headings = ("days", "marginmf", "code", "machine", "software", "cells")
    first = f"{sum(map(len, days.values())):,} of {len(wanted):,} cells have been run."
    return [Text(f"{first} {_describe_mixture(list(days))}"), Table(headings, rows, words=5)]


def _describe_run(run: Mapping[str, Any]) -> tuple[str, str, str, str]:
    memory = str(run.get("memory") or "").removesuffix(" kB")
    machine = [
        run.get("processor"),
        f"{run['cores']} cores" if run.get("cores") else None,
        f"{int(memory) / (1 << 20):.0f} GiB" if memory.isdigit() else None,
        run.get("system"),
    ]
    libraries = (f"{name} {version}" for name, version in run.get("libraries", {}).items())
    return (
        str(run.get("version", "unknown")),
        str(run.get("code") or "unknown"),
        ", ".join(str(part) for part in machine if part) or "unknown",
        ", ".join([f"Python {run.get('python', 'unknown')}", *libraries]),
    )


def _describe_mixture(origins: Sequence[tuple[str, ...]]) -> str:
    """Say what differs between the runs, because a table may then compare unlike things."""
    names = ("versions", "states of the code", "machines", "sets of libraries")
    mixed = [
        f"{len(found)} {name}"
        for name, found in zip(names, map(set, zip(*origins, strict=True)), strict=True)
        if len(found) > 1
    ]
    if not mixed:
        return "They all come from one version of the library on one machine."
    return (
        f"They come from {' and '.join(mixed)}: figures that stand side by side may have been made "
        "under different conditions. `python -m studies thesis run --all --again` makes them anew."
    )
