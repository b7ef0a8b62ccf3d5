"""The PTX that kernels use, as Numba intrinsics."""
