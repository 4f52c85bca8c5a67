"""The methods that are measured: our settings and the peers'."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Method:
    #: As tables and pictures show it.
    name: str
    #: Its environment; empty for ours, which run in the interpreter that runs the study.
    peer: str
    #: The module in `studies.peers.adapters` (or a full name) and the class in it.
    adapter: str
    kind: str
    #: What the class is made with, besides the threads.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Further options that depend on the data set.
    by_data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Whether it can use more than one thread.
    threaded: bool = True
    #: Whether to run it on a tiny part first.  Not for what fails when it is run twice.
    warm_up: bool = True

    @property
    def is_ours(self) -> bool:
        return not self.peer

    @property
    def module(self) -> str:
        return self.adapter if "." in self.adapter else f"studies.peers.adapters.{self.adapter}"


#: Adapters whose environment has another name, that cannot use threads, or fail when run twice.
ENVIRONMENT_OF = {"sklearn": "scikit-learn", "skmultilearn": "scikit-multilearn"}
UNTHREADED = frozenset({"surprise", "myfm", "skmultilearn"})
UNREPEATABLE = frozenset({"libmf"})


def ours(
    name: str, estimator: str, by_data: Any = None, *, kind: str = "Estimator", **options: Any
) -> Method:
    return Method(name, "", "marginmf", kind, {"estimator": estimator, **options}, by_data or {})


def peer(name: str, adapter: str, kind: str, by_data: Any = None, **options: Any) -> Method:
    environment = ENVIRONMENT_OF.get(adapter, adapter)
    repeatable = adapter not in UNREPEATABLE
    threaded = adapter not in UNTHREADED
    return Method(name, environment, adapter, kind, options, by_data or {}, threaded, repeatable)


def _label(name: str, classifier: str, **options: Any) -> Method:
    chosen = {"classifier": classifier, "top1_if_empty": False, **options}
    return Method(name, "", "marginmf_labels", "Classifier", chosen)


#: Regularisation strengths that were found once by cross-validation, with 100 factors.
HMF_REG = {"ml-100k": {"reg": [6, 10, 17, 14]}, "ml-1m": {"reg": [10, 15, 24, 24]}}
MMMF_REG = {"ml-100k": {"reg": 15}, "ml-1m": {"reg": 25}}
RATERS_REG = {"ml-100k": {"reg": 25}, "ml-1m": {"reg": 40}}
#: A member for ensembles that are quick to make.
SMALL_MMMF = {"estimator": "MMMF", "n_factors": 32, "tol": 1e-3}
SMALL_MEMBER = {data: {"member": {**SMALL_MMMF, **one}} for data, one in MMMF_REG.items()}
#: Ensembles built from who rated what, and from levels alone.
ENSEMBLES: dict[str, dict[str, Any]] = {
    "": {"calibrated": True},
    ", levels alone": {"calibrated": True, "implicit": None},
}
#: With 300 iterations a million ratings take it four minutes and more.
MYFM_ITERATIONS = {"ml-100k": {"n_iter": 300}, "ml-1m": {"n_iter": 100}}
#: Its default has an L1 penalty.
LIBMF_REG = {"lambda_p1": 0.0, "lambda_q1": 0.0, "lambda_p2": 0.08, "lambda_q2": 0.08}
#: With a distribution over the levels, learned on a tenth that is held out from a second fit.
CALIBRATED = {"tol": 1e-3, "calibrated": True}

RATINGS = (
    ours("BiasOnly", "BiasOnly"),
    *(ours(f"HMF d={d}", "HMF", HMF_REG, n_factors=d) for d in (8, 16, 32, 100)),
    *(ours(f"MMMF d={d}", "MMMF", MMMF_REG, n_factors=d, tol=1e-3) for d in (8, 100)),
    *(
        ours(f"MMMF d={d}, calibrated", "MMMF", MMMF_REG, n_factors=d, **CALIBRATED)
        for d in (8, 32)
    ),
    ours("HMF d=32, calibrated", "HMF", HMF_REG, n_factors=32, calibrated=True),
    ours(
        *("MMMF d=32, raters, calibrated", "MMMF", RATERS_REG),
        **{"n_factors": 32, "implicit": "both", **CALIBRATED},
    ),
    ours("ALS", "ALS", bias=True, reg=25),
    ours(
        *("MarginEnsemble, 2 MMMF d=32", "MarginEnsemble", SMALL_MEMBER),
        **{"n_estimators": 2, "calibrated": True},
    ),
    *(
        ours(f"MarginEnsemble, {n}{name}", "MarginEnsemble", n_estimators=n, **options)
        for name, options in ENSEMBLES.items()
        for n in (2, 4, 10, 30)
    ),
    peer("Surprise SVD", "surprise", "SVD"),
    peer(
        *("Surprise SVD, tuned", "surprise", "SVD"),
        **{"n_factors": 100, "n_epochs": 60, "lr_all": 0.01, "reg_all": 0.1},
    ),
    peer("cmfrec", "cmfrec", "CMF"),
    peer("cmfrec k=100", "cmfrec", "CMF", k=100),
    peer(
        *("cmfrec, tuned", "cmfrec", "CMF"),
        **{"k": 100, "lambda_": 0.1, "scale_lam": True, "add_implicit_features": True},
    ),
    peer("LensKit item-kNN", "lenskit", "ItemKNN"),
    peer("LensKit biased MF", "lenskit", "BiasedMF"),
    peer("libmf", "libmf", "MF"),
    peer("libmf, tuned", "libmf", "MF", k=100, nr_iters=60, eta=0.05, **LIBMF_REG),
    peer("cornac MF k=10", "cornac", "MF"),
    peer("cornac MF k=100, tuned", "cornac", "MF", k=100, max_iter=100, lambda_reg=0.1),
    peer("myFM", "myfm", "Regressor", MYFM_ITERATIONS, rank=16),
    peer("myFM ordered probit", "myfm", "OrderedProbit", MYFM_ITERATIONS, rank=16),
    peer("Spark ALS", "pyspark", "ALS"),
)

#: A few iterations each: how good the lists are is not asked here, how quickly they come is.
SERVING = (
    peer("implicit ALS", "implicit", "Server", factors=100, iterations=3),
    ours("MMMF", "MMMF", kind="Server", reg=15, max_iter=30),
    ours("HMF", "HMF", kind="Server", reg=[10, 15, 24, 24], max_iter=15),
    ours("PMMMF", "PMMMF", kind="Server", reg=40, max_iter=20),
    ours("ALS", "ALS", kind="Server", reg=25, bias=True, max_iter=3),
    ours("BiasOnly", "BiasOnly", kind="Server"),
    peer("cornac MF", "cornac", "Server", k=100, max_iter=3),
    peer("cmfrec", "cmfrec", "Server", k=100, niter=3),
    peer("LensKit biased MF", "lenskit", "Server", embedding_size=100, epochs=3),
    peer("Surprise SVD", "surprise", "Server", n_factors=100, n_epochs=1),
)

GROPLE_SIGN = _label("GroPLE, sign", "GroPLE", decision="sign")
GROPLE = _label("GroPLE", "GroPLE")
MLCHMF_SIGN = _label("MLCHMF, sign", "MLCHMF", decision="sign", max_depth=5)
MLCHMF = _label("MLCHMF", "MLCHMF", max_depth=5)
SKMULTILEARN = (
    ("MLkNN", {"k": 10, "s": 1.0}),
    ("BRkNNaClassifier", {"k": 10}),
    ("BinaryRelevance", {}),
)
LABELS = (
    *(peer(name, "sklearn", "Forest", forest=name) for name in ("ExtraTrees", "RandomForest")),
    peer("OneVsRest(LinearSVC)", "sklearn", "OneVsRest"),
    peer("PECOS XR-Linear", "pecos", "Linear"),
    _label("BinaryRelevance, sign", "BinaryRelevance", decision="sign"),
    *(GROPLE_SIGN, GROPLE, MLCHMF_SIGN),
    _label("MLkNN, sign", "MLkNN", decision="sign"),
    *(
        _label(f"{name}, sign", name, decision="sign", **more)
        for name, more in {
            "CSSP": {"n_labels_kept": 0.8},
            "FaIE": {"n_factors": 0.4},
            "LEML": {"n_factors": 0.8},
            "LLSF": {},
        }.items()
    ),
    *(_label(name, name, top1_if_empty="auto") for name in ("RidgeEmbedding", "KernelEmbedding")),
    _label(
        *("LabelEnsemble(ridge, kernel)", "LabelEnsemble"),
        **{"members": ["ridge", "kernel"], "top1_if_empty": "auto"},
    ),
    _label("LabelEnsemble", "LabelEnsemble", top1_if_empty="auto"),
    *(
        replace(
            peer(
                f"scikit-multilearn {name}", "skmultilearn", "Classifier", classifier=name, **more
            ),
            # Its binary relevance cannot learn a label that nobody has, as in a tiny part.
            warm_up=name != "BinaryRelevance",
        )
        for name, more in SKMULTILEARN
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
