"""The slices of k of a product that is split, whose partials `split_k_reduce` adds."""

from __future__ import annotations

from ...types import Dtype

__all__ = ["LOAD", "cut"]

LOAD = 16  # bytes of one load


def cut(k: int, splits: int, dtype: Dtype) -> tuple[int, int]:
    """The depth of each of `splits` chunks of `k`, and what is left over: less than 16 bytes for each chunk.

    Chunks are multiples of 16 bytes deep, so that vectors of A and B may begin where a chunk does.
    """
    grain = LOAD // dtype.itemsize
    depth = k // splits // grain * grain
    return depth, k - splits * depth
