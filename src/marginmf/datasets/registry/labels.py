"""The label sets of the thesis and the usual ones beside them.

Their first publisher, MULAN, has archives of a kind that Python cannot unpack. The addresses are
those of the collection that the KDIS group of the University of Córdoba keeps, which has the same
datasets as zip files of ARFF and XML, in one piece: without MULAN's training and test rows.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from marginmf.datasets.entry import DatasetInfo, OpenMLCopy, WheelCopy
from marginmf.datasets.facts import LabelsFacts
from marginmf.datasets.registry import label_papers as papers

SITE = "http://www.uco.es/grupos/kdis/MLLResources/ucobigfiles/Datasets/Full"
TERMS = "Published for research; we know of no stated licence. Cite the reference below."
MATLAB = (
    "It circulates as a MATLAB file and has no address of its own. With a copy: marginmf datasets "
    "get {} --from FILE.mat"
)


def _read(path: Path) -> Any:
    from marginmf.datasets.labels.read import read_labels

    return read_labels(path)


def _read_yeast(members: Mapping[str, bytes]) -> Any:
    from marginmf.datasets.labels.archives import read_yeast

    return read_yeast(members)


def _set(
    name: str,
    title: str,
    facts: tuple[int, int, int, float],
    citation: str,
    fingerprint: str | None = None,
    *,
    kdis: str | None = None,
    mirrors: tuple[WheelCopy | OpenMLCopy, ...] = (),
    note: str = "",
) -> DatasetInfo:
    """Return the entry of a set; `kdis` is what the collection calls it, if it has it."""
    return DatasetInfo(
        name=name,
        title=title,
        kind="labels",
        terms=TERMS,
        citation=citation,
        facts=LabelsFacts(*facts),
        read=_read,
        address=None if kdis is None else f"{SITE}/{kdis}_Mulan.zip",
        by_hand=MATLAB.format(name) if kdis is None else "",
        fingerprint=fingerprint,
        exact=False,
        mirrors=mirrors,
        note=note,
    )


def _reuters(subset: int, n_features: int, cardinality: float, fingerprint: str) -> DatasetInfo:
    """Return a subset of Reuters: with tf-idf of all words, or with the 944 most frequent ones."""
    facts = (6_000, n_features, 101, cardinality)
    title = f"Reuters RCV1, subset {subset}"
    name = f"rcv1subset{subset}"
    if n_features != 944:
        return _set(name, title, facts, papers.REUTERS, fingerprint, kdis=name)
    note = "Whether each of the 944 most frequent words occurs in a story."
    return _set(f"{name}-944", f"{title}, 944 words", facts, papers.REUTERS, fingerprint, note=note)


def _yahoo(topic: str, facts: tuple[int, int, int, float], fingerprint: str) -> DatasetInfo:
    note = (
        "2,000 training and 3,000 test pages with the most frequent words, as Zhang and Zhou made "
        "them for ML-kNN; collections that have all pages and words have another dataset."
    )
    name = f"yahoo-{topic.lower()}"
    return _set(name, f"Yahoo, {topic}", facts, papers.YAHOO, fingerprint, note=note)


LABELS = (
    _set(
        "bibtex",
        "Bibtex",
        (7_395, 1_836, 159, 2.402),
        papers.BIBTEX,
        "37a6ac16b42db61aeed38ffb30df5169cad3210e42ed2b652a9664d9d2815225",
        kdis="Bibtex",
    ),
    _set("bookmarks", "Bookmarks", (87_856, 2_150, 208, 2.028), papers.BIBTEX, kdis="Bookmarks"),
    _set(
        "cal500",
        "CAL500",
        (502, 68, 174, 26.044),
        papers.CAL500,
        "44b66e024e8026d4b22d252f1b856b91dbba58817e5bb5e3ed7fa80711707a1f",
        kdis="CAL500",
    ),
    _set(
        "corel16k001",
        "Corel16k, sample 1",
        (13_766, 500, 153, 2.859),
        papers.COREL16K,
        "b0c75c3dbbd1dd24200bab8648c48c398302ee5e752eb3cff6cb141816813db2",
        kdis="Corel16k001",
    ),
    _set(
        "corel5k",
        "Corel5k",
        (5_000, 499, 374, 3.522),
        papers.COREL5K,
        "410a0c97799bbd81887e2497c4858b1eee5948a1e11e40d94ffe3a9ecd6932a5",
        kdis="Corel5k",
    ),
    _set(
        "delicious",
        "Delicious",
        (16_105, 500, 983, 19.020),
        papers.DELICIOUS,
        "4764373574301d220ce7ef719ab062af767e6af527b9ea871ad25f7a8dd33d64",
        kdis="Delicious",
    ),
    _set(
        "emotions",
        "Emotions",
        (593, 72, 6, 1.869),
        papers.EMOTIONS,
        "3e5380888a942e1a6e50091aa5a80814eb51f37a3283807f15af0953dadd4bd0",
        kdis="Emotions",
        mirrors=(OpenMLCopy(40589),),
    ),
    _set(
        "enron",
        "Enron",
        (1_702, 1_001, 53, 3.378),
        papers.ENRON,
        "dce06978fdd52d58c5a572becef834096494be201ddb05e6e356aaec2f99cbfd",
        kdis="Enron",
        mirrors=(OpenMLCopy(40590),),
    ),
    _set(
        "genbase",
        "Genbase",
        (662, 1_185, 27, 1.252),
        papers.GENBASE,
        "cca7be9d551af2365d1b28b4b9b40eaa9744a1d0ec84610e88a0656c64d6e9f4",
        kdis="Genbase",
        mirrors=(OpenMLCopy(40591),),
        note="Several features equal a label. The attribute that names the protein is no feature.",
    ),
    _set(
        "human3106",
        "Human proteins (PseAAC)",
        (3_106, 440, 14, 1.185),
        papers.HUMAN,
        "ea935eadaa3c5a575f40402dcf4736b8d6e5a21ed39b5ac5a6bc9b5b207e6e46",
        kdis="HumanPseAAC",
    ),
    _set(
        "langlog",
        "Language Log",
        (1_460, 1_004, 75, 1.180),
        papers.LANGLOG,
        "3b5633351c730c21d634a9528b9a0f556f96f1181acd4acd24eb8fe63d00021a",
        kdis="Langlog",
        mirrors=(OpenMLCopy(40593),),
    ),
    _set("mediamill", "Mediamill", (43_907, 120, 101, 4.376), papers.MEDIAMILL, kdis="Mediamill"),
    _set(
        "medical",
        "Medical",
        (978, 1_449, 45, 1.245),
        papers.MEDICAL,
        "7726145d821ad5887c9ca229eb47ca080d00b2bfa4c55158fe4fc0849500145c",
        kdis="Medical",
    ),
    _set(
        "ohsumed",
        "OHSUMED",
        (13_929, 1_002, 23, 1.663),
        papers.OHSUMED,
        "c3d36f708d8c6def99305abf905d5cbc5cb44d23111a8f1101df5714de74ec6b",
        kdis="Ohsumed",
    ),
    _set(
        "plant978",
        "Plant proteins (PseAAC)",
        (978, 440, 12, 1.079),
        papers.PLANT,
        "adc85610268a4f7f3ba79e02a79605521aaa9ba91e66b90ec597e4cc0a9b6426",
        kdis="PlantPseAAC",
    ),
    _reuters(1, 47_236, 2.880, "34bc16509c856be99c062a6fea11ffef462f97f5c52a82b9acdd5027df355e58"),
    _reuters(2, 47_236, 2.634, "17bed2b7cd6b02c2cc636ad8679bfc094c7357e3d5f4752f662448ae69b323fc"),
    _reuters(3, 47_236, 2.614, "3aa86fad1aaab0ee6e87c62e1650118abe3a0619186f587e27adc79b61cb6258"),
    _reuters(5, 47_235, 2.642, "fc7e3b7308864c2b4d900155c159541de41825e04259cfa46e4397be550271e2"),
    _reuters(1, 944, 2.880, "94b2c2f06fac3a0086ea7bb41d1700449a669ce8fdb7f403ecebec7346edf0c7"),
    _reuters(2, 944, 2.634, "b1ce2ddb091032ce7d488c5cc43233d93c6e3e27e0939139a26ae3a38d37d09c"),
    _reuters(3, 944, 2.614, "650194c1b171e04e3a3868f00c4a41f4b4993fd3382c9ddd7685eaeb0ca34ee3"),
    _set(
        "scene",
        "Scene",
        (2_407, 294, 6, 1.074),
        papers.SCENE,
        "c046b75ede72d8208e8a3406c77501f30b4911b1564db0bce6efce4e3fc9787b",
        kdis="Scene",
        mirrors=(OpenMLCopy(40595),),
    ),
    _yahoo(
        "Education",
        (5_000, 550, 33, 1.461),
        "74de24746c1352727599db1d59f86e2f39ad2221deeeaade3b52582adc916e40",
    ),
    _yahoo(
        "Science",
        (5_000, 743, 40, 1.451),
        "d2a078e3f11d01af3df7fcf8cde8b120eb6d08fe5a5b0d6f4cd2e747eac4ae85",
    ),
    _set(
        "yeast",
        "Yeast",
        (2_417, 103, 14, 4.237),
        papers.YEAST,
        "048184842b672d0ef4a67f7a9bf7659ab57344c24d7c49235948d7c50c707070",
        kdis="Yeast",
        mirrors=(
            WheelCopy("river>=0.26", ("river/datasets/yeast.csv.gz",), _read_yeast),
            OpenMLCopy(40597),
        ),
    ),
)
