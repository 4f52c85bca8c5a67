"""Where the figures come from: machines, versions, code and days of the runs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from marginmf.experiments.blocks import Table, Text
from marginmf.experiments.cell import Cell
from marginmf.experiments.store import Store

KIBIBYTES = 1 << 20  # in a gibibyte


def origins(cells: Iterable[Cell], store: Store) -> list[Text | Table]:
    """Return what is to be said of the runs that these cells come from."""
    wanted = {cell.key for cell in cells}
    counts: dict[tuple[str, ...], int] = defaultdict(int)
    days: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for key in wanted & store.records.keys():
        run = store.runs.get(store.records[key]["run"], {})
        origin = _origin(run)
        counts[origin] += 1
        days[origin].add(str(run.get("date", "unknown"))[:10])
    if not counts:
        return [Text("No cell has been run yet.")]
    rows = [
        (_span(days[origin]), *origin, f"{counts[origin]:,}")
        for origin in sorted(counts, key=lambda one: (min(days[one]), one))
    ]
    headings = ("days", "marginmf", "code", "machine", "software", "cells")
    first = f"{sum(counts.values()):,} of {len(wanted):,} cells have been run."
    return [Text(f"{first} {_mixture(list(counts))}"), Table(headings, rows, words=5)]


def _origin(run: Mapping[str, Any]) -> tuple[str, str, str, str]:
    libraries = (f"{name} {version}" for name, version in run.get("libraries", {}).items())
    return (
        str(run.get("version", "unknown")),
        str(run.get("code") or "unknown"),
        _machine(run),
        ", ".join([f"Python {run.get('python', 'unknown')}", *libraries]),
    )


def _machine(run: Mapping[str, Any]) -> str:
    parts = [run.get("processor"), f"{run.get('cores')} cores" if run.get("cores") else None]
    memory = str(run.get("memory") or "").removesuffix(" kB")
    if memory.isdigit():
        parts.append(f"{int(memory) / KIBIBYTES:.0f} GiB")
    parts.append(run.get("system"))
    return ", ".join(str(part) for part in parts if part) or "unknown"


def _span(days: Iterable[str]) -> str:
    first, last = min(days), max(days)
    return first if first == last else f"{first} to {last}"


def _mixture(origins: Sequence[tuple[str, ...]]) -> str:
    """Say what differs between the runs, because a table may then compare unlike things."""
    names = ("versions", "states of the code", "machines", "sets of libraries")
    mixed = [
        f"{len(found)} {name}"
        for name, found in zip(names, map(set, zip(*origins, strict=True)), strict=True)
        if len(found) > 1
    ]
    if not mixed:
        return "They all come from one version of the library on one machine."
    return (
        f"They come from {' and '.join(mixed)}: figures that stand side by side may have been made "
        "under different conditions. `marginmf reproduce run --all --again` makes them anew."
    )
