"""Level 3 of NumPy arrays on SciPy's BLAS, in place and with the special values of pyblasgpu.

The outputs' leading dimensions count matrices; the inputs' broadcast to them. SciPy's wrappers write in place
only into column-major arrays without padding, so others are computed in a copy and written back.

OpenBLAS multiplies the zeros of the other triangle in TRMM, and by reciprocals of the diagonal in TRSM. So
NaN and Inf reach what does not depend on them. Where its result is not finite, or a reciprocal would not be
normal, the result is computed once more by recursion. This multiplies what is read and divides truly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, wraps
from typing import Any, TypeVar, cast

import numpy as np

from ...types import Diag, Side, Trans, Uplo
from .values import has_normal_reciprocals, is_finite

__all__ = [
    "at_elements",
    "blas_function", "broadcast_matrices", "column_major", "gemm", "gemmtr", "indices", "matrices",
    "operation", "prefers_transpose",
    "quietly", "scale", "scipys_blas", "symm", "syr2k", "syrk", "trmm", "trsm", "triangle_mask", "update",
]  # fmt: skip


_Function = TypeVar("_Function", bound=Callable[..., None])


def quietly(function: _Function) -> _Function:
    """`function` with IEEE's results, whatever NumPy is set to do about overflow: it would raise too late."""

    @wraps(function)
    def quiet(*args: Any, **options: Any) -> None:
        with np.errstate(all="ignore"):
            function(*args, **options)

    return cast(_Function, quiet)


@quietly
def gemm(
    alpha: Any, a: np.ndarray, b: np.ndarray, beta: Any, c: np.ndarray, trans_a: Trans, trans_b: Trans
) -> None:
    """``c := alpha op(a) op(b) + beta c``; all three of one dtype."""
    inner = a.shape[-1 if trans_a is Trans.NO else -2]
    if alpha == 0 or inner == 0:
        scale(c, beta)
        return
    a, conj_a = operation(a, trans_a)
    b, conj_b = operation(b, trans_b)
    multiply = blas_function("gemm", c.dtype)
    for left, right, target in matrices(a, b, c):
        sides = (left, conj_a), (right, conj_b)
        if prefers_transpose(target):
            sides, target = ((right.T, conj_b), (left.T, conj_a)), target.T
        (left, left_code), (right, right_code) = (column_major(*side) for side in sides)
        update(
            target,
            lambda x, left=left, right=right, codes=(left_code, right_code): multiply(
                alpha, left, right, beta, x, *codes, overwrite_c=1
            ),
            read=beta != 0,
        )


def trmm(alpha: Any, a: np.ndarray, b: np.ndarray, side: Side, uplo: Uplo, trans: Trans, diag: Diag) -> None:
    """``b := alpha op(a) b``, or ``alpha b op(a)``; `uplo` is the triangle of `a` as it is stored."""
    _triangular("trmm", alpha, a, b, side, uplo, trans, diag)


def trsm(alpha: Any, a: np.ndarray, b: np.ndarray, side: Side, uplo: Uplo, trans: Trans, diag: Diag) -> None:
    """``b := x`` with ``op(a) x = alpha b``, or ``x op(a) = alpha b``."""
    _triangular("trsm", alpha, a, b, side, uplo, trans, diag)


@quietly
def _triangular(
    name: str, alpha: Any, a: Any, b: Any, side: Side, uplo: Uplo, trans: Trans, diag: Diag
) -> None:
    if alpha == 0:
        b[...] = 0
        return
    lower, right, unit = uplo is Uplo.LOWER, side is Side.RIGHT, diag is Diag.UNIT
    a, conj = operation(a, trans)
    lower ^= trans is not Trans.NO
    run = blas_function(name, b.dtype)
    for triangle, target in matrices(a, b):
        low, at_right = lower, right
        if prefers_transpose(target):
            triangle, target, low, at_right = triangle.T, target.T, not low, not at_right
        factor, code = column_major(triangle, conj)
        flags = {"side": at_right, "lower": low ^ (code != 0), "trans_a": code, "diag": unit}
        result = run(alpha, factor, np.array(target, order="F"), overwrite_b=1, **flags)
        if is_finite(result) and (name == "trmm" or unit or has_normal_reciprocals(triangle)):
            target[...] = result
        else:
            _by_recursion(name, alpha, triangle.conj() if conj else triangle, target, low, at_right, unit)


