"""Matrix products with NumPy's signatures: matmul, and those of vectors with matrices."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...arguments import Array, shown
from ...frontend.arrays.any_array import Library, can_be_output, may_share_memory, permuted, reshaped
from ...frontend.arrays.layouts import is_fortran_contiguous
from ...frontend.arrays.streams import contexts
from ...frontend.calls.call import Call
from ...frontend.calls.call_cache import repeat
from ...types import Dtype
from ..docstrings import PRODUCT, Shared, documenting
from ..keyword.level3 import common_batch_shape, multiply
from .arrays import as_array, computation, stored
from .host_products import host_product
from .warnings import warn_of_product

__all__ = ["matmul", "matvec", "vecdot", "vecmat"]

_PRODUCT = Shared("""
    Parameters
    ----------
    out : array, optional
        The array for the result, of any dtype that `casting` allows; by default a new one.
    casting : {'no', 'equiv', 'safe', 'same_kind', 'unsafe'}, default 'same_kind'
        Which casts of inputs to `dtype`, and of the result to `out`, are allowed.
    order : {'K', 'A', 'C', 'F'}, default 'K'
        Accepted as by `matmul`.
    dtype : dtype, optional
        The dtype of the computation, float32 to complex128; by default that of the inputs together.
    subok : bool, default True
        Accepted; results are never instances of subclasses.

    Raises
    ------
    ValueError
        When shapes do not fit.
    TypeError
        When `casting` forbids a cast, or arrays are of different libraries.
