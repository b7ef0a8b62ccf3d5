"""The twin of a GEMM Config that multiplies by a triangle in place (`kernels.gemm_in_place`)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..errors import ConfigError
from ..kernels.gemm_in_place import check

__all__ = ["in_place_twin"]


@lru_cache(maxsize=1 << 12)
def in_place_twin(config: Any, triangle: str) -> Any:
    """The same tile and pipeline for blocks that take one tile each; None where there is no such kernel."""
    twin = replace(config, persistent=False)
    try:
        check(twin, triangle)
    except ConfigError:
        return None
    return twin
