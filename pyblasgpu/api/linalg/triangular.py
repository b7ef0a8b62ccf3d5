"""Triangular systems with SciPy's signature."""

from __future__ import annotations

from importlib import import_module
from math import prod
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from ...arguments import Array, Flag, enabled
from ...cpu.scipy.values import is_finite
from ...frontend.arrays.any_array import can_be_output, common_library, host_array, may_share_memory
from ...frontend.arrays.streams import contexts
from ...frontend.calls.attempts import attempt_of
from ...frontend.calls.call import Call
from ...frontend.calls.call_cache import repeat
from ...frontend.calls.factor_replay import call_key
from ...routine_table import ROUTINES
from ...types import Diag, Dtype, Side, Trans, Uplo
from ..blas.arrays import may_overwrite
from ..keyword.level3 import common_batch_shape
from ..keyword.repeated import LETTERS
from ..keyword.triangular import triangular
from .arrays import as_array, computation
from .docs import documented

__all__ = ["solve_triangular", "substituted"]


@documented
def solve_triangular(
    a: Array,
    b: Array,
    trans: Flag = 0,
    lower: Flag = False,
    unit_diagonal: Flag = False,
    overwrite_b: Flag = False,
    check_finite: Flag = None,
) -> Array:
    """Solution x of ``op(a) x = b``, a triangular, as `scipy.linalg.solve_triangular`.

    Parameters
    ----------
    a : array, shape (..., n, n)
        Triangles. The other triangle is not read, nor is a unit diagonal.
    trans : {0, 1, 2, 'N', 'T', 'C'}, default 0
        The op: `a` itself, its transpose, its conjugate transpose.
    lower : bool or {'L', 'U'}, default False
        Whether `a` is lower triangular.
    unit_diagonal : bool or {'N', 'U'}, default False
        Take the diagonal of `a` to be 1.
    overwrite_b : bool, default False
        Whether `b` may hold the result; among host arrays one matrix by columns does.
    check_finite : bool, optional
        Whether to look for Inf and NaN in `a` and `b`, and for zeros on the diagonal. By default that is done
        for host arrays (as by SciPy) and not for device arrays, where it would wait for the device; without
        it, a singular host matrix raises all the same, and a singular device matrix gives Inf and NaN.

    Returns
    -------
    array
        The solution, shaped as `b`, with the leading dimensions of both.

    Raises
    ------
    numpy.linalg.LinAlgError
        When the diagonal has a zero.
    ValueError
        When `a` is not square, shapes do not fit, `trans` is invalid, or Inf or NaN was found.

    See Also
    --------
    pyblasgpu.trsm : Solution from either side, in place, on any stream.
    pyblasgpu.dask.solve_triangular : Solution with Dask arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> linalg.solve_triangular(np.array([[2.0, 0.0], [1.0, 2.0]]), np.array([4.0, 4.0]), lower=True)
    array([2., 1.])
    """
    name = "solve_triangular"
    key = call_key(name, trans, lower, unit_diagonal, overwrite_b)
    done = None
    if check_finite is None:
        if type(a) is not np.ndarray:
            done = repeat(key, (a, b), b if overwrite_b is True else None)
        elif overwrite_b is False:
            done = _of_host(a, b, trans, lower, unit_diagonal)
    if done is not None:
        return done
    trans, uplo = Trans.parse(trans, name, "trans"), Uplo.parse(lower, name, "lower")
    diag = Diag.parse(unit_diagonal, name, "unit_diagonal")
    overwrite = enabled(overwrite_b, name, "overwrite_b")
    if check_finite is not None:
        check_finite = enabled(check_finite, name, "check_finite")
    a, b = as_array(a, name, "a"), as_array(b, name, "b")
    common_library(name, ("a", "b"), (a, b))
    wanted = computation(name, {"a": a, "b": b}, None, "unsafe")
    shape = tuple(a.shape)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"{name}: expected square matrix, a has shape {shape}")
    vector = len(b.shape) == 1
    if not len(b.shape) or b.shape[0 if vector else -2] != shape[-1]:
        raise ValueError(f"{name}: shapes of a {shape} and b {tuple(b.shape)} are incompatible")
    right = b[..., None] if vector else b
    batch_shape = common_batch_shape(name, a, right)
    _check_solvable(a, b, diag, check_finite)
    is_host = common_library(name, ("a", "b"), (a, b)).host
    out = right if overwrite and _may_hold(right, a, batch_shape, wanted, is_host) else None
    column_major = True if is_host else None  # as SciPy has it
    call = Call(name, {"a": a, "b": right}, out, None, None, wanted)
    call.views((a, b), None if out is None else b, (*batch_shape, shape[-1]) if vector else None)
    result = triangular(call, "trsm", 1, out, Side.LEFT, uplo, trans, diag, column_major, key)
    return result[..., 0] if vector else result


