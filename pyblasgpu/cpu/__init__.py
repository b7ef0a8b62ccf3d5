"""The processor: what it is, and how Numba compiles for it."""
