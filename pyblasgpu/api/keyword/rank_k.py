"""SYRK, HERK, SYR2K and HER2K on any arrays, in keyword style; see `level3`."""

from __future__ import annotations

from typing import Any

from ...arguments import Array, Flag, Number, Stream
from ...frontend.calls.call import Call
from ...frontend.calls.engine_call import run_routine
from ...frontend.engine_options import EngineOptions, engine_options
from ...routine_table import ROUTINES
from ...types import Trans, Uplo, tensor_method
from ..docstrings import HERMITIAN, KEYWORD, UPDATE, Shared, documenting
from .level3 import common_batch_shape, parse_beta, real_number, scaled_by_beta
from .repeated import replay

__all__ = ["held_at_first", "her2k", "herk", "rank_k", "syr2k", "syrk"]

_SYMMETRIC = Shared("""
    Parameters
    ----------
    trans : {'N', 'T'}, default 'N'
        The op: the matrix itself, its transpose. 'C' is 'T' for real arrays, and refused for complex
        ones.
""")


@documenting(_SYMMETRIC, UPDATE, KEYWORD)
def syrk(
    a: Array,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    lower: Flag = False,
    trans: Flag = "N",
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
    """Symmetric rank-k update: one triangle of ``alpha op(a) op(a)^T + beta out``.

    Parameters
    ----------
    a : array, shape (..., n, k), or (..., k, n) if transposed
        The factor.
    out : array, shape (..., n, n), optional

    Returns
    -------
    array, shape (..., n, n)

    See Also
    --------
    herk : Update of a Hermitian matrix, with the conjugate transpose.
    pyblasgpu.dask.syrk : Update of Dask arrays.

    Notes
    -----
    Componentwise error at most ``(k+2) u (|alpha| |op(a)| |op(a)|^T + |beta| |out|)``, u the unit
    roundoff; for complex numbers sqrt(8) times that. On a device `out` is copied only where it has no
    unit stride.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.syrk(np.array([[1.0], [2.0]]), lower=True)
    array([[1., 0.],
           [2., 4.]])
    """
    options = engine_options("syrk", device, devices, max_device_memory, blocking, progress)
    return _rank_k("syrk", (a,), alpha, beta, lower, trans, out, stream, backend, options, method)


@documenting(HERMITIAN, UPDATE, KEYWORD)
def herk(
    a: Array,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    lower: Flag = False,
    trans: Flag = "N",
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
    """Hermitian rank-k update: one triangle of ``alpha op(a) op(a)^H + beta out``.

    Parameters
    ----------
    a : array, shape (..., n, k), or (..., k, n) if transposed
        The factor.
    alpha, beta : number, optional
        By default 1 and 0. Real. With ``alpha=0`` `a` is not read, with ``beta=0`` `out` is not read.
    out : array, shape (..., n, n), optional

    Returns
    -------
    array, shape (..., n, n)

    See Also
    --------
    syrk : Update of a symmetric matrix, with the transpose.
    pyblasgpu.dask.herk : Update of Dask arrays.

    Notes
    -----
    Componentwise error at most ``(k+2) u (|alpha| |op(a)| |op(a)|^H + |beta| |out|)``, u the unit
    roundoff; for complex numbers sqrt(8) times that.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.herk(np.array([[1.0], [2.0j]]), lower=True)
    array([[1.+0.j, 0.+0.j],
           [0.+2.j, 4.+0.j]])
    """
    options = engine_options("herk", device, devices, max_device_memory, blocking, progress)
    return _rank_k("herk", (a,), alpha, beta, lower, trans, out, stream, backend, options, method)


@documenting(_SYMMETRIC, UPDATE, KEYWORD)
def syr2k(
    a: Array,
    b: Array,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    lower: Flag = False,
    trans: Flag = "N",
    out: Array = None,
    stream: Stream = None,
    backend: str | None = None,
    method: str | None = None,
) -> Array:
    """Symmetric rank-2k update: a triangle of ``alpha (op(a) op(b)^T + op(b) op(a)^T) + beta out``.

    Parameters
    ----------
    a, b : array, shape (..., n, k), or (..., k, n) if transposed
        The factors.
    out : array, shape (..., n, n), optional

    Returns
    -------
    array, shape (..., n, n)

    See Also
    --------
    her2k : Update of a Hermitian matrix, with the conjugate transpose.

    Notes
    -----
    Componentwise error at most ``(k+3) u (|alpha| (|op(a)| |op(b)|^T + |op(b)| |op(a)|^T) + |beta| |out|)``,
    u the unit roundoff; for complex numbers sqrt(8) times that.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.syr2k(np.array([[1.0], [2.0]]), np.array([[1.0], [1.0]]), lower=True)
    array([[2., 0.],
           [3., 4.]])
    """
    return _rank_k("syr2k", (a, b), alpha, beta, lower, trans, out, stream, backend, method=method)


@documenting(HERMITIAN, UPDATE, KEYWORD)
def her2k(
    a: Array,
    b: Array,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    lower: Flag = False,
    trans: Flag = "N",
    out: Array = None,
    stream: Stream = None,
    backend: str | None = None,
    method: str | None = None,
) -> Array:
    """Hermitian rank-2k update: ``alpha op(a) op(b)^H + conj(alpha) op(b) op(a)^H + beta out``.

    Parameters
    ----------
    a, b : array, shape (..., n, k), or (..., k, n) if transposed
        The factors.
    alpha : number, default 1
        With 0 neither `a` nor `b` is read.
    beta : number, default 0
        Real. With 0 `out` is not read.
    out : array, shape (..., n, n), optional

    Returns
    -------
    array, shape (..., n, n)

    See Also
    --------
    syr2k : Update of a symmetric matrix, with the transpose.

    Notes
    -----
    Componentwise error at most ``(k+3) u (|alpha| (|op(a)| |op(b)|^H + |op(b)| |op(a)|^H) + |beta| |out|)``,
    u the unit roundoff; for complex numbers sqrt(8) times that.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.her2k(np.array([[1.0], [2.0j]]), np.array([[1.0], [1.0]]), lower=True)
    array([[2.+0.j, 0.+0.j],
           [1.+2.j, 0.+0.j]])
    """
    return _rank_k("her2k", (a, b), alpha, beta, lower, trans, out, stream, backend, method=method)


def _rank_k(
    which: str,
    inputs: tuple[Array, ...],
    alpha: Number,
    beta: Number,
    lower: Flag,
    trans: Flag,
    out: Array,
    stream: Stream,
    backend: str | None,
    options: EngineOptions | None = None,
    method: str | None = None,
) -> Any:
    key = (which, lower, trans, method, type(lower), type(trans))
    if options is None:
        done = replay(key, inputs, out, alpha, beta, stream, backend)
        if done is not None:
            return done
    call = Call(which, dict(zip("ab", inputs, strict=False)), out, stream, backend)
    return rank_k(call, which, alpha, beta, out, lower, trans, key=key, options=options, method=method)


# What follows is shared with blas, which prepares the Call in its own way.


def rank_k(
    call: Call,
    which: str,
    alpha: Number,
    beta: Number,
    out: Array,
    lower: Flag,
    trans: Flag,
    source: Any = None,
    column_major: bool | None = None,
    key: Any = None,
    options: EngineOptions | None = None,
    method: str | None = None,
) -> Any:
    """Check and run SYRK, HERK, SYR2K or HER2K (`which`); see `symmetric` for the parameters."""
    name, routine = call.name, ROUTINES[which]
    uplo, trans = Uplo.parse(lower, name, "lower"), Trans.parse(trans, name, "trans")
    values = routine.values("trans", call.dtype)
    if trans not in values:
        text = (
            f"trans={trans.value} of complex arrays is none of {' and '.join(each.value for each in values)}"
        )
        raise ValueError(f"{name}: {text}; {name.replace(routine.stem, routine.counterpart)} takes it")
    alpha = (real_number if "alpha" in routine.real else Call.scalar)(call, "alpha", alpha)
    beta = parse_beta(call, beta, out, source, real_number if "beta" in routine.real else Call.scalar)
    method = tensor_method(method, name)
    inputs = tuple(call.inputs[: len(routine.inputs)])
    first, last = inputs[0], inputs[-1]
    if first.shape[-2:] != last.shape[-2:]:
        raise ValueError(f"{name}: a has shape {tuple(first.shape)} and b {tuple(last.shape)}")
    n, k = first.shape[-2:] if trans is Trans.NO else first.shape[:-3:-1]
    call.set_output(out, common_batch_shape(name, first, last), n, n, column_major)
    call.check_overlap()
    is_new_output, source = held_at_first(call, out, source, n)
    flags = {"uplo": uplo, "trans": trans, "is_new_output": is_new_output}
    how: dict[str, Any] = {"extents": (n, k), "options": options, "method": method}
    return run_routine(call, routine, inputs, (alpha, beta), flags, source, key, **how)


def held_at_first(call: Call, out: Array, source: Any, n: int) -> tuple[bool, Any]:
    """Whether the output is new, and what it holds at first, which the other triangle keeps for any beta."""
    if out is None and source is None:
        return True, None
    return False, scaled_by_beta(call, 1, source, n, n)
