"""1 / sqrt(d) of a pivot: the hardware's approximation and one cubic step.

A division and a square root that round correctly take some 300 cycles of the chain of pivots in float64, this
some 90. Its error is about one unit in the last place.
"""

from __future__ import annotations

from ....gpu.backend import device_function, ptx
from ....types import Dtype

__all__ = ["inverse_root"]

#: Below 2^-TINY the approximation flushes to zero, or nearly so; then d is scaled by 2^(2 SHIFT). By bytes of
#: a real.
TINY, SHIFT = {4: 100, 8: 900}, {4: 32, 8: 64}


def inverse_root(facts: Dtype):
    """``root(d)``: 1 / sqrt(d), 0 of inf, NaN of what is negative. ``quick_root(d)``: the same without a
    branch, where d is neither tiny nor infinite; else ``is_unsafe(r)`` holds for the result.
    """
    real, fma, approximate = ptx.REALS[facts.real], ptx.fma, ptx.inverse_root_approximation
    LARGEST_ROOT, UP = 2.0 ** (TINY[facts.real_size] // 2), 2.0 ** SHIFT[facts.real_size]
    INFINITY = float("inf")

    @device_function
    def quick_root(d):
        # e = 1 - d r^2; r (1 - e)^(-1/2) = r (1 + e/2 + 3/8 e^2 + ...)
        r = approximate(d)
        e = fma(-(d * r), r, real(1))
        return fma(fma(e, real(0.375), real(0.5)), e * r, r)

    @device_function
    def is_unsafe(r):
        return not r <= real(LARGEST_ROOT)

    @device_function
    def root(d):
        r = quick_root(d)
        if is_unsafe(r):
            r = quick_root(d * real(UP) * real(UP)) * real(UP)
        if d == real(INFINITY):
            r = real(0)
        return r

    return root, quick_root, is_unsafe
