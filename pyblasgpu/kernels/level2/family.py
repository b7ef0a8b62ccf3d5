"""The families of level 2."""

from __future__ import annotations

from ..registry import Family

__all__ = ["FAMILIES"]

FAMILIES = (
    Family("gemv_n", ".level2.gemv", "GemvN", "gemv"),
    Family("gemv_t", ".level2.gemv", "GemvT", "gemv"),
    Family("symv", ".level2.symv", "Symv", "symv"),
    Family("symv_sum", ".level2.symv_sum", "SymvSum", "symv"),
    Family("ger", ".level2.ger", "Ger", "ger"),
)
