"""Moduli of residues that fit a byte, and what puts an integer together from its residues.

An integer c with |c| < P/2, P the product of the moduli, is the one of ``sum(r_l w_l)`` modulo P that is
nearest to zero. r_l is its residue modulo p_l, and w_l = (P/p_l) ((P/p_l)^-1 mod p_l).
K. Ozaki, Y. Uchino, T. Imamura, *Ozaki Scheme II*, arXiv:2504.08009, 2025.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import floor, ldexp, log2, prod
from typing import Any, NamedTuple, Self

from ....errors import require

__all__ = [
    "LARGEST",
    "MODULI",
    "OF_ROOTS",
    "PARTS",
    "TABLE",
    "TABLE_SIZE",
    "ServesFactors",
    "Weights",
    "bits_of_roots",
    "check_moduli",
    "fewest_of_roots",
    "largest_square",
    "weights",
]

#: The largest numbers up to 256 of which no two have a common factor, as many as `PARTS` parts serve.
MODULI = (256, 255, 253, 251, 247, 241, 239, 233, 229, 227, 223, 217, 211, 199, 197)

#: Differences of moduli from 256, six bits each, `TABLE_SIZE` of them a number.
TABLE_SIZE = 10
TABLE = tuple(
    sum((256 - p) << 6 * i for i, p in enumerate(MODULI[first : first + TABLE_SIZE]))
    for first in (0, TABLE_SIZE)
)

#: Number of moduli of most Cholesky factors (`fewest_of_roots`); products have one more.
OF_ROOTS = 13
#: The most bits of elements as integers.
LARGEST = 51
#: Float64 that hold a weight.
PARTS = 3
SLACK = 1 - 2.0**-12  # for roundings of norms, and of elements to integers


class Weights(NamedTuple):
    """256 w_l and P in `PARTS` parts, the highest first: of each part sums and multiples, as they occur, are
    exact in float64.

    Residues are fractions, 1 + r/256: so ``sum(256 w_l (1 + r_l/256)) + first`` is ``sum(w_l r_l)``, but for
    a multiple of P.

    Attributes
    ----------
    parts : tuple of tuple of float
        Parts of each 256 w_l.
    first : tuple of float
        Parts of the sums' first term.
    product : tuple of float
        Parts of P.
    inverse : float
        1 / P.
    """

    parts: tuple[tuple[float, ...], ...]
    first: tuple[float, ...]
    product: tuple[float, ...]
    inverse: float


class ServesFactors:
    """A Config whose kernels products have, and Cholesky factors with fewer moduli."""

    moduli: int

    @property
    def variants(self) -> tuple[Self, ...]:
        """The Configs that serve its calls."""
        this: Any = self
        return self, replace(this, moduli=min(self.moduli, OF_ROOTS))


@cache
def weights(count: int) -> Weights:
    """Return the weights of the first `count` moduli."""
    moduli = MODULI[:count]
    product = prod(moduli)
    exact = [product // p * pow(product // p, -1, p) for p in moduli]
    most = (512 * count - 1).bit_length()  # bits of a sum of residues' fractions
    grids = [max(product.bit_length() + most - 53 * (i + 1) + most * i, 0) for i in range(PARTS - 1)]
    first, of_product, *parts = (_parts(w, grids) for w in (-256 * sum(exact) % product, product, *exact))
    scaled = tuple(tuple(256 * part for part in weight) for weight in parts)
    return Weights(scaled, first, of_product, 1 / product)


def _parts(value: int, grids: list[int]) -> tuple[float, ...]:
    """Multiples of 2^grid that are nearest to what is left, and the rest."""
    parts = []
    for grid in grids:
        units = (value + (1 << grid >> 1)) >> grid
        parts.append(ldexp(float(units), grid))
        value -= units << grid
    return (*parts, float(value))


def check_moduli(dtype: str, moduli: int) -> None:
    """Raise `ConfigError` where a Config has another dtype, or more moduli than there are."""
    require(dtype in ("d", "z"), "double", "dtype in (d, z)", dtype=dtype)
    most = len(MODULI)
    require(1 <= moduli <= most, "moduli", f"1 <= moduli <= {most}", moduli=moduli)


def largest_square(count: int) -> float:
    """The largest squared norm of rows and columns, so that no product of two exceeds P/2."""
    return float(floor(prod(MODULI[:count]) / 2 * SLACK))


def bits_of_roots(count: int) -> int:
    """Bits of integers of rows whose sums of squares are known, that `count` moduli and float64 hold."""
    return min(LARGEST, floor(log2(largest_square(count)) / 2))


def fewest_of_roots(k: int) -> int:
    """The fewest moduli with which products of rows of a Cholesky factor, over `k` columns or more, keep its
    bound: integers are off by ``2^(54 - bits) sqrt(k)`` units of it, and others by three.
    """
    for count in range(1, len(MODULI)):
        if 2.0 ** (54 - bits_of_roots(count)) * k**0.5 + 3 <= k:
            return count
    return len(MODULI)
