import numpy as np
import pytest

from studies.peers.problems import check_lists

SEEN = {"users": np.array([1, 1, 2]), "items": np.array([10, 11, 12])}


def lists(users, items):
    return {"users": np.array(users), "items": np.array(items)}


def test_good_lists_pass():
    good = lists([1, 1, 2, 2], [12, 13, 10, 13])
    assert check_lists(SEEN, 2, good) == {"lists": 2.0}


@pytest.mark.parametrize(
    ("answers", "fault"),
    [
        (lists([1, 1], [12, 13]), "1 lists of 2 to 2 items, not 2 lists of 2"),
        (lists([1, 1, 2], [12, 13, 10]), "2 lists of 1 to 2"),
        (lists([1, 1, 2, 2], [12, 12, 10, 13]), "twice"),
        (lists([1, 1, 2, 2], [12, 11, 10, 13]), "has rated"),
    ],
)
def test_bad_lists_are_found_out(answers, fault):
    with pytest.raises(ValueError, match=fault):
        check_lists(SEEN, 2, answers)
