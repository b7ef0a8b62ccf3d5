"""Whether a system of float64 is solved sooner by factors in float32 and refinement."""

from __future__ import annotations

__all__ = ["MAX_COLUMNS_SHARE", "MIN_ORDER", "refinement_pays"]

#: Factors -> order from which on those in float32, with their corrections, take less time than in float64.
MIN_ORDER = {"getrf": 8192, "potrf": 16384}
#: Of the order, how many right-hand sides there may be: a correction computes a residual of each in float64.
MAX_COLUMNS_SHARE = 1 / 16


def refinement_pays(routine: str, order: int, columns: int) -> bool:
    """Whether factors by `routine`, of matrices of an order, are worth to be refined for so many columns."""
    return order >= MIN_ORDER[routine] and columns <= max(1, order * MAX_COLUMNS_SHARE)
