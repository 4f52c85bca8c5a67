"""New users on MovieLens 1M: how accurate and how fast it is to fold them in without a refit.

Run by hand::

    python -m studies fold-in --threads 2       # a few minutes, most of them in the refits

Of 6,040 users 1,040 are new.  A model of the other 5,000 folds them in, and is compared on their
held-out ratings with a model that was fitted to everybody's.  Each section prints a Markdown table.
"""

from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np

from marginmf.metrics import normalised_mean_absolute_error
from marginmf.ratings import ALS, HMF, MMMF, PMMMF, BiasOnly
from studies.harness.commands import timed
from studies.harness.markdown import print_header, print_row
from studies.peers.methods import HMF_REG
from studies.peers.problems import load_table, split_strong

LEVELS = np.arange(1.0, 6.0)
REG_1M = HMF_REG["ml-1m"]["reg"]


def quickest(call: Any) -> tuple[Any, float]:
    """Return what a call returns, and the seconds of the quickest of three runs."""
    return min((timed(call) for _ in range(3)), key=lambda run: run[1])


def section_accuracy(args: Namespace) -> None:
    """NMAE of HMF on the new users' held-out ratings."""
    table = load_table("ml-1m")

    def fit(rows: Any) -> HMF:
        model = HMF(reg=REG_1M, random_state=0, n_jobs=args.threads)
        return model.fit(table.pairs[rows], table.ratings[rows])

    def error(model: HMF, rows: Any) -> float:
        predicted = model.predict(table.pairs[rows])
        return normalised_mean_absolute_error(table.ratings[rows], predicted, LEVELS)

    print_header("held out", "seed", "fold-in", "refit", "difference", "seconds")
    for held_out in (1, 5, 10):
        figures = []
        for seed in range(1, args.seeds + 1):
            train, new, test = split_strong(table, held_out, seed)
            model = fit(train)
            new_users = table.pairs[new], table.ratings[new]
            folded, seconds = quickest(lambda m=model, n=new_users: m.fold_in(*n))
            refitted = fit(np.concatenate([train, new]))
            errors = [error(m, test) for m in (folded, refitted)]
            figures.append((*errors, errors[0] - errors[1], seconds))
            print_row(held_out, seed, *figures[-1])
        print_row(held_out, "mean", *(float(mean) for mean in np.mean(figures, axis=0)))


def section_speed(args: Namespace) -> None:
    """Seconds, and how far a user's margins are from those of the user folded in alone."""
    table = load_table("ml-1m")
    train, new, _ = split_strong(table, 1, 1)
    new_users = table.pairs[new], table.ratings[new]
    chosen = np.random.default_rng(0).permutation(np.unique(table.pairs[train, 1]))[:500]
    of_items = train[np.isin(table.pairs[train, 1], chosen)]
    new_items = table.pairs[of_items] + np.array([0, 10_000]), table.ratings[of_items]
    common = {"random_state": 0, "n_jobs": args.threads}
    print_header("method", "1,040 users", "one user", "500 items", "update one user", "difference")
    margin = HMF(reg=REG_1M, **common), MMMF(reg=15, **common), PMMMF(reg=40, **common)
    for model in (*margin, ALS(reg=25, bias=True, **common), BiasOnly()):
        model.fit(table.pairs[train], table.ratings[train])
        folded, all_users = quickest(lambda m=model: m.fold_in(*new_users))
        _, items = quickest(lambda m=model: m.fold_in_items(*new_items))
        one_user, updates, differences = [], [], []
        for user in folded.users_.ids[:20]:
            mine = new_users[0][:, 0] == user
            own = new_users[0][mine], new_users[1][mine]
            alone, seconds = timed(lambda m=model, o=own: m.fold_in(*o))
            # PMMMF's margins are infinite for levels that a user never uses.
            margins = [np.nan_to_num(m.decision_function(own[0])) for m in (alone, folded)]
            one_user.append(seconds)
            differences.append(float(np.abs(margins[0] - margins[1]).max()))
            updates.append(timed(lambda m=model, o=own: m.update_users(*o))[1])
        medians = [float(np.median(one)) for one in (one_user, updates)]
        figures = all_users, medians[0], items, medians[1], f"{max(differences):.0e}"
        print_row(type(model).__name__, *figures)


SECTIONS = {"accuracy": section_accuracy, "speed": section_speed}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
