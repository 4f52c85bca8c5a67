"""What cells measure: errors, times and objectives of ratings methods, and label methods."""

import json
import time
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, ParameterGrid

from marginmf.datasets import (
    LabelsTable,
    RatingsTable,
    load_labels,
    load_ratings,
    make_matrix,
    make_ratings,
)
from marginmf.metrics import labels_report, ratings_report, zero_one_error
from marginmf.protocols import HoldOut, StrongGeneralisation, WeakGeneralisation
from marginmf.ratings import ALS, BMMMF, HMF, MMMF, PMF, PMMMF, BiasOnly, MarginEnsemble, Ratings
from marginmf.solvers import LBFGS
from studies.harness.cell import Values
from studies.thesis.label_trials import LABEL_METHODS, LabelTrial, make_label_method
from studies.thesis.penalties import (
    choose_strengths,
    fit_into_band,
    measure_recovery,
    with_strengths,
)
from studies.thesis.published import worked_example
from studies.thesis.systems import SYSTEMS, make_system, measure_system, read_rows

#: A name, or a recipe: the arguments of `make_ratings` or, with a ``noise``, of
#: `make_quantised_ratings`.  Its ``seed`` is the random state.
Data = str | Mapping[str, Any]

#: Methods by the names that the thesis and the report give them.
RATING_METHODS: Mapping[str, Any] = {
    "ALS": ALS,
    "BMMMF": BMMMF,
    "Biases": BiasOnly,
    "E-MMMF": MarginEnsemble,
    "HMF": HMF,
    "MMMF": MMMF,
    "Margin ensemble": MarginEnsemble,
    "PHMF": HMF,
    "PMF": PMF,
    "PMMMF": PMMMF,
}
#: Splits of a data set are numbered; their seeds begin here.
FIRST_SEED = 1
#: How common one to five stars are on MovieLens 100K.
SHARES = (0.06, 0.11, 0.27, 0.34, 0.22)
N_LEVELS = 5


def load_table(data: Data) -> RatingsTable:
    """Return ratings by name or recipe, made or loaded once in a process."""
    return _load_table(json.dumps(data, sort_keys=True))


@cache
def _load_table(written: str) -> RatingsTable:
    data = json.loads(written)
    if isinstance(data, str):
        return load_ratings(data, progress=False)
    recipe = dict(data)
    make = make_quantised_ratings if "noise" in recipe else make_ratings
    return make(random_state=recipe.pop("seed"), **recipe)


@cache
def load_label_table(name: str) -> LabelsTable:
    return load_labels(name, progress=False)


def make_recipe(
    size: int, n_factors: int, observed: float, seed: int, noise: float | None = None
) -> dict[str, Any]:
    """Return the recipe of a square matrix of five levels."""
    recipe = {"n_users": size, "n_items": size, "n_factors": n_factors, "observed": observed}
    return {**recipe, "seed": seed, **({} if noise is None else {"noise": noise})}


def make_quantised_ratings(
    n_users: int, n_items: int, *, n_factors: int, observed: float, noise: float, random_state: int
) -> RatingsTable:
    """Make ratings by quantising the product of normal factors to levels as common as `SHARES`.

    Unlike those of `make_ratings`, scores lie anywhere between the levels.  The standard deviation
    of the noise is in units of that of the scores.
    """
    generator = np.random.default_rng(random_state)
    users = generator.normal(size=(n_users, n_factors))
    items = generator.normal(size=(n_items, n_factors))
    scores = users @ items.T / np.sqrt(n_factors)
    scores = scores + noise * generator.normal(size=(n_users, n_items))
    levels = 1 + np.digitize(scores, np.quantile(scores, np.cumsum(SHARES)[:-1]))
    n_observed = max(1, round(observed * levels.size))
    entries = np.sort(generator.choice(levels.size, n_observed, replace=False))
    rows, columns = np.divmod(entries, n_items)
    return RatingsTable("synthetic", rows, columns, levels[rows, columns].astype(np.float64))


def make_method(name: str, params: Mapping[str, Any], n_jobs: int = 1) -> Any:
    """Return an unfitted method with a fixed seed."""
    if name in LABEL_METHODS:
        return make_label_method(name, params, n_jobs)
    if name in SYSTEMS:
        return make_system(name, params, n_jobs)
    method = RATING_METHODS[name](**params)
    known, fixed = method.get_params(), {}
    if "calibrate" in known and "n_factors" in known:
        # As in the thesis: its own rule, which needs no probabilities, and its rank.
        fixed = {"calibrate": False, "n_factors": 100}
    elif isinstance(method, MarginEnsemble):
        # From levels alone, as all others in these tables.
        fixed = {"implicit": None, "n_estimators": 30}
    method.set_params(**{key: value for key, value in fixed.items() if key not in params})
    if "random_state" in known:
        method.set_params(random_state=0, n_jobs=n_jobs)
    return method


