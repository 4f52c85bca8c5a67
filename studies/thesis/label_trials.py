"""Label methods by name, and the choice of their parameters inside the training rows of a fold."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.model_selection import KFold
from sklearn.preprocessing import MinMaxScaler

from marginmf import labels
from marginmf.metrics import labels_report, metric

#: Classes in `marginmf.labels` by the names of the thesis and the report; they
#: are looked up when a cell is measured.
LABEL_METHODS: Mapping[str, str] = {
    "AdaBoost.MH": "AdaBoostMH",
    "AdaBoost.MR": "AdaBoostMR",
    "BP-MLL": "BPMLL",
    "BSVM": "BinaryRelevance",
    "CC": "ClassifierChains",
    "CLR": "CLR",
    "CPLST": "CPLST",
    "CSSP": "CSSP",
    "Ensemble": "LabelEnsemble",
    "FAiE": "FaIE",
    "GroPLE": "GroPLE",
    "Kernel": "KernelEmbedding",
    "LEML": "LEML",
    "LIFT": "LIFT",
    "LLSF": "LLSF",
    "LP": "LabelPowerset",
    "ML-DT": "MLDT",
    "ML-kNN": "MLkNN",
    "MLC-HMF": "MLCHMF",
    "MLSF": "MLSF",
    "PLST": "PLST",
    "RAkEL": "RAkEL",
    "Ridge": "RidgeEmbedding",
    "SSJDR-MLL": "SSJDR",
}
#: What the thesis has and the library not by default.
THESIS_DEFAULTS: Mapping[str, Mapping[str, Any]] = {"MLC-HMF": {"max_depth": 5}}


def has_label_method(name: str) -> bool:
    """Return whether the library has a method."""
    return hasattr(labels, LABEL_METHODS[name])


def make_label_method(name: str, params: Mapping[str, Any], n_jobs: int = 1) -> Any:
    """Return an unfitted method with a fixed seed; raise ValueError if there is no such method."""
    if not has_label_method(name):
        raise ValueError(f"marginmf.labels has no {LABEL_METHODS[name]}, so {name} cannot be run.")
    method = getattr(labels, LABEL_METHODS[name])(**{**THESIS_DEFAULTS.get(name, {}), **params})
    known, fixed = method.get_params(), {"random_state": 0, "n_jobs": n_jobs}
    return method.set_params(**{key: one for key, one in fixed.items() if key in known})


class FittedCandidate(NamedTuple):
    """A model, the features of the test in its form, and the candidate that it was made from."""

    model: Any
    X_test: Any
    candidate: dict[str, Any]


@dataclass(frozen=True, eq=False)
class LabelTrial:
    """A method on the training rows of one fold."""

    method: str
    params: Mapping[str, Any]
    rule: Mapping[str, Any]
    X: Any
    Y: Any
    X_test: Any
    _scaled: list[tuple[Any, Any]] = field(default_factory=list)

    def features(self, form: str) -> tuple[Any, Any]:
        """Return features to learn from and to test on; sparse ones have one form alone."""
        if issparse(self.X) or form == "raw":
            return self.X, self.X_test
        if not self._scaled:
            scaler = MinMaxScaler().fit(self.X)
            self._scaled.append((scaler.transform(self.X), scaler.transform(self.X_test)))
        return self._scaled[0]

    def make(self, candidate: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        """Return an unfitted method, and both kinds of features."""
        given = {name: one for name, one in candidate.items() if name != "features"}
        # Rows without labels keep none, unless a rule says otherwise.
        rule = {"top1_if_empty": False, **self.rule} if self.rule else {}
        method = make_label_method(self.method, {**self.params, **given, **rule})
        return method, *self.features(candidate.get("features", "scaled"))

    def fit(self, candidate: Mapping[str, Any]) -> FittedCandidate:
        method, X, X_test = self.make(candidate)
        return FittedCandidate(method.fit(X, self.Y), X_test, dict(candidate))

    def choose_by_sign(
        self, candidates: Sequence[Mapping[str, Any]], targets: Sequence[str]
    ) -> dict[str, FittedCandidate]:
        """Return the best candidate for every target, all from the same predictions.

        After every fold only the best third for some target go on, at least three of each.
        """
        alive, truth = range(len(candidates)), []
        predicted: list[list[Any]] = [[] for _ in candidates]
        n_kept = max(3, math.ceil(len(candidates) / 3))
        ranked: dict[str, list[int]] = {}
        for train, held in KFold(3, shuffle=True, random_state=0).split(np.arange(self.Y.shape[0])):
            truth.append(self.Y[held])
            for k in alive:
                method, X, _ = self.make(candidates[k])
                predicted[k].append(method.fit(X[train], self.Y[train]).predict(X[held]))
            reports = {k: labels_report(vstack(truth), vstack(predicted[k])) for k in alive}
            ranked = {target: rank_reports(reports, target) for target in targets}
            alive = sorted({k for order in ranked.values() for k in order[:n_kept]})
        best = {target: order[0] for target, order in ranked.items()}
        fitted = {k: self.fit(candidates[k]) for k in set(best.values())}
        return {target: fitted[k] for target, k in best.items()}

    def choose_with_threshold(
        self, candidates: Sequence[Mapping[str, Any]], target: str
    ) -> FittedCandidate:
        """Return the best candidate for a target, with thresholds chosen on the same folds."""
        found: list[tuple[float, FittedCandidate]] = []
        rule = {"top1_if_empty": False, **self.rule, "tune_for": target}
        forms = dict.fromkeys(one.get("features", "scaled") for one in candidates)
        for form in forms:
            own = [one for one in candidates if one.get("features", "scaled") == form]
            grid = [{k: [v] for k, v in one.items() if k != "features"} for one in own]
            X, X_test = self.features(form)
            base = make_label_method(self.method, self.params)
            model = labels.DecisionTuned(base, grid, **rule).fit(X, self.Y)
            best = int(np.argmax(model.cv_values_))
            found.append((model.cv_values_[best], FittedCandidate(model, X_test, dict(own[best]))))
        return max(found, key=lambda pair: pair[0])[1]


def rank_reports(reports: Mapping[int, Mapping[str, float]], target: str) -> list[int]:
    """Return the candidates from best to worst; of equal ones, the first is better."""
    sign = -1.0 if metric(target).higher_is_better else 1.0
    return sorted(reports, key=lambda k: (sign * reports[k][target], k))
