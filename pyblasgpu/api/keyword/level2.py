"""Products of a matrix and a vector on any arrays, in keyword style; see `level3`."""

from __future__ import annotations

from typing import Any

from ...arguments import Array, Flag, Number, Stream
from ...frontend.calls.call import Call
from ...frontend.calls.engine_call import run_routine
from ...routine_table import ROUTINES
from ...types import Trans, Uplo
from ..docstrings import KEYWORD, VECTOR, documenting
from .level3 import common_batch_shape, parse_beta
from .repeated import replay

__all__ = ["VECTORS", "check_length", "check_square", "gemv", "hemv", "run_product", "symv"]

#: The arguments that are vectors.
VECTORS = {"x": None, "out": None}


@documenting(VECTOR, KEYWORD)
def gemv(
    a: Array,
    x: Array,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    trans: Flag = "N",
    out: Array = None,
    stream: Stream = None,
    backend: str | None = None,
) -> Array:
    """Product of a matrix and a vector: ``alpha op(a) x + beta out``.

    Parameters
    ----------
    a : array, shape (..., m, n), or (..., n, m) if transposed
        The matrix.
    x : array, shape (..., n)
    out : array, shape (..., m), optional

    Returns
    -------
    array, shape (..., m)

    See Also
    --------
    symv : Product with a symmetric matrix, half of which is read.
    gemm : Product of two matrices.
    pyblasgpu.linalg.matvec : NumPy's signature.

    Notes
    -----
    Componentwise error at most ``(n+2) u (|alpha| |op(a)| |x| + |beta| |out|)``, u the unit roundoff; for
    complex numbers sqrt(8) times that. Sums have a fixed order: equal inputs give equal bits.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.gemv(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]), trans="T")
    array([31., 42.])
    """
    key = ("gemv", trans, type(trans))
    done = replay(key, (a, x), out, alpha, beta, stream, backend)
    if done is not None:
        return done
    call = Call("gemv", {"a": a, "x": x}, out, stream, backend, vectors=VECTORS)
    trans = Trans.parse(trans, "gemv", "trans")
    matrix, vector = call.inputs
    m, n = matrix.shape[-2:] if trans is Trans.NO else matrix.shape[:-3:-1]
    check_length(call, matrix, vector, n)
    alpha, beta = call.scalar("alpha", alpha), parse_beta(call, beta, out, None)
    call.set_output(out, common_batch_shape("gemv", matrix, vector, "a", "x"), m, 1)
    call.check_overlap()
    return run_product(call, "gemv", alpha, beta, (matrix, vector), {"trans": trans}, key)


@documenting(VECTOR, KEYWORD)
def symv(
    a: Array,
    x: Array,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    lower: Flag = False,
    out: Array = None,
    stream: Stream = None,
    backend: str | None = None,
) -> Array:
    """Product of a symmetric matrix and a vector: ``alpha a x + beta out``.

    Parameters
    ----------
    a : array, shape (..., n, n)
        One triangle of a symmetric matrix; the other one is never read.
    x : array, shape (..., n)
    out : array, shape (..., n), optional

    Returns
    -------
    array, shape (..., n)

    See Also
    --------
    hemv : Product with a Hermitian matrix.

    Notes
    -----
    Componentwise error at most ``(n+2) u (|alpha| |a| |x| + |beta| |out|)``, u the unit roundoff; for complex
    numbers sqrt(8) times that. On a device it takes a workspace of n^2 / 64 elements, at most.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.symv(np.array([[1.0, 2.0], [np.nan, 3.0]]), np.ones(2))
    array([3., 5.])
    """
    return _symmetric("symv", a, x, alpha, beta, lower, out, stream, backend)


@documenting(VECTOR, KEYWORD)
def hemv(
    a: Array,
    x: Array,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    lower: Flag = False,
    out: Array = None,
    stream: Stream = None,
    backend: str | None = None,
) -> Array:
    """Product of a Hermitian matrix and a vector: ``alpha a x + beta out``.

    Parameters
    ----------
    a : array, shape (..., n, n)
        One triangle of a Hermitian matrix; the other one is never read, nor are the imaginary parts of the
        diagonal, which are taken to be zero. Real arrays are symmetric ones.
    x : array, shape (..., n)
    out : array, shape (..., n), optional

    Returns
    -------
    array, shape (..., n)

    See Also
    --------
    symv : Product with a symmetric matrix.

    Notes
    -----
    The error bound and the workspace are those of `symv`.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.hemv(np.array([[1.0, 2.0j], [np.nan, 3.0]]), np.ones(2))
    array([1.+2.j, 3.-2.j])
    """
    return _symmetric("hemv", a, x, alpha, beta, lower, out, stream, backend)


def check_length(call: Call, a: Any, x: Any, n: int) -> None:
    """Raise ValueError unless `x` has `n` elements."""
    if x.shape[-2] != n:
        raise ValueError(
            f"{call.name}: x has length {x.shape[-2]}; {n} is needed (a has shape {tuple(a.shape)})"
        )


def check_square(name: str, a: Any) -> int:
    """The order of `a`, a matrix of which a triangle is meant."""
    rows, cols = a.shape[-2:]
    if rows != cols:
        raise ValueError(f"{name}: a has shape {tuple(a.shape)}; a square matrix is needed")
    return int(rows)


def _symmetric(
    which: str,
    a: Array,
    x: Array,
    alpha: Number,
    beta: Number,
    lower: Flag,
    out: Array,
    stream: Stream,
    backend: str | None,
) -> Any:
    key = (which, lower, type(lower))
    done = replay(key, (a, x), out, alpha, beta, stream, backend)
    if done is not None:
        return done
    call = Call(which, {"a": a, "x": x}, out, stream, backend, vectors=VECTORS)
    uplo, (matrix, vector) = Uplo.parse(lower, which, "lower"), call.inputs
    n = check_square(which, matrix)
    check_length(call, matrix, vector, n)
    alpha, beta = call.scalar("alpha", alpha), parse_beta(call, beta, out, None)
    call.set_output(out, common_batch_shape(which, matrix, vector, "a", "x"), n, 1)
    call.check_overlap()
    return run_product(call, which, alpha, beta, (matrix, vector), {"uplo": uplo}, key)


# What follows is shared with blas, whose vectors are parts of others. The output of `call` is set.


def run_product(
    call: Call,
    which: str,
    alpha: Any,
    beta: Any,
    operands: tuple[Any, Any],
    flags: dict[str, Any],
    key: Any = None,
    source: Any = None,
) -> Any:
    """Run GEMV, SYMV or HEMV (`which`) with checked arguments; `operands` are inputs of `call`, or parts. The
    output is added to, or `source` where that is another vector.
    """
    source = (call.out if source is None else source) if beta != 0 else None
    return run_routine(call, ROUTINES[which], operands, (alpha, beta), flags, source, key)
