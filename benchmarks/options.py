"""Options that several commands have in common."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path

from benchmarks.environments import ENVIRONMENTS, FOLDER, Environments
from benchmarks.harness import Harness
from benchmarks.methods import Method, chosen
from benchmarks.store import Store

OUT = Path("build/benchmarks")


def add_harness_arguments(
    parser: ArgumentParser, methods: Iterable[Method], repeats: int = 5, threads: int | None = None
) -> None:
    """Add what every comparison with peers understands."""
    peers = sorted({method.peer for method in methods if method.peer})
    parser.add_argument(
        "--peers",
        nargs="+",
        default=["all"],
        choices=[*peers, "all", "none"],
        metavar="NAME",
        help=f"peers to measure beside ours: {', '.join(peers)}; all (the default) or none",
    )
    parser.add_argument("--methods", nargs="+", metavar="PART", help="only names that contain one")
    parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--threads", type=int, nargs="+", default=[threads or 1])
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for one process")
    parser.add_argument(
        "--budget",
        type=float,
        default=120.0,
        help="seconds after which a method is not repeated any more on a split of a data set",
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder for JSON, tables, pictures")
    parser.add_argument("--venvs", type=Path, default=FOLDER, help="folder of the environments")
    parser.add_argument(
        "--resume", action="store_true", help="keep what an earlier run measured with this code"
    )
    parser.add_argument("--quick", action="store_true", help="once, on the smallest data")


def chosen_methods(methods: Iterable[Method], args: Namespace) -> list[Method]:
    """Return the methods that the command line asks for."""
    found = chosen(methods, args.peers, args.methods)
    if not found:
        raise SystemExit(f"No method's name contains any of {', '.join(args.methods)}.")
    return found


def harness_of(args: Namespace, command: str, **settings: object) -> Harness:
    """Return a harness as the command line asks for it."""
    store = Store(args.out / f"{command}.json", args.resume)
    environments = Environments(args.venvs, ENVIRONMENTS)
    return Harness(environments, store, args.timeout, args.budget, **settings)  # type: ignore[arg-type]
