"""The slices of k of a product that is split, whose partials `split_k_reduce` adds."""

from __future__ import annotations

__all__ = ["LOAD", "slices_of"]

LOAD = 16  # bytes of one load


def slices_of(k: int, splits: int, BLK_K: int) -> tuple[int, int]:
    """The depth of a slice of `k`, and how many there are, at most `splits`. The last may be less deep.

    Slices are whole k-tiles of `BLK_K`, so that they begin with sectors of memory where columns do.
    """
    depth = -(-k // (splits * BLK_K)) * BLK_K
    return depth, -(-k // depth)
