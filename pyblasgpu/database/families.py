"""The kernel families that have tuned values. A file can name these and nothing else."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from ..kernels.registry import FAMILIES, FIXED, Family, families_of
from ..types import Triangle

__all__ = [
    "FAMILIES",
    "FIXED",
    "FUSED_STEMS",
    "FUSED_TRSM",
    "TUNED",
    "T_LAYOUTS",
    "Family",
    "current_name",
    "families_of",
    "t_layout",
    "with_current_names",
]


# Names in the files of versions before 0.1.0. The readers of tuned values and of sweeps put today's in their
# stead, so that what users have tuned still serves.
_RENAMED = {
    "gemm_tile": "gemm_simt",
    "SLICES": "SLICED_K",
    "LOADERS": "PRODUCER_WARPS",
    "SPLIT": "WARPS_PER_COLUMN_GROUP",
}


def current_name(name: str) -> str:
    """Return the current name of a family or parameter that a file calls `name`."""
    return _RENAMED.get(name, name)


def with_current_names(values: dict[str, Any]) -> dict[str, Any]:
    """`values` under the names that families or parameters have now."""
    return {current_name(name): value for name, value in values.items()}


class TLayout(NamedTuple):
    """Layout of the triangle T of a fused TRSM, all else being column-major.

    Attributes
    ----------
    product : str
        Layout of the product.
    triangle : Triangle
        The triangle with which Configs are timed: lower on the left, upper on the right, which is solved in
        the same order.
    """

    product: str
    triangle: Triangle


T_LAYOUTS = {
    "left_colmajor": TLayout("nn", Triangle.LOWER_LEFT),
    "left_rowmajor": TLayout("tn", Triangle.LOWER_LEFT),
    "right_colmajor": TLayout("nn", Triangle.UPPER_RIGHT),
    "right_rowmajor": TLayout("nt", Triangle.UPPER_RIGHT),
}


def t_layout(product: str, triangle: Triangle) -> str:
    """Return the layout, one of `T_LAYOUTS`, of the triangle of a product."""
    order = "colmajor" if product[not triangle.on_left] == "n" else "rowmajor"
    return f"{'left' if triangle.on_left else 'right'}_{order}"


@dataclass(frozen=True)
class FusedTrsm(Family):
    """The fused TRSM by Configs of a family of products; its layouts are `T_LAYOUTS`."""

    def config(self, dtype: str, layout: str, parameters: Mapping[str, int]) -> Any:
        """The Config of the product."""
        return super().config(dtype, T_LAYOUTS[layout].product, parameters)


def _fused(stem: str, product: Family) -> FusedTrsm:
    values = {field.name: getattr(product, field.name) for field in fields(Family) if field.init}
    return FusedTrsm(**values | {"stem": stem, "routine": "trsm", "layouts": tuple(T_LAYOUTS)})


#: Family of products -> the family of fused TRSMs by its Configs.
FUSED_STEMS = {"gemm_simt": "trsm_fused_simt", "gemm_mma": "trsm_fused_mma"}

#: These families; their classes are the points of `points.TRSM_POINTS`.
FUSED_TRSM: dict[str, Family] = {
    stem: _fused(stem, FAMILIES[product]) for product, stem in FUSED_STEMS.items()
}

#: All families of which files hold entries.
TUNED = ChainMap(FAMILIES, FUSED_TRSM)
