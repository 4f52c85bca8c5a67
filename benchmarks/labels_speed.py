"""Seconds and memory of label methods, beside scikit-learn's and scikit-multilearn's.

Run by hand, for example::

    python -m benchmarks.labels_speed bibtex --peer-python peers/bin/python
    python -m benchmarks.labels_speed memory

Every run is a process of its own, so that memory is its own, with one thread (``memory``: two);
processes take turns, so that what else the machine does hits all of them.  Prints a Markdown
table of medians.  ``--peer-python`` names a Python that has scikit-multilearn or
scikit-multilearn-ng and scikit-learn; without it the peer is left out.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

DATA = "bibtex"


def split(name: str) -> tuple[Any, Any, Any, Any]:
    """Return the owner's training and test rows."""
    from marginmf.datasets import load_labels

    table = load_labels(name)
    train, test = table.train_idx, table.test_idx
    return table.X[train], table.Y[train], table.X[test], table.Y[test]


def clocked(model: Any, data: tuple[Any, Any, Any, Any]) -> dict[str, float]:
    """Return the seconds to fit and to predict, and the accuracy."""
    from marginmf.metrics import jaccard_accuracy

    X, Y, x_test, y_test = data
    begin = time.perf_counter()
    model.fit(X, Y)
    fitted = time.perf_counter()
    predicted = model.predict(x_test)
    done = time.perf_counter()
    accuracy = jaccard_accuracy(y_test, predicted)
    return {"fit": fitted - begin, "predict": done - fitted, "accuracy": accuracy}


def grople() -> dict[str, float]:
    from marginmf.labels import GroPLE

    return clocked(GroPLE(decision="sign", random_state=0), split(DATA))


def grople_global() -> dict[str, float]:
    from marginmf.labels import GroPLE

    return clocked(GroPLE(random_state=0), split(DATA))


def one_vs_rest() -> dict[str, float]:
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    X, Y, x_test, y_test = split(DATA)
    # int64: scikit-learn goes wrong on small integers with more than 128 labels.
    dense = Y.toarray().astype(np.int64)
    return clocked(OneVsRestClassifier(LinearSVC()), (X, dense, x_test, y_test))


def binary_relevance() -> dict[str, float]:
    from marginmf.labels import BinaryRelevance

    return clocked(BinaryRelevance(decision="sign"), split(DATA))


def mlknn() -> dict[str, float]:
    from marginmf.labels import MLkNN

    return clocked(MLkNN(decision="sign"), split(DATA))


#: Run by a Python that need not have marginmf; data come as one npz file, answers go out as JSON.
PEER = """
import json, sys, time
import numpy as np
from scipy.sparse import csr_matrix
import sklearn.neighbors
from skmultilearn.adapt import mlknn

original = sklearn.neighbors.NearestNeighbors
# scikit-multilearn 0.2.0 calls it by position, which scikit-learn no longer takes.
mlknn.NearestNeighbors = lambda n_neighbors=5, **rest: original(n_neighbors=n_neighbors, **rest)
file = np.load(sys.argv[1])
X, Y, x_test, y_test = (
    csr_matrix((file[k + "d"], file[k + "i"], file[k + "p"]), shape=file[k + "s"])
    for k in ("X", "Y", "x", "y")
)
model = mlknn.MLkNN(k=10, s=1.0)
begin = time.perf_counter()
model.fit(X, Y.toarray())
fitted = time.perf_counter()
predicted = np.asarray(model.predict(x_test).todense()) > 0
done = time.perf_counter()
true = y_test.toarray() > 0
accuracy = np.mean((true & predicted).sum(1) / np.maximum((true | predicted).sum(1), 1))
print(json.dumps({"fit": fitted - begin, "predict": done - fitted, "accuracy": accuracy}))
"""


def scikit_multilearn(python: str) -> dict[str, float]:
    """Run the peer's MLkNN with another Python."""
    from tempfile import TemporaryDirectory

    arrays = {}
    for key, matrix in zip("XYxy", split(DATA), strict=True):
        arrays |= {key + "d": matrix.data, key + "i": matrix.indices, key + "p": matrix.indptr}
        arrays[key + "s"] = np.array(matrix.shape)
    with TemporaryDirectory() as folder:
        path = os.path.join(folder, "data.npz")
        np.savez(path, **arrays)
        answer = subprocess.run(
            [python, "-c", PEER, path], capture_output=True, text=True, check=True
        )
    found: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return found


def wide() -> dict[str, float]:
    """GroPLE on rcv1subset1 with all of its features."""
    from marginmf.datasets import load_labels
    from marginmf.labels import GroPLE

    table = load_labels("rcv1subset1")
    return clocked(GroPLE(random_state=0), (table.X, table.Y, table.X[:500], table.Y[:500]))


def million(decision: str = "sign") -> dict[str, float]:
    """GroPLE on a million made-up rows."""
    from marginmf.datasets import make_labels
    from marginmf.labels import GroPLE

    table = make_labels(1_000_000, 5_000, 500, features_per_sample=50, random_state=0)
    data = (table.X, table.Y, table.X[:10_000], table.Y[:10_000])
    return clocked(GroPLE(decision=decision, random_state=0), data)


def million_global() -> dict[str, float]:
    return million("global")


SECTIONS: dict[str, dict[str, Callable[..., dict[str, float]]]] = {
    "bibtex": {
        "GroPLE, sign": grople,
        "GroPLE, global": grople_global,
        "OneVsRestClassifier(LinearSVC())": one_vs_rest,
        "BinaryRelevance, sign": binary_relevance,
        "MLkNN": mlknn,
        "scikit-multilearn MLkNN": scikit_multilearn,
    },
    "memory": {
        "GroPLE, rcv1subset1, 47,236 features": wide,
        "GroPLE, 1,000,000 x 5,000 x 500, sign": million,
        "GroPLE, 1,000,000 x 5,000 x 500, global": million_global,
    },
}


def run(section: str, name: str, threads: int, peer: str | None) -> dict[str, float]:
    """Run one method in a process of its own."""
    limits = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    command = [sys.executable, "-m", "benchmarks.labels_speed", section, "--child", name]
    command += ["--peer-python", peer] if peer else []
    answer = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **limits}
    )
    found: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("section", choices=list(SECTIONS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peer-python")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    methods = SECTIONS[options.section]
    if options.child:
        method = methods[options.child]
        found = method(options.peer_python) if method is scikit_multilearn else method()
        kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps({**found, "gigabytes": kilobytes / 2**20}))
        return
    threads = 1 if options.section == "bibtex" else 2
    names = [
        name
        for name in methods
        if methods[name] is not scikit_multilearn or options.peer_python is not None
    ]
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(options.repeats):
        for name in names:
            runs[name].append(run(options.section, name, threads, options.peer_python))
    print("| method | fit, s | predict, s | accuracy | peak GB |")
    print("|---|---|---|---|---|")
    for name, found in runs.items():
        middle = {key: median(one[key] for one in found) for key in found[0]}
        print(
            f"| {name} | {middle['fit']:.2f} | {middle['predict']:.2f} | "
            f"{middle['accuracy']:.3f} | {middle['gigabytes']:.2f} |"
        )


if __name__ == "__main__":
    main()
