"""Read a zip archive of ARFF files, and the XML file in it that names the labels."""

import zipfile
import zlib
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import PurePosixPath

import numpy as np
from scipy import sparse

from marginmf.datasets.files.source import Source
from marginmf.datasets.labels.arff.labels import XmlFile, chooser, named_alike
from marginmf.datasets.labels.arff_files import arff_table, given_xml
from marginmf.datasets.labels.choice import IgnoredChoice, LabelsChoice, listed
from marginmf.datasets.labels.table import LabelsTable

DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)


def read_archive(
    source: Source,
    labels: LabelsChoice | None,
    xml: str | PathLike[str] | None,
    ignore: IgnoredChoice,
) -> LabelsTable:
    """Read the training rows, then the test rows; or all rows, where they are not divided."""
    with source.open() as file:
        try:
            archive = zipfile.ZipFile(file)
        except DAMAGED as error:
            raise _damaged(source, error) from error
        members = _Members(source, archive, labels, xml, ignore)
        parts = members.divided()
        if parts is None:
            table = members.read(members.whole())
        else:
            train, test = parts
            table = _joined(members.read(train), members.read(test), source.where)
    return replace(table, name=source.path.stem)


class _Members:
    """The ARFF files of an archive, and how to read them."""

    def __init__(
        self,
        source: Source,
        archive: zipfile.ZipFile,
        labels: LabelsChoice | None,
        xml: str | PathLike[str] | None,
        ignore: IgnoredChoice,
    ) -> None:
        self.source, self.archive = source, archive
        self.labels, self.ignore = labels, ignore
        names = [one for one in archive.namelist() if not one.startswith("__MACOSX")]
        self.arff = sorted(one for one in names if one.lower().endswith(".arff"))
        if not self.arff:
            raise ValueError(
                f"{source.where} has no ARFF file in it, only {listed(names)}; unpack it, and read "
                f"the file of labels in it."
            )
        if xml is not None:
            self.xml = [given_xml(xml)]
        else:
            inside = [one for one in names if one.lower().endswith(".xml")]
            self.xml = [XmlFile(self._where(one), partial(self._bytes, one)) for one in inside]
        self.given = xml is not None

    def divided(self) -> tuple[str, str] | None:
        """Return the file of training rows and that of test rows, if there are both."""
        for name in self.arff:
            stem = PurePosixPath(name).name.lower()
            if "train" not in stem:
                continue
            head, _, tail = name.rpartition("/")
            place = tail.lower().rindex("train")
            folder = f"{head}/" if head else ""
            for word in ("test", "Test", "TEST"):
                other = f"{folder}{tail[:place]}{word}{tail[place + 5 :]}"
                if other in self.arff:
                    return name, other
        return None

    def whole(self) -> str:
        """Return the only file, or the one whose name does not say that it is a part."""
        parts = [one for one in self.arff if not _is_part(one)]
        chosen = parts if parts else self.arff
        if len(chosen) > 1:
            raise ValueError(
                f"{self.source.where} has {len(chosen)} ARFF files, {listed(chosen)}; unpack it, "
                f"and read the one you mean."
            )
        return chosen[0]

    def read(self, name: str) -> LabelsTable:
        """Read one file."""
        member = Source(self.source.path / name, "labels", self._bytes(name))
        where, alone = member.where, self.xml[0] if len(self.xml) == 1 else None
        own = alone if self.given else named_alike(PurePosixPath(name).name, self.xml)
        choose = chooser(where, self.labels, own, alone)
        return arff_table(member, choose, self.ignore, self.source.where)

    def _where(self, name: str) -> str:
        return str(self.source.path / name)

    def _bytes(self, name: str) -> bytes:
        try:
            return self.archive.read(name)
        except DAMAGED as error:
            raise _damaged(self.source, error) from error


def _is_part(name: str) -> bool:
    stem = PurePosixPath(name).stem.lower()
    return any(word in stem for word in ("train", "test"))


def _joined(train: LabelsTable, test: LabelsTable, where: str) -> LabelsTable:
    for what in ("feature_names", "label_names"):
        if getattr(train, what) != getattr(test, what):
            raise ValueError(
                f"{where}: its training file {train.name} and its test file {test.name} differ in "
                f"their {what.replace('_', ' ')}; unpack it, and read one of them."
            )
    n_train = train.n_samples
    if sparse.issparse(train.X) or sparse.issparse(test.X):
        X = sparse.vstack([sparse.csr_array(train.X), sparse.csr_array(test.X)], format="csr")
    else:
        X = np.concatenate([train.X, test.X])
    return replace(
        train,
        X=X,
        Y=sparse.vstack([train.Y, test.Y], format="csr"),
        train_idx=np.arange(n_train),
        test_idx=np.arange(n_train, n_train + test.n_samples),
    )


def _damaged(source: Source, error: Exception) -> ValueError:
    reason = str(error) or type(error).__name__
    return ValueError(f"{source.where} is a damaged zip file ({reason}); fetch it again.")
