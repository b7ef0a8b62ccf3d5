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
    """``root(d)``: 1 / sqrt(d); inf of 0, NaN of what is negative."""
    real, fma, approximate = ptx.REALS[facts.real], ptx.fma, ptx.inverse_root_approximation
    select = ptx.select
    LEAST, UP = 2.0 ** -TINY[facts.real_size], 2.0 ** SHIFT[facts.real_size]

    @device_function
    def refined(d):
        # e = 1 - d r^2; r (1 - e)^(-1/2) = r (1 + e/2 + 3/8 e^2 + ...)
        r = approximate(d)
        e = fma(-(d * r), r, real(1))
        return fma(fma(e, real(0.375), real(0.5)), e * r, r)

    @device_function
    def root(d):
        r = refined(d)
        if d < real(LEAST):
            r = refined(d * real(UP) * real(UP)) * real(UP)
        return r

    @device_function
    def root_of_either(d):
        return select(d < real(LEAST), refined(d * real(UP) * real(UP)) * real(UP), refined(d))

    # float32 computes both sooner than it branches
    return root_of_either if facts.real_size == 4 else root
