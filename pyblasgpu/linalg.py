"""Linear algebra with the signatures of NumPy and SciPy, on any arrays."""

from __future__ import annotations

from importlib import import_module
from math import prod
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from .arrays import common_dtype, dtype_name, library_of, numpy_dtype, stored_dtype
from .execution import Call
from .layouts import broadcasts_to, is_injective, shares_memory
from .level3 import multiply, triangular
from .types import Dtype, Trans, dtype_of

__all__ = ["matmul", "solve_triangular"]


def matmul(x1, x2, /, out=None, *, casting="same_kind", order="K", dtype=None, subok=True) -> Any:
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
        Order of a new result: row-major, column-major, or ('K', 'A') column-major if all inputs are.
    dtype : dtype, optional
        float32, float64, complex64 or complex128, to compute in.
    subok : bool, optional
        Accepted; results are never instances of subclasses.

    Returns
    -------
    array
        `out`, or a new array of the inputs' library; of two vectors a scalar.

    Raises
    ------
    ValueError
        When shapes do not fit, or an argument is a scalar.
    TypeError
        When `casting` forbids a cast, or arrays are of different libraries.

    Notes
    -----
    Unlike NumPy's, products of integers and booleans are computed, and returned, in float64.
    """
    if isinstance(out, tuple):
        (out,) = out
    if order not in ("K", "A", "C", "F"):
        raise ValueError(f"matmul: order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    x1, x2 = _array(x1), _array(x2)
    wanted = _computation("matmul", (x1, x2), dtype, casting)
    left, right = _core("x1", x1, 0), _core("x2", x2, 1)
    if left.shape[-1] != right.shape[-2]:
        raise ValueError(
            "matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
            f"(n?,k),(k,m?)->(n?,m?) (size {right.shape[-2]} is different from {left.shape[-1]})"
        )
    dropped = [-2] * (len(x1.shape) == 1) + [-1] * (len(x2.shape) == 1)
    direct = _direct_output(out, wanted, (x1, x2), dropped)
    call = Call("matmul", {"x1": left, "x2": right}, direct, None, None, wanted)
    column_major = None if order in "KA" else order == "F"
    result = multiply(call, 1, 0, direct, "N", "N", column_major=column_major)
    if direct is not None:
        return out
    result = _squeezed(result, dropped)
    if out is None:
        return result[()] if isinstance(result, np.ndarray) and result.ndim == 0 else result
    return _stored("matmul", result, out, casting)


def solve_triangular(
    a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=None
) -> Any:
    """Solution x of ``op(a) x = b``, a triangular, as `scipy.linalg.solve_triangular`.

    Parameters
    ----------
    a : array, shape (..., n, n)
        The other triangle is not read, nor is a unit diagonal.
    b : array, shape (n,) or (..., n, k)
        Leading dimensions broadcast with those of `a`.
    trans : {0, 1, 2, 'N', 'T', 'C'}, optional
        op: `a` as it is, transposed, conjugate transposed.
    lower : bool, optional
        Whether `a` is lower triangular.
    unit_diagonal : bool, optional
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
    trans = Trans.parse(trans, name, "trans")
    a, b = _array(a), _array(b)
    wanted = _computation(name, (a, b), None, "unsafe")
    shape = tuple(a.shape)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError("expected square matrix")
    vector = len(b.shape) == 1
    if not len(b.shape) or b.shape[0 if vector else -2] != shape[-1]:
        raise ValueError(f"shapes of a {shape} and b {tuple(b.shape)} are incompatible")
    _check_solvable(a, b, unit_diagonal, check_finite)
    right = b[..., None] if vector else b
    lead = np.broadcast_shapes(shape[:-2], tuple(right.shape[:-2]))
    out = right if overwrite_b and _may_hold(right, lead, wanted) else None
    call = Call(name, {"a": a, "b": right}, out, None, None, wanted)
    result = triangular(call, "trsm", 1, out, "L", bool(lower), trans, bool(unit_diagonal))
    return result[..., 0] if vector else result


