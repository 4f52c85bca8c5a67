"""How good top-10 lists are, beside peers whose settings are chosen without the test ratings.

Run by hand, for example::

    python -m studies lists                                # an hour and more on one core
    python -m studies lists --data ml-100k --peers none    # ours alone
    python -m studies lists --again --methods EASE         # some again, the others as they were
    python -m studies lists --markdown                     # the tables

A random 80 % of the ratings are for training (seed 1).  Relevant is what a user has rated with 4
or more among the other 20 %; lists leave out what the user has rated in training.  A peer with
several settings is first measured with each on a split of the training ratings alone, made in the
same way; the one with the best nDCG@10 there is fitted to all training ratings and tested.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from marginmf.metrics import metric
from studies.harness import Cell, Store
from studies.harness.markdown import make_table, publish
from studies.peers import comparison
from studies.peers.bench import Record, Task, newest_records
from studies.peers.comparison import LEARNING, Row, format_number
from studies.peers.methods import Method, ours, peer
from studies.peers.problems import INNER_SPLIT, LIST_LENGTH, LIST_SPLIT, TITLES

SEED = 1
#: The columns; methods are chosen and sorted by the first.
MEASURES = ("ndcg", "precision", "recall", "map", "mrr", "coverage")
BEST = MEASURES[0]
#: Options that are part of a method's name rather than settings that were chosen.
FIXED = frozenset(
    ["estimator", "by", "model", "scorer", "feedback", "user_embeddings", "implicit", "level"]
)
NOTE = """\
Ratings are split 80/20 at random, seed 1; relevant is a held-out rating of 4 or more, also of an
item that training does not have.  Lists leave out what the user has rated in training.  Figures
are means over all users with something relevant: nDCG@10 with gains of 0 and 1, MAP@10 divided by
the number of relevant items, at most 10, and MRR of the first ten.  Coverage is the share of the
training items that are in any of these lists.

CPU seconds are those to prepare and fit, and to make the lists of all users, on one thread; wall
seconds are those of both together, on a machine that may have had other work.  "Best of n" are
settings chosen by nDCG@10 on an 80/20 split of the training ratings, the others are defaults.
`likes=True` means that a method learns from ratings of 4 and more alone, else from who rated what;
it is then asked for longer lists, and what the user has rated lower is left out of them, within
the seconds given.

