"""Kernels for the processor, compiled by `numba.njit`."""
