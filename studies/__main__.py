"""``python -m studies NAME [options]``: all studies by name."""

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from functools import partial
from importlib import import_module

from studies.harness.commands import run_sections

PEERS = (
    *("ratings", "labels", "serving", "lists", "state-of-the-art", "accuracy", "label-accuracy"),
    *("side-information", "fold-in", "exposure", "roofline", "scaling", "cold-start"),
    *("label-ensemble", "performance-page", "systems"),
)
#: Names, and modules with ``add_arguments(parser)`` and ``main(args)``; their first lines are help.
#: Those that have ``SECTIONS`` by name are told in ``args.sections`` which to run; without a
#: ``main`` the sections are functions of ``args``.
COMMANDS = {
    "thesis": "thesis.commands",
    "thesis-settings": "thesis.settings",
    "thesis-tables": "thesis.readme_tables",
    **{name: f"peers.{name.replace('-', '_')}" for name in PEERS},
}


def main(words: list[str]) -> int:
    """Run the command that the first word names."""
    if not words or words[0] not in COMMANDS:
        print("usage: python -m studies NAME [options]\n", file=sys.stderr)
        for name, module in COMMANDS.items():
            summary = (import_module(f"studies.{module}").__doc__ or "").splitlines()[0]
            print(f"  {name:<16} {summary}", file=sys.stderr)
        return 0 if words and words[0] in ("-h", "--help") else 2
    module = import_module(f"studies.{COMMANDS[words[0]]}")
    parser = ArgumentParser(
        f"python -m studies {words[0]}",
        description=module.__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    sections = getattr(module, "SECTIONS", {})
    if sections:
        parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(sections))
    args = parser.parse_args(words[1:])
    if sections:
        args.sections = args.sections or list(sections)
        for name in args.sections:
            if name not in sections:
                parser.error(f"There is no section {name!r}: {', '.join(sections)}.")
    run = getattr(module, "main", None) or partial(run_sections, sections)
    return run(args) or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
