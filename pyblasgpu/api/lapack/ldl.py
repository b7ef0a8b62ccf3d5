"""L D L^H factors of `lapack` with pivots of Bunch and Kaufman, and solutions and inverses from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arguments import Array, Flag, enabled
from ...frontend.calls.factor_replay import ONE, Factors, call_key, replay_factor
from ...frontend.calls.lazy_routines import routine_module
from ...routine_table import ROUTINES
from ...types import DTYPES, Dtype, Uplo
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
from .docs import LDL
from .lu import pivots_of
from .queries import answered, extents_of

__all__ = ["FUNCTIONS", "matrices_on_device"]

_DRIVERS = {"sysv": ("sytrf", "sytrs"), "hesv": ("hetrf", "hetrs")}


def _check_lwork(name: str, lwork: Any, order: int) -> None:
    """Raise ValueError for a workspace that is too small; results of a query are taken, as by SciPy."""
    if isinstance(lwork, tuple) and lwork:
        lwork = int(lwork[0].real)
    if lwork is not None and whole(lwork, name, "lwork") < order:
        raise ValueError(f"{name}: lwork={lwork} is less than the order, {order}")


def _dressed(function: Any, stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    """Return `function` as users find it; its examples call the routine of this stem."""
    if function.__doc__:  # none with python -OO
        function.__doc__ = function.__doc__.replace(f"lapack.{function.__name__}(", f"lapack.{stem}(")
    return dressed(function, stem, name, dtype, LDL)


def _make_sytrf(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def sytrf(
        a: Array, lower: Flag = 0, lwork: int | None = None, overwrite_a: Flag = 0, *, rook: Flag = 0
    ) -> tuple[Array, Any, Any]:
        """L D L^H factors of a symmetric or Hermitian matrix, with pivots of Bunch and Kaufman.

        Parameters
        ----------
        a : array, shape (n, n) or (..., n, n)
            The matrix, or a stack, of which one triangle is read.
        rook : bool, default 0
            Whether to take rook pivots, as LAPACK's sytrf_rook does, whose formats are those of the results
            then. SciPy has no such argument.

        Returns
        -------
        ldu : array, shape (n, n) or (..., n, n)
            D, and L or U without its diagonal of ones, in one triangle; the other one is that of `a`.
            Column-major unless it is `a`.
        ipiv : array of int32, shape (n,) or (..., n)
        info : int, or array of int32
            0, or the number, from 1, of the first block of D that is zero: D is singular then.

        See Also
        --------
        sytrs : Solution by the factors.
        pyblasgpu.linalg.ldl : The factors as matrices.

        Notes
        -----
        D has blocks of order one and two. A block is chosen as by LAPACK's sytf2, with the larger elements of
        two columns. So elements grow at most by a factor of 2.57 a step (Bunch and Kaufman, *Some stable
        methods for calculating inertia and solving symmetric linear systems*, Math. Comput. 1977).

        Elements of L may be of any size. With rook pivots those of real matrices are below 2.79: a step
        searches on until an element is the largest one of its row and of its column, which takes longer.
        Kernels for that are compiled at the first call.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> ldu, ipiv, info = lapack.sytrf([[2, 0], [1, 4]], lower=1)
        >>> ldu.real.tolist(), ipiv.tolist(), info
        ([[2.0, 0.0], [0.5, 3.5]], [1, 2], 0)
        """
        flags = _flags(name, lower, rook)
        if lwork is not None:
            _check_lwork(name, lwork, order_of(name, "a", as_stack(name, "a", a, dtype)))
        return _factor(stem, name, dtype, a, flags, overwrite_a)

    return _dressed(sytrf, stem, name, dtype)


def _flags(name: str, lower: Flag, rook: Flag) -> dict[str, Any]:
    """The flags of a routine by the names of its row."""
    return {"uplo": Uplo.parse(lower, name, "lower"), "rook": enabled(rook, name, "rook")}


def _factor(
    stem: str, name: str, dtype: Dtype | None, a: Array, flags: dict[str, Any], overwrite_a: Flag
) -> tuple[Array, Any, Any]:
    """Return factors, pivots and info."""
    key = call_key(name, stem, *flags.values())
    if (repeated := replay_factor(key, (a,), overwrite_a)) is not None:
        factors, piv, info = repeated
        return factors, piv, info
    matrix = as_stack(name, "a", a, dtype)
    order = order_of(name, "a", matrix)
    call, source = factor_call(name, dtype, {}, "a", matrix, overwrite_a)
    factors, piv, info = run_by_row(call, stem, flags, source, counts=(order, ONE), key=key)
    return factors, piv, info


def _make_sytrs(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def sytrs(
        a: Array, ipiv: Any, b: Array, lower: Flag = 0, overwrite_b: Flag = 0, *, rook: Flag = 0
    ) -> tuple[Array, int]:
        """Solution of a symmetric or Hermitian system from its L D L^H factors.

        Parameters
        ----------
        a : array, shape (n, n) or (..., n, n)
            The factors, as `sytrf` leaves them.
        rook : bool, default 0
            Whether `sytrf` has taken rook pivots. SciPy has no such argument.

        Returns
        -------
        x : array, shape of `b`
            The solution, column-major unless it is `b`. Where D is singular, it is not finite.
        info : int
            Always 0.

        See Also
        --------
        sytrf : The factors.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> x, info = lapack.sytrs([[2, 0], [0.5, 3.5]], [1, 2], [4, 9], lower=1)
        >>> x.real.tolist(), info
        ([1.0, 2.0], 0)
        """
        flags = _flags(name, lower, rook)
        key = call_key(name, stem, *flags.values())
        if (repeated := replay_factor(key, (a, b), overwrite_b, (ipiv,))) is not None:
            return repeated[0], 0
        factors, right = as_stack(name, "a", a, dtype), as_stack(name, "b", b, dtype)
        check_rows(name, "a", order_of(name, "a", factors), right)
        x = _solve(stem, name, dtype, factors, ipiv, right, flags, overwrite_b)
        return shaped_like(x, b), 0

    return _dressed(sytrs, stem, name, dtype)


def _solve(
    stem: str,
    name: str,
    dtype: Dtype | None,
    a: Array,
    ipiv: Any,
    b: Array,
    flags: dict[str, Any],
    overwrite_b: Flag,
    info: Any = None,
) -> Array:
    """The solution; `a` and `b` are what `as_stack` has left. Where `info` is not 0, b stays."""
    key = call_key(name, stem, *flags.values(), *(() if info is None else (True,)))
    left = (ipiv,) if info is None else (info, ipiv)
    if (repeated := replay_factor(key, (a, b), overwrite_b, left)) is not None:
        return repeated[0]
    call, source = factor_call(name, dtype, {"a": a}, "b", b, overwrite_b)
    how: dict[str, Any] = {"input_integers": (pivots_of(call, ipiv, a.shape[-1], "ipiv"),), "counts": ()}
    (x,) = run_by_row(call, stem, flags, source, (call.inputs[0],), info=info, key=key, **how)
    return x


def _make_sysv(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    factors, solution = _DRIVERS[stem]

    def sysv(
        a: Array,
        b: Array,
        lwork: int | None = None,
        lower: Flag = 0,
        overwrite_a: Flag = 0,
        overwrite_b: Flag = 0,
        *,
        rook: Flag = 0,
    ) -> tuple[Array, Any, Array, Any]:
        """Solution of a symmetric or Hermitian system by L D L^H factors.

        Parameters
        ----------
        a : array, shape (n, n) or (..., n, n)
            The matrix, or a stack, of which one triangle is read.
        rook : bool, default 0
            Whether to take rook pivots, see `sytrf`. SciPy has no such argument.

        Returns
        -------
        udut : array, shape (n, n) or (..., n, n)
            The factors, as of `sytrf`.
        ipiv : array of int32, shape (n,) or (..., n)
        x : array, shape of `b`
            The solution, column-major unless it is `b`. Where D is singular, and `info` not 0, it is `b`.
        info : int, or array of int32
            0, or the number, from 1, of the first block of D that is zero.

        See Also
        --------
        sytrf : The factors.
        sytrs : The solution from the factors.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> udut, ipiv, x, info = lapack.sysv([[2, 1], [1, 4]], [4, 9])
        >>> x.real.tolist(), info
        ([1.0, 2.0], 0)
        """
        matrix, right = as_stack(name, "a", a, dtype), as_stack(name, "b", b, dtype)
        flags = _flags(name, lower, rook)
        _check_lwork(name, lwork, matrix.shape[-1])
        overwrites = check_system(name, matrix, right, overwrite_a, overwrite_b)
        if dtype is None:
            letter = common_dtype_of(name, (matrix, right)).letter
            named = FUNCTIONS.get(letter + stem) or FUNCTIONS[letter + "sysv"]
            passed = a, b, lwork, lower, overwrites, overwrite_b
            solved: tuple[Array, Any, Array, Any] = named(*passed, rook=flags["rook"])
            return solved
        ldu, ipiv, info = _factor(factors, name, dtype, matrix, flags, overwrites)
        with AfterOverwriting(ldu is matrix):
            x = _solve(solution, name, dtype, ldu, ipiv, right, flags, overwrite_b, info)
        return ldu, ipiv, shaped_like(x, b), info

    return _dressed(sysv, stem, name, dtype)


def _make_lwork(stem: str, name: str, dtype: Dtype) -> Callable[..., Any]:
    def sytrf_lwork(n: int, lower: Flag = 0) -> tuple[Any, int]:
        """The workspace with which SciPy's LAPACK computes the routine fastest.

        Parameters
        ----------
        n : int
            The order.

        Returns
        -------
        work : number
            Its elements.
        info : int
            Always 0.

        See Also
        --------
        sytrf : Takes it, and does not need it.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> work, info = lapack.sytrf_lwork(100)
        >>> work.real >= 100, info
        (True, 0)
        """
        (order,) = extents_of(name, n=n)
        return answered(stem, dtype, order, lower=int(Uplo.parse(lower, name, "lower") is Uplo.LOWER))

    return _dressed(sytrf_lwork, stem, name, dtype)


def _make_sytri(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def sytri(
        a: Array, ipiv: Any, lower: Flag = 0, overwrite_a: Flag = 0, *, rook: Flag = 0
    ) -> tuple[Array, Any]:
        """Inverse of a symmetric or Hermitian matrix from its L D L^H factors.

        Parameters
        ----------
        a : array, shape (n, n) or (..., n, n)
            The factors, as `sytrf` leaves them.
        rook : bool, default 0
            Whether `sytrf` has taken rook pivots. SciPy has no such argument.

        Returns
        -------
        inv_a : array, shape (n, n) or (..., n, n)
            One triangle of the inverse; the other one is that of `a`. Column-major unless it is `a`.
        info : int, or array of int32
            0, or the number, from 1, of the first block of D that is zero; then the other result is what was
            passed.

        See Also
        --------
        sytrf : The factors.
        sytrs : Solutions, which are more accurate than products with the inverse.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> inv_a, info = lapack.sytri([[2, 0], [0.5, 4]], [1, 2], lower=1)
        >>> inv_a.real.tolist(), info
        ([[0.5625, 0.0], [-0.125, 0.25]], 0)
        """
        flags = _flags(name, lower, rook)
        key = call_key(name, stem, *flags.values())
        if (repeated := replay_factor(key, (a,), overwrite_a, (ipiv,))) is not None:
            inverse, info = repeated
            return inverse, info
        factors = as_stack(name, "a", a, dtype)
        order = order_of(name, "a", factors)
        call, source = factor_call(name, dtype, {}, "a", factors, overwrite_a)
        integers = (pivots_of(call, ipiv, order, "ipiv"),)
        inverse, info = run_by_row(call, stem, flags, source, input_integers=integers, key=key)
        return inverse, info

    return _dressed(sytri, stem, name, dtype)


def matrices_on_device(
    name: str, a: Array, lower: bool, hermitian: bool, overwrite_a: bool, dtype: Dtype
) -> tuple[Array, Array, Array]:
    """Return the outer factor of device matrices, its rows where `a` has them; D as n^2 numbers; and for each
    row of a lower triangle that of `a`, and a number, of an upper one in reverse.
    """
    uplo, n = Uplo.LOWER if lower else Uplo.UPPER, a.shape[-1]
    stem, flags = "hetrf" if hermitian else "sytrf", {"uplo": uplo, "rook": False}
    factors, ipiv, _ = _factor(stem, name, dtype, a, flags, overwrite_a)
    key = call_key(name, "as matrices", uplo, hermitian)
    if (repeated := replay_factor(key, (factors,), True, (ipiv,))) is not None:
        factor, rows, d = repeated
        return factor, d, rows
    call, source = factor_call(name, dtype, {}, "a", factors, True)

    def launches(_: tuple[Any, ...], operands: Any) -> Any:
        return routine_module("lapack.ldl").launch_list(*operands, uplo, hermitian)

    counts, integers = (2 * n, Factors(n * n)), (pivots_of(call, ipiv, n, "ipiv"),)
    rows, d = call.run_on_arrays(launches, (), source, counts, integers, key)
    return call.delivered(), d, rows


_MAKERS = {
    "sytrf": _make_sytrf,
    "hetrf": _make_sytrf,
    "sytrs": _make_sytrs,
    "hetrs": _make_sytrs,
    "sytri": _make_sytri,
    "hetri": _make_sytri,
    "sysv": _make_sysv,
    "hesv": _make_sysv,
}
FUNCTIONS = functions_of(_MAKERS, generic=True)
FUNCTIONS |= {
    f"{name}_lwork": _make_lwork(f"{stem}_lwork", f"{name}_lwork", DTYPES[letter])
    for stem in ("sytrf", "hetrf", "sysv", "hesv")
    for letter in ROUTINES[stem].letters
    for name in ROUTINES[stem].scipys(letter)
}
