"""Singular values of Dask arrays: of tall or wide ones by QR factors, the largest ones of any by products."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import svd_flip
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from .. import linalg
from .conversion import matrices
from .docstrings import documented
from .products import gemm
from .tall import part_of, qr, result_of

__all__ = ["svd", "svd_compressed"]


@documented
def svd(a: Any, coerce_signs: bool = True) -> tuple[Any, Any, Any]:
    """Reduced singular value decomposition of a Dask array, as `dask.array.linalg.svd`.

    Parameters
    ----------
    a : dask array, shape (m, n)
        The matrix. The shorter dimension becomes one block.
    coerce_signs : bool, default True
        Whether the sums of the rows of `v` are made positive, so that signs do not depend on chunks.

    Returns
    -------
    u : dask array, shape (m, min(m, n))
        The left singular vectors, in columns.
    s : dask array, shape (min(m, n),)
        The singular values, in descending order.
    v : dask array, shape (min(m, n), n)
        The right singular vectors, conjugated, as rows.

    Raises
    ------
    ValueError
        When `a` is no matrix, or its chunks are of unknown size.

    See Also
    --------
    svd_compressed : The largest singular values of large matrices.
    tsqr : The factors, of whose triangle the singular values are.

    Notes
    -----
    The triangle of the QR factors is one block. On a card it goes to the host where kernels of
    `pyblasgpu.linalg.svd` have no such order.

    Examples
    --------
    >>> import dask.array as da, pyblasgpu
    >>> u, s, v = pyblasgpu.dask.svd(da.ones((6, 2), chunks=(2, 2)))
    >>> s.compute().round(3).tolist()
    [3.464, 0.0]
    """
    (matrix,) = matrices("svd", a=a)
    if matrix.shape[0] < matrix.shape[1]:
        right, s, left = _tall_svd(matrix.conj().T)
        u, v = left.conj().T, right.conj().T
    else:
        u, s, v = _tall_svd(matrix)
    if coerce_signs:
        u, v = svd_flip(u, v)
    return u, s, v


@documented
def svd_compressed(
    a: Any,
    k: int,
    iterator: str = "power",
    n_power_iter: int = 0,
    n_oversamples: int = 10,
    seed: Any = None,
    compute: bool = False,
    coerce_signs: bool = True,
) -> tuple[Any, Any, Any]:
    """The largest singular values of a Dask array by random products, as `dask.array.linalg.svd_compressed`.

    Parameters
    ----------
    a : dask array, shape (m, n)
        The matrix.
    k : int
        The singular values that are wanted, and vectors.
    iterator : {'power', 'QR'}, default 'power'
        The iteration; both factor the product of each step, so 'power' is no less accurate than 'QR'.
    n_power_iter : int, default 0
        The steps of the iteration, two products with `a` each.
    n_oversamples : int, default 10
        The random vectors beyond `k`.
    seed : int or RandomState, optional
        The seed of the random vectors.
    compute : bool, default False
        Whether the products of each step are computed at once, and kept by the workers.
    coerce_signs : bool, default True
        Whether the sums of the rows of `v` are made positive.

    Returns
    -------
    u : dask array, shape (m, k)
        The left singular vectors, in columns.
    s : dask array, shape (k,)
        The singular values, in descending order.
    v : dask array, shape (k, n)
        The right singular vectors, conjugated, as rows.

    Raises
    ------
    ValueError
        When `a` is no matrix, or `iterator` or `k` does not fit.

    See Also
    --------
    svd : All singular values, of tall or wide matrices.

    Notes
    -----
    Halko, Martinsson and Tropp, *Finding structure with randomness*, SIAM Review 53, 2011, Algorithm 4.4 with
    5.1. Errors are about the size of the singular value of number k + 1.

    Examples
    --------
    >>> import dask.array as da, pyblasgpu
    >>> u, s, v = pyblasgpu.dask.svd_compressed(da.ones((6, 4), chunks=(2, 2)), 1, seed=0)
    >>> s.compute().round(3).tolist()
    [4.899]
    """
    (matrix,) = matrices("svd_compressed", a=a)
    m, n = matrix.shape
    if iterator not in ("power", "QR"):
        raise ValueError(f"svd_compressed: iterator={iterator!r} is none of power, QR")
    if not 1 <= k <= min(m, n):
        raise ValueError(f"svd_compressed: k={k} is not in 1 ... {min(m, n)}, for a of shape {matrix.shape}")
    width = min(k + n_oversamples, m, n)
    state = seed if isinstance(seed, da.random.RandomState) else da.random.RandomState(seed)
    omega = state.standard_normal((n, width), chunks=(matrix.chunks[1], (width,))).astype(matrix.dtype)
    product = gemm(matrix, omega)
    for _ in range(n_power_iter):
        q, _ = qr(product)
        q, _ = qr(gemm(matrix, q, trans_a="C"))
        product = gemm(matrix, q)
        if compute:
            product = product.persist()
    q, _ = qr(product)
    u, s, v = svd(gemm(q, matrix, trans_a="C"), coerce_signs=False)
    u, s, v = gemm(q, u)[:, :k], s[:k], v[:k]
    if coerce_signs:
        u, v = svd_flip(u, v)
    return u, s, v


def _tall_svd(matrix: Any) -> tuple[Any, Any, Any]:
    """u, s and v of a matrix with no fewer rows than columns, by the triangle of its QR factors."""
    q, r = qr(matrix)
    n = matrix.shape[1]
    name = f"svd-{tokenize('svd', r.name)}"
    base = HighLevelGraph.from_collections(name, {name: (_of_triangle, (r.name, 0, 0))}, [r])
    real = np.empty(0, matrix.dtype).real.dtype
    parts = (((n,), (n,)), matrix.dtype), (((n,),), real), (((n,), (n,)), matrix.dtype)
    left, s, v = (
        result_of(base, name, f"{name}-{index}", {(0,) * len(chunks): (part_of, name, index)}, chunks, dtype)
        for index, (chunks, dtype) in enumerate(parts)
    )
    return gemm(q, left), s, v


def _of_triangle(r: Any) -> tuple[Any, Any, Any]:
    """u, s and v of a triangle of NumPy or CuPy."""
    try:
        u, s, vh = linalg.svd(r, full_matrices=False, check_finite=False)
    except NotImplementedError:  # of a device, where no kernel has this order
        on_host = linalg.svd(r.get(), full_matrices=False, check_finite=False)
        u, s, vh = map(import_module("cupy").asarray, on_host)
    return u, s, vh
