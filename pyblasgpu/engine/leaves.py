"""Leaves of tasks as launches: the routine that a leaf names, on tiles in a card's memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from ..operands import Operand
from ..tasks.task_list import TileLeaf
from ..types import Trans
from .block_columns import WINDOWS

__all__ = ["EnqueueLeaf", "LeafRun", "enqueue_leaf", "overwrites"]

#: ``enqueue(leaf, operands, stream)`` puts the launches of a leaf on a stream; operands as in the task.
EnqueueLeaf = Callable[[TileLeaf, Sequence[Operand], int], None]


def overwrites(leaf: TileLeaf) -> bool:
    """Whether nothing of what the written tile holds is needed: a triangle leaves the other one as it is."""
    keeps = leaf.routine in ("syrk", "herk") and not leaf.keywords.get("is_new_output")
    return leaf.ignores_output and not keeps


class LeafRun:
    """The routine, operands and scalars of a leaf, as `launch_list` takes them.

    Attributes
    ----------
    routine : str
    operands : list of Operand
        op() applied as a view.
    scalars : tuple
        alpha, or alpha and beta.
    flags : dict
    """

    def __init__(self, leaf: TileLeaf, operands: Sequence[Operand]):
        flags = leaf.keywords
        windows = flags.pop(WINDOWS, None)
        if windows is not None:  # of what is not the info before them
            first = len(operands) - len(windows)
            operands = [*operands[:first], *map(_rows_of, operands[first:], windows)]
        self.scalars: tuple[Any, ...] = (flags.pop("alpha", 1),)
        if "beta" in flags:
            self.scalars += (flags.pop("beta"),)
        self.operands = list(operands)
        self.routine = _ROUTINES.get(leaf.routine, leaf.routine)
        self.flags = getattr(self, f"_flags_of_{self.routine}")(leaf.routine, flags)

    def _flags_of_gemm(self, name: str, flags: dict[str, Any]) -> dict[str, Any]:
        self._apply(0, flags.pop("trans_a"))
        self._apply(1, flags.pop("trans_b"))
        return flags

    def _flags_of_syrk(self, name: str, flags: dict[str, Any]) -> dict[str, Any]:
        self._apply(0, flags.pop("trans"))
        return {
            "uplo": flags.pop("lower"),
            "hermitian": name == "herk" and self.operands[-1].dtype.is_complex,
            "is_new_output": flags.pop("is_new_output", False),
        }

    def _flags_of_symm(self, name: str, flags: dict[str, Any]) -> dict[str, Any]:
        hermitian = name == "hemm" and self.operands[-1].dtype.is_complex
        return {"side": flags["side"], "uplo": flags["lower"], "hermitian": hermitian}

    def _flags_of_trsm(self, name: str, flags: dict[str, Any]) -> dict[str, Any]:
        uplo, trans = flags["lower"], flags["trans"]
        self._apply(0, trans)
        uplo = uplo if trans is Trans.NO else uplo.flipped
        return {"side": flags["side"], "uplo": uplo, "diag": flags["unit_diag"]}

    _flags_of_trmm = _flags_of_trsm

    def _flags_of_getrf(self, name: str, flags: dict[str, Any]) -> dict[str, Any]:
        info, a, piv = self.operands
        self.operands = [piv, info, a]
        return {}

    def _flags_of_laswp(self, name: str, flags: dict[str, Any]) -> dict[str, Any]:
        return {"backwards": False}

    def _flags_of_potrf(self, name: str, flags: dict[str, Any]) -> dict[str, Any]:
        return {"uplo": flags["lower"], "clean": flags.get("clean", False)}

    def _apply(self, index: int, trans: Trans) -> None:
        operand = self.operands[index]
        if trans is not Trans.NO:
            operand = operand.T
        self.operands[index] = operand.conjugate() if trans is Trans.CONJ else operand


def _rows_of(operand: Operand, window: tuple[int, int] | None) -> Operand:
    """The rows of an operand that a leaf means."""
    if window is None:
        return operand
    first, end = window
    return operand.block(first, 0, end - first, operand.cols)


_ROUTINES = {"herk": "syrk", "hemm": "symm"}


@cache
def _launch_list(routine: str) -> Callable[..., Any]:
    function: Callable[..., Any] = import_module(f"..routines.{routine}", __package__).launch_list
    return function


def enqueue_leaf(leaf: TileLeaf, operands: Sequence[Operand], stream: int) -> None:
    """Enqueue the launches of a leaf, whose operands are those of the task: what is read, what is written.

    The operand of the info precedes those of "potrf" and "getrf".
    """
    run = LeafRun(leaf, operands)
    if run.routine in ("potrf", "getrf", "laswp"):
        launches = _launch_list(run.routine)(*run.operands, **run.flags)
    elif run.routine in ("trsm", "trmm"):
        launches = _launch_list(run.routine)(*run.scalars, *run.operands, **run.flags)
    else:
        *inputs, target = run.operands
        alpha, beta = run.scalars
        launches = _launch_list(run.routine)(alpha, *inputs, beta, target, **run.flags)
    if launches is not None:
        launches.run([operand.pointer for operand in run.operands], *run.scalars, stream=stream)
