"""Linear algebra with the signatures of NumPy and SciPy, on any arrays."""

from __future__ import annotations

from .linalg_chain import matrix_power, multi_dot
from .linalg_dot import dot, inner, outer, tensordot, vdot
from .linalg_einsum import einsum
from .linalg_products import matmul, matvec, vecdot, vecmat
from .linalg_triangular import solve_triangular

__all__ = [
    "dot",
    "einsum",
    "inner",
    "matmul",
    "matrix_power",
    "matvec",
    "multi_dot",
    "outer",
    "solve_triangular",
    "tensordot",
    "vdot",
    "vecdot",
    "vecmat",
]
