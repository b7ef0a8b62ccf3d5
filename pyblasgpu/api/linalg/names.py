"""Linear algebra with the signatures of NumPy and SciPy, on any arrays.

Products are NumPy's by name, arguments and results; systems, inverses and factors are SciPy's; `slogdet`,
`cond` and `matrix_rank` are NumPy's. All names of the array API's extension are here. Leading dimensions
count matrices, also where SciPy takes one matrix. Results are of the arrays' library, computed in float32,
float64, complex64 or complex128; integers and booleans become float64.

Device arrays run on their library's current stream. ``PYBLASGPU_BACKEND`` sends host arrays. Host arrays are
checked for Inf and NaN as SciPy checks them; device arrays only with ``check_finite=True``, since that waits.
For the same reason SciPy's warnings of singular and ill-conditioned matrices are given for host arrays, and
for device arrays with ``check_finite=True``. `matmul` and `solve` take ``method``, which others lack.
"""

from __future__ import annotations

from .chain import matrix_power, multi_dot
from .cholesky import cho_factor, cho_solve, cholesky
from .determinant import det, slogdet
from .dot import dot, inner, outer, tensordot, vdot
from .eigen import eigh, eigvalsh
from .einsum import einsum
from .elements import cross, diagonal, matrix_transpose, trace
from .inverse import inv
from .ldl import inertia, ldl
from .least_squares import lstsq
from .lu import lu, lu_factor, lu_solve
from .matrix_functions import expm, funm, logm, sqrtm
from .norms import cond, matrix_norm, norm, vector_norm
from .products import matmul, matvec, vecdot, vecmat
from .qr import qr, qr_multiply
from .qr_updates import qr_delete, qr_insert, qr_update
from .ranks import matrix_rank, null_space, orth, pinv, pinvh
from .singular import polar, svd, svdvals
from .solve import solve
from .triangular import solve_triangular

__all__ = [
    "cho_factor",
    "cho_solve",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "dot",
    "eigh",
    "eigvalsh",
    "einsum",
    "expm",
    "funm",
    "inertia",
    "inner",
    "inv",
    "ldl",
    "logm",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "multi_dot",
    "norm",
    "null_space",
    "orth",
    "outer",
    "pinv",
    "pinvh",
    "polar",
    "qr",
    "qr_delete",
    "qr_insert",
    "qr_multiply",
    "qr_update",
    "slogdet",
    "solve",
    "solve_triangular",
    "sqrtm",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vdot",
    "vecdot",
    "vecmat",
    "vector_norm",
]
