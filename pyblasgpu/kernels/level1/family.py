"""The families of Level 1."""

from __future__ import annotations

from ..registry import Family

__all__ = ["FAMILIES"]

FAMILIES = (
    Family("level1_map", ".level1.map", "Map", "level1"),
    Family("level1_reduce", ".level1.reduce", "Reduce", "level1"),
)
