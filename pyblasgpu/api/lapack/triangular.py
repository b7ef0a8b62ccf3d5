"""Inverses of triangles, solutions by them, and their products with their transposes, of `lapack`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arguments import Array, Flag
from ...frontend.calls.factor_replay import call_key, replay_factor
from ...types import Diag, Dtype, Trans, Uplo
from ..blas.arrays import shaped_like
from ..blas.functions import functions_of
from ..blas.vectors import whole
from .call import as_stack, check_rows, dressed, factor_call, order_of, run_by_row

__all__ = ["FUNCTIONS"]


def _make_trtri(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def trtri(c: Array, lower: Flag = 0, unitdiag: Flag = 0, overwrite_c: Flag = 0) -> tuple[Array, Any]:
        """Inverse of a triangle.

        Parameters
        ----------
        c : array, shape (n, n) or (..., n, n)
            A triangle. The other one, and a unit diagonal, are never read.
        unitdiag : {0, 1}, default 0
            Take the diagonal to be 1; then it is not written either.

        Returns
        -------
        inv_c : array, shape (n, n) or (..., n, n)
            The inverse in its triangle; the rest is that of `c`. Column-major unless it is `c`.
        info : int, or array of int32
            0, or the number, from 1, of the first zero on the diagonal; then the other result is what was
            passed.

        See Also
        --------
        trtrs : Solution without an inverse, which is more accurate.
        pyblasgpu.trsm : Solution with many triangles, or from the right.

        Notes
        -----
        Blocks on the diagonal are inverted by substitution, and merged by two products with triangles. The
        residual ``X c - I`` is bounded componentwise by ``4 (n+1) u |X| |c| |X| |c|`` (Du Croz and Higham,
        *Stability of methods for matrix inversion*, IMA J. Numer. Anal. 12, 1992; LAWN 27).

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> inv_c, info = lapack.trtri([[2, 0], [1, 0.5]], lower=1)
        >>> inv_c.real.tolist(), info
        ([[0.5, 0.0], [-1.0, 2.0]], 0)
        """
        uplo, diag = Uplo.parse(lower, name, "lower"), Diag.parse(unitdiag, name, "unitdiag")
        key = call_key(name, uplo, diag)
        if (repeated := replay_factor(key, (c,), overwrite_c)) is not None:
            inv_c, info = repeated
            return inv_c, info
        triangle = as_stack(name, "c", c, dtype)
        order_of(name, "c", triangle)
        call, source = factor_call(name, dtype, {}, "c", triangle, overwrite_c)
        inv_c, info = run_by_row(call, "trtri", {"uplo": uplo, "diag": diag}, source, key=key)
        return inv_c, info

    return dressed(trtri, stem, name, dtype)


def _make_lauum(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def lauum(c: Array, lower: Flag = 0, overwrite_c: Flag = 0) -> tuple[Array, int]:
        """Product of a triangle and its conjugate transpose, ``U U^H`` or ``L^H L``.

        Parameters
        ----------
        c : array, shape (n, n) or (..., n, n)
            A triangle. The other one is never read.

        Returns
        -------
        a : array, shape (n, n) or (..., n, n)
            One triangle of the product; the other one is that of `c`. Column-major unless it is `c`.
        info : int
            Always 0.

        See Also
        --------
        potri : The inverse that it is a part of.

        Notes
        -----
        Componentwise error at most ``(n+2) u |c| |c|^H``, u the unit roundoff; for complex numbers sqrt(8)
        times that.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> a, info = lapack.lauum([[2, 0], [1, 3]], lower=1)
        >>> a.real.tolist(), info
        ([[5.0, 0.0], [3.0, 9.0]], 0)
        """
        uplo = Uplo.parse(lower, name, "lower")
        key = call_key(name, uplo)
        if (repeated := replay_factor(key, (c,), overwrite_c)) is not None:
            return repeated[0], 0
        triangle = as_stack(name, "c", c, dtype)
        order_of(name, "c", triangle)
        call, source = factor_call(name, dtype, {}, "c", triangle, overwrite_c)
        (a,) = run_by_row(call, "lauum", {"uplo": uplo}, source, counts=(), key=key)
        return a, 0

    return dressed(lauum, stem, name, dtype)


def _make_trtrs(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def trtrs(
        a: Array,
        b: Array,
        lower: Flag = 0,
        trans: Flag = 0,
        unitdiag: Flag = 0,
        lda: int | None = None,
        overwrite_b: Flag = 0,
    ) -> tuple[Array, Any]:
        """Solution of a triangular system.

        Parameters
        ----------
        a : array, shape (n, n) or (..., n, n)
            A triangle. The other one, a unit diagonal, and rows beyond n are never read.
        lower : {0, 1}, default 0
            Whether `a`, as it is stored, is lower triangular.
        trans : {0, 1, 2} or {'N', 'T', 'C'}, default 0
            The op of ``op(a) x = b``: the matrix itself, its transpose, its conjugate transpose.
        unitdiag : {0, 1}, default 0
            Take the diagonal to be 1.
        lda : int, optional
            Accepted where it is the number of rows of `a`, the default.

        Returns
        -------
        x : array
            The solution, shaped as `b`; column-major unless it is `b`.
        info : int, or array of int32
            0, or the number, from 1, of the first zero on the diagonal; then the other result is what was
            passed.

        See Also
        --------
        pyblasgpu.trsm : Solution from either side, without a look at the diagonal.
        pyblasgpu.linalg.solve_triangular : SciPy's signature, with an error in place of `info`.

        Notes
        -----
        By substitution: the bounds of `trsm` hold.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> x, info = lapack.trtrs([[2, 0], [1, 0]], [4, 4], lower=1)
        >>> info  # the second number of the diagonal is 0
        2
        """
        uplo, diag = Uplo.parse(lower, name, "lower"), Diag.parse(unitdiag, name, "unitdiag")
        op = Trans.parse(trans, name, "trans")
        key = call_key(name, uplo, op, diag)
        repeated = replay_factor(key, (a, b), overwrite_b) if lda is None else None
        if repeated is not None:
            x, info = repeated
            return x, info
        triangle, right = as_stack(name, "a", a, dtype), as_stack(name, "b", b, dtype)
        if lda is not None and whole(lda, name, "lda") != triangle.shape[-2]:
            raise ValueError(f"{name}: lda={lda} is not the number of rows of a, {triangle.shape[-2]}")
        if triangle.shape[-2] > triangle.shape[-1]:
            triangle = triangle[..., : triangle.shape[-1], :]
        check_rows(name, "a", order_of(name, "a", triangle), right)
        if (repeated := replay_factor(key, (triangle, right), overwrite_b)) is not None:
            x, info = repeated
            return shaped_like(x, b), info
        call, source = factor_call(name, dtype, {"a": triangle}, "b", right, overwrite_b)
        flags = {"uplo": uplo, "trans": op, "diag": diag}
        inputs = (call.inputs[0],)
        x, info = run_by_row(call, "trtrs", flags, source, inputs, key=key, without_columns=True)
        return shaped_like(x, b), info

    return dressed(trtrs, stem, name, dtype)


FUNCTIONS = functions_of({"trtri": _make_trtri, "lauum": _make_lauum, "trtrs": _make_trtrs}, generic=True)
