"""Products and solutions with a triangle and a vector on any arrays, in keyword style; see `level3`."""

from __future__ import annotations

from typing import Any

from ...arguments import Array, Flag, Stream
from ...frontend.calls.call import Call
from ...frontend.calls.engine_call import run_routine
from ...routine_table import ROUTINES
from ...types import Diag, Trans, Uplo
from ..docstrings import KEYWORD, TRIANGLE, VECTOR, Shared, documenting
from .level2 import VECTORS, check_length, check_square
from .level3 import common_batch_shape
from .repeated import replay

__all__ = ["run_triangular", "trmv", "trsv"]

_IN_PLACE = Shared("""
    Parameters
    ----------
    out : array, shape (..., n), optional
        Written in place, whatever its strides. It may be `x`; else it shares no memory with it.

    Raises
    ------
    OverlapError
        When `out` shares memory with `a`, or with `x` without being it.
""")

documented = documenting(_IN_PLACE, VECTOR, TRIANGLE, KEYWORD)


@documented
def trmv(
    a: Array,
    x: Array,
    *,
    lower: Flag = False,
    trans: Flag = "N",
    unit_diag: Flag = False,
    out: Array = None,
    stream: Stream = None,
    backend: str | None = None,
) -> Array:
    """Product of a triangular matrix and a vector: ``op(a) x``.

    Parameters
    ----------
    a : array, shape (..., n, n)
    x : array, shape (..., n)

    Returns
    -------
    array, shape (..., n)

    See Also
    --------
    trsv : Solution with a triangle.

    Notes
    -----
    Componentwise error at most ``(n+2) u |op(a)| |x|``, u the unit roundoff; for complex numbers sqrt(8)
    times that.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> a, x = np.array([[2.0, 0.0], [1.0, 2.0]]), np.array([4.0, 4.0])
    >>> pyblasgpu.trmv(a, x, lower=True)
    array([ 8., 12.])
    """
    return _triangular("trmv", a, x, lower, trans, unit_diag, out, stream, backend)


@documented
def trsv(
    a: Array,
    x: Array,
    *,
    lower: Flag = False,
    trans: Flag = "N",
    unit_diag: Flag = False,
    out: Array = None,
    stream: Stream = None,
    backend: str | None = None,
) -> Array:
    """Solution of a triangular system with one right-hand side: the vector y with ``op(a) y = x``.

    Parameters
    ----------
    a : array, shape (..., n, n)
    x : array, shape (..., n)
        The right-hand side.

    Returns
    -------
    array, shape (..., n)

    See Also
    --------
    trsm : Solution with several right-hand sides.

    Notes
    -----
    By substitution: componentwise backward error about ``n u |op(a)| |y|``, u the unit roundoff. A zero on
    the diagonal gives infinities and NaN, and no error.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> a, x = np.array([[2.0, 0.0], [1.0, 2.0]]), np.array([4.0, 4.0])
    >>> pyblasgpu.trsv(a, x, lower=True)
    array([2., 1.])
    """
    return _triangular("trsv", a, x, lower, trans, unit_diag, out, stream, backend)


def _triangular(
    which: str,
    a: Array,
    x: Array,
    lower: Flag,
    trans: Flag,
    unit_diag: Flag,
    out: Array,
    stream: Stream,
    backend: str | None,
) -> Any:
    key = (which, lower, trans, unit_diag, type(lower), type(trans), type(unit_diag))
    done = replay(key, (a, x), out, 1, 0, stream, backend)
    if done is not None:
        return done
    call = Call(which, {"a": a, "x": x}, out, stream, backend, vectors=VECTORS)
    uplo, trans = Uplo.parse(lower, which, "lower"), Trans.parse(trans, which, "trans")
    diag, (matrix, vector) = Diag.parse(unit_diag, which, "unit_diag"), call.inputs
    n = check_square(which, matrix)
    check_length(call, matrix, vector, n)
    call.set_output(out, common_batch_shape(which, matrix, vector, "a", "x"), n, 1)
    in_place = call.check_overlap(in_place=1)
    return run_triangular(call, which, matrix, vector, uplo, trans, diag, in_place, key)


# What follows is shared with blas, whose vectors are parts of others. The output of `call` is set.


def run_triangular(
    call: Call,
    which: str,
    a: Any,
    x: Any,
    uplo: Uplo,
    trans: Trans,
    diag: Diag,
    in_place: bool,
    key: Any = None,
) -> Any:
    """Run TRMV or TRSV (`which`) with checked arguments; see `run_product`. In place `x` is the output."""
    flags = {"uplo": uplo, "trans": trans, "diag": diag}
    if which == "trmv" and not in_place:
        return run_routine(call, ROUTINES[which], (a, x), (1,), flags, key=key)
    return run_routine(call, ROUTINES[which], (a,), (1,), flags, call.out if in_place else x, key)
