"""Solutions of linear systems of Dask arrays."""

from __future__ import annotations

from functools import partial
from typing import Any

import dask.array as da

from .. import tasks
from ..arguments import Flag
from ..types import Diag, Side, Trans, Uplo
from .conversion import cut_like, matrices, rechunked, result, square
from .declared import as_declared
from .docstrings import documented
from .factors import cholesky_factor, lu_factors

__all__ = ["solve"]

_STRUCTURES = {"gen": "general", "general": "general", "pos": "definite", "positive definite": "definite"}


@documented
def solve(a: Any, b: Any, *, assume_a: str = "general", lower: Flag = False) -> Any:
    """Solution x of ``a x = b`` of Dask arrays, as `scipy.linalg.solve`.

    Parameters
    ----------
    a : dask array, shape (n, n)
        The matrix. It is cut along both dimensions as its rows are; else it is rechunked.
    b : dask array, shape (n,) or (n, k)
        The right-hand sides. Its columns keep their chunks.
    assume_a : {'general', 'gen', 'positive definite', 'pos'}, default 'general'
        The structure of `a`: general, by LU factors, or symmetric (Hermitian) positive definite, by Cholesky
        factors.
    lower : bool or {'L', 'U'}, default False
        Which triangle of a positive definite `a` is read.

    Returns
    -------
    dask array, shaped as `b`

    Raises
    ------
    ValueError
        When shapes do not fit, or `assume_a` is unknown.
    numpy.linalg.LinAlgError
        When it is computed, and the matrix is not positive definite where that was assumed. A singular
        general matrix gives Inf and NaN.

    See Also
    --------
    pyblasgpu.linalg.solve : Solution with arrays in one memory.

    Examples
    --------
    >>> import dask.array as da, pyblasgpu
    >>> pyblasgpu.dask.solve(2 * da.eye(4, chunks=2), da.ones(4, chunks=2)).compute()
    array([0.5, 0.5, 0.5, 0.5])
    """
    if assume_a not in _STRUCTURES:
        raise ValueError(f"solve: assume_a={assume_a!r} is none of {sorted(_STRUCTURES)}")
    b = da.asanyarray(b)
    if b.ndim == 1:
        return solve(a, b[:, None], assume_a=assume_a, lower=lower)[:, 0]
    uplo = Uplo.parse(lower, "solve", "lower")
    matrix, right = matrices("solve", a=a, b=b)
    matrix = square("solve", "a", matrix)
    if matrix.shape[0] != right.shape[0]:
        raise ValueError(f"solve: a has shape {matrix.shape} and b {right.shape}")
    if _STRUCTURES[assume_a] == "definite":
        factor = cholesky_factor("solve", matrix, uplo)
        first, second = (Trans.NO, Trans.CONJ) if uplo is Uplo.LOWER else (Trans.CONJ, Trans.NO)
        return _substituted(factor, _substituted(factor, right, uplo, first), uplo, second)
    factors, rows = lu_factors("solve", matrix)
    checked = as_declared("solve", "b", right, right.dtype)
    in_one_block = rechunked(checked, ((right.shape[0],), right.chunks[1]))
    indexed, like = (in_one_block, "ij", rows, "i"), in_one_block._meta
    moved = da.blockwise(_taken, "ij", *indexed, dtype=like.dtype, meta=like, align_arrays=False)
    tiles = rechunked(factors, matrix.chunks)
    solved = _substituted(tiles, moved, Uplo.LOWER, Trans.NO, Diag.UNIT)
    return _substituted(tiles, solved, Uplo.UPPER, Trans.NO)


def _substituted(a: Any, b: Any, uplo: Uplo, trans: Trans, diag: Diag = Diag.NON_UNIT) -> Any:
    """x of ``op(a) x = b``, a triangular."""
    m, n = a.chunks[0], b.chunks[1]
    make_list = partial(tasks.trsm, m, n, Side.LEFT, uplo, trans, diag)
    return result("solve", make_list, "b", {"b": cut_like("solve", "b", b, m, n), "a": a}, (m, n))


def _taken(array: Any, rows: Any) -> Any:
    return array[rows]
