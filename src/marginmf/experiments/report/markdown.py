"""The report as Markdown, with its pictures as files beside it."""

from collections.abc import Sequence

from marginmf.experiments.exhibit import Scale
from marginmf.experiments.report.contents import Contents, by_chapter, rerun
from marginmf.experiments.report.coverage import coverage
from marginmf.experiments.report.markdown_blocks import markdown_of, pipes, verdict, words_of
from marginmf.experiments.report.pictures import Folded
from marginmf.experiments.report.sections import Section


def markdown_page_of(contents: Contents) -> str:
    """Return the whole file."""
    parts = [f"# {words_of(contents.title)}", *map(words_of, contents.introduction)]
    parts += ["## Overview", _overview(contents.sections)]
    for heading, sections in by_chapter(contents.sections).items():
        parts.append(f"## {words_of(heading)}")
        parts += [_section(one, contents.scale) for one in sections]
    parts += ["## Where the figures come from", markdown_of(contents.colophon)]
    return "\n\n".join(parts) + "\n"


def _overview(sections: Sequence[Section]) -> str:
    rows = (
        [
            f"[{words_of(one.exhibit.title)}](#{one.name})",
            one.outcome,
            f"{one.exhibit.kind} `{one.name}`",
            one.count,
            one.time,
        ]
        for one in sections
    )
    headings = ("what it shows", "verdict", "name", "cells", "time")
    return pipes(headings, rows, words=3)


def _section(section: Section, scale: Scale) -> str:
    exhibit = section.exhibit
    # An anchor of its own: what sites make of a heading differs from one to the next.
    parts = [
        f'<a id="{section.name}"></a>',
        f"### {words_of(exhibit.title)}",
        f"{exhibit.kind.capitalize()} `{section.name}`",
        verdict(section.outcome, section.why),
    ]
    if section.blocks:
        parts.append(markdown_of(section.blocks))
    if section.cells:
        parts.append(markdown_of([Folded("What was measured", (coverage(section.cells),))]))
    parts.append(f"`{rerun(section, scale)}`: {words_of(section.work)}.")
    return "\n\n".join(parts)
