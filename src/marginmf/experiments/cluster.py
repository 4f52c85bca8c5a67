"""The workers of a dask cluster."""

import logging
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

from joblib import effective_n_jobs


def dask_cluster(n_jobs: int) -> AbstractContextManager[Any]:
    """Return a connection to a cluster, for as long as it is entered.

    If this process has one already, that one stays as it is.  Else it is the scheduler that dask's
    settings name, for instance in the variable ``DASK_SCHEDULER_ADDRESS``; else so many workers on
    this machine.
    """
    try:
        dask, distributed = import_module("dask"), import_module("distributed")
    except ImportError as error:
        raise ImportError(
            "The backend dask is not installed: pip install 'marginmf[cluster]'."
        ) from error
    if _is_connected(distributed):
        return nullcontext()
    address = dask.config.get("scheduler-address", None)
    client: AbstractContextManager[Any]
    if address is None:
        client = distributed.Client(
            n_workers=effective_n_jobs(n_jobs),
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=logging.ERROR,
        )
        return client
    try:
        client = distributed.Client(address)
    except OSError as error:
        raise ConnectionError(
            f"No scheduler of dask answers at {address}, which is where dask's settings say that "
            "it is (DASK_SCHEDULER_ADDRESS)."
        ) from error
    return client


def _is_connected(distributed: Any) -> bool:
    try:
        distributed.default_client()
    except ValueError:
        return False
    return True
