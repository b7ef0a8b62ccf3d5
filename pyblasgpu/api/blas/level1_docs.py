"""Docstrings of `blas`: a row a routine of Level 1, and what these share."""

from __future__ import annotations

from ..docstrings import Shared
from .docs import COMMON, Row

__all__ = ["LEVEL_1"]

_WRITTEN = Shared(
    """
    Parameters
    ----------
    x, y : array
        The arrays that hold the vectors; those of several dimensions count in the order of columns.
    x : array
        The array that holds the vector; one of several dimensions counts in the order of columns.
    n : int, optional
        The number of elements; by default as many as fit into `x` behind its offset.
    offx : int, default 0
        The first element in `x`.
    incx : int, default 1
        The step in `x`. A negative one runs backwards, and ends at the offset.
    offy : int, default 0
        The first element in `y`.
    incy : int, default 1
        The step in `y`. A negative one runs backwards, and ends at the offset.
    overwrite_x, overwrite_y : bool, default False
        Whether `x`, `y` may hold the results.
    overwrite_x : bool, default False
        Whether `x` may hold the result.

    Returns
    -------
    z : array
        `y` with the result, if it is contiguous by columns and of the routine's dtype; else a copy.
    y : array
        `y` with the result, if it is contiguous by columns and of the routine's dtype; else a copy.
    x : array
        `x` with the result, if it may be written, is contiguous by columns and of the routine's dtype; else a
        copy.
    x, y : array
        The arrays that were passed, with the results, where they may be written, are contiguous by columns
        and of the routine's dtype; else copies.
    """,
    COMMON,
)
_BOTH_WRITTEN = Shared(
    """
    Raises
    ------
    OverlapError
        When the arrays that are written overlap.
    """,
    _WRITTEN,
)
_NUMBER = Shared(
    """
    Returns
    -------
    xy : float, complex or array
        The sum: a number for arrays in host memory, else a 0-d array on the device, without synchronization.
    n2 : float or array
        The norm: a number for arrays in host memory, else a 0-d array on the device, without synchronization.
    s : float or array
        The sum: a number for arrays in host memory, else a 0-d array on the device, without synchronization.
    k : int or array
        The index: a number for arrays in host memory, else a 0-d array on the device, without
        synchronization.
    """,
    _WRITTEN,
)
_DOT = Row(
    _NUMBER,
    "Inner product of vectors, ``sum(x y)``",
    "xy : float, complex or array",
    "abs({}([1, 2], [3, 4]))\n11.0",
    keyword="dot",
)
_ROTATED = "x, y = {}([1, 2], [3, 4], %s)\n>>> x.real.tolist(), y.real.tolist()\n([3.0, 4.0], [-1.0, -2.0])"

LEVEL_1 = {
    "axpy": Row(
        _WRITTEN,
        "Sum of vectors, ``y := a x + y``",
        "z : array",
        "{}([1, 2], [3, 4], a=2).real.tolist()\n[5.0, 8.0]",
        "a : number, default 1\n    The factor of `x`. With 0, `x` is not read.",
    ),
    "copy": Row(
        _WRITTEN, "Copy of a vector, ``y := x``", "y : array", "{}([1, 2], [0, 0]).real.tolist()\n[1.0, 2.0]"
    ),
    "swap": Row(
        _BOTH_WRITTEN,
        "Exchange of two vectors, ``x, y := y, x``",
        "x, y : array",
        "[z.real.tolist() for z in {}([1, 2], [3, 4])]\n[[3.0, 4.0], [1.0, 2.0]]",
    ),
    "scal": Row(
        _WRITTEN,
        "Multiple of a vector, ``x := a x``",
        "x : array",
        "{}(2, [1, 2]).real.tolist()\n[2.0, 4.0]",
        "a : number\n    The factor, real for a real routine and for csscal and zdscal.",
    ),
    "rot": Row(
        _BOTH_WRITTEN,
        "Plane rotation, ``x, y := c x + s y, c y - s x``",
        "x, y : array",
        _ROTATED % "0, 1",
        "c, s : real number\n    Cosine and sine.",
    ),
    "rotm": Row(
        _BOTH_WRITTEN,
        "Modified plane rotation, ``x, y := h11 x + h12 y, h21 x + h22 y``",
        "x, y : array",
        _ROTATED % "[-1, 0, -1, 1, 0]",
        "param : sequence of five numbers\n"
        "    The flag and h11, h21, h12, h22, as `drotmg` makes them; see `pyblasgpu.rotm`.",
    ),
    "dot": _DOT,
    "dotu": _DOT,
    "dotc": _DOT._replace(summary="Inner product of vectors, ``sum(conj(x) y)``"),
    "nrm2": Row(
        _NUMBER,
        "Euclidean norm of a vector, without overflow or underflow",
        "n2 : float or array",
        "{}([3, 4])\n5.0",
        "incx : int, default 1\n    The step in `x`, positive.",
    ),
    "asum": Row(
        _NUMBER,
        "Sum of absolute values of real and imaginary parts",
        "s : float or array",
        "{}([3, 4])\n7.0",
        "incx : int, default 1\n    The step in `x`. With a negative one the sum is 0.",
    ),
    "iamax": Row(
        _NUMBER,
        "Index, from 0, of the first element with largest ``|Re x| + |Im x|``",
        "k : int or array",
        "{}([3, 4])\n1",
        "incx : int, default 1\n    The step in `x`. With a negative one the index is -1.",
    ),
}
