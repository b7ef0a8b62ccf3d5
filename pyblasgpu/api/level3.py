"""GEMM, TRMM and TRSM on any arrays, in keyword style.

Each routine takes NumPy, CuPy, PyTorch and Numba arrays, and whatever exports DLPack or the CUDA array
interface; the result is of the same library. Leading dimensions count matrices and broadcast as in NumPy.
Device arrays are computed on the caller's stream without waiting; host arrays block.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..frontend import cpu
from ..frontend.call import ON_DEVICE, Call, again, tape_of
from ..types import Diag, Side, Trans, Uplo, by_three_products

__all__ = ["gemm", "lead", "multiply", "scaled_by_beta", "triangular", "trmm", "trsm"]


def gemm(
    a, b, *, alpha=1, beta=0, out=None, trans_a="N", trans_b="N", stream=None, backend=None, method=None
) -> Any:
    """General matrix product: ``alpha op(a) op(b) + beta out``.

    Parameters
    ----------
    a : array, shape (..., m, k), or (..., k, m) if transposed
    b : array, shape (..., k, n), or (..., n, k) if transposed
        float32, float64, complex64 or complex128. Integers and booleans count as float64, float16 as
        float32; mixed ones are cast as by `numpy.result_type`. Any strides; read-only arrays too.
    alpha, beta : number
        With ``alpha=0`` neither `a` nor `b` is read, with ``beta=0`` `out` is not read.
    out : array, shape (..., m, n), optional
        Written in place, whatever its strides. It may not share memory with `a` or `b`.
    trans_a, trans_b : {'N', 'T', 'C'}
        op: the matrix itself, its transpose, its conjugate transpose. 'H' means 'C'; 0, 1, 2 serve too.
    stream : int or stream object, optional
        Where to run, on the device of the arrays; by default the library's current stream. Host arrays are
        computed on the device of the stream, by default on the one that is current.
    backend : {'auto', 'cuda', 'cpu', 'sim'}, optional
        For host arrays; see `pyblasgpu.backend_status`.
    method : {'3m'}, optional
        Complex products may be made of three real ones instead of four, as by the BLAS's ``zgemm3m``: fewer
        operations, and a bound of the error that is weaker, see the notes. complex128 on tensor cores is
        computed so; complex64, and what runs on the CPU, as without.

    Returns
    -------
    array, shape (..., m, n)
        `out`, or a new array of the inputs' library: column-major if all inputs are, else row-major.

    Raises
    ------
    ValueError
        When shapes, flags, devices, strides, the stream or the method do not fit. Nothing is written then.
    TypeError
        When dtypes or libraries do not fit, or a number is complex and the arrays are real.
    OverlapError
        When `out` shares memory with an input.

    Notes
    -----
    Componentwise error at most ``(k+2) u (|alpha| |a| |b| + |beta| |out|)``, u the unit roundoff; for complex
    numbers sqrt(8) times that. NaN and Inf in what is read reach every entry that depends on it.

    With ``method='3m'`` the error of a product is that of sums of ``(|Re a| + |Im a|) (|Re b| + |Im b|)``: an
    imaginary part far smaller than the real one may lose all its digits (Higham, *Stability of a method for
    multiplying complex matrices with three real matrix multiplications*, SIAM J. Matrix Anal. Appl. 13,
    1992), and Inf in one part makes both NaN.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> a = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> pyblasgpu.gemm(a, a, trans_b="T", backend="cpu")
    array([[ 5., 11.],
           [11., 25.]])
    """
    key = ("gemm", trans_a, trans_b, method, type(trans_a), type(trans_b))
    if out is not None and backend in ON_DEVICE and again(key, (a, b, out), alpha, beta, stream):
        return out
    call = Call("gemm", {"a": a, "b": b}, out, stream, backend)
    needs_out(call, beta, out)
    return multiply(call, alpha, beta, out, trans_a, trans_b, key=key, method=method)


def trmm(
    a, b, *, alpha=1, side="L", lower=False, trans="N", unit_diag=False, out=None, stream=None, backend=None
) -> Any:
    """Product with a triangle: ``alpha op(a) b``, or ``alpha b op(a)`` from the right.

    Parameters
    ----------
    a : array, shape (..., m, m), or (..., n, n) from the right
        The other triangle, and a unit diagonal, are never read. For dtypes see `gemm`.
    b : array, shape (..., m, n)
    alpha : number
        With ``alpha=0`` the result is 0 and neither `a` nor `b` is read.
    side : {'L', 'R'}
        Where op(a) stands; 0 and 1 serve too.
    lower : bool
        Whether `a`, as it is stored, is lower triangular.
    trans : {'N', 'T', 'C'}
        op, see `gemm`.
    unit_diag : bool
        Take the diagonal of `a` to be 1.
    out : array, shape (..., m, n), optional
        Written in place. ``out=b`` is the in-place product; no other memory may be shared with `a` or `b`.
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
    """
    return _triangular("trmm", a, b, alpha, side, lower, trans, unit_diag, out, stream, backend)


def trsm(
    a, b, *, alpha=1, side="L", lower=False, trans="N", unit_diag=False, out=None, stream=None, backend=None
) -> Any:
    """Solution x of a triangular system: ``op(a) x = alpha b``, or ``x op(a) = alpha b`` from the right.

    Parameters
    ----------
    a, b, alpha, side, lower, trans, unit_diag, out, stream, backend
        As those of `trmm`; ``out=b`` solves in place.

    Returns
    -------
    array, shape (..., m, n)
        `out`, or a new array, ordered as by `gemm`.

    Raises
    ------
    ValueError, TypeError, OverlapError
        As `gemm`. A zero on the diagonal raises nothing: it gives Inf and NaN, as in the BLAS.

    Notes
    -----
    By substitution: componentwise backward error about ``n u |op(a)| |x|``, n the order of `a`. In place,
    with a workspace of at most 32 MiB or a twentieth of `b`; `plan_trsm` tells how much (`Plan.workspace`).
    """
    return _triangular("trsm", a, b, alpha, side, lower, trans, unit_diag, out, stream, backend)


def _triangular(which: str, a, b, alpha, side, lower, trans, unit_diag, out, stream, backend) -> Any:
    # with their types: 1.0 is no flag, but equals one
    key = (which, side, lower, trans, unit_diag, type(side), type(lower), type(trans), type(unit_diag))
    if out is not None and out is b and backend in ON_DEVICE and again(key, (a, b), alpha, 0, stream):
        return out
    call = Call(which, {"a": a, "b": b}, out, stream, backend)
    return triangular(call, which, alpha, out, side, lower, trans, unit_diag, key=key)


# What follows is shared with symmetric, and with blas and linalg, which prepare the Call in their own way.


def multiply(
    call: Call, alpha, beta, out, trans_a, trans_b, source=None, column_major=None, key=None, method=None
) -> Any:
    """Check and run a GEMM whose inputs are those of `call`; see `gemm`.

    `source`, an input of `call`, holds the values that `beta` scales if they are not in `out`.
    """
    name = call.name
    trans_a, trans_b = Trans.parse(trans_a, name, "trans_a"), Trans.parse(trans_b, name, "trans_b")
    alpha, beta = call.scalar("alpha", alpha), call.scalar("beta", beta)
    three_m = by_three_products(method, call.dtype, name)
    a, b = call.inputs[:2]
    m, k = a.shape[-2:] if trans_a is Trans.NO else a.shape[:-3:-1]
    inner, n = b.shape[-2:] if trans_b is Trans.NO else b.shape[:-3:-1]
    if k != inner:
        raise ValueError(
            f"{name}: op(a) is {m} by {k} and op(b) {inner} by {n} "
            f"(a has shape {tuple(a.shape)}, b {tuple(b.shape)})"
        )
    call.set_output(out, lead(name, a, b), m, n, column_major)
    call.check_overlap()
    source = scaled_by_beta(call, beta, source, m, n)
    return call.run(
        lambda scalars, a, b, c: cpu.gemm(scalars[0], a, b, scalars[1], c, trans_a, trans_b),
        _gemm_3m_tape if three_m else _gemm_tape,
        ((a, trans_a), (b, trans_b)),
        (alpha, beta),
        source,
        key,
    )


def scaled_by_beta(call: Call, beta, source, m: int, n: int) -> Any:
    """What the output, m by n, holds at first: `source` or what is in it; None where beta is 0."""
    if source is not None and tuple(source.shape) != (m, n):
        raise ValueError(f"{call.name}: c has shape {source.shape}; {(m, n)} is needed")
    if beta == 0:
        return None
    return call.out if source is None else source


def _gemm_tape(scalars: tuple, operands, three_m: bool = False):
    (alpha, beta), (a, b, c) = scalars, operands
    return tape_of("gemm")(alpha, a, b, beta, c, three_m=three_m)


_gemm_3m_tape = partial(_gemm_tape, three_m=True)


def triangular(
    call: Call, which: str, alpha, out, side, lower, trans, unit_diag, column_major=None, key=None
) -> Any:
    """Check and run TRMM or TRSM (`which`) on the inputs a, b of `call`; see `trmm`."""
    name = call.name
    side, uplo = Side.parse(side, name, "side"), Uplo.parse(lower, name, "lower")
    trans, diag = Trans.parse(trans, name, "trans"), Diag.parse(unit_diag, name, "unit_diag")
    alpha = call.scalar("alpha", alpha)
    a, b = call.inputs
    m, n = b.shape[-2:]
    order = m if side is Side.LEFT else n
    if a.shape[-2:] != (order, order):
        raise ValueError(
            f"{name}: a has shape {a.shape}; ({order}, {order}) is needed for side {side.value} "
            f"of b with shape {b.shape}"
        )
    call.set_output(out, lead(name, a, b), m, n, column_major)
    in_place = call.check_overlap(in_place=1)
    seen = uplo if trans is Trans.NO else uplo.flipped
    return call.run(
        lambda scalars, a, c: getattr(cpu, which)(*scalars, a, c, side, uplo, trans, diag),
        lambda scalars, operands: tape_of(which)(scalars[0], *operands, side=side, uplo=seen, diag=diag),
        ((a, trans),),
        (alpha,),
        call.out if in_place else None if alpha == 0 else b,
        key if in_place else None,
    )


def needs_out(call: Call, beta, out) -> None:
    """Raise ValueError where `beta` scales a matrix that is not there."""
    if out is None and call.scalar("beta", beta) != 0:
        raise ValueError(f"{call.name}: beta={beta} needs out, the matrix that it scales")


def lead(name: str, a, b) -> tuple[int, ...]:
    """The leading dimensions of the result."""
    one, other = a.shape[:-2], b.shape[:-2]
    if one == other:
        return one
    try:
        return np.broadcast_shapes(one, other)
    except ValueError:
        raise ValueError(
            f"{name}: the leading dimensions of a, of shape {a.shape}, and b, of {b.shape}, do not broadcast"
        ) from None
