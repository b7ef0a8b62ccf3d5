"""Host matrices so small that the processor is done before a card has them."""

from __future__ import annotations

from math import prod
from typing import Any

from .call import Call
from .lazy_routines import policy_at

__all__ = ["prefers_processor"]


def prefers_processor(call: Call, arrays: list[Any]) -> bool:
    """Whether SciPy's BLAS is to compute a call on host matrices that might run on a device.

    Parameters
    ----------
    call : Call
        The call; a backend that it or its context names counts.
    arrays : list
        Its inputs and its output.
    """
    if not call.is_auto or call.device is None or any(array.ndim > 2 for array in arrays):
        return False
    # m n k of a product, the same of others: a triangular or a symmetric matrix has an order twice
    *inputs, out = arrays
    work = prod(array.size for array in (inputs * 2)[:2]) * out.size
    return work < policy_at(call.device).host_min_order[call.dtype.letter] ** 6
