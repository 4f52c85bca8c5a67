"""Label sets as others publish them: zip archives of ARFF files, OpenML, and a wheel."""

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path, PurePosixPath

import numpy as np

from marginmf.datasets.addresses import DownloadError, next_address
from marginmf.datasets.download import fetch
from marginmf.datasets.files.packed import open_zip, read_members
from marginmf.datasets.files.source import Source
from marginmf.datasets.labels.arff import read_arff, read_relation
from marginmf.datasets.labels.arff_header import find_labels
from marginmf.datasets.labels.columns import Ignored, LabelsChoice, quote_names
from marginmf.datasets.labels.table import LabelsTable, stack_parts
from marginmf.datasets.labels.tabular import read_delimited

PART = re.compile("train|test", re.IGNORECASE).search
OPENML = "https://www.openml.org/api/v1/json/data/{}"
OPENML_TIMEOUT, OPENML_BYTES = 15.0, 10_000_000
YEAST_TRAIN, YEAST_LABELS = 1500, 14


@contextmanager
def open_archive(source: Source) -> Iterator[zipfile.ZipFile]:
    """Open a zip file, and raise an error that names it if it is damaged."""
    if source.compressed:
        raise ValueError(f"{source.where} is a zip file inside gzip; unpack it first.")
    with source.open() as file, open_zip(file, source.where) as archive:
        yield archive


def read_archive(
    source: Source, labels: LabelsChoice | None, xml: str | PathLike[str] | None, ignore: Ignored
) -> LabelsTable:
    """Read the training rows, then the test rows; or all rows, where they are not divided."""
    with open_archive(source) as archive:
        names = [one for one in archive.namelist() if not one.startswith("__MACOSX")]
        chosen = _choose_members(names, source.where)
        inside = [one for one in names if one.lower().endswith(".xml")]
        content = read_members(archive, (*chosen, *inside), source.where, source.most)
    beside = {str(source.path / name): partial(content.__getitem__, name) for name in inside}
    find = partial(find_labels, labels=labels, xml=xml, beside=beside)
    tables = []
    for name in chosen:
        member = Source(source.path / name, "labels", content[name])
        read = partial(read_relation, member, find, ignore, source.where)
        tables.append(member.read_decoded(read))
    for what in ("feature_names", "label_names"):
        if getattr(tables[0], what) != getattr(tables[-1], what):
            files = f"training file {tables[0].name} and its test file {tables[1].name}"
            raise ValueError(
                f"{source.where}: its {files} differ in their {what.replace('_', ' ')}; unpack it, "
                f"and read one of them."
            )
    return replace(stack_parts(*tables), name=source.path.stem)


def _choose_members(names: list[str], where: str) -> tuple[str, ...]:
    """Return the ARFF files of training and of test rows; or the one that is of all rows."""
    arff = sorted(one for one in names if one.lower().endswith(".arff"))
    if not arff:
        raise ValueError(
            f"{where} has no ARFF file in it, only {quote_names(names)}; unpack it, and read the "
            f"file of labels in it."
        )
    known = set(arff)
    for name in arff:
        start = name.lower().rfind("train", name.rfind("/") + 1)
        if start >= 0:
            for word in ("test", "Test", "TEST"):
                other = f"{name[:start]}{word}{name[start + 5 :]}"
                if other in known:
                    return name, other
    whole = [one for one in arff if not PART(PurePosixPath(one).stem)] or arff
    if len(whole) > 1:
        raise ValueError(
            f"{where} has {len(whole)} ARFF files, {quote_names(whole)}; unpack it, and read the "
            f"one you mean."
        )
    return (whole[0],)


def fetch_openml(data_id: int, folder: Path, *, progress: bool = True) -> LabelsTable:
    """Download a dataset into a folder and read it; its labels are what OpenML calls targets."""
    url = OPENML.format(data_id)
    path = folder / f"openml-{data_id}.json"
    fetch(url, path, max_bytes=OPENML_BYTES, progress=False, timeout=OPENML_TIMEOUT)
    try:
        about = json.loads(path.read_bytes())["data_set_description"]
        labels = [label.strip() for label in about["default_target_attribute"].split(",")]
        url_arff = next_address(url, about["url"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DownloadError(f"{url} does not describe a dataset ({error!r}).") from error
    path = path.with_suffix(".arff")
    fetch(url_arff, path, progress=progress, timeout=OPENML_TIMEOUT)
    return read_arff(Source(path, "labels"), labels, None, Ignored())


def read_yeast(members: Mapping[str, bytes]) -> LabelsTable:
    """Read river's copy of yeast, whose test rows come first, into the order of its owner's."""
    ((name, content),) = members.items()
    table = read_delimited(Source(name, "labels", content), YEAST_LABELS, Ignored())
    train, test = np.split(np.arange(table.n_samples), [YEAST_TRAIN])
    order = np.roll(np.arange(table.n_samples), YEAST_TRAIN)
    X, Y = table.X[order].astype(np.float32), table.Y[order]
    return replace(table, name="yeast", X=X, Y=Y, train_idx=train, test_idx=test, source="")
