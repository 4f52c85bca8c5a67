"""The processor's backend: Numba kernels over threads."""
