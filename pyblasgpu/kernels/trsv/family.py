"""The family for few right-hand sides."""

from __future__ import annotations

from ..registry import Family

__all__ = ["FAMILIES"]

FAMILIES = (Family("trsv", ".trsv.kernel", "Trsv", "trsm", needs=(8, 0)),)
