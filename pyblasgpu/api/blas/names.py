"""scipy.linalg.blas, name for name, on any arrays, and GEMMTR, which SciPy lacks.

Parameters, order, defaults and results are SciPy's: results are column-major, and ``overwrite_c`` and
``overwrite_b`` mean *may* overwrite. That happens to column-major arrays of the routine's dtype. A vector is
a matrix of one column and a number a matrix of one element; a result that replaces either has its shape.
Lists, numbers, integers and all floating-point arrays are cast to the routine's dtype, float64 to float32
too. Where SciPy loses an imaginary part in silence this raises TypeError: complex arrays or numbers in real
routines; where SciPy's BLAS prints a complaint and computes nothing (``trans=2`` of zsyrk), ValueError. The
functions without a prefix take the dtype from the arrays.

An array of several dimensions is a vector by columns. Vectors are written in place where they are contiguous
by columns and of the routine's dtype, those of Level 2 also where ``overwrite_x`` and ``overwrite_y`` allow
it. Banded and packed matrices are computed by SciPy's BLAS, and refused on a device. Vectors and matrices
without elements are taken, where SciPy refuses some, and leave what the reference BLAS leaves.

These signatures have neither ``stream`` nor ``backend``: device arrays run on their library's current
stream, and ``PYBLASGPU_BACKEND`` sends host arrays. Products take ``method``, which SciPy lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...arguments import Array, Flag, Number, enabled
from ...frontend.arrays.any_array import common_dtype, dtype_name, numpy_dtype
from ...frontend.calls.call import Call
from ...frontend.calls.call_cache import repeat
from ...frontend.calls.factor_replay import call_key
from ...routine_table import ROUTINES
from ...types import DTYPES, Diag, Dtype, Side, Trans
from ..keyword.gemmtr import triangular_product
from ..keyword.level3 import multiply
from ..keyword.rank_k import rank_k
from ..keyword.symmetric import symmetric
from ..keyword.triangular import triangular
from . import host, level1, level2, rank_1
from .arrays import (
    array_shape,
    as_matrix,
    common_dtype_of,
    is_fortran,
    is_on,
    leading_part,
    may_overwrite,
    repeated,
    shaped_like,
)
from .functions import dressed, functions_of, named_functions


def _make_gemm(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def gemm(
        alpha: Number,
        a: Array,
        b: Array,
        beta: Number = 0.0,
        c: Array = None,
        trans_a: Flag = 0,
        trans_b: Flag = 0,
        overwrite_c: Flag = 0,
        *,
        method: str | None = None,
    ) -> Array:
        key = call_key(name, trans_a, trans_b, overwrite_c, method)
        done = repeated(key, (a, b), alpha, beta, c, overwrite_c)
        if done is not None:
            return done
        call, out, source, beta = _prepare(name, dtype, {"a": a, "b": b}, beta, c, overwrite_c)
        options: dict[str, Any] = {"column_major": True, "method": method, "key": key}
        result = multiply(call, alpha, beta, out, trans_a, trans_b, source, **options)
        return shaped_like(result, c)

    return dressed(gemm, "gemm", name, dtype)


def _prepare(
    name: str, dtype: Dtype | None, inputs: dict[str, Array], beta: Number, c: Array, overwrite_c: Flag
) -> tuple[Call, Array, Any, Number]:
    """The Call of a routine that adds to `c`; its output if that is `c`, else what is copied into a new one;
    and beta, 0 if there is nothing to scale.
    """
    arrays = {argument: as_matrix(name, argument, array, dtype) for argument, array in inputs.items()}
    overwrite = enabled(overwrite_c, name, "overwrite_c")
    if c is None:
        wanted = dtype or common_dtype_of(name, tuple(arrays.values()))
        call = Call(name, arrays, None, None, None, wanted)
        call.scalar("beta", beta)
        call.views(tuple(inputs.values()))
        return call, None, None, 0
    target = as_matrix(name, "c", c, dtype)
    wanted = dtype or common_dtype_of(name, (*arrays.values(), target))
    if overwrite and may_overwrite(target, wanted, arrays.values()):
        call = Call(name, arrays, target, None, None, wanted)
        call.out_name = "c"
        call.views(tuple(inputs.values()), c)
        return call, target, None, beta
    call = Call(name, {**arrays, "c": target}, None, None, None, wanted)
    call.views((*inputs.values(), c), None, array_shape(c) if len(array_shape(c)) != 2 else None)
    return call, None, call.inputs[-1], beta


def _make_symm(which: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def routine(
        alpha: Number,
        a: Array,
        b: Array,
        beta: Number = 0.0,
        c: Array = None,
        side: Flag = 0,
        lower: Flag = 0,
        overwrite_c: Flag = 0,
        *,
        method: str | None = None,
    ) -> Array:
        key = call_key(name, side, lower, overwrite_c, method)
        done = repeated(key, (a, b), alpha, beta, c, overwrite_c)
        if done is not None:
            return done
        call, out, source, beta = _prepare(name, dtype, {"a": a, "b": b}, beta, c, overwrite_c)
        options: dict[str, Any] = {"column_major": True, "method": method, "key": key}
        result = symmetric(call, which, alpha, beta, out, side, lower, source, **options)
        return shaped_like(result, c)

    return dressed(routine, which, name, dtype)


def _make_rank_k(which: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def add(
        inputs: dict[str, Array],
        alpha: Number,
        beta: Number,
        c: Array,
        trans: Flag,
        lower: Flag,
        overwrite_c: Flag,
        method: str | None,
    ) -> Array:
        key = call_key(name, trans, lower, overwrite_c, method)
        done = repeated(key, tuple(inputs.values()), alpha, beta, c, overwrite_c)
        if done is not None:
            return done
        call, out, source, beta = _prepare(name, dtype, inputs, beta, c, overwrite_c)
        options: dict[str, Any] = {"column_major": True, "method": method, "key": key}
        return shaped_like(rank_k(call, which, alpha, beta, out, lower, trans, source, **options), c)

    def update(
        alpha: Number,
        a: Array,
        beta: Number = 0.0,
        c: Array = None,
        trans: Flag = 0,
        lower: Flag = 0,
        overwrite_c: Flag = 0,
        *,
        method: str | None = None,
    ) -> Array:
        return add({"a": a}, alpha, beta, c, trans, lower, overwrite_c, method)

    def update_by_two(
        alpha: Number,
        a: Array,
        b: Array,
        beta: Number = 0.0,
        c: Array = None,
        trans: Flag = 0,
        lower: Flag = 0,
        overwrite_c: Flag = 0,
        *,
        method: str | None = None,
    ) -> Array:
        return add({"a": a, "b": b}, alpha, beta, c, trans, lower, overwrite_c, method)

    routine = update_by_two if ROUTINES[which].is_rank_2 else update
    return dressed(routine, which, name, dtype)


def _make_gemmtr(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def gemmtr(
        alpha: Number,
        a: Array,
        b: Array,
        beta: Number = 0.0,
        c: Array = None,
        trans_a: Flag = 0,
        trans_b: Flag = 0,
        lower: Flag = 0,
        overwrite_c: Flag = 0,
    ) -> Array:
        key = call_key(name, trans_a, trans_b, lower, overwrite_c)
        done = repeated(key, (a, b), alpha, beta, c, overwrite_c)
        if done is not None:
            return done
        call, out, source, beta = _prepare(name, dtype, {"a": a, "b": b}, beta, c, overwrite_c)
        options: dict[str, Any] = {"column_major": True, "key": key}
        result = triangular_product(call, alpha, beta, out, lower, trans_a, trans_b, source, **options)
        return shaped_like(result, c)

    return dressed(gemmtr, "gemmtr", name, dtype)


def _make_triangular(which: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def routine(
        alpha: Number,
        a: Array,
        b: Array,
        side: Flag = 0,
        lower: Flag = 0,
        trans_a: Flag = 0,
        diag: Flag = 0,
        overwrite_b: Flag = 0,
        *,
        method: str | None = None,
    ) -> Array:
        key = call_key(name, side, lower, trans_a, diag, overwrite_b, method)
        done = repeat(key, (a, b), b if is_on(overwrite_b) else None, alpha)
        if done is not None:
            return done
        op, unit = Trans.parse(trans_a, name, "trans_a"), Diag.parse(diag, name, "diag")
        triangle, target = as_matrix(name, "a", a, dtype), as_matrix(name, "b", b, dtype)
        overwrite = enabled(overwrite_b, name, "overwrite_b")
        if which == "trmm":
            at_left = Side.parse(side, name, "side") is Side.LEFT
            triangle = leading_part(triangle, target.shape[0 if at_left else 1])
        wanted = dtype or common_dtype_of(name, (triangle, target))
        out = target if overwrite and may_overwrite(target, wanted, [triangle]) else None
        call = Call(name, {"a": triangle, "b": target}, out, None, None, wanted)
        if target is not b or triangle is not a:
            shape = array_shape(b)
            call.views((a, b), None if out is None else b, shape if len(shape) != 2 else None)
        options: dict[str, Any] = {"column_major": True, "method": method, "key": key}
        result = triangular(call, which, alpha, out, side, lower, op, unit, **options)
        return shaped_like(result, b)

    return dressed(routine, which, name, dtype)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **functions_of(
        {
            "gemm": _make_gemm,
            **dict.fromkeys(("trmm", "trsm"), _make_triangular),
            **dict.fromkeys(("symm", "hemm"), _make_symm),
            **dict.fromkeys(("syrk", "herk", "syr2k", "her2k"), _make_rank_k),
            "gemmtr": _make_gemmtr,
        },
        generic=True,
    ),
    **level1.FUNCTIONS,
    **level2.FUNCTIONS,
    **rank_1.FUNCTIONS,
    **host.FUNCTIONS,
}
globals().update(FUNCTIONS)
__all__ = ["find_best_blas_type", "get_blas_funcs", *FUNCTIONS]


def find_best_blas_type(arrays: Sequence[Array] = (), dtype: Any = None) -> tuple[str, np.dtype[Any], bool]:
    """Return the BLAS type that holds all `arrays`.

    Parameters
    ----------
    arrays : sequence of arrays, optional
        Arrays of one library; by default none.
    dtype : dtype, optional
        The dtype where no arrays are given; by default float64.

    Returns
    -------
    prefix : {'s', 'd', 'c', 'z'}
        The letter of the type.
    dtype : numpy.dtype
        The type.
    prefer_fortran : bool
        Whether the first array of the most general dtype is column-major.

    Raises
    ------
    TypeError
        When a dtype would lose precision (SciPy takes long double as float64).

    See Also
    --------
    get_blas_funcs : Returns the functions of the type.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import blas
    >>> blas.find_best_blas_type([np.ones(2, dtype="float32"), np.ones(2, dtype="complex64")])
    ('c', dtype('complex64'), True)
    """
    dtypes = [dtype_name(array) for array in arrays] or [numpy_dtype("float64" if dtype is None else dtype)]
    best = common_dtype("find_best_blas_type", dtypes)
    generality = list(DTYPES).index
    each = [common_dtype("find_best_blas_type", [one]).letter for one in dtypes]
    leading = arrays[each.index(max(each, key=generality))] if len(arrays) else None
    return best.letter, np.dtype(best.name), leading is not None and is_fortran(leading)


#: Names that SciPy takes for others.
_ALIASES = {
    "cdot": "cdotc",
    "zdot": "zdotc",
    "cger": "cgerc",
    "zger": "zgerc",
    "cnrm2": "scnrm2",
    "znrm2": "dznrm2",
    "sdotc": "sdot",
    "sdotu": "sdot",
    "ddotc": "ddot",
    "ddotu": "ddot",
}


def get_blas_funcs(
    names: str | Sequence[str], arrays: Sequence[Array] = (), dtype: Any = None, ilp64: bool | str = False
) -> Any:
    """Return the functions of this module for the dtype of `arrays`.

    Parameters
    ----------
    names : str or sequence of str
        Names without prefix: 'gemm', 'trsm', 'herk', ... (the last for complex arrays alone).
    arrays : sequence of arrays, optional
        Arrays of one library; the functions are of the BLAS type that holds them all. By default none.
    dtype : dtype, optional
        The dtype where no arrays are given; by default float64.
    ilp64 : bool or 'preferred', default False
        Accepted; indices have 64 bits in either case.

    Returns
    -------
    callable or list of callable
        One function for a str, a list for a sequence. Each has the attributes ``typecode``, ``prefix``,
        ``dtype``, ``int_dtype`` and ``module_name``.

    Raises
    ------
    ValueError
        When there is no function of a name.

    See Also
    --------
    find_best_blas_type : Finds the type.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import blas
    >>> blas.get_blas_funcs("gemm", [np.ones(2, dtype="complex64")]).__name__
    'cgemm'
    """
    prefix = find_best_blas_type(arrays, dtype)[0]
    return named_functions("BLAS", FUNCTIONS, names, lambda name: _ALIASES.get(prefix + name, prefix + name))
