"""Linear algebra with the signatures of NumPy and SciPy, on any arrays."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from math import prod
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from ..arguments import Array, Flag, enabled, shown
from ..frontend.arrays import (
    Library,
    can_be_output,
    common_dtype,
    common_library,
    dtype_name,
    host_array,
    indexable,
    may_share_memory,
    numpy_dtype,
    reshaped,
)
from ..frontend.call import Call
from ..frontend.layouts import Layout, broadcasts_to
from ..frontend.streams import contexts
from ..types import Diag, Dtype, Side, Trans, Uplo, dtype_of
from .level3 import common_batch_shape, multiply, triangular

__all__ = ["matmul", "solve_triangular"]


def matmul(
    x1: Array,
    x2: Array,
    /,
    out: Any = None,
    *,
    casting: str = "same_kind",
    order: str | None = "K",
    dtype: Any = None,
    subok: bool = True,
) -> Array:
    """Matrix product, as `numpy.matmul`.

    Parameters
    ----------
    x1, x2 : array, shape (..., m, k) and (..., k, n), or vectors of length k
        Leading dimensions broadcast. A vector `x1` is a row and a vector `x2` a column, and the dimension
        is taken out of the result.
    out : array, optional
        Where the result goes. It may share memory with `x1` and `x2`, and may have any dtype that
        `casting` allows.
    casting : {'no', 'equiv', 'safe', 'same_kind', 'unsafe'}, optional
        Which casts of inputs to `dtype`, and of the result to `out`, are allowed.
    order : {'K', 'A', 'C', 'F'}, optional
        Order of a new result: C-contiguous, F-contiguous (stacks as a whole), by 'A' F-contiguous if all
        inputs are, by 'K' matrices that are column-major if those of all inputs are.
    dtype : dtype, optional
        To compute in: float32, float64, complex64 or complex128.
    subok : bool, optional
        Accepted; results are never instances of subclasses.

    Returns
    -------
    array
        `out`, or a new array of the inputs' library; of two vectors a scalar.

    Raises
    ------
    ValueError
        When shapes do not fit, or an argument is a scalar; for unknown `casting` and `order`.
    TypeError
        When `casting` forbids a cast, or arrays are of different libraries.

    Notes
    -----
    Unlike NumPy's, products of integers and booleans are computed, and returned, in float64. The other
    keywords of NumPy's ufuncs (`axes`, `signature`) are not taken.
    """
    out = _single(out)
    order = _one_of("order", "K" if order is None else order, "KACF")
    casting = _one_of("casting", casting, _CASTINGS)
    if not isinstance(subok, bool):
        raise TypeError(f"matmul: subok must be a bool, not {shown(subok)}")
    x1, x2 = _array(x1, "matmul", "x1"), _array(x2, "matmul", "x2")
    wanted = _computation("matmul", {"x1": x1, "x2": x2}, dtype, casting)
    left, right = _core("x1", x1, 0), _core("x2", x2, 1)
    if left.shape[-1] != right.shape[-2]:
        raise ValueError(
            "matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
            f"(n?,k),(k,m?)->(n?,m?) (size {right.shape[-2]} is different from {left.shape[-1]})"
        )
    dropped = [-2] * (len(x1.shape) == 1) + [-1] * (len(x2.shape) == 1)
    direct = _direct_output(out, wanted, (x1, x2), dropped)
    call = Call("matmul", {"x1": left, "x2": right}, direct, None, None, wanted)
    if order == "A":
        order = "F" if all(map(_is_fortran, call.inputs)) else "C"
    target = _fortran(call, left, right) if order == "F" and out is None else direct
    column_major = None if order == "K" else order == "F"
    result = multiply(call, 1, 0, target, "N", "N", column_major=column_major)
    if direct is not None:
        return out
    result = _squeezed(result, dropped)
    if out is not None:
        return _stored("matmul", result, out, casting)
    if order == "F" and call.library.host:
        result = _in_fortran_order(call.library, result, x1)
    return result[()] if isinstance(result, np.ndarray) and result.ndim == 0 else result


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
        The other triangle is not read, nor is a unit diagonal.
    b : array, shape (n,) or (..., n, k)
        Leading dimensions broadcast with those of `a`.
    trans : {0, 1, 2, 'N', 'T', 'C'}, optional
        op: `a` as it is, transposed, conjugate transposed.
    lower : bool or {'L', 'U'}, optional
        Whether `a` is lower triangular.
    unit_diagonal : bool or {'N', 'U'}, optional
        Take the diagonal of `a` to be 1.
    overwrite_b : bool, optional
        Whether `b` may hold the result.
    check_finite : bool, optional
        Whether to look for Inf and NaN in `a` and `b`, and for zeros on the diagonal. By default that is done
        for host arrays (as by SciPy) and not for device arrays, where it would wait for the device; without
        it, a singular host matrix raises all the same, and a singular device matrix gives Inf and NaN.

    Returns
    -------
    array
        Shaped as `b`, with the leading dimensions of both.

    Raises
    ------
    numpy.linalg.LinAlgError
        When the diagonal has a zero.
    ValueError
        When `a` is not square, shapes do not fit, `trans` is invalid, or Inf or NaN was found.
    TypeError
        When dtypes or libraries do not fit.
    """
    name = "solve_triangular"
    trans, uplo = Trans.parse(trans, name, "trans"), Uplo.parse(lower, name, "lower")
    diag = Diag.parse(unit_diagonal, name, "unit_diagonal")
    overwrite = enabled(overwrite_b, name, "overwrite_b")
    if check_finite is not None:
        check_finite = enabled(check_finite, name, "check_finite")
    a, b = _array(a, name, "a"), _array(b, name, "b")
    common_library(name, ("a", "b"), (a, b))
    wanted = _computation(name, {"a": a, "b": b}, None, "unsafe")
    shape = tuple(a.shape)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"{name}: expected square matrix, a has shape {shape}")
    vector = len(b.shape) == 1
    if not len(b.shape) or b.shape[0 if vector else -2] != shape[-1]:
        raise ValueError(f"{name}: shapes of a {shape} and b {tuple(b.shape)} are incompatible")
    right = b[..., None] if vector else b
    batch_shape = common_batch_shape(name, a, right)
    _check_solvable(a, b, diag, check_finite)
    out = right if overwrite and _may_hold(right, a, batch_shape, wanted) else None
    call = Call(name, {"a": a, "b": right}, out, None, None, wanted)
    result = triangular(call, "trsm", 1, out, Side.LEFT, uplo, trans, diag)
    return result[..., 0] if vector else result


