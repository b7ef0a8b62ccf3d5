"""Numba's simulator made strict: emulated intrinsics, blocks of threads, checked memory."""
