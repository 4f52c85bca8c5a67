"""Where the arithmetic of ratings factorisations is done, behind one interface.

A `Backend` holds ratings and vectors, and evaluates objectives that methods describe by plain data
(`marginmf.backends.specs`).  ``"cpu"`` compiles it with Numba; ``"reference"`` spells it out in
NumPy and is the oracle of the tests.  Estimators take either name, or an object of your own, as
``backend``.
"""

from collections.abc import Callable, Mapping

from marginmf.backends.specs import Backend, Layout, Resident

__all__ = ["BACKENDS", "Backend", "BackendLike", "Layout", "Resident", "get_backend"]

#: What estimators take as ``backend``.
BackendLike = str | Backend


def _cpu() -> Backend:
    # Imported here, so that Numba is loaded when a kernel is first needed and not before.
    from marginmf.backends.cpu.backend import CpuBackend

    return CpuBackend()


def _reference() -> Backend:
    from marginmf.backends.reference import ReferenceBackend

    return ReferenceBackend()


#: Every backend by the name that estimators take as ``backend="..."``.
BACKENDS: Mapping[str, Callable[[], Backend]] = {"cpu": _cpu, "reference": _reference}


def get_backend(backend: BackendLike = "cpu", n_threads: int = 1) -> Backend:
    """Return the backend of that name, or the backend itself, on a number of threads.

    >>> type(get_backend("reference")).__name__
    'ReferenceBackend'
    """
    if isinstance(backend, str):
        if backend in BACKENDS:
            return BACKENDS[backend]().limited(n_threads)
    elif hasattr(backend, "gradient") and not isinstance(backend, type):
        return backend.limited(n_threads)
    raise ValueError(
        f"backend={backend!r} is not known. Choose one of {', '.join(map(repr, BACKENDS))}, or "
        "pass a backend object."
    )