Not measured: WMF of cornac, which needs TensorFlow; RecBole 1.2.1, which needs Ray 2.6.3 or older,
and that cannot be imported with NumPy 2 (`numpy.bool8`) nor without setuptools < 81."""


@dataclass(frozen=True)
class Family:
    """A method with the settings to choose from: one list for any data set, others for some."""

    method: Method
    settings: Sequence[Mapping[str, Any]] = ()
    by_data: Mapping[str, Sequence[Mapping[str, Any]]] | None = None

    def candidates(self, data: str) -> list[Method]:
        """Return the method once with each of its settings."""
        return [
            replace(
                self.method,
                name=f"{self.method.name} ({describe_settings(one)})",
                options={**self.method.options, **one},
                warm_up=False,  # seconds do not matter here
            )
            for one in (self.by_data or {}).get(data, self.settings)
        ]


def describe_settings(options: Mapping[str, Any]) -> str:
    """Return settings as Python writes arguments."""
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def grid(**values: Sequence[Any]) -> list[dict[str, Any]]:
    """Return all combinations.

    >>> grid(k=(1, 2), likes=(True,))
    [{'k': 1, 'likes': True}, {'k': 2, 'likes': True}]
    """
    return [dict(zip(values, one, strict=True)) for one in product(*values.values())]


def _ours(name: str, estimator: str, **options: Any) -> Family:
    return Family(ours(name, estimator, kind="Lists", **options))


def _peer(
    name: str,
    adapter: str,
    options: Mapping[str, Any],
    settings: Sequence[Mapping[str, Any]],
    large: Sequence[Mapping[str, Any]],
) -> Family:
    return Family(peer(name, adapter, "Lists", **options), settings, {"ml-1m": large})


BOTH, LIKES = (False, True), (True,)
NEIGHBOURS = grid(K=(20, 50, 100, 200, 500, 1000), likes=BOTH)
FEW_NEIGHBOURS = grid(K=(100, 300, 1000), likes=LIKES)
FAMILIES = (
    *(
        _ours(f'MarginEnsemble(), by="{by}"', "MarginEnsemble", by=by)
        for by in ("relevance", "chance", "expected")
    ),
    _ours('MMMF(implicit="both")', "MMMF", implicit="both"),
    *(_ours(f"{name}()", name) for name in ("HMF", "MMMF", "PMMMF", "ALS", "PMF", "BiasOnly")),
    *(
        family
        for name in ("OneClassMMMF", "EASE", "ItemKNN", "MostPopular")
        for family in (_ours(f"{name}()", name), _ours(f"{name}(level=4)", name, level=4.0))
    ),
    # The last settings are for MovieLens 1M, where a fit takes longer: a few, by what was good on
    # training ratings of MovieLens 100K.
    _peer(
        *("implicit ALS", "implicit", {"model": "als"}),
        grid(
            **{"factors": (16, 32, 64, 128), "regularization": (10, 30, 100)},
            **{"alpha": (1, 5, 20), "likes": BOTH},
        ),
        grid(factors=(64, 128), regularization=(30, 100, 300), alpha=(5, 20), likes=LIKES),
    ),
    _peer(
        *("implicit BPR", "implicit", {"model": "bpr"}),
        grid(
            **{"factors": (64, 128), "learning_rate": (0.003, 0.01, 0.03)},
            **{"regularization": (0.001, 0.01), "iterations": (30, 100), "likes": BOTH},
        ),
        grid(factors=(64,), learning_rate=(0.003, 0.01), iterations=(100,), likes=LIKES),
    ),
    *(
        _peer(f"implicit {name} item-kNN", "implicit", {"model": model}, NEIGHBOURS, FEW_NEIGHBOURS)
        for name, model in (("cosine", "cosine"), ("TF-IDF", "tfidf"))
    ),
    _peer(
        *("implicit BM25 item-kNN", "implicit", {"model": "bm25"}),
        grid(K=(200, 500, 1000), K1=(0.2, 0.5, 1.2), likes=BOTH),
        grid(K=(300, 1000), K1=(0.2, 0.5), likes=LIKES),
    ),
    _peer(
        *("LensKit ImplicitMF", "lenskit", {"scorer": "implicit-mf", "user_embeddings": "prefer"}),
        grid(embedding_size=(16, 32, 64), weight=(1, 3), regularization=(20, 60), likes=BOTH),
        grid(embedding_size=(64,), weight=(1,), regularization=(20, 60), likes=LIKES),
    ),
    _peer(
        *("LensKit item-kNN", "lenskit", {"scorer": "item-knn", "feedback": "implicit"}),
        grid(max_nbrs=(20, 50, 200), likes=BOTH),
        grid(max_nbrs=(50, 200), likes=LIKES),
    ),
    _peer(
        *("LensKit EASE", "lenskit", {"scorer": "ease"}),
        grid(regularization=(50, 150, 300, 600), likes=BOTH),
        grid(regularization=(300, 600, 1200), likes=LIKES),
    ),
    _peer(
        *("LensKit SLIM", "lenskit", {"scorer": "slim"}),
        grid(l1_reg=(0.2, 1), l2_reg=(50, 200, 500), likes=BOTH),
        grid(l1_reg=(1,), l2_reg=(200, 500), likes=LIKES),
    ),
    _peer(
        *("LensKit most popular", "lenskit", {"scorer": "popular"}),
        *(grid(likes=BOTH), grid(likes=BOTH)),
    ),
    _peer(
        *("cornac BPR", "cornac", {"model": "BPR"}),
        grid(
            **{"k": (64, 128), "learning_rate": (0.01,), "lambda_reg": (0.003, 0.01, 0.03)},
            **{"max_iter": (300, 600), "likes": BOTH},
        ),
        grid(k=(64,), learning_rate=(0.01,), lambda_reg=(0.01,), max_iter=(100, 300), likes=LIKES),
    ),
    _peer(
        *("cornac EASE", "cornac", {"model": "EASE"}),
        grid(lamb=(50, 150, 300, 600), posB=BOTH, likes=BOTH),
        grid(lamb=(300, 600, 1200), posB=(False,), likes=LIKES),
    ),
)


def add_arguments(parser: ArgumentParser) -> None:
    comparison.add_peer_arguments(parser, [family.method for family in FAMILIES], repeats=1)
    parser.add_argument("--data", nargs="+", default=list(TITLES), choices=TITLES)


def main(args: Namespace) -> None:
    store, machine = Store(args.out), []
    if not args.markdown:
        if args.quick:
            args.data = ["ml-100k"]
        wanted = comparison.choose_methods([family.method for family in FAMILIES], args)
        families = [family for family in FAMILIES if family.method in wanted]
        for data in args.data:
            threads, task = args.threads[0], Task("lists", data, INNER_SPLIT)
            every = (one for family in families for one in family.candidates(data))
            tuning = [task.cell(one, threads, SEED) for one in every]
            tried = comparison.measure(args, store, tuning)
            tried += comparison.measure(args, store, settled_cells(families, data, threads, tried))
        made = f"Made by `python -m studies lists --data {' '.join(args.data)}`."
        machine = [f"{made} {comparison.describe_machine(tried)}"]
    publish(args.out / "lists.md", [*tables(newest_records(store, "lists")), *machine])


def settled_cells(
    families: Iterable[Family], data: str, threads: int, records: Iterable[Record]
) -> Iterator[Cell]:
    """Yield every family with its best setting, or the first where all have failed."""
    found = {
        one["method"]: one["errors"][BEST]
        for one in records
        if (one["data"], one["split"]) == (data, INNER_SPLIT) and "error" not in one
    }
    for family in families:
        method, candidates = family.method, family.candidates(data)
        if candidates:
            best = max(candidates, key=lambda one: found.get(one.name, -1.0))
            method = replace(method, options=best.options)
        yield Task("lists", data, LIST_SPLIT).cell(method, threads, SEED)


def tables(records: Iterable[Record]) -> list[str]:
    """Return a table for each data set that has been measured, and what the columns mean."""
    rows = comparison.summarise(one for one in records if one["split"] == LIST_SPLIT)
    parts = []
    for data, title in TITLES.items():
        n_settings = {one.method.name: len(one.candidates(data)) for one in FAMILIES}
        own = [row for row in rows if row.data == data]
        if own:
            parts.append(f"## {title}\n\n{quality_table(own, n_settings)}")
    return [*parts, NOTE]


def quality_table(rows: Iterable[Row], n_settings: Mapping[str, int]) -> str:
    """Return a line for each method, the best first; then the reasons of those that failed."""
    titles = [metric(name, "lists").title(LIST_LENGTH) for name in MEASURES]
    heads = ["method", *titles, "fit CPU s", "lists CPU s", "wall s", "settings"]
    lines, notes = [], []
    for row in sorted(rows, key=lambda row: -(row.error(BEST) or 0.0)):
        if not row.n:
            notes.append(f"- {row.method} is not measured: {row.reason}.")
            continue
        options = {k: v for k, v in row.records[0]["options"].items() if k not in FIXED}
        n = n_settings.get(row.method, 0)
        chosen = f"best of {n}: {describe_settings(options)}" if n else "default"
        costs = [row.seconds("cpu", *LEARNING), row.seconds("cpu", "answer")]
        costs.append(row.seconds("wall", *LEARNING, "answer"))
        errors = (format_number(row.error(name)) for name in MEASURES)
        lines.append([row.method, *errors, *map(str, costs), chosen])
    return "\n".join([make_table(heads, lines), *([""] if notes else []), *notes])
