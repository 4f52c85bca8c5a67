"""What a reader says about a faulty label file, and the table that the files are made from."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginmf.datasets import LabelsTable, read_labels

TABLE = LabelsTable(
    "t",
    np.arange(12.0).reshape(4, 3),
    [[1, 0], [0, 1], [1, 1], [0, 0]],
    feature_names=("a", "b", "c"),
    label_names=("p", "q"),
)


def said_by(path: Path, **options: Any) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011, the text is looked at
        read_labels(path, **options)
    text = str(caught.value)
    assert text.startswith(str(path.parent)), text
    assert text.endswith(".")
    assert "\n" not in text
    assert len(text) < 600
    return text


def check(path: Path, message: str, **options: Any) -> None:
    text = said_by(path, **options)
    assert re.search(message, text), text
