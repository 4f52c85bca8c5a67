"""Label data and models that the tests of persistence share: every estimator, small and quick."""

import numpy as np
from scipy.sparse import csr_array
from sklearn.cluster import AgglomerativeClustering, BisectingKMeans
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from marginmf.labels import (
    BPMLL,
    CLR,
    CPLST,
    CSSP,
    LEML,
    LIFT,
    LLSF,
    MLCHMF,
    MLDT,
    MLSF,
    PLST,
    SSJDR,
    AdaBoostMH,
    AdaBoostMR,
    BinaryRelevance,
    ClassifierChains,
    DecisionTuned,
    FaIE,
    GroPLE,
    KernelEmbedding,
    KernelFeatures,
    LabelEnsemble,
    LabelPowerset,
    MLkNN,
    RAkEL,
    RidgeEmbedding,
    Scaled,
)
from marginmf.solvers import LBFGS

#: Linear classifiers of one label, which BinaryRelevance and DecisionTuned may be built on.
SVM = LinearSVC(C=0.5, class_weight={0: 1.0, 1: 2.0})


def labelled(n_samples=40, n_features=7, n_labels=5, seed=0):
    """Features with zeros, and labels of which one is never there and one always."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.2, 1.0, (n_samples, n_features)) * (rng.random((n_samples, n_features)) < 0.6)
    scores = X @ rng.normal(size=(n_features, n_labels))
    Y = (scores > np.median(scores, axis=0)).astype(int)
    Y[:, 1], Y[:, 3] = 0, 1
    return X, Y


def estimators():
    """Return one of each kind of state, unfitted, by name."""
    fast = {"max_iter": 5, "random_state": 0}
    return {
        "mlchmf": MLCHMF(2, 0.5, max_depth=2, **fast),
        "mlchmf one node": MLCHMF(2, max_depth=0, loss="logistic", vote="soft", **fast),
        "mlchmf splitter": MLCHMF(
            2, splitter=BisectingKMeans(2), solver=LBFGS(3), max_iter=3, random_state=1
        ),
        "grople": GroPLE(3, 2, random_state=0),
        "grople clusterer": GroPLE(3, grouping=AgglomerativeClustering(2), decision="per_label"),
        "relevance": BinaryRelevance(),
        "relevance svm": BinaryRelevance(SVM, top1_if_empty=True),
        "relevance logistic": BinaryRelevance(LogisticRegression(C=2.0)),
        "relevance neighbours": BinaryRelevance(MLkNN(2)),
        "chains": ClassifierChains(decision="sign"),
        "chains random": ClassifierChains(order="random", n_chains=2, random_state=0),
        "chains neighbours": ClassifierChains(MLkNN(2)),
        "rakel": RAkEL(2, 2, soft=False, random_state=0),
        "rakel neighbours": RAkEL(2, 2, MLkNN(2), random_state=0, cv=2),
        "powerset": LabelPowerset(SVM),
        "clr": CLR(cv=2),
        "clr neighbours": CLR(MLkNN(2), decision="sign"),
        "tree": MLDT(random_state=0),
        "forest": MLDT(3, max_features=0.5, bootstrap=True, random_state=0),
        "kernel": KernelEmbedding(decision="jaccard"),
        "kernel features": KernelFeatures(RidgeEmbedding(0.1), 8),
        "ensemble": LabelEnsemble((RidgeEmbedding(0.1), MLkNN(2)), decision="f1"),
        "mlknn": MLkNN(3, tune_for="hamming"),
        "adaboost mh": AdaBoostMH(5),
        "adaboost mr": AdaBoostMR(5, n_bins=4),
        "bpmll": BPMLL(3, 2, random_state=0),
        "lift": LIFT(0.2, decision="sign", random_state=0),
        "lift neighbours": LIFT(0.2, MLkNN(2), random_state=0),
        "mlsf": MLSF(2, gamma=0.1, decision="sign", random_state=0),
        "mlsf neighbours": MLSF(2, estimator=MLkNN(2), random_state=0),
        "plst": PLST(2),
        "cplst": CPLST(2, cv=2),
        "cssp": CSSP(2, random_state=0),
        "faie": FaIE(0.5, 10.0),
        "leml": LEML(2, fit_intercept=True, random_state=0),
        "llsf": LLSF(normalize_rows=True, decision="per_label"),
        "llsf refit": LLSF(beta=1.0, refit=True, decision="sign"),
        "ridge": RidgeEmbedding(2.0),
        "ssjdr": SSJDR(2, n_neighbors=3, **fast),
        "scaled": Scaled(MLkNN(3)),
        "tuned ridge": DecisionTuned(RidgeClassifier(), param_grid={"alpha": [1.0, 9.0]}),
        "tuned svm": DecisionTuned(OneVsRestClassifier(SVM)),
        "tuned sgd": DecisionTuned(OneVsRestClassifier(SGDClassifier(random_state=0))),
        "tuned plst": DecisionTuned(PLST(2), param_grid=[{"reg": [1.0]}, {"n_factors": [1]}]),
    }


def fitted_labels(name):
    """Return one of the models whose files are tampered with."""
    X, Y = labelled()
    target = np.array(["b", "a"], object)[Y[:, 0]] if name == "ridge" else Y
    return estimators()[name].fit(csr_array(X) if name == "mlknn" else X, target)


#: Together they have every kind of state.
FITTED = (
    "mlchmf",
    "mlchmf one node",
    "grople",
    "relevance neighbours",
    "chains",
    "chains neighbours",
    "rakel",
    "rakel neighbours",
    "clr",
    "forest",
    "kernel",
    "ensemble",
    "mlknn",
    "cssp",
    "leml",
    "llsf",
    "adaboost mr",
    "bpmll",
    "lift",
    "lift neighbours",
    "mlsf",
    "ridge",
    "ssjdr",
    "scaled",
    "tuned ridge",
    "tuned svm",
)
