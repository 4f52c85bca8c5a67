"""The methods that the demo compares, all of them with their defaults."""

from typing import Any

from marginmf.ratings import ALS, HMF, MMMF, PMMMF, BiasOnly, MarginEnsemble, Ratings

#: What each method is, in a few words.
DESCRIPTIONS = {
    "BiasOnly": "averages of users and items",
    "ALS with biases": "ordinary matrix factorisation",
    "MMMF": "thresholds of each user's own",
    "PMMMF": "a prototype score for each level",
    "HMF": "a factorisation for each step",
    "MMMF, raters": "MMMF with who rated what",
    "MarginEnsemble": "many small MMMFs and HMFs with it",
}
MOST_FACTORS = 100


def demo_methods(train: Ratings, seed: int, n_jobs: int, progress: bool) -> dict[str, Any]:
    """Return the methods to compare, ready to be fitted, by name."""
    common: dict[str, Any] = {"random_state": seed, "n_jobs": n_jobs, "verbose": int(progress)}
    shared = {"n_factors": min(MOST_FACTORS, train.n_users, train.n_items), **common}
    return {
        "BiasOnly": BiasOnly(n_jobs=n_jobs),
        "ALS with biases": ALS(bias=True, **shared),
        "MMMF": MMMF(**shared),
        "PMMMF": PMMMF(**shared),
        "HMF": HMF(**shared),
        "MMMF, raters": MMMF(implicit="both", **common),
        "MarginEnsemble": MarginEnsemble(**common),
    }
