"""Tile algorithms as plain lists of tasks, for whatever runs them: several cards, Dask, a simulation.

A list names the routines of the BLAS that are run on tiles, in a valid order. No array, device or scheduler
is known here. A routine's first argument is the cut of a dimension into blocks, which may be ragged::

    factor = potrf(cut(1000, 256), Uplo.LOWER)
    for task in factor.tasks: ...
    needs = dependencies(factor.tasks)
"""

from __future__ import annotations

from .cost import flops
from .dependencies import dependencies
from .factors import getrf, potrf
from .products import gemm, symm, syrk
from .task_list import Grid, Task, TaskList, Tile, TileLeaf, cut
from .triangular import potrs, trmm, trsm

__all__ = [
    "Grid",
    "TileLeaf",
    "Task",
    "TaskList",
    "Tile",
    "cut",
    "dependencies",
    "flops",
    "gemm",
    "getrf",
    "potrf",
    "potrs",
    "symm",
    "syrk",
    "trmm",
    "trsm",
]
