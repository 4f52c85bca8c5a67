"""The checkpoint of a comparison: a file that keeps the figures of every finished fit."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from marginmf import __version__
from marginmf._utils.files import atomic_write, check_path, named
from marginmf._utils.types import IntArray
from marginmf.checkpoints.store import digest, plain
from marginmf.metrics import EXPOSURE_METRICS
from marginmf.protocols.lists import ListScores
from marginmf.protocols.splits import AllRatings, AllSamples, SplitResult

#: The entries of a checkpoint's first line, in words.
IN_WORDS = {
    "comparison": "kind of metrics",
    "version": "version of marginmf",
    "lists": "rule for lists",
    "output": "output of predict",
    "cutoffs": "ranks of labels",
    "data": "data",
}


class ResultFile:
    """The finished fits of a comparison: a line of JSON for each, after one that says of what."""

    def __init__(
        self, path: Path, data: AllRatings | AllSamples, models: Mapping[str, Any]
    ) -> None:
        """Read what a file has, or begin one; refuse that of another comparison."""
        head = {**plain(data.settings), "version": __version__}
        head["data"] = {name: digest(np.asarray(own)) for name, own in data.arrays.items()}
        check_path(path)
        self.path, self.users = path, data.users
        self.models = {name: plain(model) for name, model in models.items()}
        self.codes: dict[int, str] = {}  # of the rows of every split
        found, *self.lines = (_read_lines(path) if path.exists() else None) or [head]
        wrong = [IN_WORDS[key] for key in head if found.get(key) != head[key]]
        for line in self.lines:
            if self.models.get(line["method"], line["model"]) != line["model"]:
                wrong.append(f"parameters of {line['method']}")
        if wrong:
            raise _refusal(path, f"other {wrong[0]}")
        with atomic_write(path) as target:  # again: an interruption may have left half a line
            lines = (json.dumps(line) + "\n" for line in (head, *self.lines))
            target.write("".join(lines).encode())

    def finished(
        self, number: int, rows: tuple[IntArray, ...]
    ) -> dict[tuple[int, str], SplitResult]:
        """Return what is known of the models on a split, which must be the same as before."""
        code = self.codes[number] = digest(np.concatenate(rows))
        found = {}
        for line in self.lines:
            if line["split"] != number or line["method"] not in self.models:
                continue
            if line["rows"] != code:
                what = f"split {number + 1} has other rows: another protocol or seed"
                raise _refusal(self.path, what)
            found[number, line["method"]] = SplitResult(line["values"], self._lists(line))
        return found

    def add(self, number: int, name: str, result: SplitResult) -> None:
        """Keep another result."""
        line: dict[str, Any] = {
            "method": name,
            "split": number,
            "values": result.values,
            "rows": self.codes[number],
            "model": self.models[name],
        }
        if result.lists is not None and self.users is not None:
            line["users"] = self.users.encode(result.lists.users).tolist()
            line["per_user"] = {key: own.tolist() for key, own in result.lists.values.items()}
        with named(self.path), open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _lists(self, line: Mapping[str, Any]) -> ListScores | None:
        if self.users is None:
            return None
        values = {name: np.asarray(own, np.float64) for name, own in line["per_user"].items()}
        overall = {name: line["values"][name] for name in EXPOSURE_METRICS}
        return ListScores(self.users.ids[line["users"]], values, overall)


def _refusal(path: Path, what: str) -> ValueError:
    return ValueError(
        f"{path} is the checkpoint of another comparison ({what}).\n"
        "Give checkpoint= another path, or delete the file to start again."
    )


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a checkpoint, less one at the end that was not finished."""
    texts = path.read_text(encoding="utf-8", errors="replace").splitlines()
    lines: list[Any] = []
    for number, text in enumerate(texts, start=1):
        try:
            lines.append(json.loads(text))
        except ValueError:
            if 1 < number < len(texts):
                raise ValueError(
                    f"{path}, line {number}: the checkpoint is damaged.\n"
                    "Delete this line to repeat its fit, or give checkpoint= another path."
                ) from None
            break
    if texts and (not lines or not isinstance(lines[0], dict) or "comparison" not in lines[0]):
        raise ValueError(
            f"{path} is not the checkpoint of a comparison.\nGive checkpoint= another path."
        )
    return lines
