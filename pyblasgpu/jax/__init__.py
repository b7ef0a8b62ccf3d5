"""Functions of JAX by BLAS and LAPACK routines, for `jax.jit`, `jax.grad`, `jax.vmap` and `jax.shard_map`.

Arrays on a CUDA device are computed by the kernels of this package, others by its CPU backend: XLA calls
both through its foreign-function interface.
"""

from __future__ import annotations

try:
    import jax  # noqa: F401
except ImportError as missing:
    raise ImportError(f"pyblasgpu.jax needs JAX: {missing}") from missing

from . import eigen_rows, rows  # noqa: F401 - fill the table
from .level3 import gemm, matmul
from .linalg_cholesky import cho_factor, cho_solve, cholesky, inv_quad_logdet, solve_triangular
from .linalg_eigen import EighResult, SVDResult, eigh, eigvalsh, matrix_rank, pinv, svd, svdvals
from .linalg_lstsq import lstsq
from .linalg_lu import SlogdetResult, det, inv, logdet, lu_factor, lu_solve, slogdet, solve
from .linalg_qr import QRResult, qr

__all__ = [
    "EighResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "det",
    "eigh",
    "eigvalsh",
    "gemm",
    "inv",
    "inv_quad_logdet",
    "logdet",
    "lstsq",
    "lu_factor",
    "lu_solve",
    "matmul",
    "matrix_rank",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
]
