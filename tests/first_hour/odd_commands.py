"""Commands as people type them, and what they print: an answer, or one sentence."""

from typing import NamedTuple


class Command(NamedTuple):
    """The words of a command, what it says, whether that is a refusal, and what is typed in."""

    words: str
    says: str
    refused: bool = True
    typed: str | None = None


def _grid(header: str, start: str = "") -> str:
    rows = (f"{start}u{u},{i},{1 + (u * i) % 5}" for u in range(12) for i in range(25))
    return "\n".join([header, *rows]) + "\n"


FILES_OF_COMMANDS = {
    "ratings.csv": _grid("user,item,rating"),
    "bare.csv": _grid("u0,99,3"),
    "noten.csv": _grid("nr,kunde,artikel,note", "7,"),
    "pairs.csv": "user,item\nu1,3\nu2,4\n",
    "kunden.csv": "artikel,kunde\n3,u1\n4,u2\n",
    "bare-pairs.csv": "u1,3\nu2,4\n",
    "odd-pairs.csv": "wer,was\nnobody,nothing\n",
    "words.csv": "user,item,rating\n"
    + "".join(
        f"u{u},{i},{('bad', 'good', 'great')[(u * i) % 3]}\n" for u in range(9) for i in range(9)
    ),
    "plays.csv": "user,artist,plays\n"
    + "".join(f"u{u},{i},{u * i * 7}\n" for u in range(12) for i in range(12)),
    "taken.csv": "user,item\n"
    + "".join(f"u{u},{(u * k) % 9}\n" for u in range(9) for k in (1, 2, 3)),
    "songs.csv": "tempo,loud,rock,jazz\n"
    + "".join(f"{k % 7},{k % 3},{k % 2},1\n" for k in range(40)),
    "songs.arff": "@relation songs\n@attribute a numeric\n@attribute rock {0,1}\n@data\n1,0\n",
    "artikel.csv": "artikel,title\n" + "".join(f"{i},Film {i}\n" for i in range(25)),
    "items.csv": "item,title\n" + "".join(f"{i},Film {i}\n" for i in range(25)),
    "blank.jsonl": '\n{"user": "u1", "item": 3}\n',
    "users.csv": "user,age\nzoe,30\n",
    "new.csv": "user,item,rating\nzoe,3,5\nzoe,4,1\n",
    "strange.csv": "user,item,rating\nzoe,x,5\nzoe,y,1\n",
}
COMMANDS = {
    # Which column is what.
    "unknown names": Command(
        "fit noten.csv -m bias --out n.marginmf", "with --user, --item and --rating"
    ),
    "unknown names, named": Command(
        "fit noten.csv -m bias --user kunde --item artikel --rating note --force --out n.marginmf",
        r"columns kunde \(user\), artikel \(item\), note \(rating\)",
        refused=False,
    ),
    "known names": Command(
        "evaluate ratings.csv -m bias --splits 1", "columns user, item, rating", False
    ),
    "no names": Command("evaluate bare.csv -m bias --splits 1", "columns by position", False),
    "info of unknown names": Command("info noten.csv", "--user, --item and --rating"),
    "compare unknown names": Command(
        "compare noten.csv --models bias", "--user, --item and --rating"
    ),
    "tune unknown names": Command("tune noten.csv -m als", "--user, --item and --rating"),
    "demo of unknown names": Command("demo noten.csv", "is known as the user, item or rating"),
    "predict by names of the fit": Command(
        "predict k.marginmf kunden.csv", "user,item,rating\nu1,3,", False
    ),
    "predict pairs without names": Command("predict m.marginmf bare-pairs.csv", "u1,3,", False),
    "predict what may be names": Command(
        "predict m.marginmf odd-pairs.csv", "--header or --no-header"
    ),
    "predict what are names": Command(
        "predict m.marginmf odd-pairs.csv --header", "known as the user"
    ),
    "predict what are none": Command(
        "predict m.marginmf odd-pairs.csv --no-header", "nobody,nothing,", refused=False
    ),
    # Kinds of data.
    "words": Command(
        "fit words.csv -m bias --out w.marginmf", "a word that --levels puts in order"
    ),
    "words in order": Command(
        "fit words.csv -m bias --levels bad,good,great --force --out w.marginmf", "Saved to", False
    ),
    "counts": Command(
        "fit plays.csv -m hmf --out p.marginmf", "'plays' holds counts.*--rating plays"
    ),
    "counts as ratings": Command(
        "fit plays.csv -m hmf --rating plays --out p.marginmf", "distinct values.*--levels 10"
    ),
    "counts in bins": Command(
        "fit plays.csv -m bias --rating plays --levels 4 --force --out p.marginmf",
        "Saved to",
        False,
    ),
    "counts as numbers": Command(
        "fit plays.csv -m als --rating plays --force --out p.marginmf", "Saved to", False
    ),
    "pairs alone": Command("fit taken.csv -m hmf --out t.marginmf", "positive-only"),
    "pairs alone, said so": Command(
        "fit taken.csv --positive-only --force --out t.marginmf", "columns user, item", False
    ),
    "labels for ratings": Command("fit songs.arff --out s.marginmf", "features and labels"),
    "labels in a table for ratings": Command(
        "fit songs.csv --out s.marginmf", "is known as the user"
    ),
    "a dataset of labels": Command("fit yeast --out s.marginmf", "yeast"),
    "ratings for labels": Command("labels fit ratings.csv --out s.marginmf", "--labels"),
    # Words of the command line.
    "labels that are too many": Command(
        "labels fit songs.csv --labels 9 --out s.marginmf", "--labels 9"
    ),
    "labels that are none": Command("labels fit songs.csv --labels pop --out s.marginmf", "pop"),
    "few factors": Command("fit ratings.csv --factors few --out f.marginmf", "--factors: 'few'"),
    "a misspelt model": Command("fit ratings.csv -m hfm --out f.marginmf", "'hfm'.*hmf"),
    "a misspelt command": Command("fitt ratings.csv", "No such command 'fitt'"),
    "output": Command("predict m.marginmf pairs.csv --output mean", "--output is now --answer"),
    "an unknown answer": Command("predict m.marginmf pairs.csv --answer best", "--answer.*best"),
    "answer": Command("predict m.marginmf pairs.csv --answer mean", "u1,3,", False),
    "answers that are judged": Command(
        "evaluate ratings.csv -m bias --splits 1 --answer mean", "mean", False
    ),
    "time without times": Command(
        "evaluate ratings.csv -m bias --protocol time", "no column of times"
    ),
    "no folder": Command("fit ratings.csv -m bias --out no/m.marginmf", "There is no folder"),
    # Asking a model.
    "a misspelt user": Command("recommend m.marginmf --user u111", "Did you mean 'u11'"),
    "nothing left": Command("recommend m.marginmf --user u1", "No item is left for 1 of", False),
    "titles": Command(
        "recommend m.marginmf --user u1 --include-seen --items items.csv", "Film ", False
    ),
    "titles by names of the fit": Command(
        "recommend k.marginmf --user u1 --include-seen --items artikel.csv", "Film ", False
    ),
    "a file without titles": Command("recommend m.marginmf --user u1 --items pairs.csv", "title"),
    "nothing to fold in": Command("fold-in m.marginmf strange.csv", "nothing can be learned"),
    "fold-in": Command("fold-in m.marginmf new.csv", "user zoe", False),
    "an unknown item to explain": Command("explain m.marginmf --user u1 --item zz", "zz"),
    "features that say nothing": Command(
        "fold-in m.marginmf new.csv --users users.csv", "fitted without --users"
    ),
    "JSON after a blank line": Command("predict m.marginmf blank.jsonl", "u1,3,", False),
    "tune with thresholds of their own": Command(
        "labels tune songs.csv --labels 2 -m plst --try reg=1 --decision per-label",
        "--decision per-label",
        refused=False,
    ),
    "words for a positive level": Command(
        "fit words.csv -m ease --levels bad,good,great --set level=good --out e.marginmf",
        "give the number of the level",
    ),
    "words for a dataset": Command(
        "fit ratings.csv -m bias --levels bad,good --out e.marginmf", "none of the levels bad, good"
    ),
    "standard input": Command("predict m.marginmf -", "u1,3,", False, "user,item\nu1,3\n"),
    "an empty input": Command("predict m.marginmf -", "standard input", typed=""),
    "all models": Command(
        "compare ratings.csv --models all --splits 1 --max-iter 2 --factors 2", "bias", False
    ),
}
