"""Workspace of a routine with a triangle."""

from __future__ import annotations

from ..operands import Operand

__all__ = ["MOST_COPIED", "most_workspace"]

MOST_COPIED = 32 << 20  # bytes of B, or of diagonal blocks, that are copied at a time
PART = 20  # of the result that the workspace may be, if that is more than what may be copied


def most_workspace(c: Operand) -> int:
    """Bytes of workspace that a routine with a triangle takes at most for a result like `c`, but for operands
    that must be copied.
    """
    return max(MOST_COPIED, c.batch * c.rows * c.cols * c.dtype.itemsize // PART)
