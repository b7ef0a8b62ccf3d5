"""The families that solve by a triangle."""

from __future__ import annotations

from ..registry import Axes, Family

__all__ = ["FAMILIES"]

_VARIANT = ("PRODUCER_WARPS",), ("WARPS_PER_COLUMN_GROUP",), ("stages", "min_blocks")

FAMILIES = (
    Family(
        "trsm_mma",
        ".trsm.mma",
        "TrsmMma",
        "trsm",
        dtypes=("d", "z"),
        tensor_cores=True,
        space_name=".trsm.space:triangle_mma",
        axes=Axes(
            tile=(("ORDER", "BLK"), ("WARPS", "WARP_N"), ("MMA_M", "MMA_K")),
            variant=_VARIANT,
        ),
    ),
    Family(
        "trsm_fma",
        ".trsm.fma",
        "TrsmFma",
        "trsm",
        space_name=".trsm.space:triangle_fma",
        axes=Axes(tile=(("ORDER", "BLK"), ("WARPS", "WARP_N")), variant=_VARIANT),
        solved_columns=2,
    ),
    Family("trsm_small", ".trsm.small", "TrsmSmall", "trsm", needs=(8, 0)),  # cp.async
)
