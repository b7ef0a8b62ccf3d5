"""Linear algebra with the signatures of NumPy and SciPy, on any arrays."""

from __future__ import annotations

from .linalg_chain import matrix_power, multi_dot
from .linalg_cholesky import cho_factor, cho_solve, cholesky
from .linalg_determinant import det, slogdet
from .linalg_dot import dot, inner, outer, tensordot, vdot
from .linalg_einsum import einsum
from .linalg_lu import lu, lu_factor, lu_solve
from .linalg_products import matmul, matvec, vecdot, vecmat
from .linalg_solve import inv, solve
from .linalg_triangular import solve_triangular

__all__ = [
    "cho_factor",
    "cho_solve",
    "cholesky",
    "det",
    "dot",
    "einsum",
    "inner",
    "inv",
    "lu",
    "lu_factor",
    "lu_solve",
    "matmul",
    "matrix_power",
    "matvec",
    "multi_dot",
    "outer",
    "slogdet",
    "solve",
    "solve_triangular",
    "tensordot",
    "vdot",
    "vecdot",
    "vecmat",
]
