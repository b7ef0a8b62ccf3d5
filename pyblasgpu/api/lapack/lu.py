"""LU factors of `lapack` with partial pivoting, and solutions and inverses from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arguments import Array, Flag
from ...frontend.arrays.layouts import Layout
from ...frontend.calls.engine_call import options_by_tiles
from ...frontend.calls.engine_lu import factor_by_columns
from ...frontend.calls.factor_replay import ONE, call_key, replay_factor
from ...frontend.calls.pivots import checked_pivots
from ...types import Dtype, Trans
from ..blas.arrays import common_dtype_of, shaped_like
from ..blas.functions import functions_of
from ..blas.vectors import whole
from .call import (
    AfterOverwriting,
    as_stack,
    check_rows,
    check_system,
    dressed,
    factor_call,
    order_of,
    run_by_row,
)

__all__ = ["FUNCTIONS", "pivots_of"]


def _make_getrf(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def getrf(a: Array, overwrite_a: Flag = 0) -> tuple[Array, Any, Any]:
        """LU factors of a matrix, with partial pivoting: ``P L U = a``.

        Parameters
        ----------
        a : array, shape (m, n) or (..., m, n)
            The matrix, or a stack.

        Returns
        -------
        lu : array, shape (m, n) or (..., m, n)
            U, and below its diagonal L without its diagonal of ones; column-major unless it is `a`.
        piv : array of int32, shape (min(m, n),) or (..., min(m, n))
        info : int, or array of int32
            0, or the number, from 1, of the first pivot that is zero: U is singular then.

        See Also
        --------
        getrs : Solution by the factors.
        pyblasgpu.linalg.lu_factor : SciPy's signature, with a warning in place of `info`.

        Notes
        -----
        The pivot of a column is the first element with the largest ``|re| + |im|``, as in LAPACK. Where it is
        zero, nothing is divided by it, and the factorization goes on. Each entry of ``P L U`` differs from
        that of `a` by at most ``n u`` times that of ``P |L| |U|``, u the unit roundoff; for complex numbers
        sqrt(8) times that (Higham, *Accuracy and Stability of Numerical Algorithms*, Theorem 9.3). The
        recursion is that of Toledo (1997) and of LAPACK's getrf2.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> lu, piv, info = lapack.getrf([[1, 2], [2, 8]])
        >>> lu.real.tolist(), piv.tolist(), info
        ([[2.0, 8.0], [0.5, -2.0]], [1, 1], 0)
        """
        return _factor(name, dtype, a, overwrite_a)

    return dressed(getrf, stem, name, dtype)


def _factor(name: str, dtype: Dtype | None, a: Array, overwrite_a: Flag) -> tuple[Array, Any, Any]:
    """Return factors, pivots and info."""
    key = call_key(name)
    if (repeated := replay_factor(key, (a,), overwrite_a)) is not None:
        factors, piv, info = repeated
        return factors, piv, info
    a = as_stack(name, "a", a, dtype)
    call, source = factor_call(name, dtype, {}, "a", a, overwrite_a)
    counts = min(a.shape[-2:]), ONE
    options = options_by_tiles(call, (), "getrf")
    if options is not None:
        factors, *values = factor_by_columns(call, options, source)
        piv, info = call.integers_of(values, counts)
        return factors, piv, info
    factors, piv, info = run_by_row(call, "getrf", {}, source, counts=counts, key=key)
    return factors, piv, info


def _make_getrs(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def getrs(lu: Array, piv: Any, b: Array, trans: Flag = 0, overwrite_b: Flag = 0) -> tuple[Array, int]:
        """Solution of ``op(A) x = b`` from the LU factors of A.

        Parameters
        ----------
        trans : {0, 1, 2} or {'N', 'T', 'C'}, default 0
            The op: the matrix itself, its transpose, its conjugate transpose.

        Returns
        -------
        x : array, shape of `b`
            The solution, column-major unless it is `b`. Where U has a zero on its diagonal, it is not finite.
        info : int
            Always 0.

        See Also
        --------
        getrf : The factors.
        pyblasgpu.linalg.lu_solve : SciPy's signature, without `info`.

        Notes
        -----
        ``(A + E) x = b`` with each entry of E at most ``(3n+1) u`` times that of ``P |L| |U|``, u the unit
        roundoff; for complex numbers sqrt(8) times that (Higham, *Accuracy and Stability of Numerical
        Algorithms*, Theorem 9.4).

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> x, info = lapack.getrs([[2, 8], [0.5, -2]], [1, 1], [3, 10])
        >>> x.real.tolist(), info
        ([1.0, 1.0], 0)
        """
        op = Trans.parse(trans, name, "trans")
        if (repeated := replay_factor(call_key(name, op, True), (lu, b), overwrite_b, (piv,))) is not None:
            return repeated[0], 0
        factors, right = as_stack(name, "lu", lu, dtype), as_stack(name, "b", b, dtype)
        check_rows(name, "lu", order_of(name, "lu", factors), right)
        x = _solve(name, dtype, factors, piv, right, op, overwrite_b)
        return shaped_like(x, b), 0

    return dressed(getrs, stem, name, dtype)


def _solve(
    name: str,
    dtype: Dtype | None,
    lu: Array,
    piv: Any,
    b: Array,
    trans: Trans,
    overwrite_b: Flag,
    info: Any = None,
) -> Array:
    """The solution; `lu` and `b` are what `as_stack` has left. Where `info` is not 0, b stays."""
    key, left = call_key(name, trans, info is None), (piv,) if info is None else (info, piv)
    if (repeated := replay_factor(key, (lu, b), overwrite_b, left)) is not None:
        return repeated[0]
    call, source = factor_call(name, dtype, {"lu": lu}, "b", b, overwrite_b)
    how: dict[str, Any] = {"input_integers": (pivots_of(call, piv, lu.shape[-1]),), "counts": ()}
    inputs = (call.inputs[0],)
    (x,) = run_by_row(call, "getrs", {"trans": trans}, source, inputs, info=info, key=key, **how)
    return x


def pivots_of(call: Any, piv: Any, n: int, argument: str = "piv") -> Any:
    """The pivots of matrices of order `n`; see `checked_pivots`."""
    pivots = checked_pivots(call, piv, n, argument)
    if pivots.shape[-2] != n:
        shape = tuple(pivots.shape[:-1])
        raise ValueError(f"{call.name}: {argument} has shape {shape}, and the matrix is of order {n}")
    return pivots


def _make_getri(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def getri(lu: Array, piv: Any, lwork: int | None = None, overwrite_lu: Flag = 0) -> tuple[Array, Any]:
        """Inverse of a matrix from its LU factors.

        Parameters
        ----------
        lwork : int, optional
            Accepted where it is at least n, and not needed: the workspace is the library's.

        Returns
        -------
        inv_a : array, shape (n, n) or (..., n, n)
            The inverse, column-major unless it is `lu`. Where U is singular, it is `lu`.
        info : int, or array of int32
            0, or the number, from 1, of the first pivot that is zero: U is singular then.

        See Also
        --------
        getrf : The factors.
        pyblasgpu.linalg.inv : Inverse from the matrix itself.

        Notes
        -----
        U is inverted, and ``X L = U^-1`` solved, as in LAPACK's getri (method B of Du Croz and Higham, 1992).

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> inv_a, info = lapack.getri([[2, 8], [0.5, -2]], [1, 1])
        >>> inv_a.real.tolist(), info
        ([[2.0, -0.5], [-0.5, 0.25]], 0)
        """
        if lwork is not None:
            order = order_of(name, "lu", as_stack(name, "lu", lu, dtype))
            if whole(lwork, name, "lwork") < order:
                raise ValueError(f"{name}: lwork={lwork} is less than the order, {order}")
        key = call_key(name)
        if (repeated := replay_factor(key, (lu,), overwrite_lu, (piv,))) is not None:
            inverse, info = repeated
            return inverse, info
        factors = as_stack(name, "lu", lu, dtype)
        order = order_of(name, "lu", factors)
        call, source = factor_call(name, dtype, {}, "lu", factors, overwrite_lu)
        integers = (pivots_of(call, piv, order),)
        inverse, info = run_by_row(call, "getri", {}, source, input_integers=integers, key=key)
        return inverse, info

    return dressed(getri, stem, name, dtype)


def _make_gesv(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def gesv(
        a: Array, b: Array, overwrite_a: Flag = 0, overwrite_b: Flag = 0
    ) -> tuple[Array, Any, Array, Any]:
        """Solution of ``A x = b`` by LU factors with partial pivoting.

        Parameters
        ----------
        a : array, shape (n, n) or (..., n, n)
            The matrix, or a stack.

        Returns
        -------
        lu : array, shape (n, n) or (..., n, n)
        piv : array of int32, shape (n,) or (..., n)
        x : array, shape of `b`
            The solution, column-major unless it is `b`. Where U is singular, and `info` not 0, it is `b`.
        info : int, or array of int32
            0, or the number, from 1, of the first pivot that is zero: U is singular then.

        See Also
        --------
        getrf : The factors.
        getrs : The solution from the factors.
        pyblasgpu.linalg.solve : SciPy's signature, with an error in place of `info`.

        Notes
        -----
        The bounds are those of `getrf` and `getrs`.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> lu, piv, x, info = lapack.gesv([[1, 2], [2, 8]], [3, 10])
        >>> x.real.tolist(), info
        ([1.0, 1.0], 0)
        """
        matrix, right = as_stack(name, "a", a, dtype), as_stack(name, "b", b, dtype)
        overwrites = check_system(name, matrix, right, overwrite_a, overwrite_b)
        if dtype is None:
            letter = common_dtype_of(name, (matrix, right)).letter
            solved: tuple[Array, Any, Array, Any] = FUNCTIONS[letter + stem](a, b, overwrites, overwrite_b)
            return solved
        factors, piv, info = _factor(name, dtype, matrix, overwrites)
        with AfterOverwriting(factors is matrix):
            x = _solve(name, dtype, factors, piv, right, Trans.NO, overwrite_b, info)
        return factors, piv, shaped_like(x, b), info

    return dressed(gesv, stem, name, dtype)


def _make_laswp(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def laswp(
        a: Array,
        piv: Any,
        k1: int = 0,
        k2: int | None = None,
        off: int = 0,
        inc: int = 1,
        overwrite_a: Flag = 0,
    ) -> Array:
        """Interchange rows of a matrix as pivots say.

        Parameters
        ----------
        a : array, shape (m, n) or (..., m, n)
            The matrix, or a stack.
        piv : array of int, shape (k,) or (..., k)
            Row i and row ``piv[off + k1 + (i - k1) abs(inc)]`` are interchanged, counted from 0. Those in
            host memory are checked; on a device int32 and int64 are taken, and have to be rows of the matrix.
        k1, k2 : int, optional
            The first and the last row i; by default 0 and k - 1.
        off : int, default 0
            The index in `piv` of the first pivot.
        inc : int, default 1
            The distance of pivots; where it is negative, rows are interchanged from `k2` to `k1`.

        Returns
        -------
        a : array, shape (m, n) or (..., m, n)
            The matrix with its rows interchanged, column-major unless it is the argument.

        See Also
        --------
        getrf : The pivots.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> lapack.laswp([[1, 2], [3, 4]], [1, 1]).real.tolist()
        [[3.0, 4.0], [1.0, 2.0]]
        """
        matrix = as_stack(name, "a", a, dtype)
        k1, off, inc = (whole(v, name, key) for key, v in (("k1", k1), ("off", off), ("inc", inc)))
        k2 = None if k2 is None else whole(k2, name, "k2")
        call, source = factor_call(name, dtype, {}, "a", matrix, overwrite_a)
        pivots = checked_pivots(call, piv, matrix.shape[-2])
        used = _used_pivots(name, pivots, (k1, k2, off, inc), matrix.shape[-2])
        flags = {"backwards": inc < 0, "first": k1}
        (result,) = run_by_row(call, "laswp", flags, source, counts=(), input_integers=(used,))
        return shaped_like(result, a)

    return dressed(laswp, stem, name, dtype)


def _used_pivots(name: str, piv: Any, numbers: tuple[int, int | None, int, int], rows: int) -> Any:
    """Return the pivots of the rows k1 to k2, in their order; `piv` has shape (..., count, 1)."""
    count = piv.shape[-2]
    k1, k2, off, inc = (count - 1 if number is None else number for number in numbers)
    start, step, used = off + k1, abs(inc), k2 - k1 + 1
    if not (step and off >= 0 and 0 <= k1 <= k2 < rows and start + (used - 1) * step < count <= rows):
        raise ValueError(
            f"{name}: k1={k1}, k2={k2}, off={off}, inc={inc} do not fit {count} pivots of {rows} rows"
        )
    return _every(piv, start, used, step)


def _every(piv: Any, start: int, count: int, step: int) -> Any:
    """Every `step`-th pivot from `start` on."""
    if not isinstance(piv, Layout):
        return piv[..., start : start + (count - 1) * step + 1 : step, :]
    *leading, stride, last = piv.strides
    return piv._replace(
        pointer=piv.pointer + start * stride * piv.dtype.itemsize,
        shape=(*piv.shape[:-2], count, 1),
        strides=(*leading, stride * step, last),
    )


FUNCTIONS = functions_of(
    {
        "getrf": _make_getrf,
        "getrs": _make_getrs,
        "getri": _make_getri,
        "gesv": _make_gesv,
        "laswp": _make_laswp,
    },
    generic=True,
)
