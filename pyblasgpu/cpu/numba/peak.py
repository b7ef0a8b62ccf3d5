"""``cpu_peak``: what a core can do at most, by FMAs on registers alone."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...types import DTYPES
from .backend import cpu

__all__ = ["CHAINS", "kernel"]

CHAINS = 12  # independent sums: more than an FMA takes cycles times units, and all in registers


@lru_cache(maxsize=8)
def kernel(letter: str, lanes: int) -> Any:
    """``run(rounds, x)``: in each round `CHAINS` FMAs of vectors of `lanes` reals."""
    real = DTYPES[letter].real
    number, run = cpu.REALS[real], cpu.fused_multiply_adds(real, lanes, CHAINS)

    def cpu_peak(rounds, x):
        return run(rounds, x)

    return cpu.njit(number(cpu.types.intp, number), nogil=True)(cpu_peak)
