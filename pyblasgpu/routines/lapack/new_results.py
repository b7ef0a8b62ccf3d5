"""Factorizations, solutions, inverses and determinants whose results are new: one launch list for each.

Operands that are read are first and stay as they are; results follow, the largest one last. Info is an int32
in the first four bytes of an element, 0 or the number, from 1, of a pivot that failed. Pivots count from 0.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from ...operands import Operand
from ...types import Diag, Region, Side, Trans, Uplo
from ..copies import emit_copy, emit_mirrored, emit_scale
from ..joined_lists import emit_from
from ..launch_list import LaunchList, cached_launch_list
from ..level1 import emit_reduce
from ..level3 import trsm
from ..level3.gemm import emit_gemm
from ..level3.triangular import emit_into
from . import determinants, getrf, getri, getrs, laswp, potrf, potri, potrs
from .factor_steps import emit_restore, real_dtype, with_alpha

__all__ = [
    "cholesky",
    "definite_inverse",
    "definite_terms",
    "determinant",
    "downdated",
    "factored_solution",
    "half_gradients",
    "interchanged",
    "lu",
    "lu_inverse",
    "lu_solution",
    "signs",
    "solution",
]

SIDE_BY_SIDE = 256  # order from which on a solution and an inverse are computed at a time


def _listed(
    emit: Callable[..., None], inputs: tuple[Operand, ...], outputs: tuple[Operand, ...], *flags: object
) -> LaunchList | None:
    """Return the launch list of operands, run with alpha 1; None for no work."""
    if outputs[-1].is_empty:
        return None
    return cached_launch_list(emit, (*inputs, *outputs), flags, len(inputs))


def cholesky(a: Operand, info: Operand, factor: Operand, *, uplo: Uplo) -> LaunchList | None:
    """Return the list of the factor of A, zeros beyond it."""
    return _listed(_emit_cholesky, (a,), (info, factor), uplo)


def _emit_cholesky(launches: LaunchList, a: Operand, info: Operand, factor: Operand, uplo: Uplo) -> None:
    emit_from(
        launches,
        a,
        factor,
        lambda: emit_copy(launches, 1.0, a, factor, Region.of(uplo)),
        lambda: potrf.emit(launches, info, factor, uplo, clean=True),
    )


def definite_terms(
    factor: Operand, b: Operand, info: Operand, quad: Operand, logdet: Operand, white: Operand
) -> LaunchList | None:
    """Return the list of W = L^-1 B, dense by columns, for the Cholesky factor L of A. It also has the
    squares of W in one sum, `quad`, and ``log det A``; where info is not 0, they are worth nothing.
    """
    return _listed(_emit_definite_terms, (factor, b, info), (quad, logdet, white))


def _emit_definite_terms(
    launches: LaunchList,
    factor: Operand,
    b: Operand,
    info: Operand,
    quad: Operand,
    logdet: Operand,
    white: Operand,
) -> None:
    pivots = info._replace(rows=factor.rows, row_stride=0)  # signs are not looked at
    with launches.temporary():
        sign = launches.scratch(1, 1, factor.batch)
        determinants.emit(launches, (pivots, factor, sign, logdet), products=False)
    _emit_substitution(launches, factor, b, white, Uplo.LOWER)
    with launches.computing_in(logdet.dtype), launches.temporary():
        emit_scale(launches, 2.0, logdet, zero=False)
        emit_reduce(launches, _as_reals(white), _as_reals(white), quad, "dot", False)


def _emit_substitution(launches: LaunchList, t: Operand, b: Operand, x: Operand, uplo: Uplo) -> None:
    flags = trsm.emit, trsm.emit_apart, Side.LEFT, uplo, Diag.NON_UNIT
    with_alpha(launches, 1.0, lambda: emit_into(launches, t, b, x, *flags))


def half_gradients(factor: Operand, white: Operand, x: Operand, inverse: Operand) -> LaunchList | None:
    """Return the list of X = L^-H W for the Cholesky factor L, and of the lower triangle of the inverse from
    it.
    """
    return _listed(_emit_half_gradients, (factor, white), (x, inverse))


def _emit_half_gradients(
    launches: LaunchList, factor: Operand, white: Operand, x: Operand, inverse: Operand
) -> None:
    alone = inverse.batch == 1 and inverse.rows >= SIDE_BY_SIDE
    with launches.on_side_stream() if alone else nullcontext():
        _emit_substitution(launches, factor.T.conjugate(), white, x, Uplo.UPPER)
    _emit_definite_inverse(launches, factor, inverse, Uplo.LOWER, False)


def factored_solution(c: Operand, b: Operand, x: Operand, *, uplo: Uplo) -> LaunchList | None:
    """Return the list of X of A X = B from the Cholesky factor C."""
    return _listed(_emit_factored_solution, (c, b), (x,), uplo)


def _emit_factored_solution(launches: LaunchList, c: Operand, b: Operand, x: Operand, uplo: Uplo) -> None:
    potrs.emit_apart(launches, c, b, x, uplo)


def definite_inverse(c: Operand, inverse: Operand, *, uplo: Uplo, whole: bool = True) -> LaunchList | None:
    """Return the list of the inverse from the Cholesky factor C; its lower triangle, unless it is `whole`."""
    return _listed(_emit_definite_inverse, (c,), (inverse,), uplo, whole)


def _emit_definite_inverse(
    launches: LaunchList, c: Operand, inverse: Operand, uplo: Uplo, whole: bool
) -> None:
    info, lower = launches.scratch(1, 1, inverse.batch), c if uplo is Uplo.LOWER else c.T.conjugate()
    emit_copy(launches, 1.0, lower, inverse, Region.LOWER)
    if lower.conj:
        potri.emit(launches, info, inverse, Uplo.LOWER)
    else:  # C itself is what stays where it is singular
        potri.emit_inverse(launches, info, inverse)
        emit_restore(launches, info, lower, inverse)
    if whole:
        emit_mirrored(launches, inverse, inverse, inverse.dtype.is_complex)


def downdated(factor: Operand, x: Operand, c: Operand) -> LaunchList | None:
    """Return the list of all of the Hermitian C - f X X^H, where f is a real number and the lower triangle of
    C is given; X, dense by columns, becomes 2 f X.
    """
    return _listed(_emit_downdated, (factor,), (x, c))


def _emit_downdated(launches: LaunchList, factor: Operand, x: Operand, c: Operand) -> None:
    with launches.temporary():
        y = launches.scratch(x.rows * x.cols, 1, x.batch)._replace(
            rows=x.rows, cols=x.cols, col_stride=x.rows
        )
        with launches.computing_in(factor.dtype):
            emit_gemm(launches, 2.0, _as_reals(x), factor, 0.0, _as_reals(y))
        emit_gemm(launches, -0.5, y, x.T.conjugate(), 1.0, c, Region.LOWER)
        emit_copy(launches, 1.0, y, x)
    emit_mirrored(launches, c, c, c.dtype.is_complex)


def _as_reals(x: Operand) -> Operand:
    """Return a matrix that is dense by columns as a column of reals."""
    parts = x.dtype.reals_per_element
    rows = x.rows * x.cols * parts
    return x._replace(
        rows=rows, cols=1, col_stride=rows, dtype=real_dtype(x.dtype), batch_stride=x.batch_stride * parts
    )


def lu(a: Operand, piv: Operand, info: Operand, factors: Operand) -> LaunchList | None:
    """Return the list of the LU factors of A."""
    return _listed(_emit_lu, (a,), (piv, info, factors))


def _emit_lu(launches: LaunchList, a: Operand, piv: Operand, info: Operand, factors: Operand) -> None:
    def factor() -> None:
        getrf.emit(launches, piv, info, factors)

    emit_from(launches, a, factors, lambda: emit_copy(launches, 1.0, a, factors), factor)


def lu_solution(
    factors: Operand, piv: Operand, b: Operand, x: Operand, *, left: bool, adjoint: bool
) -> LaunchList | None:
    """Return the list of X of op(A) X = B, or X op(A) = B, from the LU factors of A, op maybe the adjoint."""
    return _listed(_emit_lu_solution, (factors, piv, b), (x,), left, adjoint)


def _emit_lu_solution(
    launches: LaunchList, factors: Operand, piv: Operand, b: Operand, x: Operand, left: bool, adjoint: bool
) -> None:
    if not left:  # X op(A) = B where op(A)^T X^T = B^T
        b, x = b.T, x.T

    def solve() -> None:
        if left:
            getrs.emit(launches, piv, factors, x, Trans.CONJ if adjoint else Trans.NO)
        elif adjoint:
            getrs.emit(launches, piv, factors.conjugate(), x, Trans.NO)
        else:
            getrs.emit(launches, piv, factors, x, Trans.TRANS)

    emit_from(launches, b, x, lambda: emit_copy(launches, 1.0, b, x), solve)


def solution(
    a: Operand, b: Operand, piv: Operand, info: Operand, factors: Operand, x: Operand, *, left: bool
) -> LaunchList | None:
    """Return the list of the LU factors of A and X of A X = B, or X A = B, not finite where one failed."""
    return _listed(_emit_solution, (a, b), (piv, info, factors, x), left)


def _emit_solution(
    launches: LaunchList,
    a: Operand,
    b: Operand,
    piv: Operand,
    info: Operand,
    factors: Operand,
    x: Operand,
    left: bool,
) -> None:
    _emit_lu(launches, a, piv, info, factors)
    _emit_lu_solution(launches, factors, piv, b, x, left, False)


def interchanged(a: Operand, piv: Operand, out: Operand, *, back: bool) -> LaunchList | None:
    """Return the list of A with rows interchanged by pivots, from the last one if they go `back`."""
    return _listed(_emit_interchanged, (a, piv), (out,), back)


def _emit_interchanged(launches: LaunchList, a: Operand, piv: Operand, out: Operand, back: bool) -> None:
    emit_copy(launches, 1.0, a, out)
    laswp.emit(launches, piv, out, back)


def lu_inverse(piv: Operand, factors: Operand, inverse: Operand) -> LaunchList | None:
    """Return the list of the inverse of A from its LU factors; of a singular A it is worth nothing."""
    return _listed(_emit_lu_inverse, (piv, factors), (inverse,))


def _emit_lu_inverse(launches: LaunchList, piv: Operand, factors: Operand, inverse: Operand) -> None:
    getri.emit_apart(launches, launches.scratch(1, 1, inverse.batch), piv, factors, inverse)


def signs(a: Operand, piv: Operand, sign: Operand, logarithm: Operand, factors: Operand) -> LaunchList | None:
    """Return the list of the LU factors of A, its determinant's sign and the logarithm of its modulus."""
    return _listed(_emit_signs, (a,), (piv, sign, logarithm, factors))


def _emit_signs(
    launches: LaunchList, a: Operand, piv: Operand, sign: Operand, logarithm: Operand, factors: Operand
) -> None:
    _emit_lu(launches, a, piv, launches.scratch(1, 1, factors.batch), factors)
    determinants.emit(launches, (piv, factors, sign, logarithm), products=False)


def determinant(a: Operand, piv: Operand, result: Operand, factors: Operand) -> LaunchList | None:
    """Return the list of the LU factors of A, and of its determinant, float64 or complex128."""
    return _listed(_emit_determinant, (a,), (piv, result, factors))


def _emit_determinant(
    launches: LaunchList, a: Operand, piv: Operand, result: Operand, factors: Operand
) -> None:
    _emit_lu(launches, a, piv, launches.scratch(1, 1, factors.batch), factors)
    determinants.emit(launches, (piv, factors, result, result), products=True)
