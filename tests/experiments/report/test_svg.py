import re
from xml.etree.ElementTree import fromstring

from matplotlib.figure import Figure
from samples import draw

from marginmf.experiments.report.svg import svg_of


def test_a_drawing_is_the_same_every_time_and_small() -> None:
    first = svg_of(draw(), "a")
    assert first == svg_of(draw(), "a")
    assert (first.width, first.height) == (768, 346)
    assert len(first.text) < 16_000
    assert not re.search(r"metadata|<style|DOCTYPE|<\?xml|<!--", first.text)


def test_two_drawings_share_no_id() -> None:
    ids = [set(re.findall(r' id="([^"]+)"', svg_of(draw(), name).text)) for name in ("a", "b")]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_what_is_referred_to_is_there() -> None:
    text = svg_of(draw(), "a").text
    ids = set(re.findall(r' id="([^"]+)"', text))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', text)) == ids


def test_words_stay_words() -> None:
    figure = Figure()
    figure.text(0.5, 0.5, "0.123456 <b> & 'c'")
    figure.text(0.5, 0.2, "turned 45.678901", rotation=45)
    words = list(fromstring(svg_of(figure, "a").text).itertext())
    assert words == ["0.123456 <b> & 'c'", "turned 45.678901"]


def test_numbers_are_short_and_keep_their_sign() -> None:
    figure = Figure(figsize=(3, 3))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.plot([0.1, 0.2, 0.3], [-0.7, 0.123456789, 0.5])
    text = svg_of(figure, "a").text
    assert not re.search(r' d="[^"]*\.\d{3}', text)
    assert " -3.5" in svg_of(draw(), "a").text  # the marks of the axis point outwards


def test_other_fonts_are_kept() -> None:
    figure = Figure()
    figure.text(0.5, 0.5, "code", family="monospace")
    assert "font-family: 'DejaVu Sans Mono'" in svg_of(figure, "a").text
