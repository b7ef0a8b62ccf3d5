"""TRMM and TRSM on any arrays, in keyword style; see `level3`."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...arguments import Array, Flag, Number, Stream
from ...frontend.arrays.layouts import is_same
from ...frontend.calls.call import Call
from ...frontend.calls.engine_call import run_routine
from ...frontend.engine_options import EngineOptions, engine_options
from ...routine_table import ROUTINES
from ...types import Diag, Side, Trans, Uplo, tensor_method
from ..docstrings import KEYWORD, TRIANGLE, documenting
from .level3 import check_order, common_batch_shape
from .repeated import replay

__all__ = ["checked_triangular", "run_triangular", "triangular", "trmm", "trsm"]


@documenting(TRIANGLE, KEYWORD)
def trmm(
    a: Array,
    b: Array,
    *,
    alpha: Number = 1,
    side: Flag = "L",
    lower: Flag = False,
    trans: Flag = "N",
    unit_diag: Flag = False,
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
    """Product with a triangle: ``alpha op(a) b``, or ``alpha b op(a)`` from the right.

    Parameters
    ----------
    a : array, shape (..., m, m), or (..., n, n) from the right
    b : array, shape (..., m, n)
        The other factor.
    out : array, shape (..., m, n), optional
        Written in place, whatever its strides. ``out=b`` is the product in place; no other memory may be
        shared with `a` or `b`.

    Returns
    -------
    array, shape (..., m, n)

    Raises
    ------
    OverlapError
        When `out` shares memory with an input, and is not `b` itself.

    See Also
    --------
    plan_trmm : Plan of repeated products, with less of the host's time.
    pyblasgpu.dask.trmm : Product of Dask arrays.

    Notes
    -----
    Componentwise error at most ``(n+2) u |alpha| |op(a)| |b|``, n the order of `a` and u the unit roundoff;
    for complex numbers sqrt(8) times that.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> a, b = np.array([[2.0, 0.0], [1.0, 2.0]]), np.array([[4.0, 8.0], [4.0, 8.0]])
    >>> pyblasgpu.trmm(a, b, lower=True)
    array([[ 8., 16.],
           [12., 24.]])
    """
    options = engine_options("trmm", device, devices, max_device_memory, blocking, progress)
    return _triangular(
        "trmm", a, b, alpha, side, lower, trans, unit_diag, out, stream, backend, options, method
    )


@documenting(TRIANGLE, KEYWORD)
def trsm(
    a: Array,
    b: Array,
    *,
    alpha: Number = 1,
    side: Flag = "L",
    lower: Flag = False,
    trans: Flag = "N",
    unit_diag: Flag = False,
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
    """Solution x of a triangular system: ``op(a) x = alpha b``, or ``x op(a) = alpha b`` from the right.

    Parameters
    ----------
    a : array, shape (..., m, m), or (..., n, n) from the right
    b : array, shape (..., m, n)
        The right-hand sides.
    out : array, shape (..., m, n), optional
        Written in place, whatever its strides. ``out=b`` solves in place; no other memory may be
        shared with `a` or `b`.

    Returns
    -------
    array, shape (..., m, n)

    Raises
    ------
    ValueError
        When shapes, flags, devices, strides or the stream do not fit. Nothing is written then. A zero on the
        diagonal raises nothing: it gives Inf and NaN, as in the BLAS.
    OverlapError
        When `out` shares memory with an input, and is not `b` itself.

    See Also
    --------
    plan_trsm : Plan of repeated solutions, with less of the host's time.
    pyblasgpu.linalg.solve_triangular : SciPy's signature.
    pyblasgpu.dask.trsm : Solution with Dask arrays.

    Notes
    -----
    By substitution: componentwise backward error about ``n u |op(a)| |x|``, n the order of `a` and u the unit
    roundoff. In place, with a workspace of at most 32 MiB or a twentieth of `b`; ``plan_trsm(...).workspace``
    says how much.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> a, b = np.array([[2.0, 0.0], [1.0, 2.0]]), np.array([[4.0, 8.0], [4.0, 8.0]])
    >>> pyblasgpu.trsm(a, b, lower=True)
    array([[2., 4.],
           [1., 2.]])
    """
    options = engine_options("trsm", device, devices, max_device_memory, blocking, progress)
    return _triangular(
        "trsm", a, b, alpha, side, lower, trans, unit_diag, out, stream, backend, options, method
    )


def _triangular(
    which: str,
    a: Array,
    b: Array,
    alpha: Number,
    side: Flag,
    lower: Flag,
    trans: Flag,
    unit_diag: Flag,
    out: Array,
    stream: Stream,
    backend: str | None,
    options: EngineOptions | None,
    method: str | None,
) -> Array:
    # with their types: 1.0 is no flag, but equals one
    types = type(side), type(lower), type(trans), type(unit_diag)
    key = (which, side, lower, trans, unit_diag, method, *types)
    if options is None:
        done = replay(key, (a, b), out, alpha, 0, stream, backend)
        if done is not None:
            return done
    call = Call(which, {"a": a, "b": b}, out, stream, backend)
    flags = side, lower, trans, unit_diag
    return triangular(call, which, alpha, out, *flags, key=key, options=options, method=method)


# What follows is shared with blas and linalg, which prepare the Call in their own way.


def triangular(
    call: Call,
    which: str,
    alpha: Number,
    out: Array,
    side: Flag,
    lower: Flag,
    trans: Flag,
    unit_diag: Flag,
    column_major: bool | None = None,
    key: Any = None,
    options: EngineOptions | None = None,
    method: str | None = None,
) -> Any:
    """Check and run TRMM or TRSM (`which`) on the inputs a, b of `call`; see `trmm`."""
    flags = side, lower, trans, unit_diag
    checked = checked_triangular(call, alpha, out, *flags, method, column_major)
    return run_triangular(call, which, checked, key, options)


class CheckedTriangular(NamedTuple):
    """Arguments of a product or a solution with a triangle that were checked."""

    flags: dict[str, Any]
    alpha: Any
    source: Any
    method: str | None


def checked_triangular(
    call: Call,
    alpha: Number,
    out: Array,
    side: Flag,
    lower: Flag,
    trans: Flag,
    unit_diag: Flag,
    method: str | None = None,
    column_major: bool | None = None,
    is_alone: bool = True,
) -> CheckedTriangular:
    """Check the arguments, and set the output of `call`, overlap too where it `is_alone`."""
    name = call.name
    side, uplo = Side.parse(side, name, "side"), Uplo.parse(lower, name, "lower")
    trans, diag = Trans.parse(trans, name, "trans"), Diag.parse(unit_diag, name, "unit_diag")
    alpha, method = call.scalar("alpha", alpha), tensor_method(method, name)
    a, b = call.inputs
    m, n = b.shape[-2:]
    check_order(name, a, b, side)
    call.set_output(out, common_batch_shape(name, a, b), m, n, column_major)
    in_place = call.check_overlap(in_place=1) if is_alone else is_same(b, call.out)
    source = call.out if in_place else None if alpha == 0 else b
    given = {"side": side, "uplo": uplo, "trans": trans, "diag": diag}
    return CheckedTriangular(given, alpha, source, method)


def run_triangular(
    call: Call,
    which: str,
    checked: CheckedTriangular,
    key: Any = None,
    options: EngineOptions | None = None,
) -> Any:
    """Run TRMM or TRSM (`which`) that was checked."""
    flags, alpha, source, method = checked
    how: dict[str, Any] = {"extents": call.out.shape[-2:], "options": options, "method": method}
    # once b is copied to out, the call is the one in place
    return run_routine(call, ROUTINES[which], (call.inputs[0],), (alpha,), flags, source, key, **how)
