"""What a launch tells its kernel at run time, as the bits of one int32: triangle, conjugation, diagonal.

What is told so needs no kernel of its own.
"""

from __future__ import annotations

from ...types import Region

__all__ = [
    "BY_ROWS",
    "CONJUGATE",
    "HERMITIAN",
    "MIRRORED",
    "RASTER_BIT",
    "SLICES_BIT",
    "STRICT",
    "TRIANGLE",
    "UNIT",
    "UPPER",
    "ZERO",
    "options_of",
]

TRIANGLE, UPPER, HERMITIAN, STRICT, CONJUGATE, UNIT, ZERO, MIRRORED, BY_ROWS = (1 << bit for bit in range(9))
#: From this bit on stand the rows of tiles of a column in which C is rasterized; 0: as many as usual.
RASTER_BIT = 16
#: From this bit on stand the slices of `split_k_reduce`.
SLICES_BIT = 16


def options_of(
    region: Region = Region.ALL,
    conj: bool = False,
    unit: bool = False,
    zero: bool = False,
    mirrored: bool = False,
    by_rows: bool = False,
    raster: int = 0,
) -> int:
    """The bits for these options.

    Parameters
    ----------
    region : Region
        What of a matrix is meant.
    conj : bool
        What is read or summed is conjugated.
    unit : bool
        A diagonal is one, and is not read.
    zero : bool
        The output is filled with zeros.
    mirrored : bool
        The output is symmetric or Hermitian; one triangle is read.
    by_rows : bool
        Neighbouring rows (else columns) are neighbours in memory.
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
        | raster << RASTER_BIT
    )
