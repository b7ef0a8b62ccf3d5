"""The families of level 2."""

from __future__ import annotations

from ..registry import Family

__all__ = ["FAMILIES"]

# an element of complex128 takes four registers, a float32 one
_NARROW = {"WARPS": 4, "THR_M": 2, "THR_N": 8}
_SYMV = {"d": _NARROW, "c": _NARROW, "z": {"THR_M": 2}}
_GER = {letter: {"THR_M": 2} for letter in "dcz"}

FAMILIES = (
    Family("gemv_n", ".level2.gemv", "GemvN", "gemv", best_defaults={"z": {"THR_O": 2}}),
    Family("gemv_t", ".level2.gemv", "GemvT", "gemv"),
    Family("symv", ".level2.symv", "Symv", "symv", best_defaults=_SYMV),
    Family("symv_sum", ".level2.symv_sum", "SymvSum", "symv"),
    Family("ger", ".level2.ger", "Ger", "ger", best_defaults=_GER),
)
