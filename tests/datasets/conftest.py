"""A server on this machine that misbehaves on request, and no way out to any other."""

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from marginmf.datasets import registry
from marginmf.datasets.labels import archives

PIECE = 1 << 14
ChangeInfo = Callable[..., None]


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback stays on this machine, also where a proxy is set up."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture(autouse=True)
def nowhere_to_download_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No owner, no OpenML and no cache of the user's own, but those a test names."""
    monkeypatch.delenv("MARGINMF_OFFLINE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user cache"))
    monkeypatch.setattr(archives, "OPENML", "http://127.0.0.1:1/{}")
    for name, entry in registry.ENTRIES.items():
        if entry.address is not None:
            closed = dataclasses.replace(entry, address=f"http://127.0.0.1:1/{name}.zip")
            monkeypatch.setitem(registry.ENTRIES, name, closed)


@pytest.fixture
def change_info(monkeypatch: pytest.MonkeyPatch) -> ChangeInfo:
    """Change the entry of a dataset; archives here were packed again, so checksums go too."""

    def change(name: str, **changes: Any) -> None:
        plain: dict[str, Any] = {"size": None, "sha256": None}
        entry = dataclasses.replace(registry.ENTRIES[name], **plain | changes)
        monkeypatch.setitem(registry.ENTRIES, name, entry)

    return change


@dataclass
class Asked:
    """What a client asked for, and how many bytes it was sent."""

    path: str
    range: str | None
    condition: str | None
    sent: int = 0


@dataclass
class Loopback:
    """Bodies by path, and how to misbehave with them.

    `announced` overrides the length that the server claims to send; `breaks` is how many bytes it
    sends the next time before it hangs up; `pauses` is how long it waits after each piece.
    """

    address: str
    bodies: dict[str, bytes] = field(default_factory=dict)
    etags: dict[str, str] = field(default_factory=dict)
    announced: dict[str, int] = field(default_factory=dict)
    breaks: dict[str, int] = field(default_factory=dict)
    pauses: dict[str, float] = field(default_factory=dict)
    knows_ranges: bool = True
    asked: list[Asked] = field(default_factory=list)

    def serve(
        self, path: str, body: bytes, announced: int | None = None, etag: str | None = None
    ) -> str:
        self.bodies[path] = body
        if announced is not None:
            self.announced[path] = announced
        if etag is not None:
            self.etags[path] = etag
        return self.address + path

    @property
    def requests(self) -> list[str]:
        return [one.path for one in self.asked]

    def start_of(self, one: Asked) -> int:
        """The first byte to send: not 0 if the client has an edition that is still the one."""
        if one.range is None or not self.knows_ranges or one.condition != self.etags.get(one.path):
            return 0
        return int(one.range.removeprefix("bytes=").rstrip("-"))


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            one = Asked(self.path, self.headers["Range"], self.headers["If-Range"])
            site.asked.append(one)
            body = site.bodies.get(self.path)
            if body is None:
                self.send_error(404)
                return
            start = site.start_of(one)
            if start >= len(body) > 0:
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            if self.path in site.etags:
                self.send_header("ETag", site.etags[self.path])
            length = site.announced.get(self.path, len(body)) - start
            self.send_header("Content-Length", str(length))
            self.end_headers()
            stop = start + site.breaks.pop(self.path, len(body))
            for place in range(start, min(stop, len(body)), PIECE):
                piece = body[place : min(place + PIECE, stop)]
                self.wfile.write(piece)
                one.sent += len(piece)
                time.sleep(site.pauses.get(self.path, 0))

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: object) -> None:
            """A client that was killed is no fault of the server."""

    with Server(("127.0.0.1", 0), Handler) as server:
        site = Loopback(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield site
        server.shutdown()
        thread.join()
