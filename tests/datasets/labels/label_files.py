"""Label datasets written in every format, and checks of what is said of faulty files."""

import gzip
import io
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from made_files import as_feather, as_parquet, as_stream
from scipy import sparse

from marginmf.datasets import LabelsTable, read_labels
from marginmf.datasets.labels.arrays import write_labels_npz


def dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def quoted(name: str) -> str:
    plain = name and all(letter.isalnum() or letter in "._" for letter in name)
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    escaped = escaped.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return name if plain else f"'{escaped}'"


def arff_header(table: LabelsTable, relation: str = "made") -> str:
    lines = [f"@relation {quoted(relation)}", ""]
    names = table.feature_names or tuple(f"f{k}" for k in range(table.n_features))
    lines += [f"@attribute {quoted(name)} numeric" for name in names]
    lines += [f"@attribute {quoted(name)} {{0,1}}" for name in table.label_names]
    return "\n".join([*lines, "", "@data", ""])


def as_arff(table: LabelsTable, relation: str = "made") -> bytes:
    rows = np.hstack([dense(table.X), dense(table.Y)]).tolist()
    body = "".join(",".join(map(repr, row)) + "\n" for row in rows)
    return (arff_header(table, relation) + body).encode()


def as_sparse_arff(table: LabelsTable, relation: str = "made") -> bytes:
    rows = np.hstack([dense(table.X), dense(table.Y)]).tolist()
    body = "".join(
        "{" + ",".join(f"{place} {value!r}" for place, value in enumerate(row) if value) + "}\n"
        for row in rows
    )
    return (arff_header(table, relation) + body).encode()


def as_xml(names: Sequence[str]) -> bytes:
    from xml.sax.saxutils import quoteattr

    labels = "".join(f"<label name={quoteattr(name)}></label>\n" for name in names)
    return f'<labels xmlns="http://mulan.sourceforge.net/labels">\n{labels}</labels>'.encode()


def as_svmlight(table: LabelsTable) -> bytes:
    lines = []
    for features, labels in zip(dense(table.X), dense(table.Y), strict=True):
        pairs = [f"{k}:{value!r}" for k, value in enumerate(features.tolist(), 1) if value]
        lines.append(" ".join([",".join(map(str, np.flatnonzero(labels) + 1)), *pairs]) + "\n")
    return "".join(lines).encode()


def as_extreme(table: LabelsTable) -> bytes:
    lines = [f"{table.n_samples} {table.n_features} {table.n_labels}\n"]
    for features, labels in zip(dense(table.X), dense(table.Y), strict=True):
        pairs = [f"{k}:{value!r}" for k, value in enumerate(features.tolist()) if value]
        lines.append(" ".join([",".join(map(str, np.flatnonzero(labels))), *pairs]) + "\n")
    return "".join(lines).encode()


def columns(table: LabelsTable) -> dict[str, list[Any]]:
    names = [*(table.feature_names or ()), *table.label_names]
    values = [*dense(table.X).T.tolist(), *dense(table.Y).T.tolist()]
    return dict(zip(names, values, strict=True))


def as_text(table: LabelsTable, separator: str = ",") -> bytes:
    import csv

    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=separator, lineterminator="\n")
    made = columns(table)
    writer.writerow(made)
    writer.writerows(zip(*made.values(), strict=True))
    return buffer.getvalue().encode()


def as_npz(table: LabelsTable, folder: Path) -> bytes:
    write_labels_npz(table, folder / "made.npz")
    return (folder / "made.npz").read_bytes()


def as_zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


#: Forms whose columns have names, by the ending of a file of that form.
NAMED: dict[str, Callable[[LabelsTable], bytes]] = {
    "arff": as_arff,
    "sparse.arff": as_sparse_arff,
    "arff.gz": lambda table: gzip.compress(as_arff(table)),
    "csv": as_text,
    "tsv": lambda table: as_text(table, "\t"),
    "csv.gz": lambda table: gzip.compress(as_text(table)),
    "parquet": lambda table: as_parquet(columns(table)),
    "feather": lambda table: as_feather(columns(table)),
    "arrows": lambda table: as_stream(pa.table(columns(table))),
}


TABLE = LabelsTable(
    "t",
    np.arange(12.0).reshape(4, 3),
    [[1, 0], [0, 1], [1, 1], [0, 0]],
    feature_names=("a", "b", "c"),
    label_names=("p", "q"),
)


def check(path: Path, message: str, **options: Any) -> None:
    """Assert that a file is refused in one sentence, which names the file and has a message."""
    with pytest.raises(ValueError, match=message) as caught:
        read_labels(path, **options)
    text = str(caught.value)
    assert text.startswith(str(path.parent)), text
    assert text.endswith(".")
    assert "\n" not in text
    assert len(text) < 600
