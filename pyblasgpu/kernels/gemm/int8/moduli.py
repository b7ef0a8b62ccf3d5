"""Moduli of residues that fit a byte, and what puts an integer together from its residues.

An integer c with |c| < P/2, P the product of the moduli, is the one of ``sum(r_l w_l)`` modulo P that is
nearest to zero. r_l is its residue modulo p_l, and w_l = (P/p_l) ((P/p_l)^-1 mod p_l).
K. Ozaki, Y. Uchino, T. Imamura, *Ozaki Scheme II*, arXiv:2504.08009, 2025.
"""

from __future__ import annotations

from functools import cache
from math import floor, ldexp, prod
from typing import NamedTuple

__all__ = ["LARGEST", "MODULI", "TABLE", "TABLE_SIZE", "Weights", "largest_square", "weights"]

#: The largest numbers up to 256 of which no two have a common factor.
MODULI = (256, 255, 253, 251, 247, 241, 239, 233, 229, 227, 223, 217, 211, 199, 197, 193)

#: How much less than 256 moduli are, six bits each, `TABLE_SIZE` of them a number.
TABLE_SIZE = 10
TABLE = tuple(
    sum((256 - p) << 6 * i for i, p in enumerate(MODULI[first : first + TABLE_SIZE]))
    for first in (0, TABLE_SIZE)
)

#: Elements are integers of at most so many bits.
LARGEST = 51
SLACK = 1 - 2.0**-12  # for roundings of norms, and of elements to integers


class Weights(NamedTuple):
    """w_l and P in two parts: of the high ones sums and multiples, as they occur, are exact in float64.

    Attributes
    ----------
    high, low : tuple of float
        Of each w_l.
    product_high, product_low : float
        Of P.
    inverse : float
        1 / P.
    """

    high: tuple[float, ...]
    low: tuple[float, ...]
    product_high: float
    product_low: float
    inverse: float


@cache
def weights(count: int) -> Weights:
    """Those of the first `count` moduli."""
    moduli = MODULI[:count]
    product = prod(moduli)
    grid = (256 * count * product).bit_length() - 53  # sums of r_l w_l are below 2^53 units of 2^grid
    exact = [product // p * pow(product // p, -1, p) for p in moduli]
    parts = [_parts(w, max(grid, 0)) for w in (*exact, product)]
    *high, product_high = (first for first, _ in parts)
    *low, product_low = (second for _, second in parts)
    return Weights(tuple(high), tuple(low), product_high, product_low, 1 / product)


def _parts(value: int, grid: int) -> tuple[float, float]:
    """A multiple of 2^grid that is nearest, and what is left."""
    unit = 1 << grid
    high = (value + unit // 2) // unit * unit
    return ldexp(float(high // unit), grid), float(value - high)


def largest_square(count: int) -> float:
    """The largest squared norm of rows and columns, so that no product of two exceeds P/2."""
    return float(floor(prod(MODULI[:count]) / 2 * SLACK))
