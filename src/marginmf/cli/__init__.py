"""The command line: related commands in one module; what they need is imported when one runs."""

import sys
from io import TextIOWrapper


def main() -> None:
    """Run the command line; the console script ``marginmf``."""
    from marginmf.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        # A title that the terminal's encoding does not have must not end the program.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(prog_name="marginmf")
