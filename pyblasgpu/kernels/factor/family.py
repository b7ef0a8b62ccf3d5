"""The families of the factorizations: Cholesky's leaf, the pivoted panel of LU."""

from __future__ import annotations

from ..registry import Family

__all__ = ["FAMILIES"]

_HALF = {"z": {"ORDER": 64, "BLK": 16, "DIM": 128}}  # complex128 takes twice the room of the others
_COLS = {"s": {"COLS": 64}, "d": {"COLS": 32}, "c": {"COLS": 32}}  # a row fills half of the registers

FAMILIES = (
    Family("potrf_leaf", ".factor.potrf_leaf", "PotrfLeaf", "potrf", needs=(8, 0), best_defaults=_HALF),
    Family("getrf_panel", ".factor.getrf_panel", "GetrfPanel", "getrf", needs=(8, 0), best_defaults=_COLS),
    Family("laswp", ".factor.laswp", "Laswp", "laswp"),
    Family("pivot_moves", ".factor.pivot_moves", "PivotMoves", "laswp", dtypes=("s",)),
)