_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


def _single(out: Any) -> Any:
    """The one output that may come in a tuple, as NumPy takes it."""
    if not isinstance(out, tuple):
        return out
    if len(out) != 1:
        raise ValueError(f"matmul: the tuple out must have exactly one entry, not {len(out)}")
    return out[0]


def _one_of(argument: str, value: object, known: Sequence[str]) -> str:
    """`value` as one of the strings `known`; single letters may be lower case."""
    if not isinstance(value, str):
        raise TypeError(f"matmul: {argument} must be a str, not {shown(value)}")
    name = value.upper() if len(value) == 1 else value
    if name not in tuple(known):
        options = ", ".join(map(repr, known))
        raise ValueError(f"matmul: {argument} must be one of {options} (got {shown(value)})")
    return name


def _array(array: Any, name: str, argument: str) -> Array:
    """`array`, or for a list or a number what NumPy makes of it."""
    if not isinstance(array, (list, tuple, int, float, complex)):
        return indexable(array, name, argument)
    try:
        return np.asarray(array)
    except ValueError as error:
        raise ValueError(f"{name}: {argument}={shown(array)} is no array: {error}") from None


def _computation(name: str, arrays: dict[str, Array], dtype: Any, casting: str) -> Dtype:
    """The dtype to compute in, once `casting` has allowed the casts to it."""
    dtypes = [dtype_name(array) for array in arrays.values()]
    if str(dtype).startswith(">"):
        raise TypeError(f"{name}: dtype {dtype} is not in native byte order")
    wanted = common_dtype(name, dtypes, tuple(arrays)) if dtype is None else dtype_of(dtype)
    for index, source in enumerate(dtypes):
        _check_cast(f"{name}: input {index}", source, wanted.name, casting)
    return wanted


