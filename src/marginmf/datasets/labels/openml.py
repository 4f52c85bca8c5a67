"""Get a label set from OpenML: a description in JSON, and an ARFF file."""

import json
from pathlib import Path

from marginmf.datasets.download import DownloadError, fetch
from marginmf.datasets.labels.reading import read_labels
from marginmf.datasets.labels.table import LabelsTable

DESCRIPTION = "https://www.openml.org/api/v1/json/data/{}"
MOST_SECONDS = 15.0


def fetch_openml(data_id: int, folder: Path, *, progress: bool = True) -> LabelsTable:
    """Download a dataset into a folder and read it; its labels are what OpenML calls targets.

    The labels hold TRUE and FALSE there, which the ARFF reader understands.
    """
    address = DESCRIPTION.format(data_id)
    about = fetch(address, folder / f"openml-{data_id}.json", progress=False, timeout=MOST_SECONDS)
    try:
        described = json.loads(about.read_bytes())["data_set_description"]
        labels, url = described["default_target_attribute"].split(","), described["url"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DownloadError(f"{address} does not describe a dataset ({error!r}).") from error
    finally:
        about.unlink()
    path = fetch(url, folder / f"openml-{data_id}.arff", progress=progress, timeout=MOST_SECONDS)
    try:
        return read_labels(path, labels=[label.strip() for label in labels])
    finally:
        path.unlink()
