"""SYMM, HEMM, SYRK, HERK, SYR2K, HER2K and GEMMTR on any arrays, in keyword style; see `level3`."""

from __future__ import annotations

from typing import Any

from ..frontend import cpu
from ..frontend.call import ON_DEVICE, Call, again, tape_of
from ..types import Side, Trans, Uplo
from .level3 import lead, needs_out, scaled_by_beta

__all__ = [
    "gemmtr", "hemm", "her2k", "herk", "rank_k", "symm", "symmetric", "syr2k", "syrk", "triangular_product",
]  # fmt: skip


def symm(a, b, *, alpha=1, beta=0, side="L", lower=False, out=None, stream=None, backend=None) -> Any:
    """Product with a symmetric matrix: ``alpha a b + beta out``, or ``alpha b a + beta out`` from the right.

    Parameters
    ----------
    a : array, shape (..., m, m), or (..., n, n) from the right
        One triangle of a symmetric matrix; the other one is never read. For dtypes see `gemm`.
    b : array, shape (..., m, n)
    alpha, beta : number
        With ``alpha=0`` neither `a` nor `b` is read, with ``beta=0`` `out` is not read.
    side : {'L', 'R'}
        Where a stands; 0 and 1 serve too.
    lower : bool
        Whether the lower triangle of `a` is read, else the upper one.
    out : array, shape (..., m, n), optional
        Written in place, whatever its strides. It may not share memory with `a` or `b`.
    stream, backend
        See `gemm`.

    Returns
    -------
    array, shape (..., m, n)
        `out`, or a new array, ordered as by `gemm`.

    Raises
    ------
    ValueError, TypeError, OverlapError
        As `gemm`.

    Notes
    -----
    Componentwise error at most ``(n+2) u (|alpha| |a| |b| + |beta| |out|)``, n the order of `a`; for complex
    numbers sqrt(8) times that. On a device it takes a workspace of at most 32 MiB or a
    twentieth of `out`, for completed blocks of `a`.
    """
    return _symmetric("symm", a, b, alpha, beta, side, lower, out, stream, backend)


def hemm(a, b, *, alpha=1, beta=0, side="L", lower=False, out=None, stream=None, backend=None) -> Any:
    """Product with a Hermitian matrix: ``alpha a b + beta out``, or ``alpha b a + beta out`` from the right.

    Parameters
    ----------
    a, b, alpha, beta, side, lower, out, stream, backend
        As those of `symm`. The imaginary parts of the diagonal of `a` are taken to be zero and never read.
        Real arrays are symmetric ones.

    Returns
    -------
    array, shape (..., m, n)
        `out`, or a new array, ordered as by `gemm`.

    Raises
    ------
    ValueError, TypeError, OverlapError
        As `gemm`.
    """
    return _symmetric("hemm", a, b, alpha, beta, side, lower, out, stream, backend)


def syrk(a, *, alpha=1, beta=0, lower=False, trans="N", out=None, stream=None, backend=None) -> Any:
    """Symmetric rank-k update: one triangle of ``alpha op(a) op(a)^T + beta out``.

    Parameters
    ----------
    a : array, shape (..., n, k), or (..., k, n) if transposed
        For dtypes see `gemm`.
    alpha, beta : number
        With ``alpha=0`` `a` is not read, with ``beta=0`` `out` is not read.
    lower : bool
        Whether the lower triangle is computed, else the upper one. The other one is neither read nor written.
    trans : {'N', 'T'}
        op: the matrix itself, its transpose. 'C' is 'T' for real arrays, and refused for complex ones.
    out : array, shape (..., n, n), optional
        Updated in place, whatever its strides. It may not share memory with `a`.
    stream, backend
        See `gemm`.

    Returns
    -------
    array, shape (..., n, n)
        `out`, or a new array, ordered as by `gemm`, with zeros in the other triangle.

    Raises
    ------
    ValueError, TypeError, OverlapError
        As `gemm`.

    Notes
    -----
    Componentwise error at most ``(k+2) u (|alpha| |op(a)| |op(a)|^T + |beta| |out|)``; for complex numbers
    sqrt(8) times that. On a device `out` is copied only where it has no unit stride.
    """
    return _rank_k("syrk", (a,), alpha, beta, lower, trans, out, stream, backend)


def herk(a, *, alpha=1, beta=0, lower=False, trans="N", out=None, stream=None, backend=None) -> Any:
    """Hermitian rank-k update: one triangle of ``alpha op(a) op(a)^H + beta out``.

    Parameters
    ----------
    a, lower, out, stream, backend
        As those of `syrk`. The imaginary parts of the diagonal of `out` are not read, and become zero
        (unless there is nothing to do: alpha or k is 0 and beta 1).
    alpha, beta : number
        Real.
    trans : {'N', 'C'}
        op: the matrix itself, its conjugate transpose. 'T' is 'C' for real arrays, and refused for complex
        ones.

    Returns
    -------
    array, shape (..., n, n)
        See `syrk`.

    Raises
    ------
    ValueError, TypeError, OverlapError
        As `gemm`; TypeError also where alpha or beta is not real.
    """
    return _rank_k("herk", (a,), alpha, beta, lower, trans, out, stream, backend)