#: SciPy's values of ops.
_OPS = {"N": 0, "T": 1, "C": 2, 0: 0, 1: 1, 2: 2}


def _of_host(a: np.ndarray[Any, Any], b: Any, trans: Flag, lower: Flag, unit_diagonal: Flag) -> Any:
    """Return the solution of NumPy arrays by SciPy's function, column-major; None where they need checks."""
    if type(trans) not in (int, str) or type(lower) is not bool or type(unit_diagonal) is not bool:
        return None
    letter, op = LETTERS.get(a.dtype), _OPS.get(trans)
    if letter is None or op is None or type(b) is not np.ndarray or b.ndim not in (1, 2) or not b.size:
        return None
    if a.dtype is not b.dtype or a.ndim != 2 or a.shape != (len(b), len(b)):
        return None
    if not (is_finite(a) and is_finite(b)):
        return None
    flags = {"lower": int(lower), "trans_a": op, "diag": int(unit_diagonal)}
    if a.flags.c_contiguous and (op < 2 or a.dtype.kind == "f"):
        a, flags["lower"], flags["trans_a"] = a.T, 1 - flags["lower"], int(not op)
    right = b if b.ndim == 2 else b[:, None]
    attempt = attempt_of(ROUTINES["trsm"], letter, f"{letter}trsm")
    if attempt is None:
        return None
    x = attempt.run((1.0, a, right), {name: flag for name, flag in flags.items() if flag})
    return x if x is None or b.ndim == 2 else x[:, 0]


def substituted(
    a: Array,
    right: Array,
    out: Array | None,
    dtype: Dtype,
    flags: tuple[Uplo, Trans, Diag],
    column_major: bool | None,
) -> Array:
    """The solution for right-hand sides that are matrices, in `out` or in a new array; `Call.set_output` has
    `column_major`.
    """
    call = Call("solve_triangular", {"a": a, "b": right}, out, None, None, dtype)
    return triangular(call, "trsm", 1, out, Side.LEFT, *flags, column_major)


def _may_hold(
    array: Array, triangle: Array, batch_shape: tuple[int, ...], dtype: Dtype, is_host: bool
) -> bool:
    """Whether the solution may go into the memory of b: only when it could be b, element for element. Of host
    arrays that is where SciPy's would go.
    """
    if tuple(array.shape[:-2]) != batch_shape:
        return False
    if is_host:
        return may_overwrite(array, dtype, (triangle,))
    return can_be_output(array, dtype) and not may_share_memory(triangle, array)


def _check_solvable(a: Array, b: Array, diag: Diag, check_finite: bool | None) -> None:
    """Raise for Inf, NaN and a zero on the diagonal, as far as they are to be looked for."""
    name = "solve_triangular"
    library = common_library(name, ("a", "b"), (a, b))
    if library.host:
        _check_values(np, host_array(a, name, "a"), host_array(b, name, "b"), diag, check_finite)
    elif check_finite:
        with contexts().current_context(library.device(a)):
            xp = import_module("array_api_compat").array_namespace(a, b)
            _check_values(xp, a, b, diag, check_finite)


def _check_values(xp: Any, a: Array, b: Array, diag: Diag, check_finite: bool | None) -> None:
    if check_finite in (None, True) and not (bool(xp.all(xp.isfinite(a))) and bool(xp.all(xp.isfinite(b)))):
        raise ValueError("solve_triangular: array must not contain infs or NaNs")
    if diag is Diag.NON_UNIT and 0 not in b.shape:
        *stack, n, _ = a.shape
        steps = xp.arange(n)
        zeros = xp.any(xp.reshape(a[..., steps, steps] == 0, (prod(stack), n)), axis=0)
        if bool(xp.any(zeros)):
            where = int(xp.argmax(xp.where(zeros, 1, 0)))
            raise LinAlgError(f"singular matrix: resolution failed at diagonal {where}")
