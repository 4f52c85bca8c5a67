"""A Chromium without a window, spoken to over a pipe: enough to open a page and look at it."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: Seconds to wait for an answer before something must be wrong.
PATIENCE = 60.0

Message = dict[str, Any]


def chromium() -> str | None:
    """Return the program, if this machine has it."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One tab: commands and events of the DevTools protocol, each ended by a zero byte."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[Message] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> Message:
        """Give a command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, page: Path, width: int, height: int = 900, scheme: str = "light") -> None:
        """Open a file in a window of a size, for a reader who prefers light or dark."""
        self.events.clear()
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.ask("Emulation.setEmulatedMedia", features=[feature])
        self.ask("Page.navigate", url=page.as_uri())
        while not self.seen("Page.loadEventFired"):
            self._next()

    def value(self, expression: str) -> Any:
        """Return what an expression is worth in the page."""
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"][
            "value"
        ]

    def screenshot(self, whole: bool = False) -> bytes:
        """Return a picture of the window, or of the whole page, as PNG."""
        taken = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(taken["data"])

    def seen(self, method: str) -> list[Message]:
        """Return the events of a kind since the page was opened."""
        return [event["params"] for event in self.events if event["method"] == method]

    def _next(self) -> Message:
        while b"\0" not in self._rest:
            ready, _, _ = select([self._reading], [], [], PATIENCE)
            piece = os.read(self._reading, 1 << 20) if ready else b""
            assert piece, "the browser does not answer"
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\0")
        message: Message = json.loads(line)
        if "method" in message:
            self.events.append(message)
        return message


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """Start a browser whose profile is in an empty folder, and end it."""
    program = chromium()
    assert program
    to_browser, writing = os.pipe()
    reading, from_browser = os.pipe()
    # The browser reads commands from its file 3 and answers on 4, which a shell can arrange.
    command = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
    options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run")
    quiet = ("--disable-background-networking", "--disable-component-update", "--hide-scrollbars")
    place = f"--user-data-dir={folder}"
    process = subprocess.Popen(
        ["bash", "-c", command, program, *options, *quiet, place, "--remote-debugging-pipe"],
        pass_fds=(to_browser, from_browser),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Browser(reading, writing)
    finally:
        os.close(writing)  # which tells the browser to go
        os.close(reading)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
