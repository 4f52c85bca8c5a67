"""The blocks of a section in HTML.  All text is escaped here."""

from collections.abc import Iterable
from html import escape

from marginmf.experiments.blocks import Entry, Table, Text, Verdict
from marginmf.experiments.report.inline import with_code
from marginmf.experiments.report.pictures import Folded, Picture, Shown

#: Names that are longer wrap, where two columns of them stay in sight.
MOST_LETTERS = 14


def html_of(blocks: Iterable[Shown]) -> str:
    """Return blocks one after the other."""
    return "\n".join(map(_block, blocks))


def words_of(text: str) -> str:
    """Return a text with its code marked up.

    >>> words_of("fit `a < b`")
    'fit <code>a &lt; b</code>'
    """
    return with_code(text, escape, lambda code: f"<code>{escape(code)}</code>")


def pill(outcome: str) -> str:
    """Return a verdict in a word or two, on a colour of its own."""
    return f'<span class="pill {escape(outcome.replace(" ", "-"))}">{escape(outcome)}</span>'


def _block(block: Shown) -> str:
    match block:
        case Text(words):
            return f"<p>{words_of(words)}</p>"
        case Table():
            return _table(block)
        case Picture():
            return _picture(block)
        case Verdict(outcome, why):
            return f'<div class="verdict">{pill(outcome)} <p>{words_of(why)}</p></div>'
        case Folded(heading, blocks):
            summary = f"<summary>{words_of(heading)}</summary>"
            return f"<details>{summary}\n{html_of(blocks)}\n</details>"


def _table(table: Table) -> str:
    headings = "".join(
        f'<th scope="col"{_side(place, table)}>{words_of(heading)}</th>'
        for place, heading in enumerate(table.headings)
    )
    caption = f"<figcaption>{words_of(table.caption)}</figcaption>" if table.caption else ""
    notes = "".join(f'<p class="note">{words_of(note)}</p>' for note in table.notes)
    label = escape(table.caption.replace("`", "") or "Table", quote=True)
    # A box that scrolls can be reached and named from the keyboard.
    return (
        f'<figure class="table">{caption}'
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">'
        f"<table{_two_names(table)}>\n<thead><tr>{headings}</tr></thead>\n"
        f"<tbody>\n{_rows(table)}\n</tbody></table></div>{notes}</figure>"
    )


def _two_names(table: Table) -> str:
    """Let two columns of names stay in sight; the second must know how wide the first is."""
    if table.words != 2 or len(table.headings) < 4:
        return ""
    letters = max((len(_entry(row[0]).text) for row in table.rows), default=0)
    return f' class="two" style="--letters: {min(letters, MOST_LETTERS)}"'


def _rows(table: Table) -> str:
    rows, before = [], None
    for row in table.rows:
        first = _entry(row[0]).text if table.words > 1 else None
        same = first is not None and first == before
        entries = (_place(place, _entry(one), table, same) for place, one in enumerate(row))
        rows.append(f"<tr>{''.join(entries)}</tr>")
        before = first
    return "\n".join(rows)


def _side(place: int, table: Table) -> str:
    return "" if place < table.words else ' class="number"'


def _place(place: int, entry: Entry, table: Table, same: bool) -> str:
    """Return one place of a row, which may begin with the same name as the row above it."""
    text = words_of(entry.text)
    if entry.best:
        text = f"<strong>{text}</strong>"
    if entry.mark:
        text += f"<sup>{escape(entry.mark)}</sup>"
    if place < table.words:
        text = f'<div class="words">{text}</div>'
    kinds = {"number": place >= table.words, "faint": entry.faint or (same and place == 0)}
    named = " ".join(kind for kind, holds in kinds.items() if holds)
    kind = f' class="{named}"' if named else ""
    if place == 0 and table.words:
        return f'<th scope="row"{kind}>{text}</th>'
    return f"<td{kind}>{text}</td>"


def _entry(entry: Entry | str) -> Entry:
    return Entry(entry) if isinstance(entry, str) else entry


def _picture(picture: Picture) -> str:
    label = escape(picture.description.replace("`", ""), quote=True)
    drawing = picture.svg.text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    return (
        f'<figure class="picture"><div class="card" style="--width: {picture.svg.width}px">'
        f"{drawing}</div><figcaption>{words_of(picture.caption)}</figcaption></figure>"
    )
