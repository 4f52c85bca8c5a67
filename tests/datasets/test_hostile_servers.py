"""A server does what it likes: every download ends, in a sentence, with nothing left behind."""

import hashlib
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from marginmf.datasets import DownloadError, addresses, download, fetch

Answer = bytes | Callable[[socket.socket], None]
OK = b"HTTP/1.1 200 OK\r\n"
BODY = b"0123456789" * 10
SUM = hashlib.sha256(BODY).hexdigest()


class Server:
    """Answers every request for a path with the bytes, or the function, that it has for it."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.requests: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def serve(self, answer: Answer, path: str = "/file") -> str:
        self.answers[path] = answer
        return f"http://{self.host}{path}"

    def close(self) -> None:
        self._socket.close()

    def _run(self) -> None:
        with suppress(OSError):  # until it is closed
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(1 << 16)
            self.requests.append(request)
            answer = self.answers[request.split()[1].decode()]
            if isinstance(answer, bytes):
                connection.sendall(answer)
            else:
                answer(connection)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)  # until the client has read all of it


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.close()


def head(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode("latin-1")


def redirect(target: str, status: str = "302 Found") -> bytes:
    return head(f"Location: {target}", "Content-Length: 0", status=status)


def for_ever(begin: bytes, more: bytes, pause: float = 0.0) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.sendall(begin)
        while True:
            connection.sendall(more)
            time.sleep(pause)

    return answer


ODD: dict[str, tuple[Answer, str]] = {
    "part": (
        head("Content-Range: bytes 5-9/10", "Content-Length: 5", status="206 Partial Content")
        + b"56789",
        r"answered 206 \(Partial Content\) where 200 and the whole file were expected",
    ),
    "nothing": (head(status="204 No Content"), r"answered 204 \(No Content\) where 200"),
    "range": (
        head("Content-Range: bytes 0-99/1000", "Content-Length: 100") + BODY,
        "sent Content-Range 'bytes 0-99/1000', which nobody asked for",
    ),
    "encoding": (
        head("Content-Encoding: gzip", "Content-Length: 100") + BODY,
        "sent Content-Encoding 'gzip', which nobody asked for",
    ),
    "transfer": (
        head("Transfer-Encoding: gzip, chunked") + BODY,
        "sent Transfer-Encoding 'gzip, chunked', which nobody asked for",
    ),
    "negative": (head("Content-Length: -5") + BODY, "announced a size that is none: '-5'"),
    "words": (head("Content-Length: many") + BODY, "announced a size that is none: 'many'"),
    "no size": (head("Content-Length:") + BODY, "announced a size that is none: ''"),
    "digits": (head("Content-Length: " + "9" * 5000) + BODY, "announced a size that is none: '9+"),
    "odd digits": (head("Content-Length: \xb2") + BODY, "announced a size that is none: "),
    "two sizes": (
        head("Content-Length: 100", "Content-Length: 50") + BODY,
        "announced several sizes: 100, 50",
    ),
    "listed sizes": (head("Content-Length: 100, 50") + BODY, "announced several sizes: 100, 50"),
    "size and chunks": (
        head("Content-Length: 100", "Transfer-Encoding: chunked") + b"5\r\n01234\r\n0\r\n\r\n",
        "broke off after 5 of 100 bytes",
    ),
    "huge": (head("Content-Length: 9000000000") + BODY, r"has 9,000,000,000 bytes, and max_bytes="),
    "short": (head("Content-Length: 101") + BODY, r"broke off after 100 of 101 bytes\. Try again"),
    "empty": (head("Content-Length: 0"), "sent an empty file"),
    "empty, no size": (head(), "sent an empty file"),
    "garbage": (
        b"\x00\xff\x1b[31mgarbage\r\n\r\n",
        "answered with what is not HTTP .BadStatusLine",
    ),
    "no status": (b"HTTP/1.1 OK fine\r\n\r\n", "answered with what is not HTTP .BadStatusLine"),
    "long status": (b"HTTP/1.1 200 " + b"a" * 70_000, "what is not HTTP .*LineTooLong"),
    "long header": (OK + b"A: " + b"a" * 70_000, "what is not HTTP .*LineTooLong"),
    "101 headers": (OK + b"A: a\r\n" * 101 + b"\r\n", "what is not HTTP .*100 headers"),
    "escapes": (b"HTTP/1.1 404 \x1b[2Jgone\r\n\r\n", r"answered 404 \(\?\[2Jgone\)"),
    "silence": (b"", r"broke off \(.*without response\)\. Try again"),
    "chunk": (head("Transfer-Encoding: chunked") + b"zz\r\n01234", r"broke off .*\. Try again"),
    "chunk cut": (head("Transfer-Encoding: chunked") + b"50\r\n01234", "broke off"),
    "negative chunk": (head("Transfer-Encoding: chunked") + b"-5\r\n01234", "broke off|not HTTP"),
    "nowhere": (head("Content-Length: 0", status="302 Found"), r"answered 302 \(Found\)"),
    "file": (
        redirect("file:///etc/passwd"),
        "leads to file:///etc/passwd, which is not an http or",
    ),
    "ftp": (redirect("ftp://127.0.0.1/file"), "leads to ftp://127.0.0.1/file, which is not"),
    "data": (redirect("data:text/plain,hello"), "leads to data:text/plain,hello, which is not"),
    "script": (redirect("javascript:alert(1)"), "leads to javascript:.*, which is not"),
    "brackets": (redirect("http://[::1/file"), "leads to .*, which is not an"),
    "round": (redirect("/file"), "leads on and on, to more than 5 addresses"),
    "password": (redirect("http://ann:secret@127.0.0.1/"), "never sent: leave them out"),
    "permanent": (redirect("file:/x", "308 Permanent Redirect"), "leads to file:/"),
}


@pytest.mark.parametrize("name", ODD)
def test_whatever_is_odd_is_a_sentence_that_names_the_address(
    name: str, server: Server, tmp_path: Path
) -> None:
    answer, sentence = ODD[name]
    url = server.serve(answer)
    with pytest.raises(DownloadError, match=sentence) as caught:
        fetch(url, tmp_path / "file", timeout=5)
    message = str(caught.value)
    assert server.host in message or "127.0.0.1" in message
    assert message.isprintable()
    assert len(message) < 400
    assert "secret" not in message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("begin", [head(), head("Transfer-Encoding: chunked")])
@pytest.mark.parametrize("limits", [{"max_bytes": 10_000}, {"expected_size": 10_000}])
def test_a_server_that_sends_for_ever_is_stopped(
    begin: bytes, limits: dict[str, int], server: Server, tmp_path: Path
) -> None:
    more = b"1000\r\n" + b"x" * 4096 + b"\r\n" if b"chunked" in begin else b"x" * 4096
    url = server.serve(for_ever(begin, more))
    with pytest.raises(DownloadError, match=r"/file sent more than 10,000 bytes\."):
        fetch(url, tmp_path / "file", **limits)
    assert not list(tmp_path.iterdir())


def test_no_more_is_read_than_was_announced(server: Server, tmp_path: Path) -> None:
    url = server.serve(for_ever(head("Content-Length: 100") + BODY, BODY))
    assert fetch(url, tmp_path / "file", sha256=SUM).read_bytes() == BODY


def test_another_size_is_refused_before_it_is_sent(server: Server, tmp_path: Path) -> None:
    url = server.serve(for_ever(head("Content-Length: 1000000"), b"", 1))
    with pytest.raises(DownloadError, match="sent 1,000,000 bytes where 100 were expected"):
        fetch(url, tmp_path / "file", expected_size=100, timeout=5)


DRIPS = {
    "body": for_ever(head("Content-Length: 100"), b"x", 0.05),
    "body, no size": for_ever(head(), b"x", 0.05),
    "chunks": for_ever(head("Transfer-Encoding: chunked"), b"1\r\nx\r\n", 0.05),
    "size of a chunk": for_ever(head("Transfer-Encoding: chunked"), b"0", 0.05),
    "header": for_ever(OK + b"A: ", b"a", 0.05),
    "headers": for_ever(OK, b"A: a\r\n", 0.05),
    "go on": for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.001),
    "status": for_ever(b"HTTP/1.1 ", b"2", 0.05),
    "nothing": for_ever(b"", b"", 0.05),
}


@pytest.mark.parametrize("name", DRIPS)
def test_a_server_that_drips_meets_the_deadline(name: str, server: Server, tmp_path: Path) -> None:
    url, began = server.serve(DRIPS[name]), time.monotonic()
    with pytest.raises(DownloadError, match=r"took longer than 0\.3 seconds and was given up"):
        fetch(url, tmp_path / "file", timeout=5, deadline=0.3)
    assert time.monotonic() - began < 3
    assert not list(tmp_path.iterdir())
    assert not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]


def test_redirects_are_followed_to_the_file(server: Server, tmp_path: Path) -> None:
    for number in range(5):
        server.serve(redirect(f"{number + 1}?key=k", f"30{'12378'[number]} On"), f"/{number}?key=k")
    server.serve(redirect("1?key=k"), "/0")
    server.serve(head("Content-Length: 100") + BODY, "/5?key=k")
    assert fetch(f"http://{server.host}/0", tmp_path / "file").read_bytes() == BODY
    assert b"Accept-Encoding: identity" in server.requests[-1]
    assert not re.search(b"(?i)cookie|referer|authorization", b"".join(server.requests))


def test_https_leads_to_https_alone() -> None:
    safe = "https://example.org/a/file"
    assert addresses.next_address(safe, "../b file") == "https://example.org/b%20file"
    assert addresses.next_address(safe, "//example.com/c") == "https://example.com/c"
    with pytest.raises(
        DownloadError, match=r"leads to http://example\.org/, which is not an https"
    ):
        addresses.next_address(safe, "http://example.org/")


def test_https_is_asked_for_with_the_certificates_of_the_system() -> None:
    with addresses.Watch(60) as watch:
        connection = addresses._Https(watch)._kind("example.org")
    assert connection._context.verify_mode == ssl.CERT_REQUIRED
    assert connection._context.check_hostname


@pytest.mark.parametrize(
    "url",
    [
        "http://ann:secret@127.0.0.1:1/file",
        "http://ann:secret/x@127.0.0.1:1/file",
        "http://ann:sec?ret@127.0.0.1:1/file?token=secret",
        "http://secret@127.0.0.1:1/file",
        "http://127.0.0.1:1/file?token=secret",
        "http://127.0.0.1:1/file#secret",
        "http://[secret@::1/",
        "ftp://ann:secret@127.0.0.1/file",
        "http://127.0.0.1:secret@99999/",
    ],
)
def test_no_password_is_in_any_message(url: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError) as caught:
        fetch(url, tmp_path / "file", timeout=1)
    error: Any = caught.value
    while error is not None:
        assert not re.search("secret|ret@|sec\\?", str(error))
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    "url",
    [
        "",
        "file",
        "http://",
        "http:///x",
        "http://a:b/",
        "http://\n/",
        "http://\0/",
        "http://a b/",
        "HTTP:",
    ],
)
def test_what_is_no_address_is_told(url: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"is no valid address|is not an http or"):
        fetch(url, tmp_path / "file", timeout=1)


@pytest.mark.parametrize("verify", ["warn", False])
def test_another_file_may_be_kept_with_a_warning(
    verify: Any, server: Server, tmp_path: Path
) -> None:
    url = server.serve(head("Content-Length: 100") + BODY)
    expected: dict[str, Any] = {"expected_size": 99, "sha256": "0" * 64}
    for wrong in expected:
        with pytest.warns(UserWarning, match=f"It was kept, because verify={verify!r}"):
            fetch(url, tmp_path / "file", verify=verify, **{wrong: expected[wrong]})
        assert (tmp_path / "file").read_bytes() == BODY
    with pytest.raises(ValueError, match="verify='no' is not known"):
        fetch(url, tmp_path / "file", verify="no")  # type: ignore[arg-type]


def test_a_full_disk_is_told(server: Server, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="this system has no limits on files")
    url = server.serve(head("Content-Length: 100") + BODY)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, hard))
    try:
        with pytest.raises(
            DownloadError, match=r"could not be put into .*file: The file is larger"
        ):
            fetch(url, tmp_path / "file")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.iterdir())


def test_a_member_of_a_wheel_has_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import subprocess
    import zipfile
    from types import SimpleNamespace

    def pack(command: list[str], **kwargs: Any) -> SimpleNamespace:
        folder = next(word for word in command if word.startswith("--dest="))[7:]
        with zipfile.ZipFile(Path(folder) / "toy-1.0-py3-none-any.whl", "w", 8) as wheel:
            wheel.writestr("zeros", bytes(10_000))
        return SimpleNamespace(returncode=0, stderr="", stdout="")

    monkeypatch.setattr(subprocess, "run", pack)
    monkeypatch.setattr(download, "MAX_MEMBER_BYTES", 9_999)
    with pytest.raises(DownloadError, match="zeros has more than 9,999 bytes"):
        download.fetch_wheel_member("toy", ["zeros"])
