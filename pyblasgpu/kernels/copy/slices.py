"""The slices of k of a product that is split, whose partials `split_k_reduce` adds."""

from __future__ import annotations

from ...operands import SECTOR
from ...types import Dtype

__all__ = ["LOAD", "slices_of"]

LOAD = 16  # bytes of one load


def slices_of(k: int, splits: int, dtype: Dtype) -> tuple[int, int]:
    """The depth of a slice of `k`, and how many there are, at most `splits`. The last may be less deep.

    Slices are multiples of a sector of memory deep, so that they begin with sectors where columns do.
    """
    grain = SECTOR // dtype.itemsize
    depth = -(-k // (splits * grain)) * grain
    return depth, -(-k // depth)
