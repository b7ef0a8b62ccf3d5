"""Residuals of products, to more digits than the operands have, by products of BLAS."""

from __future__ import annotations

import numpy as np

__all__ = ["residual"]

#: Bits of a float64.
BITS = 53


def residual(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """C - A B in double precision, also of stacks.

    Rows of A and columns of B in double precision are split into leading bits, whose products have exact
    sums, and the rest (Ozaki et al., Numerical Algorithms 59, 2012). Errors of the rest are 2^-16 as large as
    those of a product in double precision.
    """
    is_single = a.dtype.char in "fF" and b.dtype.char in "fF"
    wide = np.dtype("D" if "c" in (a.dtype.kind, b.dtype.kind) else "d")
    c, a, b = (each.astype(wide) for each in (c, a, b))
    if is_single:
        return c - a @ b
    bits = (BITS - int(np.ceil(np.log2(2 * max(a.shape[-1], 1))))) // 2
    high, other = _leading(a, bits, -1), _leading(b, bits, -2)
    return c - high @ other - high @ (b - other) - (a - high) @ b


def _leading(x: np.ndarray, bits: int, axis: int) -> np.ndarray:
    """Real and imaginary parts rounded to `bits` bits of the largest one along `axis`."""
    parts = (x.real, x.imag) if x.dtype.kind == "c" else (x,)
    largest = np.max([np.abs(part).max(axis, keepdims=True, initial=0) for part in parts], axis=0)
    exponent = np.frexp(largest)[1] - bits
    rounded = [np.ldexp(np.rint(np.ldexp(part, -exponent)), exponent) for part in parts]
    return rounded[0] if len(parts) == 1 else rounded[0] + 1j * rounded[1]
