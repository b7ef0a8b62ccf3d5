"""Routines that may run by tiles: the extents of their matrices, and their flags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...types import Side, Trans

__all__ = ["TiledRoutine", "has_lines", "inner_extent"]


class TiledRoutine(NamedTuple):
    """A routine on matrices.

    Attributes
    ----------
    routine : str
        "gemm", "syrk", "symm", "trmm", "trsm", "potrf" or "potrs".
    names : tuple of str
        Names of its inputs, and last of its output, in the list of tasks.
    extents : tuple of int
        The extents that are cut into tiles: m, n and k of gemm, n and k of syrk, m and n of symm, trmm and
        trsm, n of potrf, n and the number of right-hand sides of potrs.
    flags : dict
        Its keyword arguments.
    is_new_output : bool
        Whether the other triangle of the output becomes zero.
    side : Side, optional
        The side of a triangular routine.
    """

    routine: str
    names: tuple[str, ...]
    extents: tuple[int, ...]
    flags: dict[str, Any]
    is_new_output: bool = False
    side: Side | None = None


def has_lines(tiled: TiledRoutine, arrays: Sequence[np.ndarray]) -> tuple[bool, ...]:
    """By extent whether a matrix has its lines along it; `arrays` are those of `tiled.names`."""
    extents: set[int] = set()
    for (rows, cols), array in zip(_extents_of(tiled), arrays, strict=True):
        row_stride, col_stride = map(abs, array.strides)
        extents.add(cols if col_stride <= row_stride else rows)
    return tuple(index in extents for index in range(len(tiled.extents)))


def _extents_of(tiled: TiledRoutine) -> list[tuple[int, int]]:
    """By matrix which of the extents are its rows and its columns."""
    flags, routine = tiled.flags, tiled.routine
    shapes: tuple[tuple[tuple[int, int], Trans], ...]
    if routine == "gemm":
        shapes = ((0, 2), flags["trans_a"]), ((2, 1), flags["trans_b"]), ((0, 1), Trans.NO)
    elif routine == "syrk":
        shapes = ((0, 1), flags["trans"]), ((0, 0), Trans.NO)
    else:
        order = _order_extent(tiled)
        shapes = ((order, order), Trans.NO), *[((0, 1), Trans.NO)] * (len(tiled.names) - 1)
    return [(rows, cols) if trans is Trans.NO else (cols, rows) for (rows, cols), trans in shapes]


def inner_extent(tiled: TiledRoutine) -> int | None:
    """Which of the extents is summed over."""
    if tiled.routine in ("gemm", "syrk"):
        return len(tiled.extents) - 1
    return None if tiled.routine == "potrf" else _order_extent(tiled)


def _order_extent(tiled: TiledRoutine) -> int:
    """Which of the extents is the order of the matrix that is triangular, symmetric or Hermitian."""
    return int(tiled.flags.get("side", tiled.side) is Side.RIGHT)