def syr2k(a, b, *, alpha=1, beta=0, lower=False, trans="N", out=None, stream=None, backend=None) -> Any:
    """Symmetric rank-2k update: a triangle of ``alpha (op(a) op(b)^T + op(b) op(a)^T) + beta out``.

    Parameters
    ----------
    a, b : array, shape (..., n, k), or (..., k, n) if transposed
    alpha, beta, lower, trans, out, stream, backend
        As those of `syrk`.

    Returns
    -------
    array, shape (..., n, n)
        See `syrk`.

    Raises
    ------
    ValueError, TypeError, OverlapError
        As `gemm`.

    Notes
    -----
    Componentwise error at most ``(k+3) u (|alpha| (|op(a)| |op(b)|^T + |op(b)| |op(a)|^T) + |beta| |out|)``;
    for complex numbers sqrt(8) times that.
    """
    return _rank_k("syr2k", (a, b), alpha, beta, lower, trans, out, stream, backend)


def her2k(a, b, *, alpha=1, beta=0, lower=False, trans="N", out=None, stream=None, backend=None) -> Any:
    """Hermitian rank-2k update: ``alpha op(a) op(b)^H + conj(alpha) op(b) op(a)^H + beta out``.

    Parameters
    ----------
    a, b : array, shape (..., n, k), or (..., k, n) if transposed
    alpha : number
    beta : number
        Real.
    lower, trans, out, stream, backend
        As those of `herk`.

    Returns
    -------
    array, shape (..., n, n)
        See `syrk`.

    Raises
    ------
    ValueError, TypeError, OverlapError
        As `gemm`; TypeError also where beta is not real.
    """
    return _rank_k("her2k", (a, b), alpha, beta, lower, trans, out, stream, backend)


def gemmtr(
    a, b, *, alpha=1, beta=0, lower=False, trans_a="N", trans_b="N", out=None, stream=None, backend=None
) -> Any:
    """General product of which one triangle is computed: ``alpha op(a) op(b) + beta out``.

    Parameters
    ----------
    a : array, shape (..., n, k), or (..., k, n) if transposed
    b : array, shape (..., k, n), or (..., n, k) if transposed
    alpha, beta, lower, out, stream, backend
        As those of `syrk`.
    trans_a, trans_b : {'N', 'T', 'C'}
        See `gemm`.

    Returns
    -------
    array, shape (..., n, n)
        See `syrk`.

    Raises
    ------
    ValueError, TypeError, OverlapError
        As `gemm`.

    Notes
    -----
    The name is that of the reference BLAS since LAPACK 3.12.1; elsewhere the routine is called gemmt.
    """
    key = ("gemmtr", lower, trans_a, trans_b, type(lower), type(trans_a), type(trans_b))
    if out is not None and backend in ON_DEVICE and again(key, (a, b, out), alpha, beta, stream):
        return out
    call = Call("gemmtr", {"a": a, "b": b}, out, stream, backend)
    needs_out(call, beta, out)
    return triangular_product(call, alpha, beta, out, lower, trans_a, trans_b, key=key)


def _symmetric(which: str, a, b, alpha, beta, side, lower, out, stream, backend) -> Any:
    key = (which, side, lower, type(side), type(lower))
    if out is not None and backend in ON_DEVICE and again(key, (a, b, out), alpha, beta, stream):
        return out
    call = Call(which, {"a": a, "b": b}, out, stream, backend)
    needs_out(call, beta, out)
    return symmetric(call, which, alpha, beta, out, side, lower, key=key)


def _rank_k(which: str, inputs: tuple, alpha, beta, lower, trans, out, stream, backend) -> Any:
    key = (which, lower, trans, type(lower), type(trans))
    if out is not None and backend in ON_DEVICE and again(key, (*inputs, out), alpha, beta, stream):
        return out
    call = Call(which, dict(zip("ab", inputs, strict=False)), out, stream, backend)
    needs_out(call, beta, out)
    return rank_k(call, which, alpha, beta, out, lower, trans, key=key)


# What follows is shared with blas, which prepares the Call in its own way.


