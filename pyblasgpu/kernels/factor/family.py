"""The families that factor and invert triangles and Hermitian matrices."""

from __future__ import annotations

from ..registry import Family

__all__ = ["FAMILIES"]

_HALF = {"z": {"ORDER": 64, "BLK": 16, "DIM": 128}}  # complex128 takes twice the room of the others

FAMILIES = (
    Family("potrf_leaf", ".factor.potrf_leaf", "PotrfLeaf", "potrf", needs=(8, 0), best_defaults=_HALF),
)
