"""What `user=`, `item=` and `rating=` mean, and what is said when they cannot be followed."""

from pathlib import Path
from typing import Any

import pytest

from marginmf.datasets import read_pairs, read_ratings


def write(folder: Path, text: str) -> Path:
    path = folder / "ratings.csv"
    path.write_text(text)
    return path


def read(path: Path, **chosen: Any) -> tuple[list[Any], list[Any], list[float]]:
    table = read_ratings(path, **chosen)
    return table.users.tolist(), table.items.tolist(), table.ratings.tolist()


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("5,1,10\n3,2,20\n", {"user": 2, "item": 3, "rating": 1}),
        ("r,u,i\n5,1,10\n3,2,20\n", {"user": 2, "item": 3, "rating": 1}),
        ("r,u,i\n5,1,10\n3,2,20\n", {"user": "u", "item": "i", "rating": "r"}),
        ("stars,who,film\n5,1,10\n3,2,20\n", {"user": "who"}),
        ("stars,Who-Is,film\n5,1,10\n3,2,20\n", {"user": "who_is"}),
        ("user,item,rating,2019\n1,10,5,7\n2,20,3,7\n", {"user": 1, "item": 2, "rating": 3}),
        ("rating,1,2\n5,1,10\n3,2,20\n", {"user": "1", "item": "2"}),
        ("1,10,5,2\n2,20,3,4\n", {"rating": 3}),
        ("user,rating,value,item\n1,9,5,10\n2,9,3,20\n", {"rating": "value"}),
        ("user,user_id,item,rating\n9,1,10,5\n9,2,20,3\n", {"user": "user_id"}),
    ],
)
def test_columns_are_those_that_were_chosen(
    tmp_path: Path, text: str, chosen: dict[str, Any]
) -> None:
    assert read(write(tmp_path, text), **chosen) == ([1, 2], [10, 20], [5.0, 3.0])


def test_a_fourth_column_is_the_time_unless_it_was_chosen(tmp_path: Path) -> None:
    path = write(tmp_path, "1,10,5,99\n2,20,3,98\n")
    swapped = read_ratings(path, user=2, item=1, rating=3)
    assert swapped.timestamps is not None
    assert swapped.timestamps.tolist() == [99, 98]
    assert read_ratings(path, user=4, item=1, rating=3).timestamps is None


FAULTS: list[tuple[str, dict[str, Any], str]] = [
    (
        "a,b,c\n1,2,3\n",
        {"user": "who"},
        "line 1: there is no column 'who' for the user; the columns are 'a', 'b', 'c'. Give one of",
    ),
    ("1,2,3\n", {"item": "film"}, "no column 'film' for the item; the columns are '1', '2', '3'"),
    ("1,2,3\n", {"rating": 4}, "there is no column 4 for the rating; there are 3: '1', '2', '3'"),
    ("1,2,3\n", {"rating": "4"}, "there is no column 4 for the rating; there are 3"),
    ("1,2,3\n", {"user": 0}, "Columns are counted from 1, so user=0 is none of them"),
    ("1,2,3\n", {"user": -1}, "Columns are counted from 1, so user=-1 is none of them"),
    ("1,2,3\n", {"user": True}, "user= takes a column's name or its position from 1, not True"),
    ("1,2,3\n", {"user": 1.5}, "user= takes a column's name or its position from 1, not 1.5"),
    (
        "1,2,3\n",
        {"user": 2, "item": 2},
        "column 2 cannot be both the user and the item; give another item=",
    ),
    (
        "a,b,a,rating\n1,2,3,4\n",
        {"user": "a"},
        "2 columns are called 'a'; give the position of the user's, one of 1, 3",
    ),
    (
        "1,2,3\n",
        {"user": 3},
        r"the 3 columns have no names \('1', '2', '3'\); say with item= and rating= which is",
    ),
    (
        "a,b,c\n1,2,3\n",
        {"user": "c"},
        "none of the columns 'a', 'b', 'c' is known as the item or rating; name the columns "
        "'user', 'item' and 'rating', or say which is which with item= and rating=",
    ),
    ("\n\na,b,c\n1,2,3\n", {"user": "x"}, "line 3: there is no column 'x'"),
]


@pytest.mark.parametrize(("text", "chosen", "message"), FAULTS)
def test_what_cannot_be_followed_is_one_sentence(
    tmp_path: Path, text: str, chosen: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read_ratings(write(tmp_path, text), **chosen)
    assert str(caught.value).endswith(".")


def test_pairs_are_advised_on_pairs(tmp_path: Path) -> None:
    path = write(tmp_path, "user,rating\n1,2\n")
    with pytest.raises(
        ValueError, match="known as the item; name the columns 'user' and 'item', or say"
    ):
        read_pairs(path)
