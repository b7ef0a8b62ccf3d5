"""Of `lapack`: Cholesky factors, and inverses and solutions from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..arguments import Array, Flag, enabled
from ..frontend import cpu_cholesky
from ..frontend.factor_replay import call_key, replay_factor
from ..frontend.pivots import info_integers
from ..frontend.tiled_routines import TiledRoutine
from ..types import DTYPES, Dtype, Side, Trans, Uplo
from . import lapack_docs
from .blas_arrays import common_dtype_of, shaped_like
from .blas_functions import name_of
from .lapack_call import (
    as_stack,
    check_rows,
    check_system,
    dressed,
    factor_call,
    launches_by,
    launches_unless_failed,
    order_of,
    solved_where,
)

__all__ = [
    "cposv", "cpotrf", "cpotri", "cpotrs", "dposv", "dpotrf", "dpotri", "dpotrs", "posv", "potrf", "potri",
    "potrs", "sposv", "spotrf", "spotri", "spotrs", "zposv", "zpotrf", "zpotri", "zpotrs",
]  # fmt: skip


def _make_potrf(dtype: Dtype | None) -> Callable[..., Any]:
    name = name_of("potrf", dtype)

    def potrf(a: Array, lower: Flag = 0, clean: Flag = 1, overwrite_a: Flag = 0) -> tuple[Array, Any]:
        uplo, cleans = Uplo.parse(lower, name, "lower"), enabled(clean, name, "clean")
        matrix = as_stack(name, "a", a, dtype)
        order = order_of(name, "a", matrix)
        key = call_key(name, uplo, cleans)
        if (repeated := replay_factor(key, (matrix,), overwrite_a)) is not None:
            c, info = repeated
            return c, info
        call, source = factor_call(name, dtype, {}, "a", matrix, overwrite_a)
        cpu = partial(cpu_cholesky.potrf, uplo=uplo, clean=cleans)
        tiled = partial(TiledRoutine, "potrf", ("a",), (order,), {"uplo": uplo}, cleans)
        launches = launches_by("potrf", uplo=uplo, clean=cleans)
        c, info = call.run_factor(cpu, launches, (), source, tiled=tiled, key=key, routine="potrf")
        return c, info

    return dressed(potrf, "potrf", dtype, lapack_docs.cholesky)


def _make_potri(dtype: Dtype | None) -> Callable[..., Any]:
    name = name_of("potri", dtype)

    def potri(c: Array, lower: Flag = 0, overwrite_c: Flag = 0) -> tuple[Array, Any]:
        uplo = Uplo.parse(lower, name, "lower")
        matrix = as_stack(name, "c", c, dtype)
        order_of(name, "c", matrix)
        key = call_key(name, uplo)
        if (repeated := replay_factor(key, (matrix,), overwrite_c)) is not None:
            inv_a, info = repeated
            return inv_a, info
        call, source = factor_call(name, dtype, {}, "c", matrix, overwrite_c)
        inv_a, info = call.run_factor(
            partial(cpu_cholesky.potri, uplo=uplo), launches_by("potri", uplo=uplo), (), source, key=key
        )
        return inv_a, info

    return dressed(potri, "potri", dtype, lapack_docs.cholesky)


def _make_potrs(dtype: Dtype | None) -> Callable[..., Any]:
    name = name_of("potrs", dtype)

    def potrs(c: Array, b: Array, lower: Flag = 0, overwrite_b: Flag = 0) -> tuple[Array, int]:
        uplo = Uplo.parse(lower, name, "lower")
        factor, right = as_stack(name, "c", c, dtype), as_stack(name, "b", b, dtype)
        check_rows(name, "c", order_of(name, "c", factor), right)
        x = _solve(name, dtype, factor, right, uplo, overwrite_b)
        return shaped_like(x, b), 0

    return dressed(potrs, "potrs", dtype, lapack_docs.cholesky)


def _solve(
    name: str, dtype: Dtype | None, c: Array, b: Array, uplo: Uplo, overwrite_b: Flag, info: Any = None
) -> Array:
    """The solution; `c` and `b` are what `as_stack` has left. Where `info` is not 0, b stays."""
    key = call_key(name, uplo, info is None)
    if (repeated := replay_factor(key, (c, b), overwrite_b, () if info is None else (info,))) is not None:
        return repeated[0]
    call, source = factor_call(name, dtype, {"c": c}, "b", b, overwrite_b)
    cpu: Callable[..., None] = partial(cpu_cholesky.potrs, uplo=uplo)
    integers: tuple[Any, ...] = ()
    launches = launches_by("potrs", uplo=uplo)
    if info is not None:
        integers = (info_integers(info),)
        cpu, launches = solved_where(cpu), launches_unless_failed("potrs", uplo=uplo)
    inputs = ((call.inputs[0], Trans.NO),)
    extents, flags = (c.shape[-1], b.shape[-1]), {"uplo": uplo}

    def tiled() -> TiledRoutine | None:
        return None if info else TiledRoutine("potrs", ("a", "b"), extents, flags, side=Side.LEFT)

    (x,) = call.run_factor(
        cpu,
        launches,
        inputs,
        source,
        counts=(),
        input_integers=integers,
        tiled=tiled,
        key=key,
        routine="potrs",
    )
    return x


def _make_posv(dtype: Dtype | None) -> Callable[..., Any]:
    factor = _make_potrf(dtype)

    def posv(
        a: Array, b: Array, lower: Flag = 0, overwrite_a: Flag = 0, overwrite_b: Flag = 0
    ) -> tuple[Array, Array, Any]:
        name = name_of("posv", dtype)
        matrix, right = as_stack(name, "a", a, dtype), as_stack(name, "b", b, dtype)
        uplo = Uplo.parse(lower, name, "lower")
        overwrites = check_system(name, matrix, right, overwrite_a, overwrite_b)
        if dtype is None:
            common = common_dtype_of(name, (matrix, right))
            solved: tuple[Array, Array, Any] = _TYPED_POSV[common](a, b, lower, overwrites, overwrite_b)
            return solved
        c, info = factor(matrix, uplo, 0, overwrites)
        x = _solve(name, dtype, c, right, uplo, overwrite_b, info)
        return c, shaped_like(x, b), info

    return dressed(posv, "posv", dtype, lapack_docs.cholesky)


potrf, potri, potrs, posv = _make_potrf(None), _make_potri(None), _make_potrs(None), _make_posv(None)
spotrf, dpotrf, cpotrf, zpotrf = map(_make_potrf, DTYPES.values())
spotri, dpotri, cpotri, zpotri = map(_make_potri, DTYPES.values())
spotrs, dpotrs, cpotrs, zpotrs = map(_make_potrs, DTYPES.values())
sposv, dposv, cposv, zposv = map(_make_posv, DTYPES.values())
_TYPED_POSV = dict(zip(DTYPES.values(), (sposv, dposv, cposv, zposv), strict=True))
