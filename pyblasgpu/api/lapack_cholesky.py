"""Of `lapack`: Cholesky factors, and inverses and solutions from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..arguments import Array, Flag, enabled
from ..frontend import cpu_cholesky
from ..frontend.factor_replay import call_key, replay_factor
from ..frontend.lazy_routines import launch_list_of, routine_module
from ..frontend.pivots import given_info
from ..frontend.tiled_routines import TiledRoutine
from ..types import DTYPES, Dtype, Side, Trans, Uplo
from . import lapack_docs
from .blas_arrays import common_dtype_of, shaped_like
from .lapack_call import (
    as_stack,
    check_rows,
    check_system,
    dressed,
    factor_call,
    order_of,
    routine_name,
    solved_where,
    types_text,
)

__all__ = [
    "cposv",
    "cpotrf",
    "cpotri",
    "cpotrs",
    "dposv",
    "dpotrf",
    "dpotri",
    "dpotrs",
    "posv",
    "potrf",
    "potri",
    "potrs",
    "sposv",
    "spotrf",
    "spotri",
    "spotrs",
    "zposv",
    "zpotrf",
    "zpotri",
    "zpotrs",
]


def _make_potrf(dtype: Dtype | None) -> Callable[..., Any]:
    name = routine_name("potrf", dtype)

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
        launches = partial(_potrf_launches, uplo, cleans)
        c, info = call.run_factor(cpu, launches, (), source, tiled=tiled, key=key)
        return c, info

    return _dress(potrf, "potrf", dtype)


def _potrf_launches(uplo: Uplo, clean: bool, scalars: tuple[Any, ...], operands: Any) -> Any:
    info, a = operands
    return launch_list_of("potrf")(info, a, uplo=uplo, clean=clean)


def _make_potri(dtype: Dtype | None) -> Callable[..., Any]:
    name = routine_name("potri", dtype)

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
            partial(cpu_cholesky.potri, uplo=uplo), partial(_potri_launches, uplo), (), source, key=key
        )
        return inv_a, info

    return _dress(potri, "potri", dtype)


def _potri_launches(uplo: Uplo, scalars: tuple[Any, ...], operands: Any) -> Any:
    info, a = operands
    return launch_list_of("potri")(info, a, uplo=uplo)


def _make_potrs(dtype: Dtype | None) -> Callable[..., Any]:
    name = routine_name("potrs", dtype)

    def potrs(c: Array, b: Array, lower: Flag = 0, overwrite_b: Flag = 0) -> tuple[Array, int]:
        uplo = Uplo.parse(lower, name, "lower")
        factor, right = as_stack(name, "c", c, dtype), as_stack(name, "b", b, dtype)
        check_rows(name, "c", order_of(name, "c", factor), "b", right)
        x = _solve(name, dtype, factor, right, uplo, overwrite_b)
        return shaped_like(x, b) if len(x.shape) == 2 else x, 0

    return _dress(potrs, "potrs", dtype)


def _solve(
    name: str, dtype: Dtype | None, c: Array, b: Array, uplo: Uplo, overwrite_b: Flag, info: Any = None
) -> Array:
    """The solution; `c` and `b` are what `as_stack` has left. Where `info` is not 0, b stays."""
    key = call_key(name, uplo, info is None)
    if (repeated := replay_factor(key, (c, b), overwrite_b, () if info is None else (info,))) is not None:
        return repeated[0]
    call, source = factor_call(name, dtype, {"c": c}, "b", b, overwrite_b)
    cpu: Callable[..., None] = partial(cpu_cholesky.potrs, uplo=uplo)
    given: tuple[Any, ...] = ()
    launches = partial(_potrs_launches, uplo)
    if info is not None:
        given = (given_info(call, info),)
        cpu, launches = solved_where(cpu), partial(_guarded_launches, uplo)
    inputs = ((call.inputs[0], Trans.NO),)
    extents, flags = (c.shape[-1], b.shape[-1]), {"uplo": uplo}

    def tiled() -> TiledRoutine | None:
        return None if info else TiledRoutine("potrs", ("a", "b"), extents, flags, side=Side.LEFT)

    (x,) = call.run_factor(cpu, launches, inputs, source, counts=(), given=given, tiled=tiled, key=key)
    return x


def _guarded_launches(uplo: Uplo, scalars: tuple[Any, ...], operands: Any) -> Any:
    return routine_module("unless").potrs_launch_list(*operands, uplo=uplo)


def _potrs_launches(uplo: Uplo, scalars: tuple[Any, ...], operands: Any) -> Any:
    return launch_list_of("potrs")(*operands, uplo=uplo)


def _make_posv(dtype: Dtype | None) -> Callable[..., Any]:
    factor = _make_potrf(dtype)

    def posv(
        a: Array, b: Array, lower: Flag = 0, overwrite_a: Flag = 0, overwrite_b: Flag = 0
    ) -> tuple[Array, Array, Any]:
        name = routine_name("posv", dtype)
        matrix, right = as_stack(name, "a", a, dtype), as_stack(name, "b", b, dtype)
        check_system(name, matrix, right, overwrite_b)
        uplo, overwrites = Uplo.parse(lower, name, "lower"), enabled(overwrite_a, name, "overwrite_a")
        if dtype is None:
            common = common_dtype_of(name, (matrix, right))
            solved: tuple[Array, Array, Any] = _TYPED_POSV[common](a, b, lower, overwrite_a, overwrite_b)
            return solved
        c, info = factor(matrix, uplo, 0, overwrites)
        x = _solve(name, dtype, c, right, uplo, overwrite_b, info)
        return c, shaped_like(x, b) if len(x.shape) == 2 else x, info

    return _dress(posv, "posv", dtype)


def _dress(function: Any, stem: str, dtype: Dtype | None) -> Callable[..., Any]:
    name = routine_name(stem, dtype)
    result: Callable[..., Any] = dressed(
        function, name, dtype, lapack_docs.cholesky(stem, name, types_text(dtype))
    )
    return result


potrf, potri, potrs, posv = _make_potrf(None), _make_potri(None), _make_potrs(None), _make_posv(None)
spotrf, dpotrf, cpotrf, zpotrf = map(_make_potrf, DTYPES.values())
spotri, dpotri, cpotri, zpotri = map(_make_potri, DTYPES.values())
spotrs, dpotrs, cpotrs, zpotrs = map(_make_potrs, DTYPES.values())
sposv, dposv, cposv, zposv = map(_make_posv, DTYPES.values())
_TYPED_POSV = dict(zip(DTYPES.values(), (sposv, dposv, cposv, zposv), strict=True))
