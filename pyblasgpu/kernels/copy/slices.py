"""The slices of k of a product that is split, whose partials `split_k_reduce` adds."""

from __future__ import annotations

from ...types import Dtype

__all__ = ["LOAD", "slice_depth"]

LOAD = 16  # bytes of one load


def slice_depth(k: int, splits: int, dtype: Dtype) -> tuple[int, int]:
    """The depth of each of `splits` slices of `k`, and what is left over: less than 16 bytes for each slice.

    Slices are multiples of 16 bytes deep, so that vectors of A and B may begin where a slice does.
    """
    grain = LOAD // dtype.itemsize
    depth = k // splits // grain * grain
    return depth, k - splits * depth
