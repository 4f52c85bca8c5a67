"""Run the blocks of Python in a Markdown page and compare what they print with what it shows.

The tests do so for every page.  ``python tests/examples.py README.md`` needs nothing but the
installed package: that is how the wheel is tried in an environment without test tools.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

# A block of Python and, where the next block is text, the output that it prints.
BLOCK = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)


def run_page(page: Path) -> int:
    """Run all blocks of a page in order and return how many; AssertionError if one differs."""
    names: dict[str, object] = {}
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    for code, expected in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), names)
        if printed.getvalue().strip() != expected.strip():
            raise AssertionError(f"{code}\nprinted:\n{printed.getvalue()}")
    return len(blocks)


if __name__ == "__main__":
    pages = [Path(name).resolve() for name in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for page in pages:
            try:
                print(f"{page.name}: {run_page(page)} blocks run as shown")
            except OSError as error:  # without a network, and without a copy of the data
                print(f"{page.name}: skipped. {error}")
        os.chdir("/")