def split_rows(table: RatingsTable, protocol: Mapping[str, Any], split: int) -> tuple[Any, ...]:
    """Return the rows to train on, to fold in (only where users are new) and to test on.

    ``{"name": "weak"}`` holds out one rating of every user; ``{"name": "strong", ...}`` some users
    whole, with the arguments of `StrongGeneralisation`; ``{"name": "share", "train": 0.8}`` all but
    a random share.
    """
    given = {**protocol, "n_splits": 1, "random_state": FIRST_SEED + split}
    if "train" in given:
        given["test_size"] = 1 - given.pop("train")
    splitters = {"strong": StrongGeneralisation, "weak": WeakGeneralisation, "share": HoldOut}
    return next(splitters[given.pop("name")](**given).split(table.pairs))


def rating_errors(
    data: Data,
    protocol: Mapping[str, Any],
    split: int,
    method: str,
    params: Mapping[str, Any],
    band: Mapping[str, Any] | None = None,
    base: str | None = None,
    scale: float = 1.0,
) -> Values:
    """Return the errors on held-out ratings and on those learned from.

    With a ``band``, such as ``{"measure": "mae", "low": 0.07, "high": 0.09}``, the regularisation
    strength is the one that brings the training error into the band, as chapters 3 and 4 of the
    thesis compare methods.  With the base ``"auto"`` strengths, one for each stage, are multiples
    of those chosen on held-out training ratings: ``scale`` times as much, or what the band asks.
    """
    table = load_table(data)
    train, *fold_in, test = split_rows(table, protocol, split)
    ratings, pairs, levels = table.ratings, table.pairs, table.levels
    known = read_rows(table, train)
    estimator = make_method(method, params)

    def training_errors(model: Any) -> dict[str, float]:
        return ratings_report(ratings[train], model.predict(pairs[train], output="rule"), levels)

    begin = time.perf_counter()
    chosen = None if base is None else choose_strengths(estimator, known)
    if band is not None:
        limits, name = (band["low"], band["high"]), band["measure"]
        model = fit_into_band(
            estimator, known, lambda one: training_errors(one)[name], *limits, chosen
        )
    elif chosen is not None:
        model = with_strengths(estimator, scale * chosen).fit(known)
    else:
        model = clone(estimator).fit(known)
    seconds = time.perf_counter() - begin
    tested = model.fold_in(pairs[fold_in[0]], ratings[fold_in[0]]) if fold_in else model
    return {
        "test": ratings_report(ratings[test], tested.predict(pairs[test], output="rule"), levels),
        "train": training_errors(model),
        "n_test": len(test),
        "fit_seconds": seconds,
        **describe_fit(model),
    }


def system_errors(
    data: Data,
    protocol: Mapping[str, Any],
    split: int,
    method: str,
    params: Mapping[str, Any],
    draws: int = 1,
) -> Values:
    """Return the errors on held-out ratings by a system's own rule, with their standard error.

    Where users are new, each of the ``draws`` holds out another rating of each, and the model that
    was learned once folds them in from their others.  The first draw is that of `rating_errors`.
    """
    table = load_table(data)
    rows = split_rows(table, protocol, split)
    made, seed = make_method(method, params), FIRST_SEED + split
    model, found = measure_system(made, table, rows, draws, seed)
    return {**found, **describe_fit(model)}


def candidate_error(
    data: Data,
    n_splits: int,
    held_out: int,
    method: str,
    params: Mapping[str, Any],
    protocol: Mapping[str, Any] | None = None,
    protocols: Sequence[Mapping[str, Any]] = (),
) -> Values:
    """Return the errors on ratings that all splits of a protocol, or of several, train on.

    They are divided again: so many ratings of every user are held out.
    """
    table = load_table(data)
    every = protocols if protocol is None else (protocol,)
    rows = candidate_rows(table, every, n_splits, held_out)
    model, found = measure_system(make_method(method, params), table, rows, 1, 0)
    return {**found, "n_train": len(rows[0]), **describe_fit(model)}