def _by_recursion(
    name: str, alpha: Any, a: np.ndarray, b: np.ndarray, lower: bool, right: bool, unit: bool
) -> None:
    """TRMM or TRSM of matrices in place: each entry is made of what it depends on, and of nothing else."""
    if right:
        a, b, lower = a.T, b.T, not lower
    if not lower:
        a, b = a[::-1, ::-1], b[::-1]
    if name == "trmm":
        _multiply_lower(alpha, a, b, unit)
        return
    if alpha != 1:
        np.multiply(b, b.dtype.type(alpha), out=b)
    _solve_lower(a, b, unit)


def _multiply_lower(alpha: Any, a: np.ndarray, b: np.ndarray, unit: bool) -> None:
    n = len(a)
    if n == 1:
        if not unit:
            np.multiply(a[0, 0], b, out=b)
        if alpha != 1:
            np.multiply(b, b.dtype.type(alpha), out=b)
        return
    half = n // 2
    _multiply_lower(alpha, a[half:, half:], b[half:], unit)
    gemm(alpha, a[half:, :half], b[:half], 1, b[half:], Trans.NO, Trans.NO)
    _multiply_lower(alpha, a[:half, :half], b[:half], unit)


def _solve_lower(a: np.ndarray, b: np.ndarray, unit: bool) -> None:
    n = len(a)
    if n == 1:
        if not unit:
            b[...] = _quotient(b, a[0, 0])
        return
    half = n // 2
    _solve_lower(a[:half, :half], b[:half], unit)
    gemm(-1, a[half:, :half], b[:half], 1, b[half:], Trans.NO, Trans.NO)
    _solve_lower(a[half:, half:], b[half:], unit)


def _quotient(x: np.ndarray, divisor: np.generic) -> np.ndarray:
    """``x / divisor``; complex numbers are scaled first, as NumPy would multiply by a reciprocal."""
    if x.dtype.kind != "c":
        return x / divisor
    exponents = _exponents(x)
    exponent = _exponents(divisor)
    return _scaled(_scaled(x, -exponents) / _scaled(divisor, -exponent), exponents - exponent)


def _exponents(x: Any) -> np.ndarray:
    """Return the binary exponents of the larger parts of complex numbers."""
    return np.frexp(np.maximum(abs(x.real), abs(x.imag)))[1]


def _scaled(x: Any, exponents: Any) -> np.ndarray:
    """``x * 2**exponents``, in the dtype of `x`."""
    result = np.empty(np.shape(x), x.dtype)
    result.real, result.imag = np.ldexp(x.real, exponents), np.ldexp(x.imag, exponents)
    return result


@quietly
def symm(
    alpha: Any,
    a: np.ndarray,
    b: np.ndarray,
    beta: Any,
    c: np.ndarray,
    side: Side,
    uplo: Uplo,
    hermitian: bool,
) -> None:
    """``c := alpha a b + beta c``, or ``alpha b a + beta c``; `uplo` of the symmetric `a` is read."""
    if alpha == 0:
        scale(c, beta)
        return
    hermitian = hermitian and c.dtype.kind == "c"
    run = blas_function("hemm" if hermitian else "symm", c.dtype)
    for full, other, target in matrices(a, b, c):
        low, right, conj = uplo is Uplo.LOWER, side is Side.RIGHT, False
        if prefers_transpose(target):
            other, target, right, conj = other.T, target.T, not right, hermitian
        if prefers_transpose(full):
            full, low, conj = full.T, not low, conj != hermitian
        inputs = np.asfortranarray(full.conj() if conj else full), np.asfortranarray(other)
        update(
            target,
            lambda x, inputs=inputs, flags=(right, low): run(alpha, *inputs, beta, x, *flags, overwrite_c=1),
            read=beta != 0,
        )


