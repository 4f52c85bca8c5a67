"""Ask addresses for files: what is sent, what is followed, and what a server may answer."""

import http.client
import re
import socket
import string
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from typing import Any, Self
from urllib.parse import quote, urljoin, urlsplit

REDIRECTS, MAX_REDIRECTS = (301, 302, 303, 307, 308), 5
#: The most characters of an address, and of what a server says, in a message.
SHOWN_ADDRESS, SHOWN_TEXT = 200, 80
#: Headers that a whole and plain file may come with, and the only value that they may have.
PLAIN = {"Content-Range": None, "Content-Encoding": "identity", "Transfer-Encoding": "chunked"}


class DownloadError(OSError):
    """A file could not be downloaded, or is not the file that was expected."""


class AnswerError(Exception):
    """What is wrong with an answer: the rest of a sentence that begins with the address."""


def shown_address(url: str) -> str:
    """Return an address as messages show it: without a name, a password or what is asked.

    >>> shown_address("https://ann:secret@example.org/a.zip?key=secret")
    'https://***@example.org/a.zip?...'
    """
    whole, asked, _ = url.partition("#")[0].partition("?")
    start, slashes, rest = whole.partition("//")
    hidden, at, rest = rest.rpartition("@")  # a password may have a slash in it
    shown = f"{start}{slashes}{'***' if hidden else ''}{at}{rest}{'?...' if asked else ''}"
    return clipped(shown, SHOWN_ADDRESS)


def clipped(text: object, length: int = SHOWN_TEXT) -> str:
    """Return a text of a server without control characters, and at most so long."""
    plain = "".join(one if one.isprintable() else "?" for one in str(text)[: length + 1])
    return plain if len(plain) <= length else f"{plain[:length]}..."


def next_address(url: str, target: str) -> str:
    """Return the address that another leads to; a DownloadError if it is not one to follow.

    What was asked for safely is not taken from elsewhere: https leads to https alone.
    """
    shown = shown_address(url)
    try:
        # Location is bytes, which Python reads as Latin-1.
        found = quote(urljoin(url, target.strip()), string.punctuation, encoding="iso-8859-1")
    except ValueError:
        found = ""
    known = ("https",) if url.lower().startswith("https:") else ("http", "https")
    if found.partition(":")[0].lower() not in known:
        kinds = " or ".join(known)
        raise DownloadError(
            f"{shown} leads to {shown_address(found or target)}, which is not an {kinds} address."
        )
    return found


def ask(url: str, timeout: float, watch: "Watch") -> Any:
    """Ask for an address, and for those that it leads to, until one answers with a file."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        _Http(watch),
        _Https(watch),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    first = shown_address(url)
    url = quote(url, string.punctuation)
    for _ in range(MAX_REDIRECTS + 1):
        _check_address(url)
        request = urllib.request.Request(url, headers={"User-Agent": "marginmf"})
        try:
            return opener.open(request, timeout=timeout)
        except urllib.error.HTTPError as error:
            target = error.headers.get("Location")
            if error.code not in REDIRECTS or target is None:
                raise
            error.close()
            url = next_address(url, target)
    raise DownloadError(f"{first} leads on and on, to more than {MAX_REDIRECTS} addresses.")


def _check_address(url: str) -> None:
    shown = shown_address(url)
    if not url.lower().startswith(("http://", "https://")):
        raise DownloadError(f"{shown} is not an http or https address.")
    try:
        parts = urlsplit(url)
        # An escape in the name of a host was a character that no host has in its name.
        valid = parts.hostname is not None and "%" not in parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if not valid:  # then nobody knows what in it is a password
        raise DownloadError(f"{shown if '@' not in url else 'What was given'} is no valid address.")
    if "@" in parts.netloc:
        raise DownloadError(
            f"{shown} was given with a name or a password, which are never sent: leave them out, "
            "or download the file by hand."
        )


def announced_size(response: Any) -> int | None:
    """Return the size that a server announces, if any; refuse all but one whole, plain file."""
    if response.status != http.HTTPStatus.OK:
        raise AnswerError(
            f"answered {response.status} ({clipped(response.reason)}) where 200 and the whole "
            "file were expected"
        )
    for name, value in PLAIN.items():
        for found in response.headers.get_all(name) or ():
            if found.strip().lower() != value:
                raise AnswerError(f"sent {name} {clipped(found)!r}, which nobody asked for")
    lengths = {
        one.strip()
        for found in response.headers.get_all("Content-Length") or ()
        for one in found.split(",")
    }
    if len(lengths) > 1:
        raise AnswerError(f"announced several sizes: {clipped(', '.join(sorted(lengths)))}")
    for length in lengths:
        if not re.fullmatch("[0-9]{1,18}", length):
            raise AnswerError(f"announced a size that is none: {clipped(length)!r}")
        return int(length)
    return None


class Watch:
    """Ends all connections of a download at its deadline, whatever they are waiting for.

    Time limits of sockets are of one step: a server that sends a byte now and then never meets one.
    """

    def __init__(self, seconds: float) -> None:
        self.expired = False
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self._expire)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        self._timer.join()

    def add(self, connection: socket.socket) -> None:
        """Watch another connection."""
        self._sockets.append(connection)
        if self.expired:
            self._expire()

    def _expire(self) -> None:
        self.expired = True
        for connection in self._sockets:
            with suppress(OSError):
                # Not the method of a connection with TLS, which a thread that reads would miss.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _watched(kind: type[http.client.HTTPConnection], watch: Watch) -> Any:
    """Return a class of connections that a watch can end."""

    class Connection(kind):  # type: ignore[misc, valid-type]
        def connect(self) -> None:
            super().connect()
            watch.add(self.sock)

    return Connection


class _Http(urllib.request.HTTPHandler):
    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._kind = _watched(http.client.HTTPConnection, watch)

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._kind, req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._kind = _watched(http.client.HTTPSConnection, watch)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._kind, req)
