"""The families of level 2."""

from __future__ import annotations

from ..registry import Family

__all__ = ["FAMILIES"]

# an element of complex128 takes four registers, a float32 one
FAMILIES = (
    Family("gemv_n", ".level2.gemv", "GemvN", "gemv", best_defaults={"z": {"THR_O": 2}}),
    Family("gemv_t", ".level2.gemv", "GemvT", "gemv"),
    Family("symv", ".level2.symv", "Symv", "symv", best_defaults={"z": {"THR_N": 2}}),
    Family("symv_sum", ".level2.symv_sum", "SymvSum", "symv"),
    Family("ger", ".level2.ger", "Ger", "ger", best_defaults={"z": {"THR_N": 2}}),
)
