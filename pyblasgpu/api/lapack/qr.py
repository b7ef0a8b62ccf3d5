"""QR factors of `lapack` by Householder reflectors, and Q as a matrix and as a factor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ...arguments import Array, Flag
from ...cpu.scipy import qr as cpu
from ...frontend.arrays.any_array import reshaped
from ...frontend.calls.factor_call import FactorCall
from ...frontend.calls.factor_replay import Factors, call_key, replay_factor
from ...types import Dtype, Side, Trans
from ..blas.arrays import checked_array, common_dtype_of, shaped_like
from ..blas.functions import functions_of
from ..blas.vectors import whole
from ..processor import on_processor, small_on_processor
from .call import as_stack, dressed, factor_call, run_by_row
from .docs import HOST_QR, QR

__all__ = ["FUNCTIONS", "decoded"]


def _make_geqrf(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def geqrf(a: Array, lwork: int | None = None, overwrite_a: Flag = 0) -> tuple[Array, Array, Array, int]:
        """QR factors of a matrix by Householder reflectors: ``Q R = a``.

        Parameters
        ----------
        a : array, shape (m, n) or (..., m, n)
            The matrix, or a stack, of any shape.

        Returns
        -------
        qr : array, shape (m, n) or (..., m, n)
            R in the upper triangle, and below its diagonal the vectors v of the reflectors without their
            first elements, which are 1; column-major unless it is `a`.
        tau : array, shape (min(m, n),) or (..., min(m, n))
            The factors of the reflectors: Q is the product of all ``I - tau v vᴴ``, from the left.
        work : array
        info : int
            Always 0.

        See Also
        --------
        orgqr : Q as a matrix.
        ormqr : Products with Q.
        pyblasgpu.linalg.qr : SciPy's signature, with Q and R as matrices.

        Notes
        -----
        Conventions are LAPACK's: R has a real diagonal, of either sign. Where a column is zero below the
        diagonal, and the diagonal real, tau is 0. ``Q R = a + E`` with columns of E at most a small multiple
        of ``m n u`` times those of `a`, u the unit roundoff (Higham, *Accuracy and Stability of Numerical
        Algorithms*, Theorem 19.4).

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> qr, tau, work, info = lapack.geqrf([[0, 1], [2, 3]])
        >>> qr.real.tolist(), tau.real.tolist(), info
        ([[-2.0, -3.0], [1.0, -1.0]], [1.0, 0.0], 0)
        """
        key = call_key(name)
        if lwork is None and (repeated := replay_factor(key, (a,), overwrite_a)) is not None:
            qr, tau = repeated
            return qr, tau, _of_device(dtype, a.shape[-1]), 0
        matrix = as_stack(name, "a", a, dtype)
        m, n = matrix.shape[-2:]
        with _placed(name, dtype, matrix):
            call, source = factor_call(name, dtype, {}, "a", matrix, overwrite_a)
            work = _workspace(call, lwork, n, cpu.workspace_of_geqrf, m, n)
            qr, tau = _run(call, stem, {}, source, (), lwork, (Factors(min(m, n)),), key)
            return shaped_like(qr, a), _array(call, tau), work, 0

    return dressed(geqrf, stem, name, dtype, QR)


def _make_geqp3(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def geqp3(
        a: Array, lwork: int | None = None, overwrite_a: Flag = 0
    ) -> tuple[Array, Any, Array, Array, int]:
        """QR factors of a matrix with its columns interchanged, by SciPy's LAPACK: ``Q R = a[:, jpvt - 1]``.

        Parameters
        ----------
        a : array, shape (m, n) or (..., m, n)
            The matrix, or a stack, of any shape.

        Returns
        -------
        qr : array, shape (m, n) or (..., m, n)
            R and the vectors of the reflectors, as of `geqrf`. The diagonal of R does not increase in
            modulus.
        jpvt : array of int32, shape (n,) or (..., n)
            The columns of `a` in their order, counted from 1.
        tau : array, shape (min(m, n),) or (..., min(m, n))
            The factors of the reflectors.
        work : array
        info : int
            Always 0.

        See Also
        --------
        geqrf : Factors without pivots.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> qr, jpvt, tau, work, info = lapack.geqp3([[3, 6], [4, 8]])
        >>> jpvt.tolist(), abs(qr[0, 0].real).round(3).tolist()
        ([2, 1], 10.0)
        """
        with on_processor(name, {"a": a}, "LAPACK"):
            matrix = as_stack(name, "a", a, dtype)
            m, n = matrix.shape[-2:]
            call, source = factor_call(name, dtype, {}, "a", matrix, overwrite_a)
            work = _workspace(call, lwork, n + 1, cpu.workspace_of_geqp3, m, n)
            factors, columns, tau = _run(call, stem, {}, source, (), lwork, (n, Factors(min(m, n))))
            if not min(m, n):  # whose columns stay
                columns[...] = np.arange(1, n + 1)
            return shaped_like(factors, a), columns, _array(call, tau), work, 0

    return dressed(geqp3, stem, name, dtype, HOST_QR)


def _make_orgqr(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def orgqr(
        a: Array, tau: Array, lwork: int | None = None, overwrite_a: Flag = 0
    ) -> tuple[Array, Array, int]:
        """The first n columns of Q, from the reflectors that `geqrf` leaves.

        Parameters
        ----------
        a : array, shape (m, n) or (..., m, n)
            The vectors of the reflectors below the diagonal of the first k columns; ``m >= n >= k``. The rest
            is not read.

        Returns
        -------
        q : array, shape (m, n) or (..., m, n)
            Orthonormal columns, column-major unless it is `a`.
        work : array
        info : int
            Always 0.

        See Also
        --------
        geqrf : The reflectors.
        ormqr : Products with Q, which need no such matrix.

        Notes
        -----
        ``Qᴴ Q`` differs from the identity by a small multiple of ``m n u``, u the unit roundoff.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> qr, tau, work, info = lapack.geqrf([[0], [2]])
        >>> q, work, info = lapack.orgqr(qr, tau)
        >>> q.real.tolist(), info
        ([[0.0], [-1.0]], 0)
        """
        key = call_key(name)
        if lwork is None and (repeated := replay_factor(key, (tau, a), overwrite_a)) is not None:
            return repeated[0], _of_device(dtype, a.shape[-1]), 0
        matrix, factors = as_stack(name, "a", a, dtype), _factors_of(name, tau, dtype)
        (m, n), k = matrix.shape[-2:], factors.shape[-2]
        if not m >= n >= k:
            shapes = f"a has shape {tuple(matrix.shape)} and tau {tuple(factors.shape[:-1])}"
            raise ValueError(f"{name}: {shapes}; rows >= columns >= reflectors are needed")
        with _placed(name, dtype, matrix):
            call, source = factor_call(name, dtype, {"tau": factors}, "a", matrix, overwrite_a)
            work = _workspace(call, lwork, n, cpu.workspace_of_orgqr, m, n, k)
            if matrix is a and not call.library.host:
                call.arrays = tau, a  # as a repeated call passes them
            (q,) = _run(call, stem, {}, source, tuple(call.inputs[:1]), lwork, key=key)
            return shaped_like(q, a), work, 0

    return dressed(orgqr, stem, name, dtype, QR)


def _make_ormqr(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def ormqr(
        side: Flag,
        trans: Flag,
        a: Array,
        tau: Array,
        c: Array,
        lwork: int | None = None,
        overwrite_c: Flag = 0,
    ) -> tuple[Array, Array, int]:
        """Product of op(Q) and a matrix, from the reflectors that `geqrf` leaves.

        Parameters
        ----------
        side : {'L', 'R'} or {0, 1}
            Whether ``op(Q) c`` is computed, or ``c op(Q)``.
        trans : {'N', 'T', 'C'} or {0, 1, 2}
            The op: Q itself, or its conjugate transpose; 'T' for real matrices alone.
        a : array, shape (order, k) or (..., order, k)
            The vectors of the k reflectors below the diagonal; order is m from the left, n from the right.
        c : array, shape (m, n) or (..., m, n)
            The matrix, or a stack.
        overwrite_c : bool, default False
            Whether `c` may hold the result.

        Returns
        -------
        cq : array, shape of `c`
            The product, column-major unless it is `c`.
        work : array
        info : int
            Always 0.

        See Also
        --------
        geqrf : The reflectors.
        orgqr : Q as a matrix.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> qr, tau, work, info = lapack.geqrf([[0], [2]])
        >>> cq, work, info = lapack.ormqr("L", "C", qr, tau, [5, 10])
        >>> cq.real.tolist(), info
        ([-10.0, -5.0], 0)
        """
        key = call_key(name, side, trans)
        if lwork is None and (repeated := replay_factor(key, (tau, a, c), overwrite_c)) is not None:
            least = c.shape[-1] if side in ("L", b"L") else c.shape[-2]
            return repeated[0], _of_device(dtype, least), 0
        where = Side.parse(decoded(side), name, "side")
        op = Trans.parse(decoded(trans), name, "trans")
        matrix, factors = as_stack(name, "a", a, dtype), _factors_of(name, tau, dtype)
        target = as_stack(name, "c", c, dtype)
        _check_product(name, where, matrix, factors, target)
        with _placed(name, dtype, matrix, target):
            inputs = {"tau": factors, "a": matrix}
            call, source = factor_call(name, dtype, inputs, "c", target, overwrite_c)
            if op is Trans.TRANS and call.dtype.is_complex:
                raise ValueError(
                    f"{name}: trans={trans!r} is for real matrices; 'C' is the conjugate transpose"
                )
            (m, n), k = target.shape[-2:], factors.shape[-2]
            least = n if where is Side.LEFT else m
            work = _workspace(call, lwork, least, cpu.workspace_of_ormqr, where, m, n, k)
            if matrix is a and target is c and not call.library.host:
                call.arrays = tau, a, c
            flags = {"side": where, "trans": op}
            (product,) = _run(call, stem, flags, source, tuple(call.inputs[:2]), lwork, key=key)
            return shaped_like(product, c), work, 0

    return dressed(ormqr, stem, name, dtype, QR)


def _factors_of(name: str, tau: Array, dtype: Dtype | None) -> Array:
    """The factors of reflectors, of shape (..., k), as matrices of one column."""
    array = checked_array(name, "tau", tau, dtype)
    if not array.shape:
        raise ValueError(f"{name}: tau has no dimensions; a vector, or a stack, is needed")
    return reshaped(array, (*array.shape, 1))


def _workspace(
    call: FactorCall, lwork: int | None, least: int, best: Callable[..., int], *extents: Any
) -> np.ndarray[Any, Any]:
    """The array `work` that SciPy's function returns, which begins with the best `lwork`.

    Raises
    ------
    ValueError
        When `lwork` is neither -1, which is a query, nor at least `least`.
    """
    dtype, least = np.dtype(call.dtype.name), max(least, 1)
    length = 3 * least if lwork is None else whole(lwork, call.name, "lwork")
    if length != -1 and length < least:
        raise ValueError(f"{call.name}: lwork={lwork} is less than {least}")
    if not call.library.host:
        return _of_device(call.dtype, least)
    work = np.zeros(max(length, 1), dtype)
    work[0] = best(dtype, *extents)
    return work


def _of_device(dtype: Dtype | None, least: int) -> np.ndarray[Any, Any]:
    """The array `work` of device arrays."""
    return np.full(1, max(least, 1), dtype.name if dtype else "float64")


def _placed(name: str, dtype: Dtype | None, *arrays: Array) -> AbstractContextManager[None]:
    """The context of a call, which SciPy's LAPACK computes if matrices in host memory are small."""
    return small_on_processor(dtype or common_dtype_of(name, arrays), *arrays)


