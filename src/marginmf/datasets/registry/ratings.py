"""Ratings that are not MovieLens: EachMovie, Jester and Book-Crossing."""

from dataclasses import replace
from pathlib import Path

from marginmf.datasets import bookcrossing, eachmovie, jester
from marginmf.datasets.entry import DatasetInfo
from marginmf.datasets.facts import RatingsFacts
from marginmf.datasets.table import RatingsTable


def _read_sample(path: Path) -> RatingsTable:
    raise ValueError(
        f"{path} is not arrays; the sample of EachMovie is ratings/eachmovie-sample.npz of a data "
        f"folder and has no other form."
    )


EACHMOVIE = DatasetInfo(
    name="eachmovie",
    title="EachMovie",
    kind="ratings",
    terms="For research that is neither commercial nor bears revenue; publications credit Digital "
    "Equipment Corporation as the provider of the data; copies are for internal use only.",
    citation="Paul McJones. 1997. EachMovie collaborative filtering data set. DEC Systems Research "
    "Center.",
    # How many of the people and films that its owner counts have votes is not confirmed.
    facts=RatingsFacts(2_811_983, levels=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)),
    read=eachmovie.read_votes,
    by_hand="Its owner withdrew it in 2004. With a copy of your own, name its Vote.txt (or the "
    "folder or the zip file that has it): marginmf datasets get eachmovie --from Vote.txt",
    note="Scores of 0, 0.2, ... 1 are the levels 1 to 6. Its owner counts 72,916 users and 1,628 "
    "films.",
)
EACHMOVIE_SAMPLE = replace(
    EACHMOVIE,
    name="eachmovie-sample",
    title="EachMovie, a sample of 5,055 users",
    facts=RatingsFacts(1_009_402, 5_055, 1_619, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)),
    read=_read_sample,
    by_hand="It is not published. Put the file into a folder as ratings/eachmovie-sample.npz and "
    "set MARGINMF_DATA to that folder.",
    fingerprint="b7d19e24be30812164ae90347db0f839bcd70bd9ce333e73ebaf1214d862174a",
    note="1,009,402 of the 2,811,983 ratings, divided into training and test ratings (train_idx, "
    "test_idx).",
)
JESTER = DatasetInfo(
    name="jester",
    title="Jester, dataset 2",
    kind="ratings",
    terms="Freely available for research when acknowledged with the reference below.",
    citation="Ken Goldberg, Theresa Roeder, Dhruv Gupta and Chris Perkins. 2001. Eigentaste: A "
    "Constant Time Collaborative Filtering Algorithm. Information Retrieval 4, 2, 133-151.",
    facts=RatingsFacts(1_761_439, 59_132, 140, bounds=(-10.0, 10.0)),
    read=jester.read_jester,
    address="https://eigentaste.berkeley.edu/dataset/archive/jester_dataset_2.zip",
    note="Ratings of jokes are any numbers between -10 and 10: make levels of them, such as "
    "np.round(ratings), before a method that learns levels.",
)
BOOK_CROSSING = DatasetInfo(
    name="book-crossing",
    title="Book-Crossing",
    kind="ratings",
    terms="Collected for research; we know of no stated licence. Cite the reference below.",
    citation="Cai-Nicolas Ziegler, Sean M. McNee, Joseph A. Konstan and Georg Lausen. 2005. "
    "Improving Recommendation Lists Through Topic Diversification. WWW '05. "
    "https://doi.org/10.1145/1060745.1060754",
    facts=RatingsFacts(1_149_780, 105_283, 340_556, tuple(float(one) for one in range(11))),
    read=bookcrossing.read_dump,
    by_hand="The site that published it, www2.informatik.uni-freiburg.de/~cziegler/BX, is gone. "
    "With a copy of BX-CSV-Dump.zip, or of BX-Book-Ratings.csv in it: marginmf datasets get "
    "book-crossing --from BX-CSV-Dump.zip",
    fingerprint="6436caf9a66d7b35d594442ca014509c63e08c431dba6685e7fddac919530acb",
    exact=False,  # copies differ in the order of their rows
    note="A rating of 0 says that somebody had the book, not how it was liked; the others are 1 to "
    "10. Items are ISBNs as people wrote them.",
)

RATINGS = (EACHMOVIE, EACHMOVIE_SAMPLE, JESTER, BOOK_CROSSING)
