"""Solutions and inverses of small device matrices in one launch, for `linalg`: no factors are left."""

from __future__ import annotations

from typing import Any

from ...arguments import Array
from ...frontend.calls.factor_replay import ONE, call_key
from ...frontend.calls.lazy_routines import routine_module
from ...frontend.engine_options import ambient_options
from ...types import Dtype, Trans
from .call import SMALL, factor_call

__all__ = ["inverse", "solution"]


def solution(name: str, a: Array, b: Array, dtype: Dtype) -> tuple[Array, Any] | None:
    """Return the new x of ``a x = b``, and info as of `getrf`; None where the matrices are not small."""
    return _at_once(name, "solution", {"a": a}, "b", b, dtype)


def inverse(name: str, a: Array, dtype: Dtype) -> tuple[Array, Any] | None:
    """Return the new inverse of `a`, and info; see `solution`."""
    return _at_once(name, "inverse", {}, "a", a, dtype)


def _at_once(
    name: str, routine: str, inputs: dict[str, Array], argument: str, array: Array, dtype: Dtype
) -> tuple[Array, Any] | None:
    if array.shape[-2] > SMALL or ambient_options() is not None:
        return None
    call, source = factor_call(name, dtype, inputs, argument, array, False)

    def launches(_: tuple[Any, ...], operands: Any) -> Any:
        return getattr(routine_module("lapack.gesv"), f"{routine}_launch_list")(*operands)

    read = tuple((layout, Trans.NO) for layout in call.inputs[:-1])
    (info,) = call.run_on_arrays(launches, read, source, (ONE,), (), call_key(routine), reads_source=True)
    return call.delivered(), info
