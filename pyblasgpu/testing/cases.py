"""The one list of cases: what tests, benchmarks and the tuner's verification run.

Sizes are at the edges of tiles and far from them; flags are crossed in full at one awkward shape; the special
values of alpha and beta are crossed in full at another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from ..types import DTYPES, Diag, Dtype, Side, Trans, Uplo

__all__ = [
    "ALPHAS",
    "BETAS",
    "EDGES",
    "SIZES",
    "GemmCase",
    "TriangularCase",
    "gemm_cases",
    "scalars",
    "triangular_cases",
]

EDGES = (0, 1, 31, 32, 33, 63, 64, 65, 127, 128, 129)
SIZES = (*EDGES, 1000)

#: Powers of two, so that exact tests stay exact; the complex ones are for complex dtypes.
ALPHAS = (0, 1, -1, 2, 0.5 + 2j)
BETAS = (0, 1, -1, 0.5, 2 - 1j)


@dataclass(frozen=True)
class GemmCase:
    """``alpha op(a) op(b) + beta c`` of one dtype and size; `batch` are the extents before m and n."""

    dtype: Dtype
    m: int
    n: int
    k: int
    trans_a: Trans = Trans.NO
    trans_b: Trans = Trans.NO
    alpha: complex = 1
    beta: complex = 0
    batch: tuple[int, ...] = ()

    def __str__(self):
        flags = self.trans_a.value + self.trans_b.value
        return f"{self.dtype.letter}gemm-{flags}-{self.m}x{self.n}x{self.k}-{self.alpha}-{self.beta}"

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Shapes of a, b and c as they are stored."""
        a, b = (self.m, self.k), (self.k, self.n)
        return (
            (*self.batch, *(a if self.trans_a is Trans.NO else a[::-1])),
            (*self.batch, *(b if self.trans_b is Trans.NO else b[::-1])),
            (*self.batch, self.m, self.n),
        )


@dataclass(frozen=True)
class TriangularCase:
    """TRMM or TRSM of one dtype and size: b is m by n; `batch` are the extents before m and n."""

    dtype: Dtype
    m: int
    n: int
    side: Side = Side.LEFT
    uplo: Uplo = Uplo.LOWER
    trans: Trans = Trans.NO
    diag: Diag = Diag.NON_UNIT
    alpha: complex = 1
    batch: tuple[int, ...] = ()

    def __str__(self):
        flags = "".join(flag.value for flag in (self.side, self.uplo, self.trans, self.diag))
        return f"{self.dtype.letter}-{flags}-{self.m}x{self.n}-{self.alpha}"

    @property
    def order(self) -> int:
        """Order of the triangle."""
        return self.m if self.side is Side.LEFT else self.n


def scalars(values: tuple, dtype: Dtype) -> tuple:
    """Return the `values` that can multiply arrays of `dtype`."""
    return tuple(value for value in values if dtype.is_complex or not isinstance(value, complex))


def gemm_cases(
    sizes: tuple[int, ...] = EDGES, shape: tuple[int, int, int] = (65, 33, 31)
) -> Iterator[GemmCase]:
    """Every dtype with: every size as a cube and as each extent of `shape`; all flags; all alpha, beta."""
    for dtype in DTYPES.values():
        for size in sizes:
            yield GemmCase(dtype, size, size, size)
            for axis in range(3):
                m, n, k = (size if axis == which else extent for which, extent in enumerate(shape))
                yield GemmCase(dtype, m, n, k, alpha=2, beta=-1)
        for trans_a, trans_b in product(Trans, Trans):
            yield GemmCase(dtype, *shape, trans_a, trans_b, alpha=-1, beta=2)
        for alpha, beta in product(scalars(ALPHAS, dtype), scalars(BETAS, dtype)):
            yield GemmCase(dtype, *shape, alpha=alpha, beta=beta)


def triangular_cases(
    sizes: tuple[int, ...] = EDGES, shape: tuple[int, int] = (65, 33)
) -> Iterator[TriangularCase]:
    """Every dtype with: every size as a square and as each extent of `shape`; all flags; every alpha."""
    for dtype in DTYPES.values():
        for size in sizes:
            yield TriangularCase(dtype, size, size)
            yield TriangularCase(dtype, size, shape[1], uplo=Uplo.UPPER)
            yield TriangularCase(dtype, shape[0], size, side=Side.RIGHT)
        for side, uplo, trans, diag in product(Side, Uplo, Trans, Diag):
            yield TriangularCase(dtype, *shape, side, uplo, trans, diag, alpha=2)
        for alpha in scalars(ALPHAS, dtype):
            yield TriangularCase(dtype, *shape, alpha=alpha)
