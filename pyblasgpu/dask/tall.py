"""QR factors and least squares of tall Dask arrays, by trees of factors of row blocks.

Each block of rows is factored where it is. Then the triangles of a few blocks are, one above the other, and
so on (Demmel, Grigori, Hoemmen and Langou, 2012). Errors do not depend on the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import accumulate
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from .. import linalg
from .conversion import cut_like, matrices
from .docstrings import documented
from .products import gemm

__all__ = ["lstsq", "part_of", "qr", "result_of", "tsqr"]

#: The triangles that are factored together.
FAN_IN = 4
_Layer = dict[Any, Any]


@documented
def qr(a: Any) -> tuple[Any, Any]:
    """Reduced QR factors of a Dask array, ``a = q r``, as ``scipy.linalg.qr(a, mode="economic")``.

    Parameters
    ----------
    a : dask array, shape (m, n)
        The matrix. A tall one is cut in blocks of rows as it is; of a wide one the first m columns are.

    Returns
    -------
    q : dask array, shape (m, min(m, n))
        Orthonormal columns, in the blocks of rows of `a`.
    r : dask array, shape (min(m, n), n)
        Upper triangular; as one block where m >= n.

    Raises
    ------
    ValueError
        When `a` is no matrix, or its chunks are of unknown size.

    See Also
    --------
    tsqr : Factors of tall arrays.
    pyblasgpu.linalg.qr : Factors of arrays in one memory.

    Examples
    --------
    >>> import dask.array as da, pyblasgpu
    >>> q, r = pyblasgpu.dask.qr(da.ones((6, 2), chunks=(2, 2)))
    >>> abs((q @ r).sum().compute()).round(3).item()
    12.0
    """
    (matrix,) = matrices("qr", a=a)
    m, n = matrix.shape
    if m >= n:
        return _factors("qr", matrix)
    q, first = _factors("qr", matrix[:, :m])
    rest = gemm(q, matrix[:, m:], trans_a="C")
    return q, da.concatenate([first, rest], axis=1)


@documented
def tsqr(a: Any) -> tuple[Any, Any]:
    """Reduced QR factors of a tall Dask array, ``a = q r``, as `dask.array.linalg.tsqr`.

    Parameters
    ----------
    a : dask array, shape (m, n)
        The matrix, with m >= n. Its columns become one block.

    Returns
    -------
    q : dask array, shape (m, n)
        Orthonormal columns, in the blocks of rows of `a`.
    r : dask array, shape (n, n)
        Upper triangular, as one block.

    Raises
    ------
    ValueError
        When `a` has more columns than rows.

    See Also
    --------
    qr : Factors of any matrix.
    lstsq : Least squares, which need no q.

    Notes
    -----
    A worker holds a block of rows, and triangles of n columns of a few blocks. q and r differ from those of
    the whole matrix in the signs of rows and columns alone, where its rank is n.

    Examples
    --------
    >>> import dask.array as da, pyblasgpu
    >>> q, r = pyblasgpu.dask.tsqr(da.ones((6, 1), chunks=(2, 1)))
    >>> (q.T @ q).compute().round(3)
    array([[1.]])
    """
    (matrix,) = matrices("tsqr", a=a)
    if matrix.shape[0] < matrix.shape[1]:
        raise ValueError(f"tsqr: a has shape {matrix.shape}; at least as many rows as columns are needed")
    return _factors("tsqr", matrix)


@documented
def lstsq(a: Any, b: Any, cond: float | None = None) -> tuple[Any, Any, Any, Any]:
    """Least-squares solution x of ``a x = b`` of Dask arrays, as `scipy.linalg.lstsq`.

    Parameters
    ----------
    a : dask array, shape (m, n)
        The matrix. Its columns become one block.
    b : dask array, shape (m,) or (m, k)
        The right-hand sides, cut in blocks of rows as `a` is.
    cond : float, optional
        Singular values that are less than `cond` times the largest one count as zero; by default the unit
        roundoff of the dtype, twice over, times the larger one of m and n.

    Returns
    -------
    x : dask array, shape (n,) or (n, k)
        The solution of the least norm.
    residues : dask array, shape () or (k,)
        The squared norms of the columns of ``b - a x``, whatever the rank.
    rank : dask array, shape ()
        The rank of `a`.
    s : dask array, shape (min(m, n),)
        The singular values of `a`.

    Raises
    ------
    ValueError
        When shapes do not fit.

    See Also
    --------
    pyblasgpu.linalg.lstsq : Solution with arrays in one memory.

    Notes
    -----
    One pass over `a` and `b` computes the triangle of both, of n + k columns. All else is made of it.

    Examples
    --------
    >>> import dask.array as da, pyblasgpu
    >>> a, b = da.ones((4, 1), chunks=(2, 1)), da.arange(4, chunks=2)
    >>> x, residues, rank, s = pyblasgpu.dask.lstsq(a, b)
    >>> x.compute().round(3), residues.compute().round(3).item()
    (array([1.5]), 5.0)
    """
    right = da.asanyarray(b)
    if right.ndim == 1:
        x, residues, rank, s = lstsq(a, right[:, None], cond)
        return x[:, 0], residues[0], rank, s
    matrix, right = matrices("lstsq", a=a, b=right)
    (m, n), columns = matrix.shape, right.shape[1]
    if right.shape[0] != m:
        raise ValueError(f"lstsq: a has shape {matrix.shape} and b {right.shape}")
    rows = matrix.chunks[0]
    matrix = cut_like("lstsq", "a", matrix, rows, (n,))
    right = cut_like("lstsq", "b", right, rows, (columns,))
    relative = max(m, n) * float(np.finfo(matrix.dtype).eps) if cond is None else float(cond)
    name = f"lstsq-{tokenize('lstsq', matrix.name, right.name, relative)}"
    layer: _Layer = {
        (f"{name}-block", i): (_triangle, [(matrix.name, i, 0), (right.name, i, 0)], True)
        for i in range(len(rows))
    }
    root = _reduced(layer, f"{name}-block", len(rows))
    layer[name] = (_solved, root, n, relative)
    real = np.empty(0, matrix.dtype).real.dtype
    parts = (
        (((n,), (columns,)), matrix.dtype),
        (((columns,),), real),
        ((), np.dtype(np.int64)),
        (((min(m, n),),), real),
    )
    base = HighLevelGraph.from_collections(name, layer, [matrix, right])
    x, residues, rank, s = (
        result_of(base, name, f"{name}-{index}", {(0,) * len(chunks): (part_of, name, index)}, chunks, dtype)
        for index, (chunks, dtype) in enumerate(parts)
    )
    return x, residues, rank, s


def _factors(routine: str, matrix: Any) -> tuple[Any, Any]:
    """q and r of a matrix with at least as many rows as columns."""
    (rows, n) = matrix.chunks[0], matrix.shape[1]
    matrix = cut_like(routine, "a", matrix, rows, (n,))
    name = f"{routine}-{tokenize(routine, matrix.name)}"
    layer: _Layer = {(f"{name}-block", i): (_factored, (matrix.name, i, 0)) for i in range(len(rows))}
    heights, level, stem = [min(extent, n) for extent in rows], 0, f"{name}-block"
    levels = []
    while len(heights) > 1:
        groups = _groups(len(heights))
        above = f"{name}-level{level}"
        for number, group in enumerate(groups):
            layer[above, number] = (_merged, [(stem, i) for i in group])
        levels.append((stem, above, groups, heights))
        heights = [min(sum(heights[i] for i in group), n) for group in groups]
        stem, level = above, level + 1
    turns: dict[int, Any] = {0: None}  # what each factor of a level is multiplied by
    for below, above, groups, extents in reversed(levels):
        lower: dict[int, Any] = {}
        for number, group in enumerate(groups):
            ends = list(accumulate((extents[i] for i in group), initial=0))
            for place, i in enumerate(group):
                key = (f"{below}-turn", i)
                layer[key] = (_turned, (above, number), ends[place], ends[place + 1], turns[number])
                lower[i] = key
        turns = lower
    blocks = {(i, 0): (_multiplied, (f"{name}-block", i), turns[i]) for i in range(len(rows))}
    base, meta = HighLevelGraph.from_collections(name, layer, [matrix]), matrix._meta
    q = result_of(base, name, f"{name}-q", blocks, (rows, (n,)), meta=meta)
    return q, result_of(base, name, f"{name}-r", {(0, 0): (part_of, (stem, 0), 1)}, ((n,), (n,)), meta=meta)


def result_of(
    base: HighLevelGraph,
    before: str,
    name: str,
    tasks: _Layer,
    chunks: Any,
    dtype: Any = None,
    meta: Any = None,
) -> Any:
    """The array of `tasks`, by the positions of their chunks, that need the layer `before`."""
    layer = {(name, *position): task for position, task in tasks.items()}
    graph = HighLevelGraph({**base.layers, name: layer}, {**base.dependencies, name: {before}})
    return da.Array(graph, name, chunks, meta=np.empty((0,) * len(chunks), dtype) if meta is None else meta)


def _groups(count: int) -> list[range]:
    """The numbers of those that are factored together."""
    return [range(i, min(i + FAN_IN, count)) for i in range(0, count, FAN_IN)]


def _reduced(layer: _Layer, stem: str, count: int) -> Any:
    """Add the tree of triangles above those of `stem`; return the key of its root."""
    level = 0
    while count > 1:
        above = f"{stem}-level{level}"
        groups = _groups(count)
        for number, group in enumerate(groups):
            layer[above, number] = (_triangle, [(stem, i) for i in group], False)
        stem, count, level = above, len(groups), level + 1
    return stem, 0


def _stacked(parts: Sequence[Any], axis: int) -> Any:
    """The arrays of a task, of NumPy or CuPy, side by side or one above the other."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, axis)
    return import_module("cupy").concatenate(parts, axis)


