"""scipy.linalg.blas, name for name, on any arrays: GEMM, TRMM and TRSM.

Parameters, order, defaults and results are SciPy's: results are column-major, ``overwrite_c`` and
``overwrite_b`` mean *may* overwrite (which happens to column-major arrays of the routine's dtype), a vector
is a matrix of one column. Where SciPy truncates in silence this raises TypeError: complex arrays or numbers
in real routines, float64 in single precision. Integers are cast up. The functions without a prefix take the
dtype from the arrays.

``stream`` and ``backend`` have no place in these signatures: device arrays run on their library's current
stream, and ``PYBLASGPU_BACKEND`` sends host arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .arrays import common_dtype, dtype_name, library_of, numpy_dtype, stored_dtype
from .execution import Call
from .layouts import is_column_major
from .level3 import multiply, triangular
from .types import DTYPES, Dtype, Side

__all__ = [
    "cgemm", "ctrmm", "ctrsm", "dgemm", "dtrmm", "dtrsm", "find_best_blas_type", "gemm", "get_blas_funcs",
    "sgemm", "strmm", "strsm", "trmm", "trsm", "zgemm", "ztrmm", "ztrsm",
]  # fmt: skip

_GEMM_DOC = """``c = {name}(alpha, a, b, [beta, c, trans_a, trans_b, overwrite_c])``

General matrix product, ``alpha op(a) op(b) + beta c``{types}.

Parameters
----------
alpha : number
a : array, shape (m, k), or (k, m) if transposed
b : array, shape (k, n), or (n, k) if transposed
beta : number, optional
    With 0, `c` is not read.
c : array, shape (m, n), optional
    By default 0.
trans_a, trans_b : {{0, 1, 2}} or {{'N', 'T', 'C'}}, optional
    op: as it is, transposed, conjugate transposed.
overwrite_c : bool, optional
    Whether `c` may hold the result.

Returns
-------
c : array, shape (m, n)
    Column-major.

Raises
------
ValueError
    When shapes or flags do not fit.
TypeError
    When an array or number would have to be cast down.
"""

_TRIANGULAR_DOC = """``{result} = {name}(alpha, a, b, [side, lower, trans_a, diag, overwrite_b])``

{summary}{types}.

Parameters
----------
alpha : number
a : array, shape (m, m), or (n, n) from the right
    {a_note}The other triangle, and a unit diagonal, are not read.
b : array, shape (m, n)
side : {{0, 1}} or {{'L', 'R'}}, optional
    op(a) stands to the left or to the right.
lower : {{0, 1}}, optional
    Whether `a` is lower triangular.
trans_a : {{0, 1, 2}} or {{'N', 'T', 'C'}}, optional
    op: as it is, transposed, conjugate transposed.
diag : {{0, 1}} or {{'N', 'U'}}, optional
    Whether the diagonal of `a` is taken to be 1.
overwrite_b : bool, optional
    Whether `b` may hold the result.

Returns
-------
{result} : array, shape (m, n)
    Column-major.

Raises
------
ValueError
    When shapes or flags do not fit.
TypeError
    When an array or number would have to be cast down.
"""


def _make_gemm(dtype: Dtype | None) -> Callable:
    name = _name("gemm", dtype)

    def gemm(alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=0):
        arrays = {"a": _matrix(name, "a", a, dtype), "b": _matrix(name, "b", b, dtype)}
        target = None if c is None else _matrix(name, "c", c, dtype)
        wanted = dtype or _common(name, (*arrays.values(), *([] if c is None else [target])))
        in_place = bool(overwrite_c) and target is not None and _may_overwrite(target, wanted)
        if target is not None and not in_place:
            arrays["c"] = target
        out = target if in_place else None
        call = Call(name, arrays, out, None, None, wanted)
        source = call.inputs[2] if "c" in arrays else None
        scaled = 0 if c is None else beta
        result = multiply(call, alpha, scaled, out, trans_a, trans_b, source, column_major=True)
        return _like(result, c)

    return _dress(gemm, name, dtype, _GEMM_DOC.format(name=name, types=_types(dtype)))


def _make_triangular(which: str, dtype: Dtype | None) -> Callable:
    name = _name(which, dtype)

    def routine(alpha, a, b, side=0, lower=0, trans_a=0, diag=0, overwrite_b=0):
        triangle, target = _matrix(name, "a", a, dtype), _matrix(name, "b", b, dtype)
        if which == "trmm":
            at_left = Side.parse(side, name, "side") is Side.LEFT
            triangle = _leading(triangle, target.shape[0 if at_left else 1])
        wanted = dtype or _common(name, (triangle, target))
        out = target if overwrite_b and _may_overwrite(target, wanted) else None
        call = Call(name, {"a": triangle, "b": target}, out, None, None, wanted)
        result = triangular(call, which, alpha, out, side, lower, trans_a, diag, column_major=True)
        return _like(result, b)

    doc = _TRIANGULAR_DOC.format(name=name, types=_types(dtype), **_TRIANGULAR[which])
    return _dress(routine, name, dtype, doc)


_TRIANGULAR = {
    "trmm": {
        "result": "b",
        "summary": "Product with a triangle, ``alpha op(a) b`` or ``alpha b op(a)``",
        "a_note": "If `a` is larger, its leading part is used. ",
    },
    "trsm": {
        "result": "x",
        "summary": "Solution of ``op(a) x = alpha b`` or ``x op(a) = alpha b``, a triangular",
        "a_note": "",
    },
}


def _name(stem: str, dtype: Dtype | None) -> str:
    return stem if dtype is None else dtype.letter + stem


def _types(dtype: Dtype | None) -> str:
    return ", in the dtype that the arrays have together" if dtype is None else f", in {dtype.name}"


def _dress(function: Any, name: str, dtype: Dtype | None, doc: str) -> Callable:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    function.module_name = __name__
    if dtype is not None:
        # what SciPy's functions carry; indices are 64-bit throughout
        function.typecode = function.prefix = dtype.letter
        function.dtype, function.int_dtype = np.dtype(dtype.name), np.dtype("int64")
    return function


def _matrix(name: str, argument: str, array, dtype: Dtype | None):
    """`array` with two dimensions; a vector as one column."""
    if isinstance(array, (list, tuple, int, float, complex)):
        # numbers of Python have no precision of their own
        array = np.asarray(array, None if dtype is None else dtype.name)
    elif dtype is not None:
        library_of(array)
        if not np.can_cast(numpy_dtype(dtype_name(array)), dtype.name, "safe"):
            raise TypeError(f"{name}: {argument} has dtype {dtype_name(array)}, too much for {dtype.name}")
    dimensions = len(array.shape)
    if dimensions > 2:
        raise ValueError(f"{name}: {argument} has shape {tuple(array.shape)}; a matrix or a vector is needed")
    if dimensions == 2:
        return array
    return array.reshape((*array.shape, 1) if dimensions else (1, 1))


def _common(name: str, arrays: tuple) -> Dtype:
    return common_dtype(name, [dtype_name(array) for array in arrays])


def _leading(a, order: int):
    """The leading part of a triangle that is larger than needed, as SciPy's trmm takes it."""
    rows, cols = a.shape
    return a[:order, :order] if rows >= cols >= order else a


