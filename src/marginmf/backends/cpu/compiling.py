"""How functions are compiled: kernels that are kept on disk, and what is inlined into them.

Rules that keep kernels quick to load: signatures of arrays and numbers only (a compiled function
as an argument would defeat the cache on disk), and no parallel twins (see
`marginmf.backends.threads`).
"""

from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any
from zlib import crc32

from numba import njit
from numba.core.compiler_lock import global_compiler_lock

from marginmf._utils.concurrency import hold_at_fork

#: Sums may be reordered and products fused with them (that is what makes them vector code), but
#: NaN and infinity keep their meaning: all of fast arithmetic would assume that there are none.
FASTMATH = ("reassoc", "contract", "nsz")

_kernels: list[Any] = []
# A child that is forked while another thread compiles would wait for the compiler for ever.
hold_at_fork(global_compiler_lock)


def kernel(function: Any = None, *, disk: bool = True, **options: Any) -> Any:
    """Compile a function that Python calls, without the interpreter lock; keep it on disk."""
    if function is None:
        return partial(kernel, disk=disk, **options)
    compiled = njit(nogil=True, **{"fastmath": set(FASTMATH)} | options)(function)
    if disk:
        _keep_on_disk(compiled)
    _kernels.append(compiled)
    return compiled


def _keep_on_disk(compiled: Any) -> None:
    """Let a kernel's versions be kept in files, where there is a folder for them."""
    # A RuntimeError says that there is none.
    with suppress(RuntimeError):
        try:
            from marginmf.backends.cpu.disk_cache import KernelCache

            assert hasattr(compiled, "_cache")
            compiled._cache = KernelCache(compiled.py_func)
        except (ImportError, AttributeError, TypeError, AssertionError):
            compiled.enable_caching()  # with a Numba whose private parts have changed


def inline(function: Any = None, **options: Any) -> Any:
    """Compile a function that kernels call."""
    if function is None:
        return partial(inline, **options)
    options = {"fastmath": set(FASTMATH)} | options
    return njit(nogil=True, forceinline=True, **options)(function)


def n_compilations() -> int:
    """Return how many kernels this process had to compile, those from the cache not counted."""
    return sum(sum(each.stats.cache_misses.values()) for each in _kernels)


@cache
def sources(vector_code: bool) -> int:
    """Return a checksum of the files that inlined functions come from, and of which are used.

    The cache on disk looks at a kernel's own source file alone.  It also looks at the integers in
    the kernel's closure: with this among them, a kernel is compiled anew when one of the others
    changes.
    """
    checksum = int(vector_code)
    for module in ("compiling", "inner_loops", "losses", "vector_code"):
        checksum = crc32((Path(__file__).parent / f"{module}.py").read_bytes(), checksum)
    return checksum
