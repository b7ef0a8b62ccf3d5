"""Blocks of reflectors of `lapack`: on the processor by SciPy's LAPACK, on a device by products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...arguments import Array, Flag, enabled
from ...cpu.scipy.cholesky import lapack
from ...types import Dtype, Side, Trans
from ..blas.arrays import shaped_like
from ..blas.vectors import whole
from .call import dressed, without_rows
from .device_reflectors import (
    DeviceStacks,
    blocks_of,
    blocks_of_two,
    device_stacks,
    product,
    product_of_two,
)
from .docs import QR
from .host_stacks import HostStacks
from .qr_calls import decoded

__all__ = ["FUNCTIONS"]


def _make_geqrt(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def geqrt(nb: int, a: Array, overwrite_a: Flag = 0) -> tuple[Array, Array, int]:
        """QR factors of a matrix with the triangles of its blocks of reflectors.

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
        stacks, width = _stacks(name, {"a": a}, dtype), whole(nb, name, "nb")
        least = min(stacks.arrays[0].shape[-2:])
        if not 1 <= width <= least:
            raise ValueError(f"{name}: nb={nb} is not in 1 ... {least}, for a of shape {np.shape(a)}")
        if isinstance(stacks, DeviceStacks):
            with stacks.current():
                return *blocks_of(stacks, width), 0
        factors, t, _ = stacks.computed(lambda matrix: lapack(stem, matrix.dtype)(width, matrix))
        return factors, t, 0

    return dressed(geqrt, stem, name, dtype, QR)


def _make_gemqrt(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def gemqrt(
        v: Array, t: Array, c: Array, side: Flag = "L", trans: Flag = "N", overwrite_c: Flag = 0
    ) -> tuple[Array, int]:
        """Product of op(Q) and a matrix, from the blocks of `geqrt`.

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
        stacks = _stacks(name, {"v": v, "t": t, "c": c}, dtype)
        (order, k), (width, cols), extents = (each.shape[-2:] for each in stacks.arrays)
        if order != extents[where is Side.RIGHT] or cols != k or not 1 <= width <= k <= order:
            raise ValueError(
                f"{name}: v has shape {np.shape(v)}, t {np.shape(t)} and c {np.shape(c)}, which do not fit"
            )
        if isinstance(stacks, DeviceStacks):
            adjoint = stacks.op(op, trans)
            with stacks.current():
                return shaped_like(product(stacks, adjoint, where is Side.RIGHT), c), 0
        letter = stacks.op(op, trans)

        def run(vectors: np.ndarray, triangles: np.ndarray, target: np.ndarray) -> tuple[Any, ...]:
            if not target.size:
                return target, 0
            made, info = lapack(stem, target.dtype)(
                vectors, triangles, target, side=where.value, trans=letter
            )
            return made, info

        made, _ = stacks.computed(run)
        return shaped_like(made, c), 0

    return dressed(gemqrt, stem, name, dtype, QR)


def _make_tpqrt(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def tpqrt(
        l: int,
        nb: int,
        a: Array,
        b: Array,
        overwrite_a: Flag = 0,
        overwrite_b: Flag = 0,
    ) -> tuple[Array, Array, Array, int]:
        """QR factors of a triangle above a matrix.

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
        stacks = _stacks(name, {"a": a, "b": b}, dtype)
        triangle, (m, n) = (each.shape[-2:] for each in stacks.arrays)
        if triangle != (n, n) or not (0 <= rows <= min(m, n) and 1 <= width <= n):
            raise ValueError(
                f"{name}: l={l}, nb={nb}, a of shape {np.shape(a)} and b of shape {np.shape(b)} do not fit"
            )
        if isinstance(stacks, DeviceStacks):
            with stacks.current():
                return *blocks_of_two(stacks, rows, width), 0
        r, vectors, t, _ = stacks.computed(
            lambda first, second: lapack(stem, first.dtype)(rows, width, first, second)
        )
        return r, vectors, t, 0

    return dressed(tpqrt, stem, name, dtype, QR)


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
        """Product of op(Q) and two stacked matrices, from the blocks of `tpqrt`.

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
        stacks = _stacks(name, {"v": v, "t": t, "a": a, "b": b}, dtype)
        (order, k), (width, cols), first, (m, n) = (each.shape[-2:] for each in stacks.arrays)
        is_left = where is Side.LEFT
        fits = order == (m if is_left else n) and first == ((k, n) if is_left else (m, k)) and cols == k
        if not fits or not (1 <= width <= k and 0 <= rows <= min(order, k)) or 0 in (m, n):
            shapes = ", ".join(f"{argument} {np.shape(each)}" for argument, each in stacks.passed.items())
            raise ValueError(f"{name}: l={l} and the shapes {shapes} do not fit")
        if isinstance(stacks, DeviceStacks):
            adjoint = stacks.op(op, trans)
            with stacks.current():
                return *product_of_two(stacks, rows, adjoint, not is_left), 0
        letter = stacks.op(op, trans)
        upper, lower, _ = stacks.computed(
            lambda *each: lapack(stem, each[0].dtype)(rows, *each, side=where.value, trans=letter)
        )
        return upper, lower, 0

    return dressed(tpmqrt, stem, name, dtype, QR)


def _stacks(name: str, arrays: dict[str, Array], dtype: Dtype | None) -> HostStacks | DeviceStacks:
    return device_stacks(name, arrays, dtype) or HostStacks(name, arrays, dtype)


def _flags(name: str, side: Flag, trans: Flag) -> tuple[Side, Trans]:
    return Side.parse(decoded(side), name, "side"), Trans.parse(decoded(trans), name, "trans")


_MAKERS = {
    "geqrt": _make_geqrt,
    "gemqrt": _make_gemqrt,
    "tpqrt": _make_tpqrt,
    "tpmqrt": _make_tpmqrt,
}
FUNCTIONS = without_rows(_MAKERS)
