"""1 / sqrt(d) of a pivot: the hardware's approximation and one cubic step.

A division and a square root that round correctly take some 300 cycles of the chain of pivots in float64, this
some 90. Its error is about one unit in the last place.
"""

from __future__ import annotations

from ...gpu.backend import device_function, ptx
from ...types import Dtype

__all__ = ["inverse_root"]

#: Below 2^-TINY the approximation flushes to zero, or nearly so; then d is scaled by 2^(2 SHIFT). By bytes of
#: a real.
TINY, SHIFT = {4: 100, 8: 900}, {4: 32, 8: 64}


def inverse_root(facts: Dtype):
    """``root(d)``: 1 / sqrt(d); inf of 0, NaN of what is negative. ``root_of_large(d)``: the same for what is
    not ``is_small(d)``, without a branch.
    """
    real, fma, approximate = ptx.REALS[facts.real], ptx.fma, ptx.inverse_root_approximation
    LEAST, UP = 2.0 ** -TINY[facts.real_size], 2.0 ** SHIFT[facts.real_size]

    @device_function
    def root_of_large(d):
        # e = 1 - d r^2; r (1 - e)^(-1/2) = r (1 + e/2 + 3/8 e^2 + ...)
        r = approximate(d)
        e = fma(-(d * r), r, real(1))
        return fma(fma(e, real(0.375), real(0.5)), e * r, r)

    @device_function
    def is_small(d):
        return d < real(LEAST)

    @device_function
    def root(d):
        r = root_of_large(d)
        if is_small(d):
            r = root_of_large(d * real(UP) * real(UP)) * real(UP)
        return r

    return root, root_of_large, is_small
