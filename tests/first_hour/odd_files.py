"""Files as people have them, and what becomes of each: a reading, or one sentence."""

import gzip
from typing import Any, NamedTuple


class Odd(NamedTuple):
    """A file, how it is read, and the columns that it gives or the sentence that it gets."""

    content: str | bytes
    outcome: list[list[Any]] | str
    options: dict[str, Any] = {}  # noqa: RUF012


TWO = [["ann", "bob"], ["x", "y"], [5.0, 3.0]]
NUMBERS = [[1, 2], [10, 20], [5.0, 3.0]]
LEVELS = {"levels": ["bad", "good", "great"]}
NAMED = {"user": "kunde", "item": "artikel", "rating": "note"}
PIVOTED = "user," + ",".join(f"film{k}" for k in range(30)) + "\nann" + ",3" * 30 + "\n"
WIDE = ",".join(f"a{k}" for k in range(400)) + "\n" + ",".join("0.5" for _ in range(400)) + "\n"
ARFF = "@relation songs\n@attribute a numeric\n@attribute rock {0,1}\n@data\n1,0\n"

FILES: dict[str, Odd] = {
    # Headers: names that are known.
    "usual names": Odd("user,item,rating\nann,x,5\nbob,y,3\n", TWO),
    "MovieLens": Odd("userId,movieId,rating,timestamp\n1,10,5,99\n2,20,3,98\n", NUMBERS),
    "BookCrossing": Odd('"User-ID";"ISBN";"Book-Rating"\n1;10;5\n2;20;3\n', NUMBERS),
    "Amazon": Odd("reviewerID,asin,overall\nann,x,5\nbob,y,3\n", TWO),
    "Amazon 2023": Odd("user_id,parent_asin,rating\nann,x,5\nbob,y,3\n", TWO),
    "RecBole": Odd("user_id:token\titem_id:token\trating:float\n1\t10\t5\n2\t20\t3\n", NUMBERS),
    "an index of pandas": Odd(",user,item,rating\n0,ann,x,5\n1,bob,y,3\n", TWO),
    "another order": Odd("stars,film,username\n5,x,ann\n3,y,bob\n", TWO),
    "more columns": Odd("nr,user,item,city,rating\n1,ann,x,Rome,5\n2,bob,y,Bonn,3\n", TWO),
    "a mark before the text": Odd(b"\xef\xbb\xbfuser,item,rating\nann,x,5\nbob,y,3\n", TWO),
    "UTF-16": Odd("user,item,rating\nann,x,5\nbob,y,3\n".encode("utf-16"), TWO),
    "gzip": Odd(gzip.compress(b"user,item,rating\nann,x,5\nbob,y,3\n"), TWO),
    "lines of Windows": Odd("user,item,rating\r\nann,x,5\r\nbob,y,3\r\n", TWO),
    "blank lines": Odd("\n\nuser,item,rating\n\nann,x,5\n\nbob,y,3\n\n", TWO),
    "JSON lines": Odd(
        '{"user": "ann", "movie": "x", "stars": 5}\n{"user": "bob", "movie": "y", "stars": 3}\n',
        TWO,
    ),
    "JSON booleans": Odd(
        '{"user": "ann", "movie": "x", "like": true}\n{"user": "bob", "movie": "y", "like": false}',
        [["ann", "bob"], ["x", "y"], [1.0, 0.0]],
    ),
    # Headers: names that are not known are asked for.
    "unknown names": Odd(
        "nr,kunde,artikel,note\n1,ann,x,5\n2,bob,y,3\n",
        "'nr', 'kunde', 'artikel', 'note' is known as the user, item or rating; name the .* "
        "which with user=, item= and rating=",
    ),
    "unknown names, named": Odd("nr,kunde,artikel,note\n1,ann,x,5\n2,bob,y,3\n", TWO, NAMED),
    "unknown names, numbered": Odd(
        "nr,kunde,artikel,note\n1,ann,x,5\n2,bob,y,3\n", TWO, {"user": 2, "item": 3, "rating": 4}
    ),
    "numbers below unknown names": Odd("a,b,c\n1,10,5\n2,20,3\n", "'a', 'b', 'c' is known as"),
    "one unknown name": Odd("user,thing,rating\nann,x,5\n", "is known as the item; .* with item="),
    "unknown names after an index": Odd(",kunde,artikel,note\n0,ann,x,5\n", "is known as the user"),
    "a year among names": Odd("user,item,2019\nann,x,5\n", "is known as the rating; say which is"),
    "unknown keys": Odd('{"kunde": 1, "artikel": 2, "note": 3}\n', "is known as the user, item or"),
    "names said to be none": Odd("a,b,c\n1,10,5\n", "line 1: the rating 'c'", {"header": False}),
    "a pair said to be names": Odd("1,10,5\n2,20,3\n", "'1', '10', '5' is known", {"header": True}),
    "a column twice": Odd("a,a,rating\n1,10,5\n", "2 columns are called 'a'", {"user": "a"}),
    "a misspelt column": Odd("who,item,rating\n1,10,5\n", "no column 'woh'", {"user": "woh"}),
    "one column for two": Odd(
        "who,item,rating\n1,10,5\n", "cannot be both the user and the item", {"user": 1, "item": 1}
    ),
    # No header: positions, where there are three or four columns.
    "no header": Odd("1,10,5\n2,20,3\n", NUMBERS),
    "no header, with times": Odd("1::10::5::99\n2::20::3::98\n", NUMBERS),
    "no header, names of people": Odd("ann,x,5\nbob,y,3\n", TWO),
    "no header, five columns": Odd("0,1,10,5,99\n1,2,20,3,98\n", "the 5 columns have no names"),
    "no header, five columns, numbered": Odd(
        "0,1,10,5,99\n1,2,20,3,98\n", NUMBERS, {"user": 2, "item": 3, "rating": 4}
    ),
    "no header, blanks": Odd("1 10 5\n2 20 3\n", NUMBERS),
    # Kinds of ratings.
    "yes and no": Odd("user,item,rating\nann,x,yes\nbob,y,No\n", [*TWO[:2], [1.0, 0.0]]),
    "true and false": Odd("user,item,liked\nann,x,TRUE\nbob,y,FALSE\n", [*TWO[:2], [1.0, 0.0]]),
    "like and dislike": Odd("ann,x,like\nbob,y,dislike\n", [*TWO[:2], [1.0, 0.0]]),
    "thumbs": Odd("user;item;rating\nann;x;thumbs up\nbob;y;thumbs down\n", [*TWO[:2], [1.0, 0.0]]),
    "decimal commas": Odd("user;item;rating\nann;x;4,5\nbob;y;3\n", [*TWO[:2], [4.5, 3.0]]),
    "decimal commas in quotes": Odd('user,item,rating\nann,x,"4,5"\n', [["ann"], ["x"], [4.5]]),
    "decimal commas without quotes": Odd("user,item,rating\nann,x,4,5\n", "4 cells under 3 names"),
    "a comma in a title": Odd("user,title,rating\nann,Go, Jo,5\n", "into quotes"),
    "numbers in text as levels": Odd(
        "user,item,rating\nann,x,5\nbob,y,3\n", TWO, {"levels": ["1", "3", "5"]}
    ),
    "words below unknown names": Odd(
        "kunde,artikel,note\nann,x,bad\nbob,y,great\n", "is known as the user, item", LEVELS
    ),
    "words below a comma": Odd("user,item,rating\nann,x,very good\n", "a word that levels= puts"),
    "an odd cell late": Odd("user,item,rating\na,x,5\nb,x,4\nc,x,-\n", "line 4: the rating '-'"),
    "thousands": Odd("user;item;rating\nann;x;1,000\n", "the rating '1,000' is not a number"),
    "words in order": Odd("user,item,rating\nann,x,Great\nbob,y,bad\n", [*TWO[:2], [3, 1]], LEVELS),
    "words without order": Odd("user,item,rating\nann,x,great\n", "a word that levels= puts"),
    "a misspelt word": Odd(
        "user,item,rating\nann,x,graet\n", "none of the levels bad, good, great .did you me", LEVELS
    ),
    "words and numbers": Odd("user,item,rating\nann,x,yes\nbob,y,3\n", "of another kind"),
    "an empty rating": Odd("user,item,rating\nann,x,\n", "line 2: the rating ''"),
    "not a number": Odd("user,item,rating\nann,x,nan\n", "is not a finite number"),
    "a rating out of five": Odd("user,item,rating\nann,x,4/5\n", "'4/5' is not a number"),
    "stars": Odd("user,item,rating\nann,x,★★★\n", "'★★★' is not a number"),
    "a percentage": Odd("user,item,rating\nann,x,80%\n", "'80%' is not a number"),
    "an empty user": Odd("user,item,rating\n,x,4\n", "line 2: the user id is empty"),
    # No ratings, or something else.
    "two columns": Odd("1,10\n2,20\n", "positive-only data"),
    "two columns with names": Odd("user,item\nann,x\n", "is known as the rating.*positive-only"),
    "play counts": Odd("user,artist,plays\nann,x,120\n", "'plays' holds counts.*such as EASE"),
    "play counts as ratings": Odd(
        "user,artist,plays\nann,x,120\n", [["ann"], ["x"], [120.0]], {"rating": "plays"}
    ),
    "a column for each item": Odd(PIVOTED, "look like one for each item.*frame.melt"),
    "many columns": Odd(WIDE, "and 388 more"),
    "ARFF": Odd(ARFF, "is an ARFF file of features and labels"),
    "svmlight": Odd("0,2 1:0.5 7:1\n1 2:0.25 3:1\n", "features and labels"),
    "one column": Odd("rating\n5\n3\n", "is known as the user or item"),
    "nothing": Odd("", "is empty"),
    "a header alone": Odd("user,item,rating\n", "no ratings after its header"),
    "a web page": Odd("<html><body>Please log in</body></html>\n", "column|known"),
    "a picture": Odd(b"\x89PNG\r\n\x1a\n" + bytes(200), "is not a text file"),
    "an open quote": Odd('user,item,rating\nann,"x,5\n', "the quotes do not match"),
    "a short line": Odd("user,item,rating\nann,x,5\nbob,y\n", r"line 3: 2 column\(s\) found"),
    # Times.
    "a date that is Unix time": Odd(
        "user,item,rating,date\n1,10,5,881250949\n2,20,3,891717742\n", NUMBERS, {"timed": True}
    ),
    "dates of two forms": Odd(
        "user,item,rating,date\n1,10,5,20200304\n2,20,3,2019-03-04\n", NUMBERS, {"timed": True}
    ),
    "a date that is none": Odd("user,item,rating,date\n1,10,5,soon\n2,20,3,later\n", NUMBERS),
    "a date that is needed": Odd(
        "user,item,rating,date\n1,10,5,soon\n", "the timestamp 'soon'", {"timed": True}
    ),
    "no date where it is needed": Odd("1,10,5\n", "there is no column of times", {"timed": True}),
}