def _check_cast(what: str, source: Any, target: Any, casting: Any) -> None:
    if not np.can_cast(numpy_dtype(source), numpy_dtype(target), casting):
        raise TypeError(f"{what} cannot be cast from {source} to {target} with casting rule {casting!r}")


def _core(argument: str, array: Array, axis: int) -> Array:
    """`array` as a stack of matrices: a vector becomes a row (`axis` 0) or a column (1)."""
    dimensions = len(array.shape)
    if dimensions == 0:
        raise ValueError(f"matmul: {argument} is a scalar; use * instead")
    if dimensions > 1:
        return array
    return reshaped(array, (-1, 1) if axis else (1, -1))


def _squeezed(array: Array, dropped: list[int]) -> Array:
    index = tuple(0 if axis in dropped else slice(None) for axis in (-2, -1))
    return array[(..., *index)] if dropped else array


def _is_fortran(array: NDArray[Any] | Layout) -> bool:
    """Whether the elements lie without gaps, the first index running fastest."""
    if isinstance(array, np.ndarray):
        return array.flags.f_contiguous
    step = 1
    for extent, stride in zip(array.shape, array.strides, strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


def _fortran(call: Call, left: Array, right: Array) -> Array:
    """A new device array for an F-contiguous stack, where the library's arrays have an order; else None."""
    shape = (*common_batch_shape(call.name, left, right), left.shape[-2], right.shape[-1])
    if call.library.host or len(shape) == 2:
        return None  # a matrix has its order from `multiply`
    with contexts().current_context(call.inputs[0].device):
        made = call.library.empty(shape[::-1], call.dtype, call.inputs[0].device, call.stream)
    if type(made) is not type(call.arrays[0]):
        return None
    axes = tuple(reversed(range(len(shape))))
    return made.permute(axes) if hasattr(made, "permute") else made.transpose(axes)


def _in_fortran_order(library: Library, result: Array, like: Array) -> Array:
    host = library.to_numpy(result)
    return result if host.flags.f_contiguous else library.deliver(np.asarray(host, order="F"), like, None)


def _direct_output(out: Array, dtype: Dtype, arrays: tuple[Array, ...], dropped: list[int]) -> Array:
    """`out` as a stack of matrices if the product may be written to it at once, else None."""
    if out is None or dropped or not can_be_output(out, dtype):
        return None
    return None if any(may_share_memory(array, out) for array in arrays) else out


def _stored(name: str, result: Array, out: Array, casting: str) -> Array:
    """`out`, holding `result`."""
    library = common_library(name, ("the product", "out"), (result, out))
    target = host_array(out, name, "out", written=True) if library.host else out
    _check_cast(f"{name}: output", dtype_name(result), dtype_name(out), casting)
    if not broadcasts_to(tuple(result.shape), tuple(out.shape)):
        raise ValueError(f"{name}: out has shape {tuple(out.shape)}; {tuple(result.shape)} is needed")
    if library.is_read_only(target):
        raise (ValueError if isinstance(out, np.ndarray) else TypeError)(f"{name}: out is read-only")
    if library.host:
        with np.errstate(all="ignore"):
            target[...] = library.to_numpy(result)
    else:
        with contexts().current_context(library.device(out)):
            target[...] = result
    return out


def _may_hold(array: Array, triangle: Array, batch_shape: tuple[int, ...], dtype: Dtype) -> bool:
    """Whether the solution may go into the memory of b: only when it could be b, element for element."""
    fits = tuple(array.shape[:-2]) == batch_shape and can_be_output(array, dtype)
    return fits and not may_share_memory(triangle, array)


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
        raise ValueError("array must not contain infs or NaNs")
    if diag is Diag.NON_UNIT and 0 not in b.shape:
        *stack, n, _ = a.shape
        steps = xp.arange(n)
        zeros = xp.any(xp.reshape(a[..., steps, steps] == 0, (prod(stack), n)), axis=0)
        if bool(xp.any(zeros)):
            where = int(xp.argmax(xp.where(zeros, 1, 0)))
            raise LinAlgError(f"singular matrix: resolution failed at diagonal {where}")
