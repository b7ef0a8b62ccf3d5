"""What a worker runs: the tasks of one output chunk, one after the other, in a chunk of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

import pyblasgpu

from ..tasks import TileLeaf

__all__ = ["Accumulate", "LeafCall", "Zeros", "on_current_card", "run_call"]


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
        """Those zeros to be read alone; of NumPy's, one zero for all."""
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

    Chunks of other cards are copied to the current one, where the result lies. The call ends when it is
    there, so that workers of one process may pass chunks on as they are.
    """

    calls: tuple[LeafCall, ...]
    order: str = "C"

    def __call__(self, start: Any, operands: Sequence[Any]) -> Any:
        chunk = start(self.order) if isinstance(start, Zeros) else start.copy(order=self.order)
        here: dict[int, Any] = {}  # operands on the current card, from their first use to the last
        pivots = None
        for index, call in enumerate(self.calls):
            for number, _ in call.reads:
                if number not in here:
                    here[number] = on_current_card(operands[number])
            pivots = run_call(call, [here[number][rows] for number, rows in call.reads], chunk[call.rows])
            later = {number for other in self.calls[index + 1 :] for number, _ in other.reads}
            here = {number: operand for number, operand in here.items() if number in later}
        if not isinstance(chunk, np.ndarray):
            import_module("cupy").cuda.get_current_stream().synchronize()
        return chunk if pivots is None else (chunk, pivots)


def on_current_card(array: Any) -> Any:
    """A CuPy array of another card as a copy on the current one."""
    if isinstance(array, np.ndarray) or array.device == import_module("cupy").cuda.Device():
        return array
    return array.copy()  # CuPy copies to the current card


def run_call(call: LeafCall, reads: list[Any], out: Any) -> Any:
    """Run a leaf in place of `out`; the pivots of "getrf", else None."""
    routine, flags = call.leaf.routine, call.leaf.keywords
    if 0 in out.shape:
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
        return np.asarray(pivots)
    elif routine == "laswp":
        out[...] = pyblasgpu.lapack.laswp(out, reads[0], overwrite_a=1)
    else:
        getattr(pyblasgpu, routine)(*reads, out=out, **flags)
    return None
