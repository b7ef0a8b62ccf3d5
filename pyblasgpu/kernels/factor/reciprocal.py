"""1 / x without a division, which takes much of a chain of pivots."""

from __future__ import annotations

from collections.abc import Callable

from ...gpu.backend import device_function, ptx
from ...types import Dtype
from .cholesky.inverse_root import inverse_root

__all__ = ["reciprocal"]


def reciprocal(facts: Dtype) -> Callable:
    """``invert(x)``: 1 / x of a positive x that is neither tiny nor huge, and NaN of NaN: the square of an
    approximate root, and a step of Newton's. Its error is about one unit in the last place.
    """
    real, fma, (_, quick_root, _) = ptx.REALS[facts.real], ptx.fma, inverse_root(facts)

    @device_function
    def invert(x):
        r = quick_root(x)
        r *= r
        return fma(fma(-x, r, real(1)), r, r)

    return invert
