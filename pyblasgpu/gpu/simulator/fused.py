"""``x*y + z`` of doubles with one rounding, which Python has from 3.13 on.

By Boldo and Melquiond, *Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd*
(IEEE Transactions on Computers, 2008). Product and sum are computed with their errors, which are added
rounded to odd. At the edges of the range by rational numbers.
"""

from __future__ import annotations

from fractions import Fraction
from math import frexp, inf, isfinite, ldexp, nextafter
from sys import float_info

__all__ = ["fused"]

LARGEST = Fraction(float_info.max)
#: Magnitudes of factors, products and sums whose errors are doubles.
_LEAST, _MOST = 1e-200, 1e200
_SPLIT = 2.0**27 + 1


def fused(x: float, y: float, z: float) -> float:
    """``x*y + z``, rounded once."""
    product = x * y
    if not (_LEAST < abs(product) < _MOST and abs(x) < _MOST and abs(y) < _MOST and abs(z) < _MOST):
        return _at_the_edges(x, y, z, product)
    error = _error_of_product(x, y, product)
    if not error:
        return product + z
    above, below = _sum_and_error(z, error)
    total, rest = _sum_and_error(product, above)
    return total + _to_odd(below, rest)


def _error_of_product(x: float, y: float, product: float) -> float:
    """``x*y - product``, which is a double (Dekker 1971)."""
    wide = _SPLIT * x
    x_high = wide - (wide - x)
    wide = _SPLIT * y
    y_high = wide - (wide - y)
    x_low, y_low = x - x_high, y - y_high
    return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


def _sum_and_error(x: float, y: float) -> tuple[float, float]:
    """The rounded sum, and what is missing from it (Knuth 1969)."""
    total = x + y
    of_y = total - x
    return total, (x - (total - of_y)) + (y - of_y)


def _to_odd(x: float, y: float) -> float:
    """The sum; where it is no double, that of its two neighbours whose last bit is 1."""
    total, error = _sum_and_error(x, y)
    if error and not int(ldexp(frexp(total)[0], 53)) & 1:
        return nextafter(total, inf if error > 0 else -inf)
    return total


def _at_the_edges(x: float, y: float, z: float, product: float) -> float:
    """`fused` for numbers of any size."""
    if x and y and isfinite(x) and isfinite(y) and isfinite(z):
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        if exact and abs(exact) <= LARGEST:
            return float(exact)
    return product + z
