"""Run-time options of a kernel, as the bits of one int32: triangle, conjugation, diagonal.

Such an option needs no kernel of its own.
"""

from __future__ import annotations

from ...types import Region, Triangle, Uplo

__all__ = [
    "BY_ROWS",
    "CONJUGATE",
    "CONJUGATE_SECOND",
    "EXCHANGES",
    "FROM_DIAGONAL",
    "HERMITIAN",
    "MIRRORED",
    "OF_COLUMNS",
    "OVERWRITE",
    "PAIRS",
    "PREFETCH_C",
    "RANK_2",
    "RASTER_BIT",
    "READS_Y",
    "SLICES_BIT",
    "STRICT",
    "TO_DIAGONAL",
    "TRIANGLE",
    "UNIT",
    "UPPER",
    "VECTORS",
    "ZERO",
    "options_of",
    "options_of_factor",
]

TRIANGLE, UPPER, HERMITIAN, STRICT, CONJUGATE, UNIT, ZERO, MIRRORED, BY_ROWS = (1 << bit for bit in range(9))
#: Options of a product by a triangle: k of a tile begin at the diagonal, end there; the triangle is the right
#: factor.
FROM_DIAGONAL, TO_DIAGONAL, OF_COLUMNS = (1 << bit for bit in range(9, 12))
PREFETCH_C = 1 << 12
#: Options of products with vectors: the second operand, x or the factor along the columns, is conjugated;
#: vectors of 16 bytes fit what is loaded; a second product is added; the output is not read.
CONJUGATE_SECOND, VECTORS, RANK_2, OVERWRITE = (1 << bit for bit in range(13, 17))
#: Options of operations on vectors: y is read and added; x and y are exchanged.
READS_Y, EXCHANGES = 1 << 17, 1 << 18
#: Elements are pairs of a kernel's reals, as complex numbers are. It is the first bit: kernels shift by it.
PAIRS = 1
#: First bit of the rows of tiles of a column in which C is rasterized; 0: as many as usual.
RASTER_BIT = 16
#: First bit of the slices of `split_k_reduce`.
SLICES_BIT = 16


def options_of(
    region: Region = Region.ALL,
    conj: bool = False,
    unit: bool = False,
    zero: bool = False,
    mirrored: bool = False,
    by_rows: bool = False,
    prefetch_c: bool = False,
    raster: int = 0,
) -> int:
    """The bits for these options.

    Parameters
    ----------
    region : Region
        Part of a matrix that is meant.
    conj : bool
        Whether the elements or sums are conjugated.
    unit : bool
        A diagonal is one, and is not read.
    zero : bool
        The output is filled with zeros.
    mirrored : bool
        The output is symmetric or Hermitian; one triangle is read.
    by_rows : bool
        Neighbouring rows (else columns) are neighbours in memory.
    prefetch_c : bool
        A tile of C is prefetched into L2 before its product, where C is read.
    raster : int
        Rows of tiles of a column in which C is rasterized; 0: as many as usual.
    """
    return (
        TRIANGLE * (region is not Region.ALL)
        | UPPER * region.is_upper
        | HERMITIAN * region.hermitian
        | STRICT * region.strict
        | CONJUGATE * conj
        | UNIT * unit
        | ZERO * zero
        | MIRRORED * mirrored
        | BY_ROWS * by_rows
        | PREFETCH_C * prefetch_c
        | raster << RASTER_BIT
    )


def options_of_factor(triangle: Triangle | None, strict: bool = False) -> int:
    """The bits for products by a triangle, or by none; `strict`: without its diagonal."""
    if triangle is None:
        return 0
    to_diagonal = (triangle.uplo is Uplo.LOWER) == triangle.on_left
    range_of_k = TO_DIAGONAL if to_diagonal else FROM_DIAGONAL
    return range_of_k | OF_COLUMNS * (not triangle.on_left) | STRICT * strict
