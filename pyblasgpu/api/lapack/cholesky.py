"""Cholesky factors of `lapack`, and inverses and solutions from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arguments import Array, Flag, enabled
from ...frontend.calls.factor_replay import call_key, replay_factor
from ...types import Dtype, Uplo
from ..blas.arrays import common_dtype_of, shaped_like
from ..blas.functions import functions_of
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

__all__ = ["FUNCTIONS"]


def _make_potrf(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def potrf(a: Array, lower: Flag = 0, clean: Flag = 1, overwrite_a: Flag = 0) -> tuple[Array, Any]:
        """Cholesky factor of a Hermitian positive definite matrix.

        Parameters
        ----------
        a : array, shape (n, n) or (..., n, n)
            The matrix. One triangle is read, without the imaginary parts of the diagonal.
        clean : {0, 1}, default 1
            Whether the other triangle of the result is zero, else that of `a`.

        Returns
        -------
        c : array, shape (n, n) or (..., n, n)
            The factor L of ``a = L L^H``, or U of ``a = U^H U``; column-major unless it is `a`. Where a pivot
            is not positive, the columns of L, rows of U, before it are right, and the rest of the triangle is
            not.
        info : int, or array of int32
            0, or the number, from 1, of the first pivot that is not positive.

        See Also
        --------
        potrs : Solution by the factor.
        pyblasgpu.linalg.cholesky : SciPy's signature, with an error in place of `info`.

        Notes
        -----
        Each entry of ``L L^H`` differs from that of `a` by at most ``(n+4) u`` times that of ``|L| |L^H|``, u
        the unit roundoff; for complex numbers sqrt(8) times that (Higham, *Accuracy and Stability of
        Numerical Algorithms*, Theorem 10.3). The recursion is that of LAPACK's potrf2 (Gustavson, 1997).

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> c, info = lapack.potrf([[4, 2], [2, 5]], lower=1)
        >>> c.real.tolist(), info
        ([[2.0, 0.0], [1.0, 2.0]], 0)
        """
        uplo, cleans = Uplo.parse(lower, name, "lower"), enabled(clean, name, "clean")
        key = call_key(name, uplo, cleans)
        if (repeated := replay_factor(key, (a,), overwrite_a)) is not None:
            c, info = repeated
            return c, info
        matrix = as_stack(name, "a", a, dtype)
        order = order_of(name, "a", matrix)
        call, source = factor_call(name, dtype, {}, "a", matrix, overwrite_a)
        flags = {"uplo": uplo, "clean": cleans}
        c, info = run_by_row(call, "potrf", flags, source, extents=(order,), key=key)
        return c, info

    return dressed(potrf, stem, name, dtype)


def _make_potri(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def potri(c: Array, lower: Flag = 0, overwrite_c: Flag = 0) -> tuple[Array, Any]:
        """Inverse of a Hermitian positive definite matrix from its Cholesky factor.

        Returns
        -------
        inv_a : array, shape (n, n) or (..., n, n)
            One triangle of the inverse; the other one is that of `c`. Column-major unless it is `c`.
        info : int, or array of int32
            0, or the number, from 1, of the first zero on the diagonal; then the other result is what was
            passed.

        See Also
        --------
        potrf : The factor.
        pyblasgpu.linalg.inv : Inverse from the matrix itself.

        Notes
        -----
        The inverse of the triangle, then its product with its conjugate transpose: `trtri` and `lauum`. Of
        many small matrices the columns are solutions, as `potrs` computes them.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> inv_a, info = lapack.potri([[0.5, 0], [0.5, 0.5]], lower=1)
        >>> inv_a.real.tolist(), info
        ([[8.0, 0.0], [-4.0, 4.0]], 0)
        """
        uplo = Uplo.parse(lower, name, "lower")
        key = call_key(name, uplo)
        if (repeated := replay_factor(key, (c,), overwrite_c)) is not None:
            inv_a, info = repeated
            return inv_a, info
        matrix = as_stack(name, "c", c, dtype)
        order_of(name, "c", matrix)
        call, source = factor_call(name, dtype, {}, "c", matrix, overwrite_c)
        inv_a, info = run_by_row(call, "potri", {"uplo": uplo}, source, key=key)
        return inv_a, info

    return dressed(potri, stem, name, dtype)


def _make_potrs(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def potrs(c: Array, b: Array, lower: Flag = 0, overwrite_b: Flag = 0) -> tuple[Array, int]:
        """Solution of a Hermitian positive definite system from its Cholesky factor.

        Returns
        -------
        x : array
            The solution, shaped as `b`; column-major unless it is `b`.
        info : int
            Always 0.

        See Also
        --------
        potrf : The factor.
        pyblasgpu.linalg.cho_solve : SciPy's signature, with an error in place of `info`.

        Notes
        -----
        Two triangular systems, solved by substitution: the bounds of `trsm` hold for each.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> x, info = lapack.potrs([[2, 0], [1, 2]], [8, 14], lower=1)
        >>> x.real.tolist(), info
        ([0.75, 2.5], 0)
        """
        uplo = Uplo.parse(lower, name, "lower")
        if (repeated := replay_factor(call_key(name, uplo, True), (c, b), overwrite_b)) is not None:
            return repeated[0], 0
        factor, right = as_stack(name, "c", c, dtype), as_stack(name, "b", b, dtype)
        check_rows(name, "c", order_of(name, "c", factor), right)
        x = _solve(name, dtype, factor, right, uplo, overwrite_b)
        return shaped_like(x, b), 0

    return dressed(potrs, stem, name, dtype)


def _solve(
    name: str, dtype: Dtype | None, c: Array, b: Array, uplo: Uplo, overwrite_b: Flag, info: Any = None
) -> Array:
    """The solution; `c` and `b` are what `as_stack` has left. Where `info` is not 0, b stays."""
    key = call_key(name, uplo, info is None)
    if (repeated := replay_factor(key, (c, b), overwrite_b, () if info is None else (info,))) is not None:
        return repeated[0]
    call, source = factor_call(name, dtype, {"c": c}, "b", b, overwrite_b)
    how: dict[str, Any] = {"extents": (c.shape[-1], b.shape[-1]), "names": ("a", "b"), "counts": ()}
    inputs = (call.inputs[0],)
    (x,) = run_by_row(call, "potrs", {"uplo": uplo}, source, inputs, info=info, key=key, **how)
    return x


def _make_posv(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    factor = _make_potrf("potrf", "potrf" if dtype is None else f"{dtype.letter}potrf", dtype)

    def posv(
        a: Array, b: Array, lower: Flag = 0, overwrite_a: Flag = 0, overwrite_b: Flag = 0
    ) -> tuple[Array, Array, Any]:
        """Solution of a Hermitian positive definite system.

        Parameters
        ----------
        a : array, shape (n, n) or (..., n, n)
            The matrix. One triangle is read, without the imaginary parts of the diagonal.

        Returns
        -------
        c : array, shape (n, n) or (..., n, n)
            The Cholesky factor in one triangle, as of `potrf`; the other one is that of `a`.
        x : array
            The solution, shaped as `b`; column-major unless it is `b`. Where `info` is not 0 it is `b`.
        info : int, or array of int32
            0, or the number, from 1, of the first pivot that is not positive.

        See Also
        --------
        potrf : The factor.
        potrs : The solution from the factor.
        pyblasgpu.linalg.solve : SciPy's signature, with an error in place of `info`.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> c, x, info = lapack.posv([[4, 2], [2, 5]], [8, 14], lower=1)
        >>> x.real.tolist(), info
        ([0.75, 2.5], 0)
        """
        matrix, right = as_stack(name, "a", a, dtype), as_stack(name, "b", b, dtype)
        uplo = Uplo.parse(lower, name, "lower")
        overwrites = check_system(name, matrix, right, overwrite_a, overwrite_b)
        if dtype is None:
            letter = common_dtype_of(name, (matrix, right)).letter
            solved: tuple[Array, Array, Any] = FUNCTIONS[letter + stem](a, b, lower, overwrites, overwrite_b)
            return solved
        c, info = factor(matrix, uplo, 0, overwrites)
        with AfterOverwriting(c is matrix):
            x = _solve(name, dtype, c, right, uplo, overwrite_b, info)
        return c, shaped_like(x, b), info

    return dressed(posv, stem, name, dtype)


FUNCTIONS = functions_of(
    {"potrf": _make_potrf, "potri": _make_potri, "potrs": _make_potrs, "posv": _make_posv}, generic=True
)