def candidate_rows(
    table: RatingsTable, protocols: Sequence[Mapping[str, Any]], n_splits: int, held_out: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that candidates learn from, and those that they are compared on."""
    points = product(protocols, range(n_splits))
    rows = reduce(np.intersect1d, (split_rows(table, *point)[0] for point in points))
    weak = WeakGeneralisation(n_splits=1, random_state=0, held_out=held_out)
    train, test = (rows[own] for own in next(weak.split(table.pairs[rows])))
    return train, test


def recovery(
    data: Data,
    share: float,
    split: int,
    method: str,
    params: Mapping[str, Any],
    regs: Sequence[float],
) -> Values:
    """Return how well a whole matrix is recovered from a share of it; see `measure_recovery`."""
    table = load_table(data)
    train, test = split_rows(table, {"name": "share", "train": share}, split)
    rows = {"train": train, "test": test}
    return measure_recovery(table, rows, make_method(method, params), regs)


class TimedLBFGS:
    """The solver of ratings, which adds up the seconds that gradients take."""

    seconds = 0.0

    def steps(self, objective: Any, start: Any, vectors: Any) -> Any:
        return LBFGS(memory=1).steps(TimedObjective(objective, self), start, vectors)


class TimedObjective:
    def __init__(self, objective: Any, total: TimedLBFGS) -> None:
        self.objective, self.total = objective, total

    def __call__(self, point: Any) -> tuple[float, Any]:
        begin = time.perf_counter()
        found = self.objective(point)
        self.total.seconds += time.perf_counter() - begin
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.objective, name)


def fit_time(
    data: Data,
    method: str,
    params: Mapping[str, Any],
    repetition: int,
    n_jobs: int = 1,
    gradients: bool = False,
) -> Values:
    """Return how long one fit to all the ratings takes, imports and compilation apart.

    With ``gradients``, also how much of that are evaluations of the objective and its gradient.
    """
    table = load_table(data)
    known = Ratings.of(table.pairs, table.ratings)
    few = Ratings.of(table.pairs[:2000], table.ratings[:2000], levels=table.levels)
    make_method(method, params, n_jobs).fit(few)
    timed = TimedLBFGS()
    unfitted = make_method(method, {**params, **({"solver": timed} if gradients else {})}, n_jobs)
    begin, cpu = time.perf_counter(), time.process_time()
    model = unfitted.fit(known)
    return {
        "fit_seconds": time.perf_counter() - begin,
        "cpu_seconds": time.process_time() - cpu,
        **({"gradient_seconds": timed.seconds} if gradients else {}),
        **describe_fit(model),
    }


def describe_fit(model: Any) -> Values:
    """Return what a fit has chosen and how much work it was."""
    reg = {"reg": np.round(model.reg_, 6).tolist()} if hasattr(model, "reg_") else {}
    n_gradients = getattr(model, "n_evaluations_", None)
    return reg if n_gradients is None else {**reg, "gradients": int(n_gradients)}


def stage_error(data: Data, split: int, stage: int, n_factors: int, reg: float) -> Values:
    """Hold out one rating of every user, learn "above level `stage`" from the rest, and test."""
    table = load_table(data)
    train, test = split_rows(table, {"name": "weak"}, split)
    above = (table.ratings > table.levels[stage - 1]).astype(float)
    model = make_method("BMMMF", {"n_factors": n_factors, "reg": reg, "tol": 2e-3})
    model.fit(table.pairs[train], above[train])
    error = zero_one_error(above[test], model.predict(table.pairs[test], output="rule"))
    return {"zero_one": error, "n_test": len(test), **describe_fit(model)}


def convergence(
    example: str, method: str, solver: str, start: int, params: dict[str, Any]
) -> Values:
    """Return the objective after every iteration on a worked example, from one random start."""
    Y = np.array(worked_example(example)["Y"], float)
    users, items = np.nonzero(Y)
    model = make_method(method, {"solver": solver, **params}).set_params(random_state=start)
    model.fit(np.column_stack([users, items]), Y[users, items])
    return {"objective": [float(record.objective) for record in model.history_]}


def user_view(
    method: str, n_users: int, n_items: int, counts: Sequence[int], reg: float, seed: int
) -> Values:
    """Return one user's hyperplanes among the items that the user has rated, in two dimensions.

    The matrix is made from two factors; ``counts`` says how many ratings of each level are observed
    of every user (all of them where there are fewer).  The seed is that of the matrix, of the
    choice of the ratings, and of the start.
    """
    matrix = make_matrix(n_users, n_items, n_factors=2, random_state=seed)
    users, items = observe_counts(matrix.ratings, counts, np.random.default_rng(seed))
    stars = matrix.ratings[users, items].astype(float)
    levels = np.arange(1.0, N_LEVELS + 1)
    data = Ratings.of(np.column_stack([users, items]), stars, levels=levels)
    model = make_method(method, {"n_factors": 2, "reg": reg, "max_iter": 500, "tol": 1e-6})
    model.set_params(random_state=seed).fit(data)
    # The user with most levels, and of those the one whose rarest has the most ratings.
    found = np.zeros((data.n_users, N_LEVELS), int)
    np.add.at(found, (data.rows, data.codes), 1)
    user = int(np.lexsort((found.min(axis=1), (found > 0).sum(axis=1)))[-1])
    own = data.rows == user
    pairs = np.column_stack([data.users.ids[data.rows[own]], data.items.ids[data.indices[own]]])
    lines = [f"{name}_" for name in ("thresholds", "prototypes", "boundaries")]
    known = {name[:-1]: getattr(model, name) for name in lines if hasattr(model, name)}
    return {
        "direction": _round(model.user_factors_[user]),
        "points": _round(model.item_factors_[data.indices[own]]),
        "ratings": data.values[own].tolist(),
        **{name: _round(of_users[user]) for name, of_users in known.items()},
        "counts": found[user].tolist(),
        "right": float((model.predict(pairs, output="rule") == data.values[own]).mean()),
    }


def observe_counts(
    ratings: np.ndarray, counts: Sequence[int], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of random entries: of each level in every row, at most its count."""
    users, items = [], []
    for user, row in enumerate(ratings):
        for level, count in enumerate(counts, 1):
            items.append(rng.permutation(np.flatnonzero(row == level))[:count])
            users.append(np.full(len(items[-1]), user))
    return np.concatenate(users), np.concatenate(items)


def _round(values: np.ndarray) -> list[float]:
    return np.round(np.asarray(values, float), 4).tolist()


def label_measures(
    data: str,
    protocol: Mapping[str, Any],
    split: int,
    method: str,
    params: Mapping[str, Any],
    rule: Mapping[str, Any],
    search: Sequence[Mapping[str, Sequence[Any]]] = (),
    targets: Sequence[str] = ("accuracy",),
) -> Values:
    """Return six measures of a method on the rows of one fold (see `split_label_rows`).

    ``rule`` has the parameters of the decision rule; without any, the method's own.  All candidates
    of the grids in ``search`` are tried by three-fold cross-validation inside the training rows.
    Where they have ``features``, dense features are tried ``"scaled"`` to [0, 1] and ``"raw"``;
    otherwise dense ones are scaled.  Candidates, and thresholds if any, are chosen for the first of
    the ``targets``; what is chosen for the others is under ``for``.
    """
    table = load_label_table(data)
    train, test = split_label_rows(table.n_samples, protocol, split)
    trial = LabelTrial(method, params, rule, table.X[train], table.Y[train], table.X[test])
    begin = time.perf_counter()
    candidates = list(ParameterGrid(list(search))) if search else [{}]
    if rule.get("decision") == "sign" and len(candidates) > 1:
        fitted = trial.choose_by_sign(candidates, targets)
    elif rule and search:
        fitted = {target: trial.choose_with_threshold(candidates, target) for target in targets}
    else:
        fitted = {targets[0]: trial.fit(candidates[0])}
    seconds = time.perf_counter() - begin
    found = {
        target: {
            **labels_report(table.Y[test], one.model.predict(one.X_test)),
            "chosen": one.candidate,
        }
        for target, one in fitted.items()
    }
    first = found.pop(targets[0])
    others = {"for": found} if found else {}
    return {**first, "fit_seconds": seconds, "n_test": len(test), **others}


def split_label_rows(n_rows: int, protocol: Mapping[str, Any], split: int) -> tuple[Any, Any]:
    """Return the rows to train on and to test on.

    ``{"folds": 10}``: the fold of that number.  ``{"test": 0.1, "train": 0.4}``: a random tenth for
    the test, and of the others a share, which for larger shares holds all of a smaller one.
    """
    if "folds" in protocol:
        folds = KFold(protocol["folds"], shuffle=True, random_state=0).split(np.arange(n_rows))
        return list(folds)[split]
    order = np.random.default_rng(split).permutation(n_rows)
    n_test = round(protocol["test"] * n_rows)
    n_train = round(protocol["train"] * (n_rows - n_test))
    return np.sort(order[n_test : n_test + n_train]), np.sort(order[:n_test])


def group_pattern(data: str, params: Mapping[str, Any]) -> Values:
    """Return the factors of all labels that GroPLE finds, and the group of each label."""
    table = load_label_table(data)
    model = make_method("GroPLE", params).fit(table.X, table.Y)
    return {"factors": _round(model.label_factors_), "groups": model.label_groups_.tolist()}
