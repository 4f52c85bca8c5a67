"""The report as one page of HTML that needs nothing else: no network, no font, no script."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from marginmf.experiments.exhibit import Scale
from marginmf.experiments.report.contents import Contents, by_chapter, rerun
from marginmf.experiments.report.coverage import coverage
from marginmf.experiments.report.html_blocks import html_of, pill, words_of
from marginmf.experiments.report.pictures import Folded
from marginmf.experiments.report.sections import OUTCOMES, Section

#: Not even a mistake in the page can fetch anything, or run anything.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page_of(contents: Contents) -> str:
    """Return the whole page."""
    style = files("marginmf.experiments.report").joinpath("style.css").read_text("utf-8")
    chapters = "\n".join(
        _chapter(heading, sections, contents.scale)
        for heading, sections in by_chapter(contents.sections).items()
    )
    introduction = "\n".join(f"<p>{words_of(text)}</p>" for text in contents.introduction)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(contents.title)}</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#page-main">Skip to the report</a>
<main id="page-main">
<header>
<h1>{escape(contents.title)}</h1>
{introduction}
</header>
{_overview(contents.sections)}
{_navigation(contents.sections)}
{chapters}
<section id="page-colophon" class="colophon">
<h2>Where the figures come from</h2>
{html_of(contents.colophon)}
</section>
</main>
</body>
</html>
"""


def _navigation(sections: Sequence[Section]) -> str:
    chapters = "\n".join(
        f'<li><a href="#{_chapter_id(own)}">{escape(heading)}</a>\n<ol>{_links(own)}</ol></li>'
        for heading, own in by_chapter(sections).items()
    )
    return f"""<nav aria-label="Contents">
<h2>Contents</h2>
<ol>
<li><a href="#page-overview">Overview</a></li>
{chapters}
<li><a href="#page-colophon">Where the figures come from</a></li>
</ol>
</nav>"""


def _links(sections: Sequence[Section]) -> str:
    return "\n".join(
        f'<li><a href="#{escape(one.name)}"><span class="dot {one.outcome.replace(" ", "-")}">'
        f"</span>{escape(one.exhibit.title)}</a></li>"
        for one in sections
    )


def _overview(sections: Sequence[Section]) -> str:
    counts = Counter(one.outcome for one in sections)
    tally = "".join(f"<li>{pill(one)} {counts[one]}</li>" for one in OUTCOMES if counts[one])
    rows = "\n".join(
        f'<tr><th scope="row"><div class="words"><a href="#{escape(one.name)}">'
        f"{escape(one.exhibit.title)}</a></div></th>"
        f"<td>{pill(one.outcome)}</td>"
        f'<td><div class="words">{one.exhibit.kind} <code>{escape(one.name)}</code></div></td>'
        f'<td class="number">{one.count}</td>'
        f'<td class="number">{one.time}</td></tr>'
        for one in sections
    )
    return f"""<section id="page-overview">
<h2>Overview</h2>
<ul class="tally">{tally}</ul>
<div class="scroll" role="region" tabindex="0" aria-label="Overview"><table class="overview">
<thead><tr><th scope="col">what it shows</th><th scope="col">verdict</th><th scope="col">name</th>
<th scope="col" class="number">cells</th><th scope="col" class="number">time</th></tr></thead>
<tbody>
{rows}
</tbody></table></div>
</section>"""


def _chapter(heading: str, sections: Sequence[Section], scale: Scale) -> str:
    inner = "\n".join(_section(one, scale) for one in sections)
    own_id = _chapter_id(sections)
    return (
        f'<section id="{own_id}" class="chapter">\n<h2>{escape(heading)}</h2>\n{inner}\n</section>'
    )


def _chapter_id(sections: Sequence[Section]) -> str:
    return f"page-chapter-{sections[0].exhibit.chapter}"


def _section(section: Section, scale: Scale) -> str:
    exhibit = section.exhibit
    why = words_of(section.why)
    covered = ""
    if section.cells:
        covered = html_of([Folded("What was measured", (coverage(section.cells),))])
    return f"""<article id="{escape(section.name)}">
<h3>{escape(exhibit.title)}</h3>
<p class="kind">{exhibit.kind.capitalize()} <code>{escape(section.name)}</code></p>
<div class="verdict">{pill(section.outcome)} <p>{why}</p></div>
{html_of(section.blocks)}
{covered}
<p class="again"><code>{escape(rerun(section, scale))}</code> {escape(section.work)}</p>
</article>"""
