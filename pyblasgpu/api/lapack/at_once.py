"""Solutions and inverses of device matrices in another array, as one call each, for `linalg`: no factors are
left. Where a matrix is singular, results are not finite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arguments import Array
from ...frontend.calls.factor_call import FactorCall
from ...frontend.calls.factor_replay import ONE, call_key
from ...frontend.calls.lazy_routines import routine_module
from ...frontend.engine_options import ambient_options
from ...types import Diag, Dtype, Trans, Uplo
from .call import SMALL, factor_call
from .lu import pivots_of

__all__ = ["definite_inverse", "inverse", "lu_inverse", "solution", "substitution"]


def solution(name: str, a: Array, b: Array, dtype: Dtype) -> tuple[Array, Any] | None:
    """Return the new x of ``a x = b``, and info as of `getrf`; None where the matrices are not small."""
    if a.shape[-1] > SMALL or ambient_options() is not None:
        return None
    call, source = factor_call(name, dtype, {"a": a}, "b", b, False)
    return _run(call, source, "gesv", "solution")


def inverse(name: str, a: Array, dtype: Dtype) -> tuple[Array, Any] | None:
    """Return the new inverse of `a`, and info; see `solution`."""
    if a.shape[-1] > SMALL or ambient_options() is not None:
        return None
    call, source = factor_call(name, dtype, {}, "a", a, False)
    return _run(call, source, "gesv", "inverse")


def substitution(
    name: str, a: Array, b: Array, dtype: Dtype, uplo: Uplo, trans: Trans
) -> tuple[Array, Any] | None:
    """Return the new x of ``op(a) x = b`` for triangles `a`, by rows if both are, and info as of `trtrs`;
    None where several devices may serve.
    """
    if ambient_options() is not None:
        return None
    call = FactorCall(name, {"a": a, "b": b}, None, None, None, dtype)
    call.set_output(None, tuple(b.shape[:-2]), *b.shape[-2:])
    flags = {"uplo": uplo if trans is Trans.NO else uplo.flipped, "diag": Diag.NON_UNIT}
    return _run(call, call.inputs[-1], "trtrs", "apart", trans, **flags)


def definite_inverse(name: str, factor: Array, dtype: Dtype, uplo: Uplo) -> Array | None:
    """Return the new inverse, both triangles, of the matrix with this Cholesky factor, which stays where that
    is singular; None where several devices may serve.
    """
    if ambient_options() is not None:
        return None
    call, source = factor_call(name, dtype, {}, "a", factor, False)
    _enqueue(call, source, "new_results", "definite_inverse", (), uplo=uplo)
    inverse: Array = call.delivered()
    return inverse


def lu_inverse(name: str, factors: Array, piv: Any, dtype: Dtype) -> Array | None:
    """Return the new inverse of the matrix with these LU factors, which is worth nothing where that is
    singular; None where several devices may serve.
    """
    if ambient_options() is not None:
        return None
    call, source = factor_call(name, dtype, {}, "lu", factors, False)

    def launches(_: tuple[Any, ...], operands: Any) -> Any:
        return routine_module("lapack.new_results").lu_inverse(*operands)

    integers = (pivots_of(call, piv, factors.shape[-1]),)
    call.run_on_arrays(launches, (), source, (), integers, call_key("lu_inverse"), reads_source=True)
    inverse: Array = call.delivered()
    return inverse


def _run(
    call: FactorCall, source: Any, module: str, routine: str, trans: Trans = Trans.NO, **flags: Any
) -> tuple[Array, Any]:
    """Enqueue a routine that leaves info and a new output; return the output and info."""
    (info,) = _enqueue(call, source, module, f"{routine}_launch_list", (ONE,), trans, **flags)
    return call.delivered(), info


def _enqueue(
    call: FactorCall,
    source: Any,
    module: str,
    listed: str,
    counts: tuple[int, ...],
    trans: Trans = Trans.NO,
    **flags: Any,
) -> list[Any]:
    """Enqueue a routine that reads `source`, and what goes before it, and writes a new output; return the
    integers that it leaves.
    """

    def launches(_: tuple[Any, ...], operands: Any) -> Any:
        prepare: Callable[..., Any] = getattr(routine_module(f"lapack.{module}"), listed)
        return prepare(*operands, **flags)

    read = tuple((layout, trans) for layout in call.inputs[:-1])
    key = call_key(listed, trans, *flags.values())
    return call.run_on_arrays(launches, read, source, counts, (), key, reads_source=True)
