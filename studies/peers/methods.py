"""The methods that are measured: our settings and the peers'."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Method:
    """A setting of a library.

    Parameters
    ----------
    name : str
        As tables and pictures show it.
    peer : str
        Its environment; empty for ours, which run in the interpreter that runs the benchmark.
    adapter, kind : str
        The module in `studies.peers.adapters` (or a full name) and the class in it.
    options : mapping
        What the class is made with, besides the threads.
    by_data : mapping
        Further options that depend on the data set.
    threaded : bool
        Whether it can use more than one thread.
    warm_up : bool
        Whether to run it on a tiny part first.  Not for what fails when it is run twice.
    """

    name: str
    peer: str
    adapter: str
    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    by_data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    threaded: bool = True
    warm_up: bool = True

    @property
    def is_ours(self) -> bool:
        return not self.peer

    @property
    def module(self) -> str:
        return self.adapter if "." in self.adapter else f"studies.peers.adapters.{self.adapter}"

    def options_for(self, data: str) -> dict[str, Any]:
        return {**self.options, **self.by_data.get(data, {})}


#: Penalties that were found once by cross-validation, with 100 factors.
HMF_REG = {"ml-100k": {"reg": [6, 10, 17, 14]}, "ml-1m": {"reg": [10, 15, 24, 24]}}
MMMF_REG = {"ml-100k": {"reg": 15}, "ml-1m": {"reg": 25}}


#: A member for ensembles that are quick to make.
SMALL_MMMF = {"estimator": "MMMF", "n_factors": 32, "tol": 1e-3}

#: Ensembles built from who rated what, and from levels alone.
ENSEMBLES: dict[str, dict[str, Any]] = {
    "": {"calibrated": True},
    ", levels alone": {"calibrated": True, "implicit": None},
}

#: With 300 iterations a million ratings take it four minutes and more.
MYFM_ITERATIONS = {"ml-100k": {"n_iter": 300}, "ml-1m": {"n_iter": 100}}


def _ours(name: str, estimator: str, by_data: Any = None, **options: Any) -> Method:
    chosen = {"estimator": estimator, **options}
    return Method(name, "", "marginmf", "Estimator", chosen, by_data or {})


RATINGS = (
    _ours("BiasOnly", "BiasOnly"),
    *(_ours(f"HMF d={d}", "HMF", HMF_REG, n_factors=d) for d in (8, 16, 32, 100)),
    *(_ours(f"MMMF d={d}", "MMMF", MMMF_REG, n_factors=d, tol=1e-3) for d in (8, 100)),
    # With a distribution over the levels, learned on a tenth that is held out from a second fit.
    *(
        _ours(f"MMMF d={d}, calibrated", "MMMF", MMMF_REG, n_factors=d, tol=1e-3, calibrated=True)
        for d in (8, 32)
    ),
    _ours("HMF d=32, calibrated", "HMF", HMF_REG, n_factors=32, calibrated=True),
    # Built from who rated what.
    _ours(
        "MMMF d=32, raters, calibrated",
        "MMMF",
        {"ml-100k": {"reg": 25}, "ml-1m": {"reg": 40}},
        n_factors=32,
        tol=1e-3,
        implicit="both",
        calibrated=True,
    ),
    _ours("ALS", "ALS", bias=True, reg=25),
    _ours(
        "MarginEnsemble, 2 MMMF d=32",
        "MarginEnsemble",
        {data: {"member": {**SMALL_MMMF, **options}} for data, options in MMMF_REG.items()},
        n_estimators=2,
        calibrated=True,
    ),
    *(
        _ours(f"MarginEnsemble, {n}{name}", "MarginEnsemble", n_estimators=n, **options)
        for name, options in ENSEMBLES.items()
        for n in (2, 4, 10, 30)
    ),
    Method("Surprise SVD", "surprise", "surprise", "SVD", threaded=False),
    Method(
        "Surprise SVD, tuned",
        "surprise",
        "surprise",
        "SVD",
        {"n_factors": 100, "n_epochs": 60, "lr_all": 0.01, "reg_all": 0.1},
        threaded=False,
    ),
    Method("cmfrec", "cmfrec", "cmfrec", "CMF"),
    Method("cmfrec k=100", "cmfrec", "cmfrec", "CMF", {"k": 100}),
    Method(
        "cmfrec, tuned",
        "cmfrec",
        "cmfrec",
        "CMF",
        {"k": 100, "lambda_": 0.1, "scale_lam": True, "add_implicit_features": True},
    ),
    Method("LensKit item-kNN", "lenskit", "lenskit", "ItemKNN"),
    Method("LensKit biased MF", "lenskit", "lenskit", "BiasedMF"),
    Method("libmf", "libmf", "libmf", "MF", warm_up=False),
    Method(
        "libmf, tuned",
        "libmf",
        "libmf",
        "MF",
        {
            "k": 100,
            "nr_iters": 60,
            "eta": 0.05,
            **{"lambda_p1": 0.0, "lambda_q1": 0.0},  # its default has an L1 penalty
            **{"lambda_p2": 0.08, "lambda_q2": 0.08},
        },
        warm_up=False,
    ),
    Method("cornac MF k=10", "cornac", "cornac", "MF"),
    Method(
        "cornac MF k=100, tuned",
        "cornac",
        "cornac",
        "MF",
        {"k": 100, "max_iter": 100, "lambda_reg": 0.1},
    ),
    Method("myFM", "myfm", "myfm", "Regressor", {"rank": 16}, MYFM_ITERATIONS, threaded=False),
    Method(
        *("myFM ordered probit", "myfm", "myfm", "OrderedProbit"),
        {"rank": 16},
        MYFM_ITERATIONS,
        threaded=False,
    ),
    Method("Spark ALS", "pyspark", "pyspark", "ALS"),
)

#: A few iterations each: how good the lists are is not asked here, how quickly they come is.
SERVING = (
    Method("implicit ALS", "implicit", "implicit", "Server", {"factors": 100, "iterations": 3}),
    *(
        Method(name, "", "marginmf", "Server", {"estimator": estimator, **options})
        for name, estimator, options in (
            ("MMMF", "MMMF", {"reg": 15, "max_iter": 30}),
            ("HMF", "HMF", {"reg": [10, 15, 24, 24], "max_iter": 15}),
            ("PMMMF", "PMMMF", {"reg": 40, "max_iter": 20}),
            ("ALS", "ALS", {"reg": 25, "bias": True, "max_iter": 3}),
            ("BiasOnly", "BiasOnly", {}),
        )
    ),
    Method("cornac MF", "cornac", "cornac", "Server", {"k": 100, "max_iter": 3}),
    Method("cmfrec", "cmfrec", "cmfrec", "Server", {"k": 100, "niter": 3}),
    Method(
        "LensKit biased MF", "lenskit", "lenskit", "Server", {"embedding_size": 100, "epochs": 3}
    ),
    Method(
        "Surprise SVD",
        "surprise",
        "surprise",
        "Server",
        {"n_factors": 100, "n_epochs": 1},
        threaded=False,
    ),
)


def _label(name: str, classifier: str, **options: Any) -> Method:
    chosen = {"classifier": classifier, **options}
    return Method(name, "", "marginmf_labels", "Classifier", chosen)


GROPLE_SIGN = _label("GroPLE, sign", "GroPLE", decision="sign")
GROPLE = _label("GroPLE", "GroPLE")
MLCHMF_SIGN = _label("MLCHMF, sign", "MLCHMF", decision="sign")
MLCHMF = _label("MLCHMF", "MLCHMF")

LABELS = (
    Method("OneVsRest(LinearSVC)", "scikit-learn", "sklearn", "OneVsRest"),
    _label("BinaryRelevance, sign", "BinaryRelevance", decision="sign"),
    GROPLE_SIGN,
    GROPLE,
    MLCHMF_SIGN,
    _label("MLkNN, sign", "MLkNN", decision="sign"),
    *(
        Method(
            f"scikit-multilearn {classifier}",
            "scikit-multilearn",
            "skmultilearn",
            "Classifier",
            {"classifier": classifier, **options},
            threaded=False,
            # Its binary relevance cannot learn a label that nobody has, as in a tiny part.
            warm_up=classifier != "BinaryRelevance",
        )
        for classifier, options in (
            ("MLkNN", {"k": 10, "s": 1.0}),
            ("BRkNNaClassifier", {"k": 10}),
            ("BinaryRelevance", {}),
        )
    ),
)


def choose(
    methods: Iterable[Method], peers: Iterable[str], names: Iterable[str] | None = None
) -> list[Method]:
    """Return our methods and those of the peers asked for, by parts of their names if given."""
    peers, names = set(peers), [name.lower() for name in names or []]
    return [
        method
        for method in methods
        if (method.is_ours or "all" in peers or method.peer in peers)
        and (not names or any(name in method.name.lower() for name in names))
    ]