def syrk(
    alpha: Any,
    a: np.ndarray,
    beta: Any,
    c: np.ndarray,
    uplo: Uplo,
    trans: Trans,
    hermitian: bool,
    is_new_output: bool,
) -> None:
    """A triangle of ``c := alpha op(a) op(a)' + beta c``; the other one becomes zero if `is_new_output`."""
    _rank_k("rk", alpha, (a,), beta, c, uplo, trans, hermitian, is_new_output)


def syr2k(
    alpha: Any,
    a: np.ndarray,
    b: np.ndarray,
    beta: Any,
    c: np.ndarray,
    uplo: Uplo,
    trans: Trans,
    hermitian: bool,
    is_new_output: bool,
) -> None:
    """Compute one triangle of ``c := alpha op(a) op(b)' + alpha op(b) op(a)' + beta c``."""
    _rank_k("r2k", alpha, (a, b), beta, c, uplo, trans, hermitian, is_new_output)


@quietly
def _rank_k(
    stem: str,
    alpha: Any,
    inputs: tuple[np.ndarray, ...],
    beta: Any,
    c: np.ndarray,
    uplo: Uplo,
    trans: Trans,
    hermitian: bool,
    is_new_output: bool,
) -> None:
    hermitian = hermitian and c.dtype.kind == "c"
    if is_new_output:
        c[...] = 0
    if alpha == 0 or inputs[0].shape[-1 if trans is Trans.NO else -2] == 0:
        _scale_triangle(c, beta, uplo, hermitian)
        return
    run = blas_function(("he" if hermitian else "sy") + stem, c.dtype)
    views, (conj, *_) = zip(*(operation(x, trans) for x in inputs), strict=True)
    for *factors, target in matrices(*views, c):
        low, flipped, factor = uplo is Uplo.LOWER, conj, alpha
        if prefers_transpose(target):
            target, low, flipped = target.T, not low, conj != hermitian
            factor = complex(alpha).conjugate() if hermitian else alpha
        columns, code = _factors(factors, flipped, hermitian)
        update(
            target,
            lambda x, factor=factor, columns=columns, flags=(code, low): run(
                factor, *columns, beta, x, *flags, overwrite_c=1
            ),
            read=True,
            kept=triangle_mask(len(target), low),
        )


def _factors(factors: list[np.ndarray], conj: bool, hermitian: bool) -> tuple[list[np.ndarray], int]:
    """Column-major x and SciPy's trans so that op(x) are `factors`, conjugated if `conj`."""
    if conj == hermitian and all(prefers_transpose(x) for x in factors):
        return [x.T for x in factors], 2 if hermitian else 1
    return [np.asfortranarray(x.conj() if conj else x) for x in factors], 0


@quietly
def gemmtr(
    alpha: Any,
    a: np.ndarray,
    b: np.ndarray,
    beta: Any,
    c: np.ndarray,
    uplo: Uplo,
    trans_a: Trans,
    trans_b: Trans,
    is_new_output: bool,
) -> None:
    """A triangle of ``c := alpha op(a) op(b) + beta c``; the other one becomes zero if `is_new_output`."""
    if is_new_output:
        c[...] = 0
    product = c.copy()
    gemm(alpha, a, b, beta, product, trans_a, trans_b)
    np.copyto(c, product, where=triangle_mask(c.shape[-1], uplo is Uplo.LOWER))


@cache
def scipys_blas(name: str) -> Callable[..., Any]:
    """SciPy's function of this name, the letter of its dtype before it."""
    from scipy.linalg import blas  # slow to import, and device arrays do without it

    function: Callable[..., Any] = getattr(blas, name)
    return function


