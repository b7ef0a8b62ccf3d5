"""Host matrices so small that the processor is done before a card has them."""

from __future__ import annotations

from math import prod
from typing import Any

from .call import Call

__all__ = ["CARD_FROM", "prefers_processor"]

#: By dtype the order of square matrices from which on a card pays for those in host memory: between the
#: orders where GEMM and TRSM of `benchmarks.host_small` do. 0 where nobody has timed both.
CARD_FROM = {"s": 176, "d": 160, "c": 0, "z": 0}


def prefers_processor(call: Call, arrays: list[Any]) -> bool:
    """Whether SciPy's BLAS is to compute a call on host matrices that might run on a card.

    Parameters
    ----------
    call : Call
        Whether it or what is around it asks for a backend counts.
    arrays : list
        Its inputs and its output.
    """
    if not call.is_auto or call.device is None or any(array.ndim > 2 for array in arrays):
        return False
    # m n k of a product, the same of others: a triangular or a symmetric matrix has an order twice
    *inputs, out = arrays
    work = prod(array.size for array in (inputs * 2)[:2]) * out.size
    return work < CARD_FROM[call.dtype.letter] ** 6
