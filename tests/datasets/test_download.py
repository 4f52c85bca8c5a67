import hashlib
from pathlib import Path
from typing import Any

import pytest

from marginmf.datasets import DownloadError, fetch
from marginmf.datasets.download import fetching

BODY = bytes(range(256)) * 1000


def test_a_file_arrives_whole_in_a_folder_that_is_made(loopback: Any, tmp_path: Path) -> None:
    url = loopback.serve("/file", BODY)
    digest = hashlib.sha256(BODY).hexdigest().upper()
    path = fetch(url, tmp_path / "new" / "file", expected_size=len(BODY), sha256=digest)
    assert path.read_bytes() == BODY
    assert list(path.parent.iterdir()) == [path]


def test_a_truncated_body_is_refused(loopback: Any, tmp_path: Path) -> None:
    url = loopback.serve("/file", BODY, announced=len(BODY) + 1)
    with pytest.raises(
        DownloadError, match=r"broke off after 256,000 of 256,001 bytes\. Try again"
    ):
        fetch(url, tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_a_refusal_is_told(loopback: Any, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"/missing answered 404 \(Not Found\)"):
        fetch(loopback.address + "/missing", tmp_path / "file")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"sha256": "0" * 64}, "sent a file with SHA-256 .* where 0000"),
        ({"expected_size": 5}, "sent 256,000 bytes where 5 were expected"),
    ],
)
def test_another_file_than_expected_is_refused_and_the_old_one_stays(
    loopback: Any, tmp_path: Path, expected: dict[str, Any], message: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(DownloadError, match=message):
        fetch(loopback.serve("/file", BODY), path, **expected)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interruption_leaves_nothing_behind_that_nobody_could_go_on_from(
    loopback: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruption: type
) -> None:
    seen: list[set[str]] = []

    def interrupted(response: Any) -> Any:
        yield response.read(1000)
        seen.append({path.name for path in tmp_path.iterdir()})
        raise interruption

    monkeypatch.setattr(fetching, "_chunks", interrupted)
    with pytest.raises(interruption):
        fetch(loopback.serve("/file", BODY), tmp_path / "file")
    assert seen == [{"file.part", "file.lock"}]  # under other names than its own
    assert not list(tmp_path.iterdir())


def test_nobody_listening_and_a_wrong_address_are_told(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="could not be reached"):
        fetch("http://127.0.0.1:1/file", tmp_path / "file", timeout=5)
    with pytest.raises(DownloadError, match="is not an http or https address"):
        fetch((tmp_path / "file").as_uri(), tmp_path / "copy")
    assert not list(tmp_path.iterdir())


def test_a_slow_server_is_given_up(loopback: Any, tmp_path: Path) -> None:
    url = loopback.serve("/file", BODY)
    loopback.pauses["/file"] = 5
    with pytest.raises(DownloadError, match=r"did not answer within 0\.2 seconds\.$"):
        fetch(url, tmp_path / "file", timeout=0.2)
    assert not list(tmp_path.iterdir())


def test_a_destination_that_cannot_be_written_is_told(loopback: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DownloadError, match="could not be put into"):
        fetch(loopback.serve("/file", BODY), tmp_path / "file" / "below")


def test_the_progress_bar_is_drawn_on_a_terminal_only(
    loopback: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = loopback.serve("/file", BODY)
    fetch(url, tmp_path / "file")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    fetch(url, tmp_path / "file")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "file" in captured.err
