"""The families that copy, add up and mirror."""

from __future__ import annotations

from ..registry import Family

__all__ = ["FAMILIES"]

FAMILIES = (
    Family("copy_scaled", ".copy.copy_scaled", "CopyScaled", "copy"),
    Family("ragged_copy", ".copy.ragged_copy", "RaggedCopy", "copy"),
    Family("split_k_reduce", ".copy.split_k_reduce", "SplitKReduce", "gemm"),
    Family("pack", ".copy.pack", "Pack", "gemm", on_request=True),
    Family("symmetrize", ".copy.symmetrize", "Symmetrize", "syr2k", needs=(8, 0)),  # cp.async
)
