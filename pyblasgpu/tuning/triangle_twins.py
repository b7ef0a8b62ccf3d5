"""The twins of a GEMM Config that compute a triangle of C (`kernels.part`), which the tuner does not time."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

__all__ = ["longer_in", "triangle_twins"]

#: How many times longer persistent blocks take for a tile than blocks of one tile each, as a rule: where
#: the next tile of a triangle is found, in the loop, complex singles run out of registers and of their order.
LONGER = {"c": 1.12}


@lru_cache(maxsize=1 << 12)
def triangle_twins(config: Any, part: str) -> tuple[tuple[Any, float], ...]:
    """The kernels of the same tile and pipeline for `part` of C, and how many times longer than for all of C
    each takes for a tile.
    """
    longer = longer_in(config.dtype, part)
    if longer == 1 or not config.persistent:
        return ((config, 1.0),)
    return (replace(config, persistent=False), 1.0), (config, longer)


def longer_in(dtype: str, part: str) -> float:
    """How many times longer than for all of C persistent blocks take for a tile of `part` of it."""
    return 1.0 if part == "all" else LONGER.get(dtype, 1.0)
