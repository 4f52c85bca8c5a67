"""XML files that name labels: in any encoding, and never with entities."""

import codecs
import os
import time
from pathlib import Path

import pytest
from label_files import TABLE, as_arff, as_xml, check
from made_files import write

from marginmf.datasets import read_labels
from marginmf.datasets.labels.arff_header import read_label_names

LABELS = "<labels><label name='Jazz'><label name='Blües'/></label></labels>"
BILLION = "".join(f"<!ENTITY e{k} '{f'&e{k - 1};' * 10}'>" for k in range(1, 9))
BOMB = f"<!DOCTYPE x [<!ENTITY e0 'Jazz'>{BILLION}]><labels><label name='&e8;'/>&e8;</labels>"
#: Every encoding: what is written before the text, and whether it is declared.
ENCODINGS = {
    "utf-8": (b"", False),
    "utf-8-sig": (b"", True),
    "utf-16-le": (codecs.BOM_UTF16_LE, True),
    "utf-16-be": (codecs.BOM_UTF16_BE, False),
    "utf-16-le without a mark": (b"", True),
    "utf-16-be without a mark": (b"", False),
    "utf-32-le": (codecs.BOM_UTF32_LE, False),
    "utf-32-be": (codecs.BOM_UTF32_BE, True),
    "utf-32-le without a mark": (b"", False),
    "utf-32-be without a mark": (b"", True),
    "iso-8859-1": (b"", True),
    "windows-1252": (b"", True),
    "cp437": (b"", True),
    "gb18030": (b"", True),
    "utf-7": (b"", True),
}


def written(text: str, name: str) -> bytes:
    mark, declared = ENCODINGS[name]
    encoding = name.partition(" ")[0]
    head = f"<?xml version='1.0' encoding='{encoding[:6]}'?>\n" if "utf-" in encoding else None
    head = head or f'<?xml version="1.0" encoding="{encoding}"?>\n'
    return mark + ((head if declared else "") + text).encode(encoding)


@pytest.mark.parametrize("name", ENCODINGS)
def test_names_are_read_in_every_encoding(name: str) -> None:
    assert read_label_names(written(LABELS, name), "made.xml") == ["Jazz", "Blües"]


@pytest.mark.parametrize("name", ENCODINGS)
def test_entities_are_refused_in_every_encoding(name: str) -> None:
    before = time.process_time()
    for text in (BOMB, BOMB.replace("<!DOCTYPE", "<!-- --><!DOCTYPE")):
        with pytest.raises(ValueError, match=r"^made\.xml has a document type, which label files"):
            read_label_names(written(text, name), "made.xml")
    # Without a mark or a declaration, nothing says that what follows a blank is not UTF-8.
    with pytest.raises(
        ValueError, match=r"has a document type|is not XML, or .* \(null characters"
    ):
        read_label_names(written(f"\n{BOMB}", name), "made.xml")
    assert time.process_time() - before < 1


def test_entities_cannot_hide_behind_another_encoding() -> None:
    """An encoding may have two bytes for ``<``, and a file may declare another than its own."""
    head = b"<?xml version='1.0' encoding='mac_arabic'?>"
    hidden = head + BOMB.encode().replace(b"<!", b"\xbc\xa1")
    assert b"<!DOCTYPE" not in hidden
    with pytest.raises(ValueError, match="has a document type"):
        read_label_names(hidden, "made.xml")
    twice = BOMB.encode("utf-16-be").decode("latin-1").encode("utf-16-be")
    with pytest.raises(ValueError, match=r"is not XML, or is cut short \(null characters"):
        read_label_names(codecs.BOM_UTF16_BE + twice, "made.xml")
    for encoding in ("utf-16", "utf-7", "latin-1"):
        text = written(BOMB, "utf-16-le").replace("utf-16".encode("utf-16-le"), b"")
        declared = f"<?xml version='1.0' encoding='{encoding}'?>{BOMB}".encode()
        for content in (declared, text):
            with pytest.raises(ValueError, match=r"has a document type|is not XML"):
                read_label_names(content, "made.xml")


@pytest.mark.parametrize("encoding", ["zlib", "hex", "punycode", "idna", "rot13", "none", "x" * 40])
def test_what_is_no_encoding_of_text_is_refused(encoding: str) -> None:
    content = f"<?xml version='1.0' encoding='{encoding}'?>{LABELS}".encode()
    with pytest.raises(ValueError, match=r"made\.xml is not XML, or is cut short \(unknown enc"):
        read_label_names(content, "made.xml")


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe<\0l",
        b"\xff\xfe<",
        b"<\0\0\0l\0",
        b"\0\0\xfe\xff\0\0\xd8\0",
        b"\xef\xbb\xbf\xff",
        b"<labels>\0</labels>",
        b"<labels><label name='a\0b'/></labels>",
        b"<a>" * 100_000,
        b"<labels>&undefined;</labels>",
        LABELS.encode("latin-1"),
    ],
    ids=lambda content: repr(content[:20]),
)
def test_damaged_files_are_a_sentence(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"^made\.xml is not XML, or is cut short \(.*\.$"):
        read_label_names(content, "made.xml")


def test_depth_is_no_trouble() -> None:
    deep = b"<a>" * 100_000 + b"<label name='x'/>" + b"</a>" * 100_000
    assert read_label_names(deep, "made.xml") == ["x"]


def test_a_table_in_another_encoding_finds_its_labels(tmp_path: Path) -> None:
    write(tmp_path, as_xml(TABLE.label_names).decode().encode("utf-16"), "made.xml")
    assert read_labels(write(tmp_path, as_arff(TABLE), "made.arff")).label_names == ("p", "q")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_nothing_waits_for_what_is_no_file(tmp_path: Path) -> None:
    """A pipe, a folder and links in a circle that are called as the file of labels would be."""
    path = write(tmp_path, as_arff(TABLE), "made.arff")
    os.mkfifo(tmp_path / "made.xml")
    (tmp_path / "folder.xml").mkdir()
    (tmp_path / "one.xml").symlink_to(tmp_path / "two.xml")
    (tmp_path / "two.xml").symlink_to(tmp_path / "one.xml")
    check(path, "does not say which attributes are labels")
    with pytest.raises(FileNotFoundError, match=r"There is no file .*one\.xml; xml= is the file"):
        read_labels(path, xml=tmp_path / "one.xml")
    with pytest.raises(OSError, match=r"one\.xml"):
        read_labels(tmp_path / "one.xml")
