"""Operators of PyTorch: BLAS and LAPACK routines that autograd, `torch.compile` and `torch.func` know.

Tensors on a CUDA device are computed by the kernels of this package, tensors in host memory by its CPU
backend. Each function is registered as an operator ``torch.ops.pyblasgpu``, with gradients, tangents,
batching rules and shapes of its own.
"""

from __future__ import annotations

try:
    import torch  # noqa: F401
except ImportError as missing:
    raise ImportError(f"pyblasgpu.torch needs PyTorch: {missing}") from missing

from . import compiled  # noqa: F401 - the package has Dynamo take it
from .level3 import gemm, gemmtr, hemm, herk, symm, syrk, trmm, trsm
from .linalg_cholesky import (
    cholesky,
    cholesky_ex,
    cholesky_inverse,
    cholesky_solve,
    inv_quad_logdet,
    solve_triangular,
)
from .linalg_eigen import eigh, eigvalsh, matrix_rank, pinv, svd, svdvals
from .linalg_lu import det, inv, inv_ex, logdet, lu_factor, lu_factor_ex, lu_solve, slogdet, solve, solve_ex
from .linalg_qr import lstsq, qr

__all__ = [
    "cholesky",
    "cholesky_ex",
    "cholesky_inverse",
    "cholesky_solve",
    "det",
    "eigh",
    "eigvalsh",
    "gemm",
    "gemmtr",
    "hemm",
    "herk",
    "inv",
    "inv_ex",
    "inv_quad_logdet",
    "logdet",
    "lstsq",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matrix_rank",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "symm",
    "syrk",
    "trmm",
    "trsm",
]
