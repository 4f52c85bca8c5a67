"""How many threads of this machine a fit or a query may use."""

from joblib import cpu_count, effective_n_jobs


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` stands for, as in scikit-learn.

    Never more than was asked for, nor than there are cores if all were: to a backend of joblib that
    spreads work over a cluster, all its cores are there to be had, but threads cannot leave this
    machine.

    >>> n_threads(None), n_threads(3)
    (1, 3)
    """
    wanted = int(effective_n_jobs(n_jobs))
    if wanted == 1:  # no need to count cores, which takes longer than to predict a rating
        return 1
    return min(wanted, n_jobs if n_jobs is not None and n_jobs > 0 else cpu_count())
