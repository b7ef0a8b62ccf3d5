"""BLAS and LAPACK routines on Dask arrays, whose chunks are NumPy's or CuPy's.

Graphs are made of the tile algorithms of `pyblasgpu.tasks`; the leaves are the routines of this package, so a
chunk is computed where it is. An output chunk is accumulated in place, not as a sum of products that are
kept. Needs the extra ``dask``.
"""

from __future__ import annotations

from ..errors import lacking

try:
    import dask.array  # noqa: F401
except ImportError as missing:
    raise ImportError(f"pyblasgpu.dask: {lacking(missing, 'dask')}") from missing

from .factors import cholesky, lu
from .products import gemm, herk, syrk
from .singular import svd, svd_compressed
from .solve import solve
from .tall import lstsq, qr, tsqr
from .triangular import solve_triangular, trmm, trsm

__all__ = [
    "cholesky",
    "gemm",
    "herk",
    "lstsq",
    "lu",
    "qr",
    "solve",
    "solve_triangular",
    "svd",
    "svd_compressed",
    "syrk",
    "trmm",
    "trsm",
    "tsqr",
]


def __dir__() -> list[str]:
    return sorted(__all__)
