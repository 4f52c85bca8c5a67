"""A server on this machine that misbehaves on request."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback stays on this machine, also where a proxy is set up."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@dataclass
class Loopback:
    """Bodies by path; `announced` overrides the length that the server claims to send."""

    address: str
    bodies: dict[str, bytes] = field(default_factory=dict)
    announced: dict[str, int] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def serve(self, path: str, body: bytes, announced: int | None = None) -> str:
        self.bodies[path] = body
        if announced is not None:
            self.announced[path] = announced
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
            self.send_header("Content-Length", str(site.announced.get(self.path, len(body))))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site = Loopback(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield site
        server.shutdown()
        thread.join()
