"""Host arrays on kernels that Numba compiles for the CPU."""
