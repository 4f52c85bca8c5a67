"""Where a command writes: checked before the work, written whole or not at all."""

import os
from collections.abc import Sequence
from pathlib import Path

from marginmf._utils.files import atomic_write

PICTURES = (".png", ".svg", ".pdf")


def check_destination(
    path: Path,
    what: str,
    option: str = "--out",
    formats: Sequence[str] = (),
    *,
    overwrite: bool = True,
    streams: bool = False,
) -> None:
    """Raise an error if nothing can be written there: better now than after the work.

    Parameters
    ----------
    path : Path
        The file to be.
    what : str
        What it will hold, for messages: "picture", "model".
    option : str
        The option that named it.
    formats : sequence of str
        Endings that the name may have; any, if empty.
    overwrite : bool
        Whether a file that is there already may be replaced.
    streams : bool
        Whether it may be a pipe or a device, which are written to and not replaced.
    """
    if formats and not path.name.lower().endswith(tuple(formats)):
        raise ValueError(f"The {what} {path} must end in one of {', '.join(formats)}.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file for the {what}.")
    if path.exists() and not path.is_file() and not streams:
        raise ValueError(f"{path} is a pipe or a device; name a file for the {what}.")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"There is no folder {folder} for the {what}; make it, or name another with {option}."
        )
    if not os.access(folder, os.W_OK):
        raise PermissionError(
            f"The folder {folder} cannot be written to; name another with {option}."
        )
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{path} is there already; name another file with {option}, or replace it with --force."
        )


def refuse_same(out: Path | None, *read: str | Path | None) -> None:
    """Raise an error if what is written would replace what is read; None is no file."""
    if out is None or not out.exists():
        return
    for file in read:
        if file is not None and Path(file).exists() and out.samefile(file):
            raise ValueError(
                f"{out} is read by this command, which would replace it; name another file with "
                "--out."
            )


def check_table(path: Path | None, what: str, also: Sequence[str] = ()) -> None:
    """Raise an error if a table of results cannot be written there, in the form of its name.

    Parameters
    ----------
    path : Path or None
        The file to be; None is standard output.
    what : str
        What it will hold, for messages.
    also : sequence of str
        Endings of forms that only this command writes.
    """
    if path is None:
        return
    from marginmf.datasets.files.arrow import require_pyarrow
    from marginmf.datasets.files.formats import BY_ENDING, FORMATS

    columnar = tuple(ending for ending, kind in BY_ENDING.items() if FORMATS[kind].columnar)
    text = tuple(ending for ending in BY_ENDING if ending not in columnar)
    packed = (f"{ending}.gz" for ending in text)
    streams = not path.name.lower().endswith(tuple(also))
    check_destination(path, what, formats=(*text, *packed, *columnar, *also), streams=streams)
    if path.name.lower().endswith(columnar):
        require_pyarrow(f"The {what} {path}")


def write_text(path: Path, text: str) -> None:
    """Write a text file whole."""
    with atomic_write(path) as file:
        file.write(text.encode())
