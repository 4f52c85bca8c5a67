"""The heavy arithmetic, behind one interface with several implementations.

For every ratings objective one gradient is: **scores** of the observed pairs; a light **row
loss** that turns one user's scores into a loss and its derivatives; and **spread**, which adds
what they give to the gradients of users and items.  Where a rating's loss does not hang on the
user's other ratings, the three are done in one pass.  `Kernels` is that interface.
`marginmf.backends.reference` spells it out in NumPy (the oracle of the tests) and
`marginmf.backends.cpu` compiles it with Numba.
"""

from marginmf.backends.interface import Kernels

__all__ = ["Kernels", "get_kernels"]


def get_kernels(name: str = "cpu", n_threads: int = 1) -> Kernels:
    """Return the kernels of that name: ``"cpu"`` (Numba) or ``"reference"`` (NumPy).

    They are imported here and not above, so that Numba is loaded when a kernel is first needed
    and not before.
    """
    if name == "cpu":
        from marginmf.backends.cpu import CpuKernels

        return CpuKernels(n_threads)
    if name == "reference":
        from marginmf.backends.reference import ReferenceKernels

        return ReferenceKernels()
    raise ValueError(f"There are no {name!r} kernels. Choose 'cpu' or 'reference'.")
