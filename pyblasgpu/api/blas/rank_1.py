"""The updates by vectors of `blas`: SciPy's signatures, for all dtypes; see `blas_level2`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arguments import Array, Flag, Number, enabled
from ...frontend.arrays.vectors import Vector
from ...frontend.calls.call import Call
from ...frontend.calls.factor_replay import call_key
from ...routine_table import ROUTINES
from ...types import Dtype, Trans, Uplo
from ..keyword.level3 import real_number
from ..keyword.rank_1 import run_ger, run_rank_1
from .arrays import as_matrix, may_overwrite, repeated
from .docs import TEXTS
from .functions import dressed, functions_of
from .vectors import VectorArgument, as_vector, parts_of, unless_whole, whole

__all__ = ["FUNCTIONS"]


def _make_ger(stem: str, name: str, dtype: Any) -> Callable[..., Any]:
    *plain, last = ROUTINES[stem].scipys(dtype.letter)
    is_conjugated = bool(plain) and name == last
    turn = Trans.CONJ if is_conjugated else Trans.TRANS

    def ger(
        alpha: Number,
        x: Array,
        y: Array,
        incx: int = 1,
        incy: int = 1,
        a: Array = None,
        overwrite_x: Flag = 1,
        overwrite_y: Flag = 1,
        overwrite_a: Flag = 0,
    ) -> Array:
        key = call_key(name, incx, incy, overwrite_x, overwrite_y, overwrite_a)
        if (done := repeated(key, (x, y), alpha, 0, a, overwrite_a)) is not None:
            return done
        steps = tuple(whole(v, name, f"inc{argument}") for v, argument in ((incx, "x"), (incy, "y")))
        for argument, step in zip("xy", steps, strict=True):
            if abs(step) != 1:
                raise ValueError(f"{name}: inc{argument}={step} is neither 1 nor -1")
        vectors = {key: as_vector(name, key, v, dtype) for key, v in (("x", x), ("y", y))}
        parts = {
            key: Vector(v.shape[0], 0, step) for (key, v), step in zip(vectors.items(), steps, strict=True)
        }
        extents = parts["x"].n, parts["y"].n
        call, source = _updated(name, dtype, vectors, parts, a, extents, overwrite_a, (x, y))
        rows, cols = call.inputs[:2]
        return run_ger(call, call.scalar("alpha", alpha), rows, cols, turn, source, key)

    return dressed(ger, stem, name, dtype, TEXTS["gerc"] if is_conjugated else None)


def _make_syr(which: str, name: str, dtype: Any) -> Callable[..., Any]:
    def syr(
        alpha: Number,
        x: Array,
        lower: Flag = 0,
        incx: int = 1,
        offx: int = 0,
        n: int | None = None,
        a: Array = None,
        overwrite_a: Flag = 0,
    ) -> Array:
        return _rank_1(which, name, dtype, alpha, {"x": (x, offx, incx)}, lower, n, a, overwrite_a)

    return dressed(syr, which, name, dtype)


def _make_syr2(which: str, name: str, dtype: Any) -> Callable[..., Any]:
    def syr2(
        alpha: Number,
        x: Array,
        y: Array,
        lower: Flag = 0,
        incx: int = 1,
        offx: int = 0,
        incy: int = 1,
        offy: int = 0,
        n: int | None = None,
        a: Array = None,
        overwrite_a: Flag = 0,
    ) -> Array:
        vectors = {"x": (x, offx, incx), "y": (y, offy, incy)}
        return _rank_1(which, name, dtype, alpha, vectors, lower, n, a, overwrite_a)

    return dressed(syr2, which, name, dtype)


def _rank_1(
    which: str,
    name: str,
    dtype: Dtype,
    alpha: Number,
    vectors: dict[str, tuple[Array, Any, Any]],
    lower: Flag,
    n: Any,
    a: Array,
    overwrite: Flag,
) -> Array:
    """SYR, HER, SYR2 or HER2."""
    passed = tuple(array for array, _, _ in vectors.values())
    places = (place for _, *each in vectors.values() for place in each)
    key = call_key(name, lower, n, overwrite, *places)
    if (done := repeated(key, passed, alpha, 0, a, overwrite)) is not None:
        return done
    uplo = Uplo.parse(lower, name, "lower")
    vector_arguments = {
        key: VectorArgument(as_vector(name, key, array, dtype), whole(offset, name, f"off{key}"), step)
        for key, (array, offset, step) in vectors.items()
    }
    steps = {key: whole(each.increment, name, f"inc{key}") for key, each in vector_arguments.items()}
    if n is None and all(steps.values()):
        n = min(
            (each.array.shape[0] - 1 - each.offset) // abs(steps[key]) + 1
            for key, each in vector_arguments.items()
        )
    if n is not None and whole(n, name, "n") < 0:
        raise ValueError(f"{name}: n={n} is negative")
    parts = parts_of(name, vector_arguments, n)
    order = parts["x"].n
    arrays = {key: each.array for key, each in vector_arguments.items()}
    call, source = _updated(name, dtype, arrays, parts, a, (order, order), overwrite, passed)
    factor = (real_number if "alpha" in ROUTINES[which].real else Call.scalar)(call, "alpha", alpha)
    return run_rank_1(call, which, factor, tuple(call.inputs[: len(vector_arguments)]), uplo, source, key)


def _updated(
    name: str,
    dtype: Dtype,
    vectors: dict[str, Array],
    parts: dict[str, Vector],
    a: Array,
    extents: tuple[int, int],
    overwrite: Flag,
    passed: tuple[Array, ...],
) -> tuple[Call, Any]:
    """The Call of an update, its output set, and what that holds at first: None for zeros. The vectors were
    `passed`.
    """
    overwrite = enabled(overwrite, name, "overwrite_a")
    matrix = None if a is None else as_matrix(name, "a", a, dtype)
    if matrix is not None and tuple(matrix.shape) != extents:
        raise ValueError(f"{name}: a has shape {tuple(matrix.shape)}; {extents} is needed")
    in_place = matrix is not None and overwrite and may_overwrite(matrix, dtype, vectors.values())
    arrays = vectors if matrix is None or in_place else {**vectors, "a": matrix}
    out = matrix if in_place else None
    of_vectors = {key: unless_whole(part, vectors[key]) for key, part in parts.items()}
    call = Call(name, arrays, out, None, None, dtype, vectors=of_vectors)
    call.set_output(out, (), *extents, column_major=True)
    call.views(passed if matrix is None or in_place else (*passed, a), a if in_place else None)
    return call, None if matrix is None else call.out if in_place else call.inputs[-1]


FUNCTIONS = functions_of(
    {"ger": _make_ger, "syr": _make_syr, "her": _make_syr, "syr2": _make_syr2, "her2": _make_syr2}
)
