"""Routines as lists of tile tasks: the cuts of their matrices, their flags, and what no task writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..tasks import TaskList, Tile, cut, gemm, potrf, symm, syrk, trmm, trsm
from ..tasks.task_list import finished
from ..types import Side, Trans, Uplo

__all__ = ["TiledRoutine", "has_lines", "inner_extent", "task_list", "untouched"]


class TiledRoutine(NamedTuple):
    """A routine on matrices.

    Attributes
    ----------
    routine : str
        "gemm", "syrk", "symm", "trmm", "trsm", "potrf" or "potrs".
    names : tuple of str
        Of its inputs, and last of its output, in the list of tasks.
    extents : tuple of int
        What is cut into tiles: of gemm m, n and k, of syrk n and k, of symm, trmm and trsm m and n, of
        potrf n, of potrs n and how many right-hand sides.
    flags : dict
        Its keyword arguments.
    is_new_output : bool
        Whether the other triangle of the output becomes zero.
    side : Side, optional
        Of a triangular routine.
    """

    routine: str
    names: tuple[str, ...]
    extents: tuple[int, ...]
    flags: dict[str, Any]
    is_new_output: bool = False
    side: Side | None = None


def _potrs(n: tuple[int, ...], cols: tuple[int, ...], uplo: Uplo) -> TaskList:
    """``b := x`` with L L^H x = b, or U^H U x = b; `a` holds the factor. Both solves are one list."""
    first, then = (Trans.NO, Trans.CONJ) if uplo is Uplo.LOWER else (Trans.CONJ, Trans.NO)
    lists = [trsm(n, cols, Side.LEFT, uplo, trans) for trans in (first, then)]
    steps = [(task.leaf, task.reads, task.writes) for each in lists for task in each.tasks]
    return TaskList("potrs", lists[0].grids, finished(steps))


_LISTS: dict[str, Callable[..., TaskList]] = {
    "gemm": gemm,
    "syrk": syrk,
    "symm": symm,
    "trmm": trmm,
    "trsm": trsm,
    "potrf": potrf,
    "potrs": _potrs,
}


def task_list(tiled: TiledRoutine, orders: tuple[int, ...], scalars: tuple[Any, ...]) -> TaskList:
    """The routine with each extent cut by its order, and with alpha, or alpha and beta."""
    cuts = [cut(extent, order) for extent, order in zip(tiled.extents, orders, strict=True)]
    numbers = {} if tiled.routine.startswith("potr") else dict(zip(("alpha", "beta"), scalars, strict=False))
    tasks = _LISTS[tiled.routine](*cuts, **tiled.flags, **numbers)
    return _with_zeros(tasks) if tiled.is_new_output else tasks


def _with_zeros(tasks: TaskList) -> TaskList:
    """The same whose diagonal tiles get zeros in the other triangle."""
    flag = {"syrk": "is_new_output", "herk": "is_new_output", "potrf": "clean"}

    def changed(task: Any) -> Any:
        name = flag.get(task.leaf.routine)
        is_first = task.leaf.keywords.get("beta", 0) == 0
        if name is None or not is_first:
            return task
        return task._replace(leaf=task.leaf._replace(flags=(*task.leaf.flags, (name, True))))

    return TaskList(tasks.routine, tasks.grids, tuple(map(changed, tasks.tasks)))


def has_lines(tiled: TiledRoutine, arrays: Sequence[np.ndarray]) -> tuple[bool, ...]:
    """By extent whether a matrix has its lines along it; `arrays` are those of `tiled.names`."""
    found: set[int] = set()
    for (rows, cols), array in zip(_extents_of(tiled), arrays, strict=True):
        row_stride, col_stride = map(abs, array.strides)
        found.add(cols if col_stride <= row_stride else rows)
    return tuple(index in found for index in range(len(tiled.extents)))


def _extents_of(tiled: TiledRoutine) -> list[tuple[int, int]]:
    """By matrix which of the extents are its rows and its columns."""
    flags, routine = tiled.flags, tiled.routine
    given: tuple[tuple[tuple[int, int], Trans], ...]
    if routine == "gemm":
        given = ((0, 2), flags["trans_a"]), ((2, 1), flags["trans_b"]), ((0, 1), Trans.NO)
    elif routine == "syrk":
        given = ((0, 1), flags["trans"]), ((0, 0), Trans.NO)
    else:
        order = _order_extent(tiled)
        given = ((order, order), Trans.NO), *[((0, 1), Trans.NO)] * (len(tiled.names) - 1)
    return [(rows, cols) if trans is Trans.NO else (cols, rows) for (rows, cols), trans in given]


def inner_extent(tiled: TiledRoutine) -> int | None:
    """Which of the extents is summed over."""
    if tiled.routine in ("gemm", "syrk"):
        return len(tiled.extents) - 1
    return None if tiled.routine == "potrf" else _order_extent(tiled)


def _order_extent(tiled: TiledRoutine) -> int:
    """Which of the extents is the order of the matrix that is triangular, symmetric or Hermitian."""
    return int(tiled.flags.get("side", tiled.side) is Side.RIGHT)


def untouched(tasks: TaskList, output: str) -> list[Tile]:
    """The tiles of the output that no task writes."""
    grid = tasks.grids[output]
    written = {tile for task in tasks.tasks for tile in task.finishes}
    every = (Tile(output, row, col) for row in range(len(grid.rows)) for col in range(len(grid.cols)))
    return [tile for tile in every if tile not in written]