def _may_overwrite(array, dtype: Dtype) -> bool:
    """Whether SciPy would write into `array`: column-major, without padding, of the routine's dtype."""
    if stored_dtype(dtype_name(array)) is not dtype:
        return False
    library = library_of(array)
    if library.host:
        flags = library.output_to_numpy(array).flags
        return flags.f_contiguous and flags.aligned and flags.writeable
    layout = library.layout(array, dtype, None)
    rows, cols = layout.shape
    steps = layout.strides
    packed = (rows <= 1 or steps[0] == 1) and (cols <= 1 or steps[1] == rows)
    return packed and layout.writable and not layout.conj


def _like(result, given):
    """The result as a vector where SciPy returns one: where the argument that it replaces was one."""
    shape = getattr(given, "shape", None) if given is not None else None
    return result if shape is None or len(shape) == 2 else result.reshape(tuple(shape))


gemm = _make_gemm(None)
trmm, trsm = (_make_triangular(which, None) for which in ("trmm", "trsm"))
sgemm, dgemm, cgemm, zgemm = map(_make_gemm, DTYPES.values())
strmm, dtrmm, ctrmm, ztrmm = (_make_triangular("trmm", dtype) for dtype in DTYPES.values())
strsm, dtrsm, ctrsm, ztrsm = (_make_triangular("trsm", dtype) for dtype in DTYPES.values())


def find_best_blas_type(arrays: Sequence = (), dtype=None) -> tuple[str, np.dtype, bool]:
    """The BLAS type that holds all `arrays`.

    Parameters
    ----------
    arrays : sequence of arrays, optional
        Of one library.
    dtype : dtype, optional
        Used if no arrays are given; by default float64.

    Returns
    -------
    prefix : {'s', 'd', 'c', 'z'}
    dtype : numpy.dtype
    prefer_fortran : bool
        Whether the first array of the most general dtype is column-major.

    Raises
    ------
    TypeError
        For dtypes that would lose precision (SciPy takes long double as float64).
    """
    dtypes = [dtype_name(array) for array in arrays] or [np.dtype(dtype)]
    best = common_dtype("find_best_blas_type", dtypes)
    generality = list(DTYPES).index
    each = [common_dtype("find_best_blas_type", [found]).letter for found in dtypes]
    leading = arrays[each.index(max(each, key=generality))] if len(arrays) else None
    return best.letter, np.dtype(best.name), leading is not None and _is_fortran(leading)


def _is_fortran(array) -> bool:
    library = library_of(array)
    if library.host:
        return library.to_numpy(array).flags.f_contiguous
    return len(array.shape) < 2 or is_column_major(library.layout(array, _common("", (array,)), None))


def get_blas_funcs(names, arrays: Sequence = (), dtype=None, ilp64=False):
    """The functions of this module for the dtype of `arrays`.

    Parameters
    ----------
    names : str or sequence of str
        Without prefix: 'gemm', 'trmm', 'trsm'.
    arrays, dtype
        See `find_best_blas_type`.
    ilp64 : bool or 'preferred', optional
        Accepted; indices have 64 bits in either case.

    Returns
    -------
    callable or list of callable
        One function for a str, a list for a sequence. Each has the attributes ``typecode``, ``prefix``,
        ``dtype``, ``int_dtype`` and ``module_name``.

    Raises
    ------
    ValueError
        For a name that is not there.
    """
    prefix = find_best_blas_type(arrays, dtype)[0]
    found = []
    for name in [names] if isinstance(names, str) else names:
        if prefix + name not in __all__:
            raise ValueError(f"BLAS function {prefix}{name} could not be found")
        found.append(globals()[prefix + name])
    return found[0] if isinstance(names, str) else found
