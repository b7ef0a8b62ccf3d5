"""Unitary polar factors by products and Cholesky factors alone; the sign function of Hermitian matrices.

X := X (a I + b XᴴX)(I + c XᴴX)⁻¹ makes all singular values 1. The weights depend on a bound of the smallest
one and end at 3, 1, 3 (QDWH; Nakatsukasa, Bai and Gygi, 2010). The first c is large. There the inverse goes
by the QR factors of [√c X; I], from two Cholesky factorizations in double precision. Others go by one, with a
c up to which that loses few digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import frexp, inf, isfinite, sqrt
from typing import Any, NamedTuple

from ..keyword.level3 import gemm
from ..keyword.rank_k import herk, syrk
from ..keyword.triangular import trsm
from ..lapack import names as lapack
from .arrays import Arrays
from .checks import host_values
from .structures import conjugate_transpose

__all__ = [
    "LEAST",
    "Sign",
    "hermitian_part",
    "hermitian_sign",
    "norm_bound",
    "norm_bounds",
    "scaled",
    "unitary_factor",
]

LEAST = 1e-8  # singular values, of the norm, for which the weights are made; smaller ones take more steps
LARGE = 300.0  # the largest c of a step by one Cholesky factorization, which loses as many roundoffs at most


class Sign(NamedTuple):
    """The sign function of a Hermitian matrix.

    Attributes
    ----------
    matrix : array, shape (n, n)
    rank : int
        Its eigenvalues that are 1.
    defect : float
        The sum of ``1 - w**2`` of its eigenvalues w: those that are neither 1 nor -1 yet; NaN where a
        factorization failed.
    """

    matrix: Any
    rank: int
    defect: float


def weights(least: float, precision: float) -> Iterator[tuple[float, float, float]]:
    """Yield a, b, c until all singular values from `least` to 1 are 1 to `precision`; c of all but the first
    is at most `LARGE`.
    """
    most = inf
    while 1 - least > precision:
        squared = least * least
        root = sqrt(1 + (4 * (1 - squared) / squared**2) ** (1 / 3))
        a = root + sqrt(8 - 4 * (root * root - 1) + 8 * (2 - squared) / (squared * root)) / 2
        a = min(a, 2 * sqrt(1 + most) - 1)
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        yield a, b, c
        least, most = min(least * (a + b * squared) / (1 + c * squared), 1.0), LARGE


def scaled(arrays: Arrays, a: Any) -> tuple[Any, Callable[[Any], Any]] | None:
    """A matrix times a power of two, its largest element about one, and what scales values back; None where
    it is not finite.
    """
    largest = float(host_values(arrays.xp.max(arrays.xp.abs(a))))
    if not isfinite(largest):
        return None
    exponent = frexp(largest)[1]
    half = exponent // 2  # in two factors, as a power of two may be beyond the range
    rest = exponent - half
    return a * 2.0**-half * 2.0**-rest, lambda values: values * 2.0**half * 2.0**rest


def norm_bound(arrays: Arrays, a: Any) -> float:
    """A bound of the largest singular value of a matrix: the Frobenius norm, or less."""
    return float(host_values(norm_bounds(arrays, a)))


def norm_bounds(arrays: Arrays, a: Any) -> Any:
    """Bounds of the largest singular values of a stack: Frobenius norms, or less."""
    xp, sizes = arrays.xp, arrays.xp.abs(a)
    rows, cols = (xp.max(xp.sum(sizes, axis=axis), axis=-1) for axis in (-1, -2))
    return xp.minimum(xp.sqrt(rows * cols), xp.sqrt(xp.sum(sizes * sizes, axis=(-2, -1))))


def hermitian_part(arrays: Arrays, x: Any) -> Any:
    """(X + Xᴴ)/2."""
    return (x + conjugate_transpose(arrays, x)) / 2


def unitary_factor(arrays: Arrays, x: Any, is_hermitian: bool = False) -> Any:
    """The unitary polar factors of square matrices of norms up to 1.

    Of singular values below `LEAST` the factor has values below 1, for the same vectors.
    """
    xp = arrays.xp
    narrow, wide = (getattr(xp, name) for name in (arrays.dtype.name, _double(arrays)))
    for a, b, c in weights(LEAST, 10 * arrays.precision):
        if c > 2 * LARGE:
            x = _by_qr(arrays, xp.astype(x, wide, copy=False), a, b, c)
        else:
            x = _by_cholesky(arrays, xp.astype(x, narrow, copy=False), a, b, c)
        x = hermitian_part(arrays, x) if is_hermitian else x
    return x


def hermitian_sign(arrays: Arrays, x: Any) -> Sign:
    """The sign function of a Hermitian matrix of a norm up to 1; eigenvalues near zero leave a defect."""
    xp, n = arrays.xp, x.shape[-1]
    x = unitary_factor(arrays, x, is_hermitian=True)
    traces = xp.stack([xp.sum(xp.real(xp.linalg.diagonal(x))), xp.sum(xp.abs(x) ** 2)])
    trace, squares = host_values(traces).tolist()
    rank = round((n + trace) / 2) if abs(trace) <= n else 0  # not where it is NaN
    return Sign(x, rank, abs(n - squares))


def _double(arrays: Arrays) -> str:
    return "complex128" if arrays.dtype.is_complex else "float64"


def _gram(arrays: Arrays, x: Any, scale: float = 1.0, of_rows: bool = False) -> Any:
    """The lower triangle of ``scale * XᴴX``, or of ``scale * X Xᴴ``."""
    if arrays.dtype.is_complex:
        return herk(x, alpha=scale, lower=True, trans="N" if of_rows else "C")
    return syrk(x, alpha=scale, lower=True, trans="N" if of_rows else "T")


def _by_cholesky(arrays: Arrays, x: Any, a: float, b: float, c: float) -> Any:
    """One step by the Cholesky factor of I + c XᴴX."""
    factor = lapack.potrf(_gram(arrays, x, c) + arrays.identity(x.shape[-1]), lower=True)[0]
    solved = trsm(factor, x, alpha=a - b / c, side="R", lower=True, trans="C")
    return (b / c) * x + trsm(factor, solved, side="R", lower=True, out=solved)


def _by_qr(arrays: Arrays, x: Any, a: float, b: float, c: float) -> Any:
    """One step by orthonormal columns [Q1; Q2] of [√c X; I], which CholeskyQR2 makes.

    Of the first round Q2 is an inverse triangle. The second one is left to the product of both, which needs
    Q1 G⁻¹ Q2ᴴ with G = Q1ᴴQ1 + Q2ᴴQ2 of the first.
    """
    identity = arrays.identity(x.shape[-1], dtype=_double(arrays))
    factor = lapack.potrf(_gram(arrays, x, c) + identity, lower=True)[0]
    first = trsm(factor, x, alpha=sqrt(c), side="R", lower=True, trans="C")
    adjoint = lapack.trtri(factor, lower=True)[0]
    gram = _gram(arrays, first) + _gram(arrays, adjoint, of_rows=True)
    factor = lapack.potrf(gram, lower=True)[0]
    for trans in "NC":
        trsm(factor, adjoint, lower=True, trans=trans, out=adjoint)
    return (b / c) * x + gemm(first, adjoint, alpha=(a - b / c) / sqrt(c))
