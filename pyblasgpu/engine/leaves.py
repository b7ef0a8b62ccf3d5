"""Leaves of tasks as launches: the routine that a leaf names, on tiles in a card's memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..dispatch.choose import generation
from ..gpu.driver import after_fork
from ..operands import SECTOR, Operand
from ..routine_table import ROUTINES
from ..tasks.task_list import TileLeaf
from ..types import Trans
from .block_columns import WINDOWS

__all__ = ["EnqueueLeaf", "LeafRun", "enqueue_leaf", "kept_leaves", "overwrites"]

#: ``enqueue(leaf, operands, stream)`` puts the launches of a leaf on a stream; operands as in the task.
EnqueueLeaf = Callable[[TileLeaf, Sequence[Operand], int], None]


def overwrites(leaf: TileLeaf) -> bool:
    """Whether nothing of what the written tile holds is needed: a triangle leaves the other one as it is."""
    keeps = ROUTINES[leaf.routine].is_update and not leaf.keywords.get("is_new_output")
    return leaf.ignores_output and not keeps


class LeafRun:
    """The routine, operands and scalars of a leaf, as its launch list takes them.

    Attributes
    ----------
    routine : Routine
    operands : list of Operand
        op() applied as a view.
    scalars : tuple
        alpha, or alpha and beta.
    flags : dict
    places : list of (int, int)
        By operand which of the task's it is, and how many bytes after that it begins.
    """

    def __init__(self, leaf: TileLeaf, operands: Sequence[Operand]):
        flags, given, order = leaf.keywords, operands, list(range(len(operands)))
        windows = flags.pop(WINDOWS, None)
        if windows is not None:  # of what is not the info before them
            first = len(operands) - len(windows)
            operands = [*operands[:first], *map(_rows_of, operands[first:], windows)]
        self.scalars: tuple[Any, ...] = (flags.pop("alpha", 1),)
        if "beta" in flags:
            self.scalars += (flags.pop("beta"),)
        self.routine = ROUTINES[leaf.routine]
        if leaf.routine == "getrf":  # info, the matrix and the pivots, as the task writes them
            order = [2, 0, 1]
        flags |= {name: flags[keyword] for name, keyword in _KEYWORDS.items() if keyword in flags}
        operands = [operands[index] for index in order]
        self.places = [
            (index, each.pointer - given[index].pointer) for index, each in zip(order, operands, strict=True)
        ]
        pairs = zip(operands, self.routine.matrices, strict=True)
        self.operands = [_applied(each, flags.get(matrix.op, Trans.NO)) for each, matrix in pairs]
        self.flags = self.routine.view_flags(flags, self.operands[-1].dtype)

    @property
    def arguments(self) -> list[Any]:
        """Scalars and operands as the launch list takes them."""
        return self.routine.arranged(dict(zip(("alpha", "beta"), self.scalars, strict=False)), self.operands)


#: Flags of rows that a leaf has by the names of keyword style.
_KEYWORDS = {"uplo": "lower", "diag": "unit_diag"}


def _applied(operand: Operand, trans: Trans) -> Operand:
    """The view that op() is of an operand."""
    view = operand if trans is Trans.NO else operand.T
    return view.conjugate() if trans is Trans.CONJ else view


def _rows_of(operand: Operand, window: tuple[int, int] | None) -> Operand:
    """The rows of an operand that a leaf means."""
    if window is None:
        return operand
    first, end = window
    return operand.block(first, 0, end - first, operand.cols)


class _Kept(NamedTuple):
    """The launches of a leaf; None for no work."""

    enqueue: Callable[[Sequence[int], int], None] | None
    places: list[tuple[int, int]]


#: Launches of leaves, by all that they depend on but addresses; tiles have few layouts.
kept_leaves: dict[tuple[Any, ...], _Kept] = {}
MOST_KEPT = 512
after_fork(kept_leaves.clear)


def enqueue_leaf(leaf: TileLeaf, operands: Sequence[Operand], stream: int) -> None:
    """Enqueue the launches of a leaf, whose operands are those of the task: what is read, what is written.

    The operand of the info precedes those of "potrf" and "getrf".
    """
    key = generation(), leaf, *[(each[1:10], each.pointer % SECTOR) for each in operands]
    kept = kept_leaves.get(key) or _keep(key, leaf, operands)
    if kept.enqueue is not None:
        kept.enqueue([operands[index].pointer + distance for index, distance in kept.places], stream)


def _keep(key: tuple[Any, ...], leaf: TileLeaf, operands: Sequence[Operand]) -> _Kept:
    """Keep the launches of a leaf for operands of these layouts."""
    run = LeafRun(leaf, [each._replace(owner=None) for each in operands])
    launches = run.routine.launch_list(*run.arguments, **run.flags)
    if len(kept_leaves) >= MOST_KEPT:
        kept_leaves.clear()
    kept = kept_leaves[key] = _Kept(None if launches is None else launches.bound(*run.scalars), run.places)
    return kept
