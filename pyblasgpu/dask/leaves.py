"""Calls that a worker runs: the tasks of one output chunk, one after the other, in a chunk of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

import pyblasgpu

from ..api.linalg.checks import host_values
from ..tasks import TileLeaf
from .card_streams import on_current_card, own_stream
from .declared import Declared

__all__ = ["Accumulate", "LeafCall", "Zeros", "run_call"]


@dataclass(frozen=True)
class Zeros:
    """A chunk of zeros.

    Attributes
    ----------
    shape : (int, int)
    library : str
        "numpy" or "cupy": a name, since a scheduler need not have what the workers have.
    dtype : numpy.dtype
    """

    shape: tuple[int, int]
    library: str
    dtype: np.dtype[Any]

    def __call__(self, order: str = "C") -> Any:
        return import_module(self.library).zeros(self.shape, self.dtype, order)

    def broadcast(self) -> Any:
        """Return the zeros to be read alone; of NumPy's, one zero for all."""
        if self.library == "numpy":
            return np.broadcast_to(np.zeros((), self.dtype), self.shape)
        return self()


class LeafCall(NamedTuple):
    """A leaf on parts of chunks.

    Attributes
    ----------
    leaf : TileLeaf
    reads : tuple of (int, slice)
        Numbers of operands, and which of their rows.
    rows : slice
        The rows of the output chunk.
    first : int
        The number of the output's first row in the whole matrix.
    """

    leaf: TileLeaf
    reads: tuple[tuple[int, slice], ...]
    rows: slice
    first: int


@dataclass(frozen=True)
class Accumulate:
    """The calls that update one chunk.

    They work on a copy: the scheduler may run a task again, and other tasks may read its inputs. A call of
    "getrf" is the last one, and makes a pair of chunk and pivots, these in host memory.

    Chunks of other devices are copied to the current one, where the result is. The call ends when it is
    there, so that workers of one process may pass chunks on as they are.

    Attributes
    ----------
    calls : tuple of LeafCall
    order : {'C', 'F'}
        The order of the chunk in memory.
    declared : tuple of Declared or None
        The declarations of the start and of each operand, None where that is no chunk of an argument.
    """

    calls: tuple[LeafCall, ...]
    order: str = "C"
    declared: tuple[Declared | None, ...] = ()

    def __call__(self, start: Any, operands: Sequence[Any]) -> Any:
        for declared, chunk in zip(self.declared, (start, *operands), strict=False):
            if declared:
                declared.check(chunk)
        if isinstance(start, np.ndarray) or (isinstance(start, Zeros) and start.library == "numpy"):
            return self._run(self._copy_of(start), operands)
        # the result is made on the stream that is current, where others use it and free it
        is_far = not isinstance(start, Zeros) and start.device != import_module("cupy").cuda.Device()
        chunk = Zeros(start.shape, "cupy", self._dtype(start))(self.order) if is_far else self._copy_of(start)
        with own_stream([*operands, *([start] if is_far else [])]):
            if is_far:
                chunk[...] = on_current_card(start)
            return self._run(chunk, operands)

    def _copy_of(self, start: Any) -> Any:
        """Return a copy of `start`, in the order of the chunk."""
        if isinstance(start, Zeros):
            return start(self.order)
        dtype = self._dtype(start)
        return start.copy(order=self.order) if start.dtype == dtype else start.astype(dtype, order=self.order)

    def _dtype(self, start: Any) -> np.dtype[Any]:
        """The dtype of the result, whose chunk begins as `start`."""
        declared = self.declared[0] if self.declared else None
        return declared.dtype if declared else start.dtype

    def _here(self, number: int, operand: Any) -> Any:
        """An operand on the current card, in the dtype of the computation."""
        declared = self.declared[number + 1] if self.declared else None
        moved = on_current_card(operand)
        return declared.cast(moved) if declared else moved

    def _run(self, chunk: Any, operands: Sequence[Any]) -> Any:
        """Run the calls on a chunk of this card's."""
        here: dict[int, Any] = {}  # operands on the current card, from their first use to the last
        pivots = None
        for index, call in enumerate(self.calls):
            for number, _ in call.reads:
                if number not in here:
                    here[number] = self._here(number, operands[number])
            pivots = run_call(call, [here[number][rows] for number, rows in call.reads], chunk[call.rows])
            later = {number for other in self.calls[index + 1 :] for number, _ in other.reads}
            here = {number: operand for number, operand in here.items() if number in later}
        return chunk if pivots is None else (chunk, pivots)


def run_call(call: LeafCall, reads: list[Any], out: Any) -> Any:
    """Run a leaf in place of `out`; the pivots of "getrf", else None."""
    routine, flags = call.leaf.routine, call.leaf.keywords
    if 0 in out.shape or (routine == "laswp" and not len(reads[0])):
        return np.zeros(0, np.int32) if routine == "getrf" else None
    if routine in ("trmm", "trsm"):
        getattr(pyblasgpu, routine)(*reads, out, out=out, **flags)
    elif routine == "potrf":
        factor, info = pyblasgpu.lapack.potrf(out, overwrite_a=1, **flags)
        if int(info):
            order = call.first + int(info)
            raise LinAlgError(f"{order}-th leading minor of the array is not positive definite")
        out[...] = factor
    elif routine == "getrf":
        out[...], pivots, _ = pyblasgpu.lapack.getrf(out, overwrite_a=1)
        return host_values(pivots)
    elif routine == "laswp":
        out[...] = pyblasgpu.lapack.laswp(out, reads[0], overwrite_a=1)
    else:
        getattr(pyblasgpu, routine)(*reads, out=out, **flags)
    return None
