"""A file is written whole or not at all, and what killed processes leave is removed."""

import os
import subprocess
import sys
import threading
import time

import pytest

from marginmf._utils import files
from marginmf._utils.files import atomic_write, leftovers

WINDOWS = sys.platform == "win32"


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
    left = [tmp_path / f".file.{token}.part" for token in ("0123456789ab", "01234567-0123456789ab")]
    others = (
        ".file2.0123456789ab.part",
        "file.part",
        ".file.txt.0123456789ab.part",
        ".file.1.part",
    )
    for other in (*left, *map(tmp_path.joinpath, others)):
        other.touch()
    assert set(leftovers(path)) == set(left)


KILLED = """
import os, sys, time
from pathlib import Path
from marginmf._utils.files import atomic_write
with atomic_write(Path(sys.argv[1])) as file:
    file.write(b"half of it")
    file.flush()
    print("writing", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def writer(tmp_path):
    """A process in the middle of a save, and what it has written so far."""
    path = tmp_path / "file"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        try:
            yield process, path
        finally:
            process.kill()


@pytest.mark.skipif(WINDOWS, reason="this system has no locks that tell of a killed process")
def test_what_a_killed_save_left_goes_with_the_next_save_of_that_file(writer):
    process, path = writer
    (other,) = leftovers(path)
    for _ in range(2):  # as long as it is alive, nothing of it is touched
        with atomic_write(path) as file:
            file.write(b"all of it")
        assert set(path.parent.iterdir()) == {path, other}
    assert other.read_bytes() == b"half of it"
    process.kill()
    process.wait()
    with atomic_write(path.with_name("another")) as file:
        file.write(b"all of it")
    assert other.exists()
    with atomic_write(path) as file:
        file.write(b"the rest")
    assert sorted(one.name for one in path.parent.iterdir()) == ["another", "file"]


def test_what_another_machine_left_goes_after_a_day(tmp_path):
    path, long_ago = tmp_path / "file", time.time() - 2 * files.DAY
    new, old = (tmp_path / f".file.01234567-{token}.part" for token in ("0" * 12, "1" * 12))
    for left in (new, old):
        left.touch()
    os.utime(old, (long_ago, long_ago))
    with atomic_write(path) as file:
        file.write(b"all of it")
    assert set(tmp_path.iterdir()) == {path, new}


def test_without_locks_only_what_is_old_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_lock", lambda handle: None)
    path = tmp_path / "file"
    left = tmp_path / f".file.{files._machine()}-0123456789ab.part"
    left.touch()
    with atomic_write(path) as file:
        file.write(b"all of it")
    assert left.exists()
    os.utime(left, (0, 0))
    with atomic_write(path) as file:
        file.write(b"all of it")
    assert not left.exists()


def test_a_link_or_a_folder_of_such_a_name_is_left_alone(tmp_path):
    precious = tmp_path / "precious"
    precious.write_bytes(b"thesis")
    link, folder = (tmp_path / f".file.{token}.part" for token in ("0" * 12, "1" * 12))
    link.symlink_to(precious)
    folder.mkdir()
    with atomic_write(tmp_path / "file") as file:
        file.write(b"all of it")
    assert link.is_symlink()
    assert folder.is_dir()
    assert precious.read_bytes() == b"thesis"


def test_saves_of_one_file_at_once_all_succeed_and_leave_nothing_else(tmp_path):
    path, failures = tmp_path / "file", []

    def save(number):
        try:
            for _ in range(25):
                with atomic_write(path) as file:
                    file.write(bytes([number]) * 1000)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(set(path.read_bytes())) == 1
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("length", [200, 255])
def test_every_name_that_a_system_allows_can_be_written(tmp_path, length):
    path = tmp_path / ("n" * length)
    with atomic_write(path) as file:
        assert len(list(leftovers(path))) == 1
        file.write(b"all of it")
    assert list(tmp_path.iterdir()) == [path]
