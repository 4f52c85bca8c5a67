"""EachMovie as its owner published it: ``Vote.txt``, one vote a line."""

from pathlib import Path

import numpy as np

from marginmf.datasets.members import open_member
from marginmf.datasets.table import RatingsTable

#: Scores are 0, 0.2, ... 1, which are six levels.
STEPS = 5


def read_votes(path: Path) -> RatingsTable:
    """Read votes: person, film, score, weight and the date of the vote, with tabs or commas.

    The scores 0, 0.2, ... 1 become the levels 1 to 6. Weights and dates are left out.
    """
    users, items, scores = [], [], []
    with open_member(path, "Vote.txt") as file:
        for number, line in enumerate(file, start=1):
            cells = line.decode("latin-1").replace(",", "\t").split("\t")
            if not line.strip():
                continue
            try:
                user, item, score = int(cells[0]), int(cells[1]), float(cells[2])
            except (IndexError, ValueError):
                if number == 1:  # a line of names
                    continue
                raise ValueError(
                    f"{path}, line {number}: {line[:60]!r} is not a vote: a person, a film, a "
                    f"score, a weight and a date with tabs between them."
                ) from None
            users.append(user)
            items.append(item)
            scores.append(score)
    steps = np.array(scores, dtype=np.float64) * STEPS
    levels = np.round(steps)
    wrong = (np.abs(steps - levels) > 1e-6) | (levels < 0) | (levels > STEPS)
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{path}: the score {scores[first]:g} of vote {first + 1} is none of 0, 0.2, ... 1."
        )
    return RatingsTable("eachmovie", users, items, levels + 1)  # type: ignore[arg-type]
