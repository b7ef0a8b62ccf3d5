"""The Level 1 of `blas`: SciPy's signatures, for all dtypes.

As SciPy's functions these write into x or y where these are contiguous by columns and of the routine's
dtype, and return what they wrote; else they return a copy. Numbers of host arrays are Python's. Those of
device arrays are arrays without dimensions, which are there when the stream is: ``float`` or ``int`` of them
waits.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ...arguments import Array, Flag, Number, enabled
from ...frontend.arrays.any_array import number
from ...frontend.arrays.vectors import Vector
from ...frontend.calls.call_cache import replay
from ...routine_table import ROUTINES
from ...types import Dtype
from ..array_views import views_of
from ..keyword.vector_calls import map_vectors, reduce_vectors
from ..keyword.vector_pairs import pair_vectors
from .docs import TEXTS
from .functions import dressed, functions_of
from .vectors import VectorArgument, as_vector, clear_of, parts_of, target_of, whole

__all__ = ["FUNCTIONS"]


def _or_kept(function: Callable[..., Any], name: str, factor: str = "") -> Callable[..., Any]:
    """Return `function`, but repeat a kept call on device arrays, which wrote all of a vector in place."""
    parameters = inspect.signature(function).parameters
    names, arrays = tuple(parameters), tuple(each for each in "xy" if each in parameters)
    needed = {each for each in names if parameters[each].default is inspect.Parameter.empty}

    @wraps(function)
    def either(*arguments: Any, **options: Any) -> Any:
        values = dict(zip(names, arguments, strict=False)) | options
        if len(values) == len(arguments) + len(options) and needed <= values.keys() <= needed | {factor}:
            vectors = tuple(values[each] for each in arrays)
            inputs = vectors if factor else vectors[:-1]  # a copy does not read what it writes
            done = replay((name,), inputs, vectors[-1], values.get(factor, 1), 0, None, None)
            if done is not None:
                return done
        return function(*arguments, **options)

    return either


def _make_axpy(stem: str, name: str, dtype: Any) -> Callable[..., Any]:
    def axpy(
        x: Array,
        y: Array,
        n: int | None = None,
        a: Number = 1.0,
        offx: int = 0,
        incx: int = 1,
        offy: int = 0,
        incy: int = 1,
    ) -> Array:
        return _write(name, stem, dtype, x, y, n, a, (offx, incx), (offy, incy))

    return dressed(_or_kept(axpy, name, "a"), stem, name, dtype)


def _make_copy(stem: str, name: str, dtype: Any) -> Callable[..., Any]:
    def copy(
        x: Array, y: Array, n: int | None = None, offx: int = 0, incx: int = 1, offy: int = 0, incy: int = 1
    ) -> Array:
        return _write(name, stem, dtype, x, y, n, 1, (offx, incx), (offy, incy))

    return dressed(_or_kept(copy, name), stem, name, dtype)


def _write(
    name: str,
    which: str,
    dtype: Dtype,
    x: Array,
    y: Array,
    n: Any,
    a: Number,
    at_x: tuple[Any, Any],
    at_y: tuple[Any, Any],
) -> Array:
    """AXPY or COPY into `y`."""
    if (views := views_of(name, {"x": x, "y": y})) is not None:
        x, y = views.arrays
        return views.delivered(_write(name, which, dtype, x, y, n, a, at_x, at_y))
    a = number(a, dtype, name, "a")
    source, flat = as_vector(name, "x", x, dtype), as_vector(name, "y", y, dtype)
    parts = parts_of(name, {"x": VectorArgument(source, *at_x), "y": VectorArgument(flat, *at_y)}, n)
    target = target_of(name, y, flat, dtype)
    arrays = {"x": clear_of(name, source, target.vector, dtype)}
    if which == "axpy":
        arrays["y"] = target.vector
    written, key = ({}, (name,)) if _are_whole(parts, {"x": source, "y": flat}) else (parts, None)
    if written:
        written = {**written, "out": written["y"]}
    map_vectors(which, arrays, a, target.vector, None, None, key, name, dtype, written)
    return target.array


def _are_whole(parts: dict[str, Vector], arrays: dict[str, Array]) -> bool:
    """Whether the vectors are all of the arrays, so that the call may be a known one."""
    return all(part == Vector(arrays[argument].shape[0]) for argument, part in parts.items())


def _make_scal(stem: str, name: str, dtype: Any) -> Callable[..., Any]:
    if name != ROUTINES[stem].scipys(dtype.letter)[0]:
        return _make_real_scal(stem, name, dtype)

    def scal(a: Number, x: Array, n: int | None = None, offx: int = 0, incx: int = 1) -> Array:
        return _scale(name, dtype, number(a, dtype, name, "a"), x, n, offx, incx, True)

    return dressed(_or_kept(scal, name, "a"), stem, name, dtype)


def _make_real_scal(stem: str, name: str, dtype: Any) -> Callable[..., Any]:
    real = ROUTINES["nrm2"].result_dtype(dtype)

    def scal(
        a: Number, x: Array, n: int | None = None, offx: int = 0, incx: int = 1, overwrite_x: Flag = 0
    ) -> Array:
        factor = number(a, real, name, "a")
        return _scale(name, dtype, factor, x, n, offx, incx, enabled(overwrite_x, name, "overwrite_x"))

    return dressed(scal, stem, name, dtype)


def _scale(
    name: str, dtype: Dtype, a: Number, x: Array, n: Any, offx: Any, incx: Any, overwrite: bool
) -> Array:
    if (views := views_of(name, {"x": x})) is not None:
        (x,) = views.arrays
        return views.delivered(_scale(name, dtype, a, x, n, offx, incx, overwrite))
    flat = as_vector(name, "x", x, dtype)
    part = parts_of(name, {"x": VectorArgument(flat, offx, incx)}, n)["x"]
    target = target_of(name, x, flat, dtype, overwrite)
    if part.increment > 0:  # else the BLAS does nothing
        whole = _are_whole({"x": part}, {"x": flat})
        parts, key = ({}, (name,)) if whole else ({"x": part, "out": part}, None)
        map_vectors("scal", {"x": target.vector}, a, target.vector, None, None, key, name, dtype, parts)
    return target.array


def _make_swap(stem: str, name: str, dtype: Any) -> Callable[..., Any]:
    def swap(
        x: Array, y: Array, n: int | None = None, offx: int = 0, incx: int = 1, offy: int = 0, incy: int = 1
    ) -> tuple[Array, Array]:
        return _write_both(name, stem, dtype, (x, y), n, (offx, incx), (offy, incy), (), (True, True))

    return dressed(swap, stem, name, dtype)


def _make_rot(stem: str, name: str, dtype: Any) -> Callable[..., Any]:
    def rot(
        x: Array,
        y: Array,
        c: Number,
        s: Number,
        n: int | None = None,
        offx: int = 0,
        incx: int = 1,
        offy: int = 0,
        incy: int = 1,
        overwrite_x: Flag = 0,
        overwrite_y: Flag = 0,
    ) -> tuple[Array, Array]:
        overwrite = enabled(overwrite_x, name, "overwrite_x"), enabled(overwrite_y, name, "overwrite_y")
        return _write_both(name, stem, dtype, (x, y), n, (offx, incx), (offy, incy), (c, s), overwrite)

    return dressed(rot, stem, name, dtype)


def _make_rotm(stem: str, name: str, dtype: Any) -> Callable[..., Any]:
    def rotm(
        x: Array,
        y: Array,
        param: Array,
        n: int | None = None,
        offx: int = 0,
        incx: int = 1,
        offy: int = 0,
        incy: int = 1,
        overwrite_x: Flag = 0,
        overwrite_y: Flag = 0,
    ) -> tuple[Array, Array]:
        overwrite = enabled(overwrite_x, name, "overwrite_x"), enabled(overwrite_y, name, "overwrite_y")
        return _write_both(name, stem, dtype, (x, y), n, (offx, incx), (offy, incy), (param,), overwrite)

    return dressed(rotm, stem, name, dtype)


def _write_both(
    name: str,
    which: str,
    dtype: Dtype,
    arrays: tuple[Array, Array],
    n: Any,
    at_x: tuple[Any, Any],
    at_y: tuple[Any, Any],
    numbers: tuple[Any, ...],
    overwrite: tuple[bool, bool],
) -> tuple[Array, Array]:
    """SWAP, ROT or ROTM."""
    if (views := views_of(name, dict(zip("xy", arrays, strict=True)))) is not None:
        pair = views.arrays[0], views.arrays[1]
        both: tuple[Array, Array] = views.delivered(
            _write_both(name, which, dtype, pair, n, at_x, at_y, numbers, overwrite)
        )
        return both
    x, y = (as_vector(name, argument, array, dtype) for argument, array in zip("xy", arrays, strict=True))
    if which == "rot" and n is None:
        offset, step = whole(at_x[0], name, "offx"), whole(at_x[1], name, "incx")
        n = (x.shape[0] - 1 - offset) // abs(step) + 1 if step else None  # as SciPy counts here
    parts = parts_of(name, {"x": VectorArgument(x, *at_x), "y": VectorArgument(y, *at_y)}, n)
    first, second = (
        target_of(name, array, vector, dtype, may)
        for array, vector, may in zip(arrays, (x, y), overwrite, strict=True)
    )
    pair = first.vector, second.vector
    pair_vectors(which, *pair, numbers, pair, None, None, name, dtype, parts)
    return first.array, second.array


def _make_dot(stem: str, name: str, dtype: Any) -> Callable[..., Any]:
    *plain, last = ROUTINES[stem].scipys(dtype.letter)
    conj = bool(plain) and name == last

    def dot(
        x: Array, y: Array, n: int | None = None, offx: int = 0, incx: int = 1, offy: int = 0, incy: int = 1
    ) -> Any:
        vectors = as_vector(name, "x", x, dtype), as_vector(name, "y", y, dtype)
        vector_arguments = {
            "x": VectorArgument(vectors[0], offx, incx),
            "y": VectorArgument(vectors[1], offy, incy),
        }
        return _reduce(name, stem, dtype, vector_arguments, n, conj)

    return dressed(dot, stem, name, dtype, TEXTS["dotc"] if conj else None)


def _make_reduction(which: str, name: str, dtype: Any) -> Callable[..., Any]:
    def reduction(x: Array, n: int | None = None, offx: int = 0, incx: int = 1) -> Any:
        vector_arguments = {"x": VectorArgument(as_vector(name, "x", x, dtype), offx, incx)}
        return _reduce(name, which, dtype, vector_arguments, n, False)

    return dressed(reduction, which, name, dtype)


def _reduce(
    name: str, which: str, dtype: Dtype, vectors: dict[str, VectorArgument], n: Any, conj: bool
) -> Any:
    parts = parts_of(name, vectors, n)
    if which != "dot" and parts["x"].increment < 0:
        if which == "nrm2":
            raise ValueError(f"{name}: incx={parts['x'].increment} is negative")
        parts["x"] = parts["x"]._replace(n=0, increment=1)  # as the BLAS has it: a sum of 0, an index of -1
    arrays = {argument: each.array for argument, each in vectors.items()}
    if parts["x"].n and _are_whole(parts, arrays):  # of nothing, the BLAS finds a largest element too: none
        parts = {}
    result = reduce_vectors(which, arrays, conj, None, None, None, name, dtype, parts)
    return result.item() if isinstance(result, np.generic) else result


FUNCTIONS = functions_of(
    {
        "axpy": _make_axpy,
        "copy": _make_copy,
        "scal": _make_scal,
        "swap": _make_swap,
        "rot": _make_rot,
        "rotm": _make_rotm,
        "dot": _make_dot,
        **dict.fromkeys(("nrm2", "asum", "iamax"), _make_reduction),
    }
)