@cache
def blas_function(name: str, dtype: np.dtype) -> Callable[..., Any]:
    """SciPy's function of this name, for a dtype."""
    from scipy.linalg import blas  # slow to import, and device arrays do without it

    return blas.get_blas_funcs(name, dtype=dtype)


def operation(a: np.ndarray, trans: Trans) -> tuple[np.ndarray, bool]:
    """The view that `trans` makes of `a`, and whether its elements are meant conjugated."""
    conj = trans is Trans.CONJ and a.dtype.kind == "c"
    return (a if trans is Trans.NO else a.swapaxes(-1, -2)), conj


def matrices(*arrays: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """The matrices of each step through the stacks, which broadcast to the last; none if that is empty."""
    if 0 in arrays[-1].shape:
        return  # SciPy's wrappers refuse some empty arrays
    batch_shape = arrays[-1].shape[:-2]
    if not batch_shape:
        yield arrays
        return
    stacks = [np.broadcast_to(array, batch_shape + array.shape[-2:]) for array in arrays[:-1]]
    for index in np.ndindex(batch_shape):
        yield (*[stack[index] for stack in stacks], arrays[-1][index])


def indices(batch_shape: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    """Return the indices of the matrices of a stack."""
    return np.ndindex(batch_shape) if batch_shape else ((),)


def broadcast_matrices(batch_shape: tuple[int, ...], *stacks: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return stacks with these leading dimensions; views that are not to be written where they had fewer."""
    return tuple(
        [x if x.shape[:-2] == batch_shape else np.broadcast_to(x, batch_shape + x.shape[-2:]) for x in stacks]
    )


def prefers_transpose(target: np.ndarray) -> bool:
    """Whether the transposed matrix is the one that SciPy's wrappers take as it is."""
    return target.flags.c_contiguous and not target.flags.f_contiguous


def column_major(a: np.ndarray, conj: bool) -> tuple[np.ndarray, int]:
    """A column-major x and SciPy's code for op so that op(x) is `a`, conjugated if `conj`; copies seldom."""
    if a.flags.c_contiguous and not a.flags.f_contiguous:
        return a.T, 2 if conj else 1
    return np.asfortranarray(a.conj() if conj else a), 0


def update(target: np.ndarray, compute: Callable[..., Any], read: bool, kept: Any = True) -> None:
    """``target[kept] = compute(target)[kept]``, without a copy where SciPy's wrapper writes into `target`."""
    flags = target.flags
    if flags.f_contiguous and flags.aligned and flags.writeable:
        start = target
    else:
        start = np.array(target, order="F") if read else np.empty(target.shape, target.dtype, order="F")
    result = compute(start)
    if result is not target:
        np.copyto(target, result, where=kept)


def at_elements(array: np.ndarray) -> np.ndarray:
    """Return `array`, or a copy by rows where its elements are not at multiples of their size."""
    is_uneven = any(step % array.itemsize for step in array.strides)
    return array.copy() if is_uneven or not array.flags.aligned else array


def triangle_mask(n: int, low: bool, first: int = 0) -> np.ndarray:
    """Which elements are of the triangle, but for its first diagonals."""
    mask = np.tri(n, k=-first, dtype=bool)
    return mask if low else mask.T


def _scale_triangle(c: np.ndarray, beta: Any, uplo: Uplo, hermitian: bool) -> None:
    if beta == 1:
        return
    if hermitian:
        diagonal = np.arange(c.shape[-1])
        c.imag[..., diagonal, diagonal] = 0
    scaled = c.copy()
    scale(scaled, beta)
    np.copyto(c, scaled, where=triangle_mask(c.shape[-1], uplo is Uplo.LOWER))


def scale(c: np.ndarray, beta: Any) -> None:
    """``c := beta c``, which is not read where beta is 0."""
    if beta == 0:
        c[...] = 0
    elif beta != 1:
        np.multiply(c, c.dtype.type(beta), out=c)