""")


@documenting(PRODUCT, _PRODUCT)
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
    method: str | None = None,
) -> Array:
    """Matrix product, as `numpy.matmul`.

    Parameters
    ----------
    x1, x2 : array, shape (..., m, k) and (..., k, n), or vectors of length k
        The factors. Leading dimensions broadcast. A vector `x1` is a row and a vector `x2` a column, and the
        dimension is taken out of the result.
    out : array, optional
        The array for the result, by default a new one. It may share memory with `x1` and `x2`, and may have
        any dtype that `casting` allows.
    order : {'K', 'A', 'C', 'F'}, default 'K'
        Order of a new result: C-contiguous or F-contiguous (stacks as a whole). By 'A' it is F-contiguous if
        all inputs are, by 'K' its matrices are column-major if those of all inputs are.

    Returns
    -------
    array
        `out`, or a new array of the inputs' library; a scalar for two vectors.

    Raises
    ------
    ValueError
        When shapes do not fit, or an argument is a scalar; for unknown `casting` and `order`.

    See Also
    --------
    pyblasgpu.gemm : Transposes, alpha and beta.
    matvec : Products of matrices and vectors.
    dot : Product of arrays of any dimensions.

    Notes
    -----
    Unlike NumPy's, products of integers and booleans are computed, and returned, in float64. The other
    keywords of NumPy's ufuncs (`axes`, `signature`) are not taken, and NumPy has no `method`.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.linalg.matmul(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0]))
    array([3., 7.])
    """
    return _product(_Core("matmul", "N"), x1, x2, out, casting, order, dtype, subok, method)


@documenting(_PRODUCT)
def matvec(
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
    """Product of matrices with vectors, as `numpy.matvec`.

    Parameters
    ----------
    x1 : array, shape (..., m, n)
        The matrices. Leading dimensions broadcast with those of `x2`.
    x2 : array, shape (..., n)
        The vectors.

    Returns
    -------
    array, shape (..., m)
        `out`, or a new array of the inputs' library.

    See Also
    --------
    matmul : Products of matrices.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.linalg.matvec(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([[1., 3.],
           [2., 4.]])
    """
    return _product(_Core("matvec", "N"), x1, x2, out, casting, order, dtype, subok)


@documenting(_PRODUCT)
def vecmat(
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
    """Product of conjugated vectors with matrices, as `numpy.vecmat`.

    Parameters
    ----------
    x1 : array, shape (..., n)
        The vectors, which are conjugated.
    x2 : array, shape (..., n, m)
        The matrices. Leading dimensions broadcast with those of `x1`.

    Returns
    -------
    array, shape (..., m)
        `out`, or a new array of the inputs' library.

    See Also
    --------
    matmul : Products of matrices, without conjugation.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.linalg.vecmat(np.array([1.0, 1.0]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([4., 6.])
    """
    return _product(_Core("vecmat", "C"), x1, x2, out, casting, order, dtype, subok)


@documenting(_PRODUCT)
def vecdot(
    x1: Array,
    x2: Array,
    /,
    out: Any = None,
    *,
    axis: int = -1,
    casting: str = "same_kind",
    order: str | None = "K",
    dtype: Any = None,
    subok: bool = True,
) -> Array:
    """Scalar products of vectors, the first conjugated, as `numpy.vecdot` and the array API's.

    Parameters
    ----------
    x1 : array, shape (..., n)
        The vectors that are conjugated.
    x2 : array, shape (..., n)
        The other vectors. Leading dimensions broadcast with those of `x1`.
    axis : int, default -1
        The dimension of both arrays along which the vectors are stored.

    Returns
    -------
    array, shape (...,)
        `out`, or a new array of the inputs' library; a scalar for two vectors.

    Raises
    ------
    numpy.exceptions.AxisError
        When an array has no such axis.

    See Also
    --------
    vdot : Scalar product of two arrays as one vector each.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.linalg.vecdot(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([21., 43.])
    """
    x1, x2 = as_array(x1, "vecdot", "x1"), as_array(x2, "vecdot", "x2")
    if x1.shape and x2.shape:  # else they are refused
        x1, x2 = _axis_last("x1", x1, axis), _axis_last("x2", x2, axis)
    return _product(_Core("vecdot", "C"), x1, x2, out, casting, order, dtype, subok)


def _axis_last(argument: str, array: Array, axis: Any) -> Array:
    """A view of an argument of `vecdot` whose last dimension is that with number `axis`."""
    try:
        number = operator.index(axis)
    except TypeError:
        raise TypeError(f"vecdot: axis must be an integer, not {shown(axis)}") from None
    count = len(array.shape)
    if number in (-1, count - 1):
        return array
    if not -count <= number < count:
        raise np.exceptions.AxisError(
            f"vecdot: axis {number} is out of bounds for {argument} of {count} dimensions"
        )
    number %= count
    return permuted(array, (*(each for each in range(count) if each != number), number))


_SIGNATURES = {
    "matmul": "(n?,k),(k,m?)->(n?,m?)",
    "matvec": "(m,n),(n)->(m)",
    "vecmat": "(n),(n,m)->(m)",
    "vecdot": "(n),(n)->()",
}


class _Core(NamedTuple):
    """One of NumPy's four products: its name, and what becomes of the first operand's columns.

    A first operand that is a vector is a column that a product takes conjugate transposed (trans 'C').
    """

    name: str
    trans: str

    def operands(self, x1: Array, x2: Array) -> tuple[Array, Array, list[int]]:
        """Stacks of matrices to multiply, and the axes that the result then lacks."""
        name = self.name
        if name == "matmul":
            left, right = _matrices("x1", x1, 0), _matrices("x2", x2, 1)
            return left, right, [-2] * (len(x1.shape) == 1) + [-1] * (len(x2.shape) == 1)
        vectors = self.trans == "C", name != "vecmat"
        for index, (array, vector) in enumerate(zip((x1, x2), vectors, strict=True)):
            least = 1 if vector else 2
            if len(array.shape) < least:
                raise ValueError(
                    f"{name}: Input operand {index} does not have enough dimensions (has {len(array.shape)}, "
                    f"gufunc core with signature {_SIGNATURES[name]} requires {least})"
                )
        left, right = (_column(x) if vector else x for x, vector in zip((x1, x2), vectors, strict=True))
        return left, right, [-2] * vectors[0] + [-1] * vectors[1]

    def extents(self, left: Array, right: Array) -> tuple[int, int]:
        """The extents of the product of two matrices."""
        return left.shape[-2 if self.trans == "N" else -1], right.shape[-1]

    def check(self, left: Array, right: Array) -> None:
        k, inner = left.shape[-1 if self.trans == "N" else -2], right.shape[-2]
        if k != inner:
            raise ValueError(
                f"{self.name}: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
                f"{_SIGNATURES[self.name]} (size {inner} is different from {k})"
            )


def _product(
    core: _Core,
    x1: Array,
    x2: Array,
    out: Any,
    casting: str,
    order: str | None,
    dtype: Any,
    subok: bool,
    method: str | None = None,
) -> Array:
    name = core.name
    plain = casting == "same_kind" and order in (None, "K") and dtype is None and subok is True
    key = ("linalg", name, method) if plain else None
    done = None
    if key is not None and type(x1) is not np.ndarray:
        done = repeat(key, (x1, x2), out)
    elif key is not None and method is None and out is None:
        done = host_product(x1, x2, core.name)
    if done is not None:
        return done
    out = _single(name, out)
    order = _one_of(name, "order", "K" if order is None else order, "KACF")
    casting = _one_of(name, "casting", casting, _CASTINGS)
    if not isinstance(subok, bool):
        raise TypeError(f"{name}: subok must be a bool, not {shown(subok)}")
    x1, x2 = as_array(x1, name, "x1"), as_array(x2, name, "x2")
    wanted = computation(name, {"x1": x1, "x2": x2}, dtype, casting)
    left, right, dropped = core.operands(x1, x2)
    core.check(left, right)
    shape = (*common_batch_shape(name, left, right), *core.extents(left, right))
    direct = _direct_output(out, wanted, (x1, x2), dropped, shape)
    call = Call(name, {"x1": left, "x2": right}, direct, None, None, wanted)
    if order == "A":
        order = "F" if all(map(is_fortran_contiguous, call.inputs)) else "C"
    target = _fortran(call, left, right) if order == "F" and out is None and core.trans == "N" else direct
    column_major = None if order == "K" else order == "F"
    if dropped:
        column_major = False
        call.views((x1, x2), out, _without(shape, dropped))
    result = multiply(call, 1, 0, target, core.trans, "N", column_major=column_major, key=key, method=method)
    if call.library.host and isinstance(x1, np.ndarray):
        left, right = call.inputs
        warn_of_product(name, left if core.trans == "N" else left.swapaxes(-1, -2), right, result)
    if direct is not None:
        return out
    result = _squeezed(result, dropped)
    if out is not None:
        return stored(name, result, out, casting, core=2 - len(dropped))
    if order == "F" and call.library.host:
        result = _in_fortran_order(call.library, result, x1)
    return result[()] if isinstance(result, np.ndarray) and result.ndim == 0 else result


_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


def _single(name: str, out: Any) -> Any:
    """Return the one output, which may be in a tuple, as NumPy takes it."""
    if not isinstance(out, tuple):
        return out
    if len(out) != 1:
        raise ValueError(f"{name}: the tuple out must have exactly one entry, not {len(out)}")
    return out[0]


def _one_of(name: str, argument: str, value: object, known: Sequence[str]) -> str:
    """`value` as one of the strings `known`; single letters may be lower case."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: {argument} must be a str, not {shown(value)}")
    word = value.upper() if len(value) == 1 else value
    if word not in tuple(known):
        options = ", ".join(map(repr, known))
        raise ValueError(f"{name}: {argument} must be one of {options} (got {shown(value)})")
    return word


def _matrices(argument: str, array: Array, axis: int) -> Array:
    """`array` as a stack of matrices: a vector becomes a row (`axis` 0) or a column (1)."""
    dimensions = len(array.shape)
    if dimensions == 0:
        raise ValueError(f"matmul: {argument} is a scalar; use * instead")
    if dimensions > 1:
        return array
    return _column(array) if axis else reshaped(array, (1, *array.shape))


def _column(array: Array) -> Array:
    return reshaped(array, (*array.shape, 1))


def _without(shape: tuple[int, ...], dropped: list[int]) -> tuple[int, ...]:
    """`shape` without the dimensions `dropped`, of the last two."""
    return (*shape[:-2], *(shape[axis] for axis in (-2, -1) if axis not in dropped))


def _squeezed(array: Array, dropped: list[int]) -> Array:
    """`array` without the dimensions `dropped`, of the last two."""
    return reshaped(array, _without(tuple(array.shape), dropped)) if dropped else array


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


def _direct_output(
    out: Array, dtype: Dtype, arrays: tuple[Array, ...], dropped: list[int], shape: tuple[int, ...]
) -> Array:
    """`out` as a stack of matrices if a product of this shape may be written to it at once, else None."""
    if out is None or not can_be_output(out, dtype) or any(may_share_memory(array, out) for array in arrays):
        return None
    if not dropped:
        return out
    leading = len(out.shape) + len(dropped) - 2
    matrices = (*out.shape[:leading], *shape[-2:])
    if leading < 0 or prod(matrices) != prod(out.shape):
        return None
    view = reshaped(out, matrices)
    fits = _without(matrices, dropped) == tuple(out.shape)
    return view if fits and may_share_memory(view, out) else None
