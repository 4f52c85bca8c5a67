"""The command line: related commands in one module; what they need is imported when one runs."""

import os
import re
import sys
from io import TextIOWrapper


def main() -> None:
    """Run the command line; the console script ``marginmf``."""
    from marginmf.cli.app import app

    if not re.fullmatch("[0-9]{1,5}", os.environ.get("COLUMNS", "0")):
        del os.environ["COLUMNS"]  # what is no width is none, and not an error

    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # whoever started the program has closed it
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, TextIOWrapper):
            # A title that the terminal's encoding does not have must not end the program.
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="marginmf")
