"""What came before an interruption is not asked for again, unless it is of another file."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from marginmf.datasets import DownloadError, fetch

BODY = bytes(range(256)) * 4000
DIGEST = hashlib.sha256(BODY).hexdigest()


def interrupted(loopback: Any, target: Path, after: int = 300_000) -> str:
    """Download a part of a file, and return its address."""
    url = loopback.serve("/file", BODY, etag='"one"')
    loopback.breaks["/file"] = after
    said = rf"broke off after {after:,} of 1,024,000 bytes\. {after:,} bytes are kept, and the next"
    with pytest.raises(DownloadError, match=said):
        fetch(url, target)
    assert {path.name for path in target.parent.iterdir()} == {"file.part", "file.part.json"}
    return url


def test_only_the_missing_bytes_are_asked_for(loopback: Any, tmp_path: Path) -> None:
    url = interrupted(loopback, tmp_path / "file")
    path = fetch(url, tmp_path / "file", expected_size=len(BODY), sha256=DIGEST)
    assert path.read_bytes() == BODY
    first, rest = loopback.asked
    assert (first.range, first.condition, first.sent) == (None, None, 300_000)
    assert (rest.range, rest.condition) == ("bytes=300000-", '"one"')
    assert rest.sent == len(BODY) - 300_000
    assert list(tmp_path.iterdir()) == [path]


def test_it_may_break_off_again_and_again(loopback: Any, tmp_path: Path) -> None:
    url = interrupted(loopback, tmp_path / "file")
    loopback.breaks["/file"] = 200_000
    with pytest.raises(DownloadError, match="broke off after 500,000 of 1,024,000 bytes"):
        fetch(url, tmp_path / "file")
    assert fetch(url, tmp_path / "file", sha256=DIGEST).read_bytes() == BODY
    assert [one.sent for one in loopback.asked] == [300_000, 200_000, 524_000]


def test_a_changed_file_starts_afresh(loopback: Any, tmp_path: Path) -> None:
    url = interrupted(loopback, tmp_path / "file")
    other = BODY[::-1]
    loopback.serve("/file", other, etag='"two"')
    assert fetch(url, tmp_path / "file").read_bytes() == other
    assert loopback.asked[1].condition == '"one"'
    assert loopback.asked[1].sent == len(other)


def test_a_server_that_knows_no_ranges_starts_afresh(loopback: Any, tmp_path: Path) -> None:
    url = interrupted(loopback, tmp_path / "file")
    loopback.knows_ranges = False
    assert fetch(url, tmp_path / "file", sha256=DIGEST).read_bytes() == BODY
    assert loopback.asked[1].sent == len(BODY)


def test_a_server_that_does_not_look_at_the_condition_is_found_out(
    loopback: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = interrupted(loopback, tmp_path / "file")
    other = BODY[::-1]
    loopback.serve("/file", other, etag='"two"')
    monkeypatch.setattr(
        type(loopback), "start_of", lambda self, one: 300_000 if one.range is not None else 0
    )
    assert fetch(url, tmp_path / "file").read_bytes() == other


def test_a_file_that_is_shorter_now_starts_afresh(loopback: Any, tmp_path: Path) -> None:
    url = interrupted(loopback, tmp_path / "file")
    loopback.serve("/file", BODY[:1000])
    assert fetch(url, tmp_path / "file").read_bytes() == BODY[:1000]
    assert len(loopback.asked) == 3  # the second was answered with 416


def test_another_address_starts_afresh(loopback: Any, tmp_path: Path) -> None:
    interrupted(loopback, tmp_path / "file")
    other = loopback.serve("/other", b"short", etag='"one"')
    assert fetch(other, tmp_path / "file").read_bytes() == b"short"
    assert loopback.asked[1].range is None


def test_a_wrong_checksum_removes_what_came(loopback: Any, tmp_path: Path) -> None:
    url = interrupted(loopback, tmp_path / "file")
    part = tmp_path / "file.part"
    part.write_bytes(b"x" * part.stat().st_size)
    with pytest.raises(DownloadError, match=r"with SHA-256 .* was expected.*What came is removed"):
        fetch(url, tmp_path / "file", sha256=DIGEST)
    assert not list(tmp_path.iterdir())
    assert fetch(url, tmp_path / "file", sha256=DIGEST).read_bytes() == BODY
    assert loopback.asked[-1].range is None


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b'{"url": 1, "more": 2}', b"{}"])
def test_a_part_of_which_nothing_is_known_is_not_used(
    loopback: Any, tmp_path: Path, note: bytes
) -> None:
    url = interrupted(loopback, tmp_path / "file")
    (tmp_path / "file.part.json").write_bytes(note)
    assert fetch(url, tmp_path / "file", sha256=DIGEST).read_bytes() == BODY
    assert loopback.asked[1].range is None


def test_a_weak_validator_is_none(loopback: Any, tmp_path: Path) -> None:
    url = loopback.serve("/file", BODY, etag='W/"one"')
    loopback.breaks["/file"] = 1000
    with pytest.raises(DownloadError, match=r"Try again\."):
        fetch(url, tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_a_part_that_is_whole_is_not_asked_for(loopback: Any, tmp_path: Path) -> None:
    """As where a process was killed after the last byte, before the file had its name."""
    url = interrupted(loopback, tmp_path / "file")
    (tmp_path / "file.part").write_bytes(BODY)
    assert fetch(url, tmp_path / "file", sha256=DIGEST).read_bytes() == BODY
    assert len(loopback.asked) == 1


def test_a_timeout_keeps_what_came(loopback: Any, tmp_path: Path) -> None:
    url = loopback.serve("/file", BODY, etag='"one"')
    loopback.pauses["/file"] = 3
    with pytest.raises(DownloadError, match=r"within 0\.3 seconds\. [\d,]+ bytes are kept"):
        fetch(url, tmp_path / "file", timeout=0.3)
    kept = (tmp_path / "file.part").stat().st_size
    loopback.pauses.clear()
    assert fetch(url, tmp_path / "file", sha256=DIGEST).read_bytes() == BODY
    assert loopback.asked[1].range == f"bytes={kept}-"


FETCH = "from marginmf.datasets import fetch; import sys; fetch(sys.argv[1], sys.argv[2])"


def until(true: Any) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("it never came true")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal on this system")
def test_a_killed_process_leaves_what_the_next_goes_on_from(loopback: Any, tmp_path: Path) -> None:
    url, target = loopback.serve("/file", BODY, etag='"one"'), tmp_path / "file"
    loopback.pauses["/file"] = 0.1
    part = tmp_path / "file.part"
    process = subprocess.Popen([sys.executable, "-c", FETCH, url, str(target)])
    until(lambda: part.is_file() and part.stat().st_size > 100_000)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert (tmp_path / "file.lock").is_file()  # which holds nobody back
    assert json.loads((tmp_path / "file.part.json").read_bytes())["etag"] == '"one"'
    kept = part.stat().st_size
    loopback.pauses.clear()
    assert fetch(url, target, sha256=DIGEST).read_bytes() == BODY
    assert loopback.asked[1].range == f"bytes={kept}-"
    assert loopback.asked[1].sent == len(BODY) - kept
    assert list(tmp_path.iterdir()) == [target]


def test_of_two_processes_one_downloads_and_both_have_the_file(
    loopback: Any, tmp_path: Path
) -> None:
    url, target = loopback.serve("/file", BODY, etag='"one"'), tmp_path / "file"
    loopback.pauses["/file"] = 0.2
    command = [
        sys.executable,
        "-c",
        FETCH.replace("fetch(", "print(1, flush=True); fetch("),
        url,
        str(target),
    ]
    one = subprocess.Popen(command, stdout=subprocess.PIPE)
    until(lambda: (tmp_path / "file.part").is_file())
    two = subprocess.Popen(command, stdout=subprocess.PIPE)
    for process in (one, two):
        assert process.stdout is not None
        process.stdout.readline()
    time.sleep(0.5)  # from there to the lock
    assert two.poll() is None
    loopback.pauses.clear()
    for process in (one, two):
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert target.read_bytes() == BODY
    assert [asked.sent for asked in loopback.asked] == [len(BODY)]
    assert list(tmp_path.iterdir()) == [target]
