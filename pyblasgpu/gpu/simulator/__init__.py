"""Numba's simulator made strict: stand-ins of the intrinsics, blocks of threads, checked memory."""
