"""Where compiled kernels are kept between processes, so that no state of a disk stops a fit.

Numba keeps them beside the sources or in the user's cache folder, refuses to go on where it can
write to neither, and ends with a traceback where a file is damaged.  Here kernels are compiled
again then; those that were compiled while an image was built are read, although the folder cannot
be written to.  Files hold machine code and pickles, so whoever can write them can run programs as
us: they are taken from where Python itself takes code, from the folder that the user names in
``NUMBA_CACHE_DIR``, or from a folder that nobody else can write to, and never from one with a name
that others know in a folder for all, such as ``/tmp``.
"""

import os
import pickle
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.serialize import dumps


def _as_if_writable(locator: Any) -> Any:
    """Return a locator of a folder that can be written to, unless others could write there."""

    class Writable(locator):
        def ensure_cache_path(self) -> None:
            _refuse_unsafe(self)  # or it would be made first
            super().ensure_cache_path()
            _refuse_unsafe(self)

    return Writable


def _as_if_filled(locator: Any) -> Any:
    """Return a locator of a folder that has kernels and can only be read."""

    class Filled(locator):
        def ensure_cache_path(self) -> None:
            _refuse_unsafe(self)
            if next(Path(self.get_cache_path()).glob("*.nbi"), None) is None:
                raise FileNotFoundError

    return Filled


def _refuse_unsafe(locator: Any) -> None:
    """Raise an OSError if others could put code into the folder that a locator has found."""
    folder = locator.get_cache_path()
    # Whoever can write beside the sources can change these as well.
    own = os.path.dirname(locator._py_file), config.CACHE_DIR
    if not (any(folder.startswith(one) for one in own if one) or is_private(folder)):
        raise PermissionError


def is_private(folder: str) -> bool:
    """Whether nobody but this user and the administrator can put files into a folder.

    One that is not there yet is as private as the folders that it would be made in.
    """
    if not os.path.isabs(folder):  # such as ~/.cache where there is no home
        return False
    if not hasattr(os, "getuid"):  # Windows, where a user's folders are closed to others
        return True
    # Where a link leads, and where the link is.
    for path in (Path(folder).resolve(), Path(folder)):
        for each in (path, *path.parents):
            with suppress(FileNotFoundError):
                found = each.stat()
                shared = found.st_mode & stat.S_IWOTH
                # Nobody can put another folder where a sticky folder has ours.
                if shared and (each == path or not found.st_mode & stat.S_ISVTX):
                    return False
                if found.st_uid not in (0, os.getuid()):
                    return False
    return True


class _Kernels(CompileResultCacheImpl):
    """How a compiled kernel becomes bytes: with a checksum, as the linker trusts what it gets."""

    # A folder that can be written to comes first.
    _locator_classes = [  # noqa: RUF012, as Numba has it
        kind(locator)
        for kind in (_as_if_writable, _as_if_filled)
        for locator in CompileResultCacheImpl._locator_classes
    ]

    def reduce(self, compiled: Any) -> tuple[bytes, bytes]:
        """Return a compiled kernel as bytes, and their checksum."""
        code = dumps(super().reduce(compiled))
        return self._checksum(code), code

    def rebuild(self, target_context: Any, reduced: Any) -> Any:
        """Return the kernel; raise an error if a byte of it has changed."""
        checksum, code = reduced
        if checksum != self._checksum(code):
            raise ValueError("not what was written")
        return super().rebuild(target_context, pickle.loads(code))

    def _checksum(self, code: bytes) -> bytes:
        return sha256(self.filename_base.encode() + code).digest()


class KernelCache(FunctionCache):
    """The files of one kernel: what cannot be read or written is as if it were not there."""

    _impl_class = _Kernels

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a kernel for arguments of these types, None if it must be compiled."""
        try:
            found = super().load_overload(sig, target_context)
            if found is None or tuple(found.signature.args) == tuple(sig):
                return found
        except Exception:  # damaged bytes can fail anywhere in pickle or Numba
            pass
        # So that what is compiled now takes the place of the damaged files.
        with suppress(Exception):
            self.flush()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a kernel, if that is possible."""
        with suppress(Exception):  # the disk may be full, or the folder gone
            super().save_overload(sig, data)
