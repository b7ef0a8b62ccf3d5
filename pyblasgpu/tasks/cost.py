"""Cost of a task: its floating-point operations, as the BLAS counts them."""

from __future__ import annotations

from ..types import Diag, Side, Trans
from .task_list import Task, TaskList

__all__ = ["flops"]


def flops(tasks: TaskList, task: Task) -> int:
    """Multiplications and additions of a task of `tasks` on real numbers; complex ones take four times that.

    `laswp` moves numbers and computes none.
    """
    leaf, output = task.leaf, task.writes[0]
    m, n = tasks.grids[output.matrix].tile_shape(output)
    match leaf.routine:
        case "gemm" | "syrk" | "herk":
            first = task.reads[0]
            rows, cols = tasks.grids[first.matrix].tile_shape(first)
            k = cols if Trans.NO in (leaf.keywords.get("trans_a"), leaf.keywords.get("trans")) else rows
            return 2 * m * n * k if leaf.routine == "gemm" else m * (m + 1) * k
        case "symm" | "hemm":
            return 2 * m * n * (m if leaf.keywords["side"] is Side.LEFT else n)
        case "trmm" | "trsm":
            order = m if leaf.keywords["side"] is Side.LEFT else n
            return m * n * (order - (leaf.keywords["unit_diag"] is Diag.UNIT))
        case "potrf":
            return n * (n + 1) * (2 * n + 1) // 6
        case "getrf":
            # step j of r scales m-j-1 rows and updates n-j-1 columns of them
            r, a, b = min(m, n), m - 1, n - 1
            return (
                r * a * (2 * b + 1) - (2 * a + 2 * b + 1) * r * (r - 1) // 2 + r * (r - 1) * (2 * r - 1) // 3
            )
        case "laswp":
            return 0
    raise ValueError(f"flops: no count for {leaf.routine!r}")
