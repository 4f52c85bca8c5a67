"""A file is written whole or not at all."""

import os

import pytest

from marginmf._utils.files import atomic_write, leftovers


def test_the_name_appears_when_the_block_succeeds(tmp_path):
    path = tmp_path / "new" / "file"
    with atomic_write(path) as file:
        file.write(b"all of it")
        assert not path.exists()
    assert path.read_bytes() == b"all of it"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_what_was_there_stays_when_the_block_fails(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def fail():
        with atomic_write(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_the_content_is_flushed_to_disk_before_it_takes_the_name(tmp_path, monkeypatch):
    path, events = tmp_path / "file", []
    flush, replace = os.fsync, os.replace
    monkeypatch.setattr(
        os, "fsync", lambda handle: (events.append(os.fstat(handle).st_size), flush(handle))
    )
    monkeypatch.setattr(os, "replace", lambda *names: (events.append("named"), replace(*names)))
    with atomic_write(path) as file:
        file.write(b"all of it")
    assert events[:2] == [len(b"all of it"), "named"]


def test_the_file_that_a_link_leads_to_is_replaced(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    link = tmp_path / "link"
    link.symlink_to("folder/file")
    for content in (b"first", b"second"):  # it is not there yet, and then it is
        with atomic_write(link) as file:
            file.write(content)
        assert link.is_symlink()
        assert (folder / "file").read_bytes() == content
    left = folder / ".file.0123456789ab.part"
    left.touch()
    assert list(leftovers(link)) == [left]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_replaced(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OSError, match="is a pipe or a device and"), atomic_write(path) as file:
        file.write(b"all of it")
    assert path.is_fifo()
    assert list(tmp_path.iterdir()) == [path]


def test_leftovers_are_the_temporary_files_of_that_name_alone(tmp_path):
    path = tmp_path / "file"
    left = tmp_path / ".file.0123456789ab.part"
    for other in (left, tmp_path / ".file2.0123456789ab.part", tmp_path / "file.part"):
        other.touch()
    assert list(leftovers(path)) == [left]
