"""``python -m studies NAME [options]``: all studies by name."""

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from importlib import import_module

#: Names, and modules with ``add_arguments(parser)`` and ``main(args)``; their first lines are help.
COMMANDS = {
    "thesis": "thesis.commands",
    "thesis-tables": "thesis.readme_tables",
    "ratings": "peers.ratings",
    "labels": "peers.labels",
    "serving": "peers.serving",
    "lists": "peers.lists",
    "state-of-the-art": "peers.state_of_the_art",
    "accuracy": "peers.accuracy",
    "label-accuracy": "peers.label_accuracy",
    "side-information": "peers.side_information",
    "fold-in": "peers.fold_in",
    "exposure": "peers.exposure",
    "roofline": "peers.roofline",
    "scaling": "peers.scaling",
    "cold-start": "peers.cold_start",
    "performance-page": "peers.performance_page",
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
    return module.main(parser.parse_args(words[1:])) or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
