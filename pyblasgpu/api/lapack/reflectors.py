"""Least squares and blocks of reflectors of `lapack`, by SciPy's LAPACK on the processor alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...arguments import Array, Flag, enabled, item
from ...cpu.scipy.cholesky import lapack
from ...types import DTYPES, Dtype, Side, Trans
from ..blas.arrays import shaped_like
from ..blas.vectors import whole
from .call import dressed
from .docs import HOST_QR
from .host_stacks import HostStacks
from .qr import decoded

__all__ = ["FUNCTIONS"]


def _make_gels(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def gels(
        a: Array,
        b: Array,
        trans: Flag = "N",
        lwork: int | None = None,
        overwrite_a: Flag = 0,
        overwrite_b: Flag = 0,
    ) -> tuple[Array, Array, Any]:
        """Least squares by QR or LQ factors of a matrix of full rank, by SciPy's LAPACK.

        The solution of ``op(a) x = b`` has the least residual where there are more equations than unknowns,
        and the least norm where there are fewer.

        Parameters
        ----------
        a : array, shape (m, n) or (..., m, n)
            The matrix, or a stack.
        b : array, shape (max(m, n),), (max(m, n), k) or (..., max(m, n), k)
            The right-hand sides, in the first rows: as many as op(a) has. Leading dimensions broadcast.
        trans : {'N', 'T', 'C'}, default 'N'
            The op: the matrix itself, its conjugate transpose; 'T' for real matrices alone.

        Returns
        -------
        lqr : array, shape (m, n) or (..., m, n)
            The factors: those of `geqrf` if m >= n.
        x : array, shape of `b`
            The solution in the first rows, as many as op(a) has columns. The rows below hold what the sums of
            squared residuals are made of.
        info : int or array of int32
            0, or the number, from 1, of the first diagonal element of the triangular factor that is zero. No
            solution is computed then.

        See Also
        --------
        pyblasgpu.linalg.lstsq : SciPy's signature, for matrices of any rank.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> lqr, x, info = lapack.gels([[1], [1]], [1, 3])
        >>> x.real.round(3)[0].tolist(), info
        (2.0, 0)
        """
        op = Trans.parse(decoded(trans), name, "trans")
        enabled(overwrite_a, name, "overwrite_a"), enabled(overwrite_b, name, "overwrite_b")
        stacks = HostStacks(name, {"a": a, "b": b}, dtype)
        (m, n), (rows, columns) = (each.shape[-2:] for each in stacks.arrays)
        if rows != max(m, n):
            raise ValueError(
                f"{name}: a has shape {np.shape(a)} and b {np.shape(b)}; b needs {max(m, n)} rows"
            )
        letter, least = stacks.op(op, trans), min(m, n) + max(min(m, n), columns)
        _check_workspace(name, lwork, least)

        def run(matrix: np.ndarray, right: np.ndarray) -> tuple[Any, ...]:
            if not matrix.size or not right.size:
                return matrix, np.zeros_like(right), 0
            query, _ = lapack("gels_lwork", matrix.dtype)(m, n, columns, trans=letter)
            return tuple(lapack(stem, matrix.dtype)(matrix, right, trans=letter, lwork=int(query.real)))

        lqr, x, info = stacks.computed(run)
        return shaped_like(lqr, a), shaped_like(x, b), info

    return dressed(gels, stem, name, dtype, HOST_QR)


def _make_geqrt(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def geqrt(nb: int, a: Array, overwrite_a: Flag = 0) -> tuple[Array, Array, int]:
        """QR factors of a matrix with the triangles of its blocks of reflectors, by SciPy's LAPACK.

        Parameters
        ----------
        nb : int
            The columns of a block, from 1 to min(m, n).
        a : array, shape (m, n) or (..., m, n)
            The matrix, or a stack.

        Returns
        -------
        a : array, shape (m, n) or (..., m, n)
            R and the vectors v of the reflectors, as of `geqrf`.
        t : array, shape (nb, min(m, n)) or (..., nb, min(m, n))
            The upper triangle T of each block ``I - V T Vᴴ`` of nb reflectors, one after the other.
        info : int
            Always 0.

        See Also
        --------
        gemqrt : Products with Q.
        geqrf : The factors of single reflectors.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> qr, t, info = lapack.geqrt(1, [[0], [2]])
        >>> qr.real.tolist(), t.real.tolist(), info
        ([[-2.0], [1.0]], [[1.0]], 0)
        """
        enabled(overwrite_a, name, "overwrite_a")
        stacks, width = HostStacks(name, {"a": a}, dtype), whole(nb, name, "nb")
        least = min(stacks.arrays[0].shape[-2:])
        if not 1 <= width <= least:
            raise ValueError(f"{name}: nb={nb} is not in 1 ... {least}, for a of shape {np.shape(a)}")
        factors, t, _ = stacks.computed(lambda matrix: lapack(stem, matrix.dtype)(width, matrix))
        return factors, t, 0

    return dressed(geqrt, stem, name, dtype, HOST_QR)


def _make_gemqrt(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def gemqrt(
        v: Array, t: Array, c: Array, side: Flag = "L", trans: Flag = "N", overwrite_c: Flag = 0
    ) -> tuple[Array, int]:
        """Product of op(Q) and a matrix, from the blocks of `geqrt`, by SciPy's LAPACK.

        Parameters
        ----------
        v : array, shape (order, k) or (..., order, k)
            The vectors of the k reflectors; order is m from the left, n from the right.
        t : array, shape (nb, k) or (..., nb, k)
            The triangles of their blocks.
        c : array, shape (m, n) or (..., m, n)
            The matrix, or a stack.
        side : {'L', 'R'}, default 'L'
            Whether ``op(Q) c`` is computed, or ``c op(Q)``.
        trans : {'N', 'T', 'C'}, default 'N'
            The op: Q itself, or its conjugate transpose; 'T' for real matrices alone.

        Returns
        -------
        c : array, shape of `c`
            The product.
        info : int
            Always 0.

        See Also
        --------
        geqrt : The blocks.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> qr, t, info = lapack.geqrt(1, [[0], [2]])
        >>> c, info = lapack.gemqrt(qr, t, [5, 10], trans="C")
        >>> c.real.tolist(), info
        ([-10.0, -5.0], 0)
        """
        where, op = _flags(name, side, trans)
        enabled(overwrite_c, name, "overwrite_c")
        stacks = HostStacks(name, {"v": v, "t": t, "c": c}, dtype)
        (order, k), (width, cols), extents = (each.shape[-2:] for each in stacks.arrays)
        if order != extents[where is Side.RIGHT] or cols != k or not 1 <= width <= k <= order:
            raise ValueError(
                f"{name}: v has shape {np.shape(v)}, t {np.shape(t)} and c {np.shape(c)}, which do not fit"
            )
        letter = stacks.op(op, trans)

        def run(vectors: np.ndarray, triangles: np.ndarray, target: np.ndarray) -> tuple[Any, ...]:
            if not target.size:
                return target, 0
            product, info = lapack(stem, target.dtype)(
                vectors, triangles, target, side=where.value, trans=letter
            )
            return product, info

        product, _ = stacks.computed(run)
        return shaped_like(product, c), 0

    return dressed(gemqrt, stem, name, dtype, HOST_QR)


def _make_tpqrt(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def tpqrt(
        l: int,
        nb: int,
        a: Array,
        b: Array,
        overwrite_a: Flag = 0,
        overwrite_b: Flag = 0,
    ) -> tuple[Array, Array, Array, int]:
        """QR factors of a triangle above a matrix, by SciPy's LAPACK.

        Parameters
        ----------
        l : int
            The rows of the trapezoid at the end of `b`, from 0, for a rectangle, to min(m, n).
        nb : int
            The columns of a block, from 1 to n.
        a : array, shape (n, n) or (..., n, n)
            The upper triangle.
        b : array, shape (m, n) or (..., m, n)
            The rectangle, with an upper trapezoid in its last l rows. Leading dimensions broadcast.

        Returns
        -------
        a : array, shape (n, n) or (..., n, n)
            R in the upper triangle.
        b : array, shape (m, n) or (..., m, n)
            The vectors of the reflectors below the ones of the triangle.
        t : array, shape (nb, n) or (..., nb, n)
            The upper triangles of their blocks, one after the other.
        info : int
            Always 0.

        See Also
        --------
        tpmqrt : Products with Q.
        pyblasgpu.linalg.qr_insert : Rows and columns for factors that are there.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> a, b, t, info = lapack.tpqrt(0, 1, [[0]], [[2]])
        >>> a.real.tolist(), b.real.tolist(), t.real.tolist(), info
        ([[-2.0]], [[1.0]], [[1.0]], 0)
        """
        rows, width = whole(l, name, "l"), whole(nb, name, "nb")
        enabled(overwrite_a, name, "overwrite_a"), enabled(overwrite_b, name, "overwrite_b")
        stacks = HostStacks(name, {"a": a, "b": b}, dtype)
        triangle, (m, n) = (each.shape[-2:] for each in stacks.arrays)
        if triangle != (n, n) or not (0 <= rows <= min(m, n) and 1 <= width <= n):
            raise ValueError(
                f"{name}: l={l}, nb={nb}, a of shape {np.shape(a)} and b of shape {np.shape(b)} do not fit"
            )
        r, vectors, t, _ = stacks.computed(
            lambda first, second: lapack(stem, first.dtype)(rows, width, first, second)
        )
        return r, vectors, t, 0

    return dressed(tpqrt, stem, name, dtype, HOST_QR)


def _make_tpmqrt(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def tpmqrt(
        l: int,
        v: Array,
        t: Array,
        a: Array,
        b: Array,
        side: Flag = "L",
        trans: Flag = "N",
        overwrite_a: Flag = 0,
        overwrite_b: Flag = 0,
    ) -> tuple[Array, Array, int]:
        """Product of op(Q) and two stacked matrices, from the blocks of `tpqrt`, by SciPy's LAPACK.

        Parameters
        ----------
        l : int
            The rows of the trapezoid at the end of `v`.
        v : array, shape (order, k) or (..., order, k)
            The vectors of the reflectors; order is m from the left, n from the right.
        t : array, shape (nb, k) or (..., nb, k)
            The triangles of their blocks.
        a : array, shape (k, n), (m, k) or stacks
            The upper part from the left, the left part from the right.
        b : array, shape (m, n) or (..., m, n)
            The other part.
        side : {'L', 'R'}, default 'L'
            Whether op(Q) is the left factor or the right one.
        trans : {'N', 'T', 'C'}, default 'N'
            The op: Q itself, or its conjugate transpose; 'T' for real matrices alone.

        Returns
        -------
        a, b : array
            The product.
        info : int
            Always 0.

        See Also
        --------
        tpqrt : The blocks.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> a, v, t, info = lapack.tpqrt(0, 1, [[0]], [[2]])
        >>> a, b, info = lapack.tpmqrt(0, v, t, [[5]], [[10]], trans="C")
        >>> a.real.tolist(), b.real.tolist(), info
        ([[-10.0]], [[-5.0]], 0)
        """
        (where, op), rows = _flags(name, side, trans), whole(l, name, "l")
        enabled(overwrite_a, name, "overwrite_a"), enabled(overwrite_b, name, "overwrite_b")
        stacks = HostStacks(name, {"v": v, "t": t, "a": a, "b": b}, dtype)
        (order, k), (width, cols), first, (m, n) = (each.shape[-2:] for each in stacks.arrays)
        is_left = where is Side.LEFT
        fits = order == (m if is_left else n) and first == ((k, n) if is_left else (m, k)) and cols == k
        if not fits or not (1 <= width <= k and 0 <= rows <= min(order, k)) or 0 in (m, n):
            shapes = ", ".join(f"{argument} {np.shape(each)}" for argument, each in stacks.passed.items())
            raise ValueError(f"{name}: l={l} and the shapes {shapes} do not fit")
        letter = stacks.op(op, trans)
        upper, lower, _ = stacks.computed(
            lambda *each: lapack(stem, each[0].dtype)(rows, *each, side=where.value, trans=letter)
        )
        return upper, lower, 0

    return dressed(tpmqrt, stem, name, dtype, HOST_QR)


def _flags(name: str, side: Flag, trans: Flag) -> tuple[Side, Trans]:
    return Side.parse(decoded(side), name, "side"), Trans.parse(decoded(trans), name, "trans")


def _check_workspace(name: str, lwork: int | None, least: int) -> None:
    if lwork is not None and whole(lwork, name, "lwork") < max(least, 1):
        raise ValueError(f"{name}: lwork={item(lwork)} is less than {max(least, 1)}")


_MAKERS = {
    "gels": _make_gels,
    "geqrt": _make_geqrt,
    "gemqrt": _make_gemqrt,
    "tpqrt": _make_tpqrt,
    "tpmqrt": _make_tpmqrt,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{stem: make(stem, stem, None) for stem, make in _MAKERS.items()},
    **{
        letter + stem: make(stem, letter + stem, dtype)
        for stem, make in _MAKERS.items()
        for letter, dtype in DTYPES.items()
    },
}
