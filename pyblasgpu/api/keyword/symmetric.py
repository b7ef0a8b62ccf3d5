"""SYMM and HEMM on any arrays, in keyword style; see `level3`."""

from __future__ import annotations

from typing import Any

from ...arguments import Array, Flag, Number, Stream
from ...frontend.calls.call import Call
from ...frontend.calls.engine_call import run_routine
from ...frontend.engine_options import EngineOptions, engine_options
from ...routine_table import ROUTINES
from ...types import Side, Uplo, tensor_method
from ..docstrings import documented
from .level3 import check_order, common_batch_shape, parse_beta, scaled_by_beta
from .repeated import replay

__all__ = ["hemm", "symm", "symmetric"]


@documented
def symm(
    a: Array,
    b: Array,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    side: Flag = "L",
    lower: Flag = False,
    out: Array = None,
    stream: Stream = None,
    backend: str | None = None,
    method: str | None = None,
    device: int | None = None,
    devices: Any = None,
    max_device_memory: int | None = None,
    blocking: bool = True,
    progress: Any = None,
) -> Array:
    """Product with a symmetric matrix: ``alpha a b + beta out``, or ``alpha b a + beta out`` from the right.

    Parameters
    ----------
    a : array, shape (..., m, m), or (..., n, n) from the right
        One triangle of a symmetric matrix; the other one is never read.
    b : array, shape (..., m, n)
        The other factor.
    out : array, shape (..., m, n), optional

    Returns
    -------
    array, shape (..., m, n)

    See Also
    --------
    hemm : Product with a Hermitian matrix.

    Notes
    -----
    Componentwise error at most ``(n+2) u (|alpha| |a| |b| + |beta| |out|)``, n the order of `a` and u the
    unit roundoff; for complex numbers sqrt(8) times that. On a device it takes a workspace of at most 32 MiB
    or a twentieth of `out`, for completed blocks of `a`.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.symm(np.array([[1.0, 2.0], [np.nan, 3.0]]), np.eye(2))
    array([[1., 2.],
           [2., 3.]])
    """
    options = engine_options("symm", device, devices, max_device_memory, blocking, progress)
    return _symmetric("symm", a, b, alpha, beta, side, lower, out, stream, backend, options, method)


@documented
def hemm(
    a: Array,
    b: Array,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    side: Flag = "L",
    lower: Flag = False,
    out: Array = None,
    stream: Stream = None,
    backend: str | None = None,
    method: str | None = None,
    device: int | None = None,
    devices: Any = None,
    max_device_memory: int | None = None,
    blocking: bool = True,
    progress: Any = None,
) -> Array:
    """Product with a Hermitian matrix: ``alpha a b + beta out``, or ``alpha b a + beta out`` from the right.

    Parameters
    ----------
    a : array, shape (..., m, m), or (..., n, n) from the right
        One triangle of a Hermitian matrix; the other one is never read, nor are the imaginary parts of the
        diagonal, which are taken to be zero. Real arrays are symmetric ones.
    b : array, shape (..., m, n)
        The other factor.
    out : array, shape (..., m, n), optional

    Returns
    -------
    array, shape (..., m, n)

    See Also
    --------
    symm : Product with a symmetric matrix.

    Notes
    -----
    The error bound and the workspace are those of `symm`.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.hemm(np.array([[1.0, 2.0j], [np.nan, 3.0]]), np.eye(2))
    array([[1.+0.j, 0.+2.j],
           [0.-2.j, 3.+0.j]])
    """
    options = engine_options("hemm", device, devices, max_device_memory, blocking, progress)
    return _symmetric("hemm", a, b, alpha, beta, side, lower, out, stream, backend, options, method)


def _symmetric(
    which: str,
    a: Array,
    b: Array,
    alpha: Number,
    beta: Number,
    side: Flag,
    lower: Flag,
    out: Array,
    stream: Stream,
    backend: str | None,
    options: EngineOptions | None,
    method: str | None = None,
) -> Any:
    key = (which, side, lower, method, type(side), type(lower))
    if options is None:
        done = replay(key, (a, b), out, alpha, beta, stream, backend)
        if done is not None:
            return done
    call = Call(which, {"a": a, "b": b}, out, stream, backend)
    flags = side, lower
    return symmetric(call, which, alpha, beta, out, *flags, key=key, options=options, method=method)


# What follows is shared with blas, which prepares the Call in its own way.


def symmetric(
    call: Call,
    which: str,
    alpha: Number,
    beta: Number,
    out: Array,
    side: Flag,
    lower: Flag,
    source: Any = None,
    column_major: bool | None = None,
    key: Any = None,
    options: EngineOptions | None = None,
    method: str | None = None,
) -> Any:
    """Check and run SYMM or HEMM (`which`) on the first two inputs of `call`; see `symm`.

    `source`, an input of `call`, holds the values that `beta` scales if they are not in `out`.
    """
    name = call.name
    side, uplo = Side.parse(side, name, "side"), Uplo.parse(lower, name, "lower")
    alpha, beta = call.scalar("alpha", alpha), parse_beta(call, beta, out, source)
    method = tensor_method(method, name)
    a, b = call.inputs[:2]
    m, n = b.shape[-2:]
    check_order(name, a, b, side)
    call.set_output(out, common_batch_shape(name, a, b), m, n, column_major)
    call.check_overlap()
    source = scaled_by_beta(call, beta, source, m, n)
    flags = {"side": side, "uplo": uplo}
    how: dict[str, Any] = {"extents": (m, n), "options": options, "method": method}
    return run_routine(call, ROUTINES[which], (a, b), (alpha, beta), flags, source, key, **how)
