"""Load a MATLAB file in a process of its own: `matlab` runs this as a script.

SciPy's reader of these files can crash on a single byte that is wrong, hang, or take any amount of
memory.  This reads a file from standard input and writes its matrices to standard output as npz:
the dense ones that hold numbers, and the parts of the sparse ones.  Of cells and structures the
name alone is written.  It imports nothing of the package, so that it starts quickly.
"""

import sys
from contextlib import suppress

#: How the process ends where the file cannot be loaded; any other way is a crash.
DAMAGED, TOO_LARGE = 3, 4
#: The parts of a sparse matrix.
PARTS = ("data", "indices", "indptr", "shape")


def limit_resources(n_bytes: int, seconds: int) -> None:
    """Let this process take so much more memory and time; Windows and macOS know no such limit."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Ends this process also where the one that waits for it was killed.
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        with open("/proc/self/statm") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + n_bytes, taken + n_bytes))


def main(n_bytes: str, seconds: str, *folders: str) -> None:
    """Load what standard input holds; the folders are those of NumPy and SciPy."""
    sys.path += folders
    import io

    import numpy as np
    from scipy import sparse
    from scipy.io import loadmat

    content = io.BytesIO(sys.stdin.buffer.read())
    limit_resources(int(n_bytes), int(seconds))
    loaded = {name: one for name, one in loadmat(content).items() if getattr(one, "ndim", 0) == 2}
    arrays = {"names": np.array(list(loaded), dtype=np.str_)}
    for number, value in enumerate(loaded.values()):
        if sparse.issparse(value):
            matrix = sparse.csc_array(value)
            parts = (matrix.data, matrix.indices, matrix.indptr, np.array(matrix.shape))
            arrays |= {f"{number} {name}": part for name, part in zip(PARTS, parts, strict=True)}
        elif value.dtype.kind in "biuf":
            arrays[f"{number} dense"] = value
    np.savez(sys.stdout.buffer, **arrays)  # type: ignore[arg-type]


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except MemoryError:
        sys.exit(TOO_LARGE)
    except Exception as error:  # a damaged file can fail anywhere in SciPy
        sys.stderr.write(str(error).partition("\n")[0].rstrip(".") or type(error).__name__)
        sys.exit(DAMAGED)