def symmetric(
    call: Call, which: str, alpha, beta, out, side, lower, source=None, column_major=None, key=None
) -> Any:
    """Check and run SYMM or HEMM (`which`) on the first two inputs of `call`; see `symm`.

    `source`, an input of `call`, holds the values that `beta` scales if they are not in `out`.
    """
    name, hermitian = call.name, which == "hemm" and call.dtype.is_complex
    side, uplo = Side.parse(side, name, "side"), Uplo.parse(lower, name, "lower")
    alpha, beta = call.scalar("alpha", alpha), call.scalar("beta", beta)
    a, b = call.inputs[:2]
    m, n = b.shape[-2:]
    order = m if side is Side.LEFT else n
    if a.shape[-2:] != (order, order):
        raise ValueError(
            f"{name}: a has shape {a.shape}; ({order}, {order}) is needed for side {side.value} "
            f"of b with shape {b.shape}"
        )
    call.set_output(out, lead(name, a, b), m, n, column_major)
    call.check_overlap()
    source = scaled_by_beta(call, beta, source, m, n)
    return call.run(
        lambda scalars, a, b, c: cpu.symm(scalars[0], a, b, scalars[1], c, side, uplo, hermitian),
        lambda scalars, operands: tape_of("symm")(
            scalars[0], *operands[:2], scalars[1], operands[2], side=side, uplo=uplo, hermitian=hermitian
        ),
        ((a, Trans.NO), (b, Trans.NO)),
        (alpha, beta),
        source,
        key,
    )


def rank_k(
    call: Call, which: str, alpha, beta, out, lower, trans, source=None, column_major=None, key=None
) -> Any:
    """Check and run SYRK, HERK, SYR2K or HER2K (`which`); see `symmetric` for the parameters."""
    name, hermitian = call.name, which.startswith("her") and call.dtype.is_complex
    routine = "syr2k" if which.endswith("2k") else "syrk"
    uplo, trans = Uplo.parse(lower, name, "lower"), Trans.parse(trans, name, "trans")
    if call.dtype.is_complex and trans is (Trans.TRANS if hermitian else Trans.CONJ):
        other = "N and C" if hermitian else "N and T"
        raise ValueError(f"{name}: trans={trans.value} of complex arrays is none of {other}")
    alpha = (_real if hermitian and routine == "syrk" else Call.scalar)(call, "alpha", alpha)
    beta = (_real if hermitian else Call.scalar)(call, "beta", beta)
    inputs = call.inputs[: 2 if routine == "syr2k" else 1]
    first, last = inputs[0], inputs[-1]
    if first.shape[-2:] != last.shape[-2:]:
        raise ValueError(f"{name}: a has shape {tuple(first.shape)} and b {tuple(last.shape)}")
    n = first.shape[-2 if trans is Trans.NO else -1]
    call.set_output(out, lead(name, first, last), n, n, column_major)
    call.check_overlap()
    fresh, source = _start(call, out, source, n)
    flags = {"hermitian": hermitian, "fresh": fresh}
    return call.run(
        lambda scalars, *arrays: getattr(cpu, routine)(
            scalars[0], *arrays[:-1], scalars[1], arrays[-1], uplo, trans, **flags
        ),
        lambda scalars, operands: tape_of(routine)(
            scalars[0], *operands[:-1], scalars[1], operands[-1], uplo=uplo, **flags
        ),
        tuple([(x, trans) for x in inputs]),
        (alpha, beta),
        source,
        key,
    )


def triangular_product(
    call: Call, alpha, beta, out, lower, trans_a, trans_b, source=None, column_major=None, key=None
) -> Any:
    """Check and run GEMMTR; see `symmetric` for the parameters."""
    name, uplo = call.name, Uplo.parse(lower, call.name, "lower")
    trans_a, trans_b = Trans.parse(trans_a, name, "trans_a"), Trans.parse(trans_b, name, "trans_b")
    alpha, beta = call.scalar("alpha", alpha), call.scalar("beta", beta)
    a, b = call.inputs[:2]
    n, k = a.shape[-2:] if trans_a is Trans.NO else a.shape[:-3:-1]
    inner, cols = b.shape[-2:] if trans_b is Trans.NO else b.shape[:-3:-1]
    if (inner, cols) != (k, n):
        raise ValueError(
            f"{name}: op(a) is {n} by {k} and op(b) {inner} by {cols}, not {k} by {n} "
            f"(a has shape {tuple(a.shape)}, b {tuple(b.shape)})"
        )
    call.set_output(out, lead(name, a, b), n, n, column_major)
    call.check_overlap()
    fresh, source = _start(call, out, source, n)
    return call.run(
        lambda scalars, a, b, c: cpu.gemmtr(scalars[0], a, b, scalars[1], c, uplo, trans_a, trans_b, fresh),
        lambda scalars, operands: tape_of("gemmtr")(
            scalars[0], *operands[:2], scalars[1], operands[2], uplo=uplo, fresh=fresh
        ),
        ((a, trans_a), (b, trans_b)),
        (alpha, beta),
        source,
        key,
    )


def _start(call: Call, out, source, n: int) -> tuple[bool, Any]:
    """Whether the output is new, and what it holds at first, which the other triangle keeps for any beta."""
    if out is None and source is None:
        return True, None
    return False, scaled_by_beta(call, 1, source, n, n)


def _real(call: Call, argument: str, value):
    """`value` as a real number."""
    number = call.scalar(argument, value)
    if isinstance(number, complex):
        if number.imag != 0:
            raise TypeError(f"{call.name}: {argument}={number} is complex; a real number is needed")
        return number.real
    return number
