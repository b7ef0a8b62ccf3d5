"""Cholesky and LU factors of Dask arrays."""

from __future__ import annotations

from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.highlevelgraph import HighLevelGraph

from .. import tasks
from ..arguments import Flag
from ..types import Uplo
from .conversion import cut_like, matrices, rechunked, result, square
from .docstrings import documented
from .graph import pivot_keys

__all__ = ["cholesky", "cholesky_factor", "lu", "lu_factors"]


@documented
def cholesky(a: Any, lower: Flag = False) -> Any:
    """Cholesky factor of a positive definite Dask array, as `scipy.linalg.cholesky`.

    Parameters
    ----------
    a : dask array, shape (n, n)
        A symmetric or Hermitian matrix; chunks of one triangle are computed and read. It is cut along both
        dimensions as its rows are; else it is rechunked.
    lower : bool or {'L', 'U'}, default False
        Which triangle of `a` is read and holds the factor: L with a = L Lᴴ, or U with a = Uᴴ U.

    Returns
    -------
    dask array, shape (n, n)
        The factor, its other triangle zero.

    Raises
    ------
    ValueError
        When `a` is not square.
    numpy.linalg.LinAlgError
        When it is computed, and the matrix is not positive definite.

    See Also
    --------
    solve : Solution of systems with such a matrix.
    pyblasgpu.linalg.cholesky : Factor of arrays in one memory.

    Examples
    --------
    >>> import dask.array as da, pyblasgpu
    >>> factor = pyblasgpu.dask.cholesky(4 * da.eye(4, chunks=2), lower=True)
    >>> factor.trace().compute().item()
    8.0
    """
    uplo = Uplo.parse(lower, "cholesky", "lower")
    (matrix,) = matrices("cholesky", a=a)
    return cholesky_factor("cholesky", square("cholesky", "a", matrix), uplo)


def cholesky_factor(routine: str, matrix: Any, uplo: Uplo) -> Any:
    """The factor of a square `matrix` of a dtype of the BLAS; errors name `routine`."""
    n, sources = matrix.chunks[0], {"a": matrix}
    make_list = partial(tasks.potrf, n, uplo, True)
    return result("cholesky", make_list, "a", sources, (n, n), blank=True, caller=routine)


@documented
def lu(a: Any, *, p_indices: bool = False) -> tuple[Any, Any, Any]:
    """LU factors with partial pivoting of a square Dask array: ``a = p l u``, as `scipy.linalg.lu`.

    Parameters
    ----------
    a : dask array, shape (n, n)
        The matrix. It is computed in block columns, cut as its rows are.
    p_indices : bool, default False
        Return the permutation as row indices, for which ``a = l[p] u``.

    Returns
    -------
    p : dask array, shape (n, n) or (n,)
        The permutation.
    l : dask array, shape (n, n)
        Lower triangular with ones on the diagonal.
    u : dask array, shape (n, n)
        Upper triangular.

    Raises
    ------
    ValueError
        When `a` is not square.

    See Also
    --------
    pyblasgpu.linalg.lu : Factors of arrays in one memory.

    Notes
    -----
    A worker holds a few block columns of n rows. A zero pivot raises nothing, as in SciPy.

    Examples
    --------
    >>> import dask.array as da, pyblasgpu
    >>> p, l, u = pyblasgpu.dask.lu(da.from_array([[0.0, 2.0], [1.0, 1.0]], chunks=1))
    >>> (p @ l @ u).compute()
    array([[0., 2.],
           [1., 1.]])
    """
    (matrix,) = matrices("lu", a=a)
    factors, rows = lu_factors("lu", square("lu", "a", matrix))
    n = factors.chunks[1]
    offsets = da.from_array(np.cumsum((0, *n[:-1]))[None], chunks=1)
    lower = da.map_blocks(_lower, factors, offsets, dtype=factors.dtype, meta=factors._meta)
    upper = da.map_blocks(_upper, factors, offsets, dtype=factors.dtype, meta=factors._meta)
    if p_indices:
        p = da.map_blocks(np.argsort, rows, dtype=rows.dtype)
    else:
        order, real = da.arange(sum(n), chunks=(n,)), np.empty(0, factors.dtype).real.dtype
        indexed = order, "i", rechunked(rows, (n,)), "j"
        p = da.blockwise(
            partial(_ones, real), "ij", *indexed, meta=np.empty((0, 0), real), align_arrays=False
        )
    return p, rechunked(lower, (n, n)), rechunked(upper, (n, n))


def lu_factors(routine: str, matrix: Any) -> tuple[Any, Any]:
    """L and U of a square `matrix` of a dtype of the BLAS in one array, and which of its rows each row holds.

    The chunks of the array are block columns. Errors name `routine`.
    """
    n = matrix.chunks[0]
    columns = cut_like(routine, "a", matrix, (sum(n),), n)
    make_list, sources = partial(tasks.getrf, n, n), {"a": columns}
    factors = result("lu", make_list, "a", sources, columns.chunks, by_columns=True, caller=routine)
    return factors, _permuted(factors, n)


def _permuted(factors: Any, n: tuple[int, ...]) -> Any:
    """Return the row of the matrix at each row of its factors, as one chunk."""
    stem, _, token = factors.name.rpartition("-")
    name = f"{stem}-permutation-{token}"
    layer = {(name, 0): (_permutation, pivot_keys(factors.name, len(n)))}
    graph = HighLevelGraph.from_collections(name, layer, dependencies=[factors])
    return da.Array(graph, name, ((sum(n),),), dtype=np.intp)


def _permutation(pivots: list[np.ndarray]) -> np.ndarray:
    rows = np.arange(sum(map(len, pivots)))
    first = 0
    for panel in pivots:
        for row, other in enumerate(panel + first, first):
            rows[[row, other]] = rows[[other, row]]
        first += len(panel)
    return rows


def _ones(dtype: Any, numbers: np.ndarray, rows: np.ndarray) -> Any:
    """A tile of the permutation: its rows have these numbers, and its columns have their ones in `rows`."""
    return (numbers[:, None] == rows).astype(dtype)


def _lower(factors: Any, offset: Any) -> Any:
    """L in a block column whose first column has the number `offset`."""
    first = int(offset.item())
    lower = np.tril(factors, -first - 1)
    diagonal = np.arange(factors.shape[1])
    lower[first + diagonal, diagonal] = 1
    return lower


def _upper(factors: Any, offset: Any) -> Any:
    """U in a block column whose first column has the number `offset`."""
    return np.triu(factors, -int(offset.item()))