def _array(array):
    """`array`, or for a list or a number what NumPy makes of it."""
    return np.asarray(array) if isinstance(array, (list, tuple, int, float, complex)) else array


def _computation(name: str, arrays: tuple, dtype, casting: str) -> Dtype:
    """The dtype to compute in, once `casting` has allowed the casts to it."""
    given = [dtype_name(array) for array in arrays]
    if dtype is None:
        return common_dtype(name, given)
    wanted = dtype_of(numpy_dtype(dtype).name)
    for index, found in enumerate(given):
        _check_cast(f"{name}: input {index}", found, wanted.name, casting)
    return wanted


def _check_cast(what: str, source, target, casting: Any) -> None:
    if not np.can_cast(numpy_dtype(source), numpy_dtype(target), casting):
        raise TypeError(f"{what} cannot be cast from {source} to {target} with casting rule {casting!r}")


def _core(argument: str, array, axis: int):
    """`array` as a stack of matrices: a vector becomes a row (`axis` 0) or a column (1)."""
    dimensions = len(array.shape)
    if dimensions == 0:
        raise ValueError(f"matmul: {argument} is a scalar; use * instead")
    if dimensions > 1:
        return array
    return array.reshape((-1, 1) if axis else (1, -1))


def _squeezed(array, dropped: list[int]):
    index = tuple(0 if axis in dropped else slice(None) for axis in (-2, -1))
    return array[(..., *index)] if dropped else array


def _direct_output(out, dtype: Dtype, arrays: tuple, dropped: list[int]):
    """`out` as a stack of matrices if the product may be written to it at once, else None."""
    if out is None or dropped or stored_dtype(dtype_name(out)) is not dtype:
        return None
    return None if any(_overlap(array, out) for array in arrays) else out


def _overlap(x, y) -> bool:
    library = library_of(x)
    if library is not library_of(y):
        return False  # the Call will refuse the mixture
    if library.host:
        return shares_memory(library.to_numpy(x), library.to_numpy(y))
    described = (library.layout(each, common_dtype("matmul", [dtype_name(each)]), None) for each in (x, y))
    return shares_memory(*described)


def _stored(name: str, result, out, casting: str):
    """`out`, holding `result`."""
    library = library_of(out)
    if library is not library_of(result):
        raise TypeError(f"{name}: out is a {library.name} array and the inputs are not")
    _check_cast(f"{name}: output", dtype_name(result), dtype_name(out), casting)
    if not broadcasts_to(tuple(result.shape), tuple(out.shape)):
        raise ValueError(f"{name}: out has shape {tuple(out.shape)}; {tuple(result.shape)} is needed")
    out[...] = result
    return out


def _may_hold(array, lead: tuple[int, ...], dtype: Dtype) -> bool:
    """Whether the solution may go into the memory of b: only when it could be b, element for element."""
    if tuple(array.shape[:-2]) != lead or stored_dtype(dtype_name(array)) is not dtype:
        return False
    return not isinstance(array, np.ndarray) or (array.flags.writeable and is_injective(array))


def _check_solvable(a, b, unit_diagonal, check_finite: bool | None) -> None:
    """Raise for Inf, NaN and a zero on the diagonal, as far as they are to be looked for."""
    host = library_of(a).host
    if not host and not check_finite:
        return
    if host:
        xp, a, b = np, library_of(a).to_numpy(a), library_of(b).to_numpy(b)
    else:
        xp = import_module("array_api_compat").array_namespace(a, b)
    if check_finite in (None, True) and not (bool(xp.all(xp.isfinite(a))) and bool(xp.all(xp.isfinite(b)))):
        raise ValueError("array must not contain infs or NaNs")
    if not unit_diagonal:
        *lead, n, _ = a.shape
        steps = xp.arange(n)
        zeros = xp.any(xp.reshape(a[..., steps, steps] == 0, (prod(lead), n)), axis=0)
        if bool(xp.any(zeros)):
            where = int(xp.argmax(xp.where(zeros, 1, 0)))
            raise LinAlgError(f"singular matrix: resolution failed at diagonal {where}")
