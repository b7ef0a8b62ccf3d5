"""x / y to about a unit in the last place, without a branch: of several the chains go together.

A division that rounds correctly takes some 40 instructions of float64, and a branch for what is subnormal.
The compiler neither interleaves nor unrolls such divisions.
"""

from __future__ import annotations

from collections.abc import Callable

from ...gpu.backend import device_function, ptx
from ...types import Dtype

__all__ = ["quotients"]


def quotients(facts: Dtype) -> Callable:
    """``divide(x, y)``: x / y, where `y` is neither zero, nor tiny, nor infinite."""
    real, fma, approximate, select = (
        ptx.REALS[facts.real],
        ptx.fma,
        ptx.inverse_root_approximation,
        ptx.select,
    )

    @device_function
    def divide(x, y):
        # e = 1 - y r; 1 / y = r / (1 - e) = r (1 + e + e^2 + ...)
        r = approximate(abs(y))
        r = select(y < real(0), -(r * r), r * r)
        e = fma(-y, r, real(1))
        return x * fma(fma(e, e, e), r, r)

    return divide
