"""All rating systems with their defaults, and samplers beside those of peers."""

import re
from argparse import ArgumentParser
from pathlib import Path

import pytest

from studies.harness.machine import ROOT
from studies.peers import systems as peer_systems
from studies.peers.comparison import Row, method_table
from studies.peers.methods import choose


def sampler_row(method: str, cpu: float) -> Row:
    phases = {name: {"cpu": cpu / 2, "wall": cpu} for name in ("prepare", "fit", "answer")}
    record = {"phases": phases, "errors": {"mae": 0.66}, "peak_bytes": 1}
    return Row(method, "ml-100k", "80/20", 1, "", [record])


def test_seconds_of_a_sweep_stand_beside_the_peer_with_as_many_factors() -> None:
    rows = [
        sampler_row("SMURFF BPMF d=16", 2.0),
        sampler_row("SMURFF BPMF d=32", 5.0),
        sampler_row("BPMF d=16", 1.0),
        sampler_row("BPMF d=32", 10.0),
        sampler_row("BPMF d=64", 10.0),
    ]
    columns = peer_systems.sweep_columns(rows)
    shown = {head: [write(row) for row in rows] for head, write in columns}
    assert shown["times SMURFF BPMF"] == ["1.00", "1.00", "0.50", "2.00", ""]
    assert shown["CPU s a sweep"][0] == f"{2.0 / peer_systems.SWEEPS:.4f}"
    assert "BPMF d=64" in method_table(rows, columns)


def test_chains_of_all_samplers_have_as_many_sweeps() -> None:
    for method in peer_systems.SAMPLERS:
        given = method.options
        n = given.get("n_iter") or given["n_burn"] + given["n_samples"] * given["thin"]
        assert n == peer_systems.SWEEPS
    for method in peer_systems.KEEPING:
        assert method.options["n_samples"] * method.options["thin"] == peer_systems.AFTER
    peers = {method.peer for method in choose(peer_systems.SAMPLERS, ["all"]) if method.peer}
    assert peers == {"myfm", "smurff"}


def test_tables_of_earlier_runs_are_put_into_the_documentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / peer_systems.PAGE).read_text()
    marked = r"<!-- begin systems: (\w+) -->\n(.*?)<!-- end systems: \1 -->"
    found = dict(re.findall(marked, page, flags=re.DOTALL))
    assert list(found) == list(peer_systems.SECTIONS)
    assert all("| BPMF" in table for table in found.values())
    rows = [sampler_row("SMURFF BPMF d=16", 2.0), sampler_row("BPMF d=16", 1.0)]
    monkeypatch.setattr(peer_systems, "find_rows", lambda *args: rows)
    monkeypatch.setattr(peer_systems, "PAGE", tmp_path / "page.md")
    peer_systems.PAGE.write_text(page)
    parser = ArgumentParser()
    peer_systems.add_arguments(parser)
    peer_systems.main(parser.parse_args(["--page"]))
    written = peer_systems.PAGE.read_text()
    assert "### ml-100k, 80/20, 1 thread\n" in written
    assert "| BPMF d=16 | 1 | 0.6600 |" in written
