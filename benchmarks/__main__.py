"""The one door to all benchmarks: ``python -m benchmarks NAME [options]``."""

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from importlib import import_module

#: Names, and modules with ``add_arguments(parser)`` and ``main(args)``; their first lines are help.
COMMANDS = {
    "ratings": "benchmarks.ratings",
    "labels": "benchmarks.labels",
    "serving": "benchmarks.serving",
    "roofline": "benchmarks.roofline",
    "scaling": "benchmarks.scaling",
    "cold-start": "benchmarks.cold_start",
    "performance-page": "benchmarks.performance_page",
    "thesis-tables": "benchmarks.thesis_tables",
    "accuracy": "benchmarks.accuracy",
    "state-of-the-art": "benchmarks.state_of_the_art",
    "lists": "benchmarks.lists",
    "label-accuracy": "benchmarks.label_accuracy",
    "fold-in": "benchmarks.fold_in",
    "side-information": "benchmarks.side_information",
    "exposure": "benchmarks.exposure",
}


def main(words: list[str]) -> None:
    """Run the command that the first word names."""
    if not words or words[0] not in COMMANDS:
        print("usage: python -m benchmarks NAME [options]\n", file=sys.stderr)
        for name, module in COMMANDS.items():
            said = (import_module(module).__doc__ or "").splitlines()[0]
            print(f"  {name:<16} {said}", file=sys.stderr)
        raise SystemExit(0 if words and words[0] in ("-h", "--help") else 2)
    module = import_module(COMMANDS[words[0]])
    parser = ArgumentParser(
        f"python -m benchmarks {words[0]}",
        description=module.__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    module.main(parser.parse_args(words[1:]))


if __name__ == "__main__":
    main(sys.argv[1:])
