"""Of `lapack`: inverses of triangles, solutions by them, and their products with their transposes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..arguments import Array, Flag
from ..frontend import cpu_cholesky
from ..frontend.factor_replay import call_key, replay_factor
from ..types import DTYPES, Diag, Dtype, Trans, Uplo
from . import lapack_docs
from .blas_arrays import shaped_like
from .blas_functions import name_of
from .blas_vectors import whole
from .lapack_call import as_stack, check_rows, dressed, factor_call, launches_by, order_of

__all__ = [
    "clauum", "ctrtri", "ctrtrs", "dlauum", "dtrtri", "dtrtrs", "lauum", "slauum", "strtri", "strtrs",
    "trtri", "trtrs", "zlauum", "ztrtri", "ztrtrs",
]  # fmt: skip


def _make_trtri(dtype: Dtype | None) -> Callable[..., Any]:
    name = name_of("trtri", dtype)

    def trtri(c: Array, lower: Flag = 0, unitdiag: Flag = 0, overwrite_c: Flag = 0) -> tuple[Array, Any]:
        uplo, diag = Uplo.parse(lower, name, "lower"), Diag.parse(unitdiag, name, "unitdiag")
        triangle = as_stack(name, "c", c, dtype)
        order_of(name, "c", triangle)
        key = call_key(name, uplo, diag)
        if (repeated := replay_factor(key, (triangle,), overwrite_c)) is not None:
            inv_c, info = repeated
            return inv_c, info
        call, source = factor_call(name, dtype, {}, "c", triangle, overwrite_c)
        cpu = partial(cpu_cholesky.trtri, uplo=uplo, diag=diag)
        inv_c, info = call.run_factor(cpu, launches_by("trtri", uplo=uplo, diag=diag), (), source, key=key)
        return inv_c, info

    return dressed(trtri, "trtri", dtype, lapack_docs.triangular)


def _make_lauum(dtype: Dtype | None) -> Callable[..., Any]:
    name = name_of("lauum", dtype)

    def lauum(c: Array, lower: Flag = 0, overwrite_c: Flag = 0) -> tuple[Array, int]:
        uplo = Uplo.parse(lower, name, "lower")
        triangle = as_stack(name, "c", c, dtype)
        order_of(name, "c", triangle)
        call, source = factor_call(name, dtype, {}, "c", triangle, overwrite_c)
        cpu = partial(cpu_cholesky.lauum, uplo=uplo)
        (a,) = call.run_factor(cpu, launches_by("lauum", uplo=uplo), (), source, counts=())
        return a, 0

    return dressed(lauum, "lauum", dtype, lapack_docs.triangular)


def _make_trtrs(dtype: Dtype | None) -> Callable[..., Any]:
    name = name_of("trtrs", dtype)

    def trtrs(
        a: Array,
        b: Array,
        lower: Flag = 0,
        trans: Flag = 0,
        unitdiag: Flag = 0,
        lda: int | None = None,
        overwrite_b: Flag = 0,
    ) -> tuple[Array, Any]:
        uplo, diag = Uplo.parse(lower, name, "lower"), Diag.parse(unitdiag, name, "unitdiag")
        op = Trans.parse(trans, name, "trans")
        triangle, right = as_stack(name, "a", a, dtype), as_stack(name, "b", b, dtype)
        if lda is not None and whole(lda, name, "lda") != triangle.shape[-2]:
            raise ValueError(f"{name}: lda={lda} is not the number of rows of a, {triangle.shape[-2]}")
        if triangle.shape[-2] > triangle.shape[-1]:
            triangle = triangle[..., : triangle.shape[-1], :]
        check_rows(name, "a", order_of(name, "a", triangle), right)
        key = call_key(name, uplo, op, diag)
        if (repeated := replay_factor(key, (triangle, right), overwrite_b)) is not None:
            x, info = repeated
            return shaped_like(x, b), info
        call, source = factor_call(name, dtype, {"a": triangle}, "b", right, overwrite_b)
        cpu = partial(cpu_cholesky.trtrs, uplo=uplo, trans=op, diag=diag)
        seen = uplo if op is Trans.NO else uplo.flipped
        launches, inputs = launches_by("trtrs", uplo=seen, diag=diag), ((call.inputs[0], op),)
        x, info = call.run_factor(cpu, launches, inputs, source, key=key, without_columns=True)
        return shaped_like(x, b), info

    return dressed(trtrs, "trtrs", dtype, lapack_docs.triangular)


trtri, lauum, trtrs = _make_trtri(None), _make_lauum(None), _make_trtrs(None)
strtri, dtrtri, ctrtri, ztrtri = map(_make_trtri, DTYPES.values())
slauum, dlauum, clauum, zlauum = map(_make_lauum, DTYPES.values())
strtrs, dtrtrs, ctrtrs, ztrtrs = map(_make_trtrs, DTYPES.values())
