"""Of `lapack`: Cholesky factors, and what is done with them and with triangles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..arguments import Array, Flag, enabled
from ..frontend import cpu_cholesky
from ..frontend.lazy_routines import launch_list_of
from ..types import DTYPES, Dtype, Uplo
from . import lapack_docs
from .lapack_call import as_stack, dressed, factor_call, order_of, routine_name, types_text

__all__ = ["cpotrf", "dpotrf", "potrf", "spotrf", "zpotrf"]


def _make_potrf(dtype: Dtype | None) -> Callable[..., Any]:
    name = routine_name("potrf", dtype)

    def potrf(a: Array, lower: Flag = 0, clean: Flag = 1, overwrite_a: Flag = 0) -> tuple[Array, Any]:
        uplo, cleans = Uplo.parse(lower, name, "lower"), enabled(clean, name, "clean")
        matrix = as_stack(name, "a", a, dtype)
        order_of(name, "a", matrix)
        call, source = factor_call(name, dtype, {}, "a", matrix, overwrite_a)
        cpu = partial(cpu_cholesky.potrf, uplo=uplo, clean=cleans)
        c, info = call.run_factor(cpu, partial(_potrf_launches, uplo, cleans), (), source)
        return c, info

    return _dress(potrf, "potrf", dtype)


def _potrf_launches(uplo: Uplo, clean: bool, scalars: tuple[Any, ...], operands: Any) -> Any:
    info, a = operands
    return launch_list_of("potrf")(info, a, uplo=uplo, clean=clean)


def _dress(function: Any, stem: str, dtype: Dtype | None) -> Callable[..., Any]:
    name = routine_name(stem, dtype)
    result: Callable[..., Any] = dressed(
        function, name, dtype, lapack_docs.cholesky(stem, name, types_text(dtype))
    )
    return result


potrf = _make_potrf(None)
spotrf, dpotrf, cpotrf, zpotrf = map(_make_potrf, DTYPES.values())