def _factored(chunk: Any) -> tuple[Any, Any]:
    """The factors of a block of rows."""
    q, r = linalg.qr(chunk, mode="reduced", check_finite=False)
    return q, r


def _merged(pairs: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """The factors of triangles, one above the other."""
    return _factored(_stacked([r for _, r in pairs], 0))


def _triangle(parts: Sequence[Any], beside: bool) -> Any:
    """The triangle of arrays side by side, or one above the other."""
    (r, *_) = linalg.qr(_stacked(parts, int(beside)), mode="r", check_finite=False)
    return r[: min(r.shape)] if r.shape[0] > r.shape[1] else r


def _turned(pair: tuple[Any, Any], start: int, stop: int, turn: Any) -> Any:
    """The rows of a factor that belong to one below it, times what is above."""
    rows = pair[0][start:stop]
    return rows if turn is None else linalg.matmul(rows, turn)


def _multiplied(pair: tuple[Any, Any], turn: Any) -> Any:
    """A block of rows of Q."""
    return pair[0] if turn is None else linalg.matmul(pair[0], turn)


def part_of(results: Any, index: int) -> Any:
    return results[index]


def _solved(triangle: Any, n: int, cond: float) -> tuple[Any, ...]:
    """x, residues, rank and singular values by the triangle of a and b, which is small."""
    whole = triangle if isinstance(triangle, np.ndarray) else triangle.get()
    r, y, rest = whole[:n, :n], whole[:n, n:], whole[n:, n:]
    x, _, rank, s = linalg.lstsq(r, y, cond, check_finite=False)
    squares = (np.abs(rest) ** 2).sum(axis=0) + (np.abs(y - r @ x) ** 2).sum(axis=0)
    return x, squares, np.array(rank, np.int64), s
