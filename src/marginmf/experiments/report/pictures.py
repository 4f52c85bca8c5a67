"""Figures, drawn: each once, for both forms of the report."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from marginmf.experiments.blocks import Block, Details, Figure, Table, Text, Verdict
from marginmf.experiments.report.svg import Svg, svg_of


@dataclass(frozen=True)
class Picture:
    """A figure that has been drawn."""

    name: str
    svg: Svg
    caption: str
    description: str


@dataclass(frozen=True)
class Folded:
    """Blocks under a heading that opens them, all figures among them drawn."""

    heading: str
    blocks: tuple["Shown", ...]


#: What both forms of the report know how to show.
Shown = Text | Table | Verdict | Picture | Folded


def drawn(blocks: Iterable[Block], name: str) -> tuple[Shown, ...]:
    """Return the blocks with every figure drawn; their pictures are numbered after a name."""
    return tuple(_drawn(blocks, (f"{name}-{number}" for number in range(1, 10**6))))


def pictures_of(blocks: Iterable[Shown]) -> Iterator[Picture]:
    """Yield the pictures among blocks, folded ones too."""
    for block in blocks:
        if isinstance(block, Picture):
            yield block
        elif isinstance(block, Folded):
            yield from pictures_of(block.blocks)


def _drawn(blocks: Iterable[Block], names: Iterator[str]) -> Iterator[Shown]:
    for block in blocks:
        if isinstance(block, Details):
            yield Folded(block.heading, tuple(_drawn(block.blocks, names)))
        elif isinstance(block, Figure):
            yield _picture(block, next(names))
        else:
            yield block


def _picture(figure: Figure, name: str) -> Picture | Text:
    try:
        svg = svg_of(figure.draw(), name)
    except Exception as error:  # whatever it is, the rest of the report is still worth having
        reason = f"{type(error).__name__}: {error}"
        return Text(f"The figure “{figure.caption}” could not be drawn. {reason}")
    return Picture(name, svg, figure.caption, figure.description or figure.caption)
