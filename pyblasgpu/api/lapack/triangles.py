"""R of factors on a device as a matrix of its own, and solutions with it, for `linalg`."""

from __future__ import annotations

from typing import Any

from ...arguments import Array
from ...frontend.calls.factor_replay import call_key
from ...frontend.calls.lazy_routines import routine_module
from ...routine_table import ROUTINES
from ...types import Diag, Dtype, Side, Trans, Uplo
from .call import factor_call

__all__ = ["upper_solution", "upper_triangle"]


def upper_triangle(name: str, factors: Array, dtype: Dtype) -> Array:
    """Return a new matrix with the upper triangle of `factors`, or a stack, and zeros below it."""
    call, source = factor_call(name, dtype, {}, "a", factors, False)

    def launches(_: tuple[Any, ...], operands: Any) -> Any:
        return routine_module("copies").upper_launch_list(*operands)

    call.run_on_arrays(launches, (), source, (), (), call_key("upper_triangle"), reads_source=True)
    return call.delivered()


def upper_solution(name: str, triangle: Array, b: Array, dtype: Dtype) -> Array:
    """Return the new x of ``triu(triangle) x = b``, of matrices or stacks."""
    call, source = factor_call(name, dtype, {"a": triangle}, "b", b, False)
    flags = {"side": Side.LEFT, "uplo": Uplo.UPPER, "diag": Diag.NON_UNIT}

    def launches(_: tuple[Any, ...], operands: Any) -> Any:
        return ROUTINES["trsm"].launch_list(1, *operands, **flags)

    call.run_on_arrays(launches, ((call.inputs[0], Trans.NO),), source, (), (), call_key("upper_solution"))
    return call.delivered()
