"""Of `lapack`: LU factors with partial pivoting, and what is done with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arguments import Array, Flag
from ..frontend import cpu_lu
from ..frontend.factor_call import ONE
from ..frontend.lazy_routines import launch_list_of
from ..types import DTYPES, Dtype
from .lapack_call import as_stack, dressed, factor_call, routine_name, types_text
from .lapack_lu_docs import lu

__all__ = ["cgetrf", "dgetrf", "getrf", "sgetrf", "zgetrf"]


def _make_getrf(dtype: Dtype | None) -> Callable[..., Any]:
    name = routine_name("getrf", dtype)

    def getrf(a: Array, overwrite_a: Flag = 0) -> tuple[Array, Any, Any]:
        matrix = as_stack(name, "a", a, dtype)
        call, source = factor_call(name, dtype, {}, "a", matrix, overwrite_a)
        counts = min(matrix.shape[-2:]), ONE
        factors, piv, info = call.run_factor(cpu_lu.getrf, _getrf_launches, (), source, counts)
        return factors, piv, info

    return _dress(getrf, "getrf", dtype)


def _getrf_launches(scalars: tuple[Any, ...], operands: Any) -> Any:
    return launch_list_of("getrf")(*operands)


def _dress(function: Any, stem: str, dtype: Dtype | None) -> Callable[..., Any]:
    name = routine_name(stem, dtype)
    result: Callable[..., Any] = dressed(function, name, dtype, lu(stem, name, types_text(dtype)))
    return result


getrf = _make_getrf(None)
sgetrf, dgetrf, cgetrf, zgetrf = map(_make_getrf, DTYPES.values())
