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

SENT_AT_ONCE = 1 << 14
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
    for name, entry in registry.entries().items():
        if entry.address is not None:
            closed = dataclasses.replace(entry, address=f"http://127.0.0.1:1/{name}.zip")
            monkeypatch.setitem(registry.entries(), name, closed)


@pytest.fixture
def change_info(monkeypatch: pytest.MonkeyPatch) -> ChangeInfo:
    """Change the entry of a dataset; archives here were packed again, so checksums go too."""

    def change(name: str, **changes: Any) -> None:
        plain: dict[str, Any] = {"size": None, "sha256": None}
        entry = dataclasses.replace(registry.entries()[name], **plain | changes)
        monkeypatch.setitem(registry.entries(), name, entry)

    return change


@dataclass
class Loopback:
    """Bodies by path, and how to misbehave with them.

    `announced` overrides the length that the server claims to send; `breaks` is how many bytes it
    sends the next time before it hangs up; `pauses` is how long it waits before each write.
    """

    address: str
    bodies: dict[str, bytes] = field(default_factory=dict)
    announced: dict[str, int] = field(default_factory=dict)
    breaks: dict[str, int] = field(default_factory=dict)
    pauses: dict[str, float] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def serve(self, path: str, body: bytes, announced: int | None = None) -> str:
        self.bodies[path] = body
        self.announced[path] = len(body) if announced is None else announced
        return self.address + path


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append(self.path)
            body = site.bodies.get(self.path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(site.announced[self.path]))
            self.end_headers()
            body = body[: site.breaks.pop(self.path, len(body))]
            for start in range(0, len(body), SENT_AT_ONCE):
                time.sleep(site.pauses.get(self.path, 0))
                self.wfile.write(body[start : start + SENT_AT_ONCE])

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
