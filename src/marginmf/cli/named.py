"""Datasets by name, where a command takes a file or the name of a dataset."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Table = TypeVar("Table")


def absent(name: str) -> str:
    """Say that there is no such file."""
    return f"There is no file {name}; check the name and the folder (now in {Path.cwd()})."


def load_named(name: str, load: Callable[..., Table], progress: bool) -> Table:
    """Load the dataset of a name that no file has."""
    if "/" in name or "." in name:  # a file was meant
        raise FileNotFoundError(absent(name))
    try:
        return load(name, progress=progress)
    except ValueError as error:
        if str(error).startswith("There is no "):
            raise FileNotFoundError(f"{absent(name)} {error}") from None
        raise
