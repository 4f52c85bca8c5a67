"""What came of a file before its download was interrupted, and whether to go on from there."""

import json
import os
from dataclasses import asdict, dataclass
from email.message import Message
from pathlib import Path
from typing import Any

from marginmf._utils.files import atomic_write


@dataclass(frozen=True)
class Validator:
    """What tells one edition of a file at an address from another."""

    url: str
    etag: str | None = None
    last_modified: str | None = None
    size: int | None = None

    @property
    def condition(self) -> str | None:
        """The value of ``If-Range``, if the server said anything that can stand there."""
        if self.etag is not None and not self.etag.startswith("W/"):  # a weak one may not
            return self.etag
        return self.last_modified

    def agrees(self, other: "Validator") -> bool:
        """Tell whether another answer can be of the same edition, as far as both say."""
        pairs = (
            (self.etag, other.etag),
            (self.last_modified, other.last_modified),
            (self.size, other.size),
        )
        return all(one is None or two is None or one == two for one, two in pairs)


class Part:
    """A file ``name.part`` beside a destination, and what is known of it in ``name.part.json``."""

    def __init__(self, destination: Path) -> None:
        self.path = destination.with_name(f"{destination.name}.part")
        self._about = destination.with_name(f"{destination.name}.part.json")

    def validator(self, url: str) -> Validator | None:
        """Return what is known of the bytes that are there, if they are of this address."""
        try:
            found = Validator(**json.loads(self._about.read_bytes()))
            usable = found.url == url and found.condition is not None
            return found if usable and self.path.is_file() else None
        except (OSError, ValueError, TypeError):
            return None

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self.path.stat().st_size if self.path.is_file() else 0

    def note(self, validator: Validator) -> None:
        """Keep what the server says of the file, before any of it is written."""
        if validator.condition is None:
            self._about.unlink(missing_ok=True)
            return
        with atomic_write(self._about) as file:
            file.write(json.dumps(asdict(validator)).encode())

    def remove(self) -> None:
        """Forget what came."""
        self._about.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)

    def become(self, destination: Path) -> None:
        """Give the file its name; its content reaches the disk before that."""
        with open(self.path, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(self.path, destination)
        self._about.unlink(missing_ok=True)


def described(url: str, status: int, headers: Message | Any) -> tuple[int, Validator]:
    """Return where the bytes of an answer begin, and what it says of the whole file."""
    start, size = 0, _number(headers.get("Content-Length"))
    if status == 206:
        place, _, total = (headers.get("Content-Range") or "").removeprefix("bytes ").partition("/")
        start, size = _number(place.partition("-")[0]) or 0, _number(total)
    return start, Validator(url, headers.get("ETag"), headers.get("Last-Modified"), size)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
