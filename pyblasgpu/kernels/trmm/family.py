"""The families that multiply by a triangle."""

from __future__ import annotations

from ..registry import Axes, Family

__all__ = ["FAMILIES"]

FAMILIES = (
    Family(
        "trmm_leaf",
        ".trmm.leaf",
        "TrmmLeaf",
        "trmm",
        space_name=".trsm.space:triangle_leaf",
        axes=Axes(
            tile=(("BLK_M", "DIM_X"), ("BLK_N", "DIM_Y"), ("BLK_K", "SLICED_K")),
            variant=(("stages", "min_blocks"),),
        ),
    ),
    Family("trmm_small", ".trmm.small", "TrmmSmall", "trmm", needs=(8, 0)),  # cp.async
    Family("diagonal_blocks", ".trmm.diagonal_blocks", "DiagonalBlocks", "trmm"),
)