def _array(call: FactorCall, tau: Any) -> Any:
    """The factors of reflectors as the caller gets them."""
    return call.library.deliver(tau, call.arrays[0], call.stream)


def _run(
    call: FactorCall,
    stem: str,
    flags: Mapping[str, Any],
    source: Any,
    inputs: tuple[Any, ...],
    lwork: int | None,
    counts: tuple[int, ...] = (),
    key: Any = None,
) -> tuple[Any, ...]:
    """Run a routine; a query of the workspace computes nothing, and returns the argument."""
    if lwork == -1:
        shapes = [(*call.out.shape[:-2], count) for count in counts]
        kinds = [call.dtype.name if isinstance(count, Factors) else "int32" for count in counts]
        zeros: list[Any] = [np.zeros(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]
        return call.arrays[-1], *call.integers_of(zeros, counts)
    return run_by_row(call, stem, flags, source, inputs, counts=counts, key=key)


def _check_product(name: str, side: Side, a: Array, tau: Array, c: Array) -> None:
    """Raise ValueError unless the reflectors fit together, and to `c`."""
    order, k = a.shape[-2:]
    extent = c.shape[-2 if side is Side.LEFT else -1]
    if order != extent or k != tau.shape[-2] or k > order:
        raise ValueError(
            f"{name}: a has shape {tuple(a.shape)}, tau {tuple(tau.shape[:-1])} and c {tuple(c.shape)}; from "
            f"the {side.name.lower()} a has {extent} rows, as many columns as tau has factors, and no more "
            "columns than rows"
        )


def decoded(flag: Any) -> Any:
    """The letter of a flag, which SciPy takes as bytes too."""
    return flag.decode("ascii", "replace") if isinstance(flag, bytes) else flag


FUNCTIONS = functions_of(
    {"geqrf": _make_geqrf, "geqp3": _make_geqp3, "orgqr": _make_orgqr, "ormqr": _make_ormqr},
    generic=True,
)
