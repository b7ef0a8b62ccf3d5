"""Routines that may run by tiles: the extents of their matrices, and their flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...routine import INTEGERS, Matrix, Routine
from ...routine_table import ROUTINES
from ...types import Dtype, Side, Trans

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
        trsm. Of potrf it is n, of potrs n and the number of right-hand sides.
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

    @classmethod
    def of(
        cls,
        routine: Routine,
        extents: tuple[int, ...],
        flags: Mapping[str, Any],
        dtype: Dtype,
        names: tuple[str, ...] = (),
    ) -> TiledRoutine:
        """The routine with flags and switches of its row; by default `names` are those of its operands."""
        given = {name: flags[name] for name in routine.flags}
        if "hermitian" in routine.switches:
            given["hermitian"] = routine.conjugates(dtype)
        is_new = flags.get("is_new_output") or flags.get("clean") or False
        in_place = routine.half not in (None, routine.output) and "beta" not in routine.scalars
        side = flags.get("side", Side.LEFT) if in_place else None
        return cls(
            routine.tasks,
            names or tuple(each.name for each in routine.matrices if each.name not in INTEGERS),
            extents,
            given,
            is_new,
            side,
        )

    @property
    def row(self) -> Routine:
        return ROUTINES[self.routine]

    @property
    def operands(self) -> tuple[Matrix, ...]:
        """The operands of `names`."""
        return tuple(each for each in self.row.matrices if each.name not in INTEGERS)


def has_lines(tiled: TiledRoutine, arrays: Sequence[np.ndarray]) -> tuple[bool, ...]:
    """By extent whether a matrix has its lines along it; `arrays` are those of `tiled.names`."""
    extents: set[int] = set()
    for (rows, cols), array in zip(_extents_of(tiled), arrays, strict=True):
        row_stride, col_stride = map(abs, array.strides)
        extents.add(cols if col_stride <= row_stride else rows)
    return tuple(index in extents for index in range(len(tiled.extents)))


def _extents_of(tiled: TiledRoutine) -> list[tuple[int, int]]:
    """By matrix which of the extents are its rows and its columns."""
    numbers = {name: index for index, name in enumerate(tiled.row.dims)}
    numbers["order"] = _order_extent(tiled)
    pairs = []
    for matrix in tiled.operands:
        pair = numbers[matrix.rows], numbers[matrix.cols]
        pairs.append(pair if tiled.flags.get(matrix.op, Trans.NO) is Trans.NO else pair[::-1])
    return pairs


def inner_extent(tiled: TiledRoutine) -> int | None:
    """Which of the extents is summed over."""
    if "k" in tiled.row.dims:
        return len(tiled.extents) - 1
    return None if len(tiled.extents) == 1 else _order_extent(tiled)


def _order_extent(tiled: TiledRoutine) -> int:
    """Which of the extents is the order of the matrix that is triangular, symmetric or Hermitian."""
    return int(tiled.flags.get("side", tiled.side) is Side.RIGHT)
