"""Determinants of device matrices from their LU factors, for `linalg`: LAPACK has no routine for them."""

from __future__ import annotations

from typing import Any

from ...arguments import Array
from ...frontend.calls.factor_replay import ONE, Factors, call_key, replay_factor
from ...frontend.calls.lazy_routines import routine_module
from ...types import DTYPES, Dtype
from .call import factor_call
from .lu import pivots_of

__all__ = ["determinants", "signs_and_logarithms"]


def signs_and_logarithms(name: str, lu: Array, piv: Any, dtype: Dtype) -> tuple[Array, Array]:
    """Return the sign of each determinant, and the logarithm of its modulus, of what `getrf` has left."""
    real = DTYPES["s" if dtype.real_size == 4 else "d"]
    sign, logarithm = _from_factors(name, lu, piv, dtype, "signs", (Factors(ONE), Factors(ONE, real)))
    return sign, logarithm


def determinants(name: str, lu: Array, piv: Any, dtype: Dtype) -> Array:
    """Return the determinants in double precision, of what `getrf` has left."""
    double = DTYPES["z" if dtype.is_complex else "d"]
    (result,) = _from_factors(name, lu, piv, dtype, "determinants", (Factors(ONE, double),))
    return result


def _from_factors(
    name: str, lu: Array, piv: Any, dtype: Dtype, routine: str, counts: tuple[Factors, ...]
) -> list[Array]:
    key = call_key(routine)
    if (repeated := replay_factor(key, (lu,), True, (piv,))) is not None:
        return list(repeated[1:])
    call, source = factor_call(name, dtype, {}, "lu", lu, True)  # nothing is written, and so nothing copied
    integers = (pivots_of(call, piv, lu.shape[-1]),)

    def launches(_: tuple[Any, ...], operands: Any) -> Any:
        return getattr(routine_module("lapack.determinants"), f"{routine}_launch_list")(*operands)

    return call.run_on_arrays(launches, (), source, counts, integers, key)
