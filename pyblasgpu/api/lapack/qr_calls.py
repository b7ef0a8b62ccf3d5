"""Calls of QR and LQ factors that are not kept: arguments checked, workspaces, the routine run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ...arguments import Array, Flag, item
from ...cpu.scipy import qr as cpu
from ...frontend.arrays.any_array import reshaped
from ...frontend.calls.factor_call import FactorCall
from ...frontend.calls.factor_replay import Factors
from ...types import Dtype, Side, Trans
from ..blas.arrays import checked_array, common_dtype_of, shaped_like
from ..blas.vectors import whole
from ..processor import small_on_processor
from .call import as_stack, factor_call, run_by_row

__all__ = [
    "check_op",
    "checked_workspace",
    "column_of",
    "decoded",
    "factors_of",
    "of_device",
    "orthogonal_of",
    "parsed_op",
    "pivoted_factors_of",
    "product_of",
]

#: Routines whose reflectors are in the rows of a matrix.
_BY_ROWS = ("gelqf", "orglq", "ormlq")


def factors_of(
    stem: str, name: str, dtype: Dtype | None, a: Array, lwork: int | None, overwrite_a: Flag, key: Any
) -> tuple[Array, Array, Array, int]:
    """The results of `geqrf`, or of `gelqf`, that are not kept."""
    matrix = as_stack(name, "a", a, dtype)
    m, n = _along(stem, matrix)
    with _placed(name, dtype, matrix):
        call, source = factor_call(name, dtype, {}, "a", matrix, overwrite_a)
        work = _workspace(call, lwork, n, cpu.workspace_of_geqrf, m, n)
        factors, tau = _run(call, stem, {}, source, (), lwork, (Factors(min(m, n)),), key)
        return shaped_like(factors, a), tau, work, 0


def pivoted_factors_of(
    stem: str, name: str, dtype: Dtype | None, a: Array, lwork: int | None, overwrite_a: Flag, key: Any
) -> tuple[Array, Any, Array, Array, int]:
    """The results of `geqp3` that are not kept."""
    matrix = as_stack(name, "a", a, dtype)
    m, n = matrix.shape[-2:]
    with _placed(name, dtype, matrix):
        call, source = factor_call(name, dtype, {}, "a", matrix, overwrite_a)
        work, counts = _workspace(call, lwork, n + 1, cpu.workspace_of_geqp3, m, n), (n, Factors(min(m, n)))
        if lwork != -1 and not min(m, n):  # whose columns stay
            order = np.broadcast_to(np.arange(1, n + 1, dtype=np.int32), (*call.out.shape[:-2], n))
            columns, tau = call.integers_of([order.copy(), _zeros(call, counts[1])], counts)
            return shaped_like(call.delivered(), a), columns, tau, work, 0
        factors, columns, tau = _run(call, stem, {}, source, (), lwork, counts, key)
        return shaped_like(factors, a), columns, tau, work, 0


def orthogonal_of(
    stem: str,
    name: str,
    dtype: Dtype | None,
    a: Array,
    tau: Array,
    lwork: int | None,
    overwrite_a: Flag,
    key: Any,
) -> tuple[Array, Array, int]:
    """The results of `orgqr`, or of `orglq`, that are not kept."""
    matrix, factors = as_stack(name, "a", a, dtype), column_of(name, tau, dtype)
    (m, n), k = _along(stem, matrix), factors.shape[-2]
    if not m >= n >= k:
        shapes = f"a has shape {tuple(matrix.shape)} and tau {tuple(factors.shape[:-1])}"
        longer, shorter = ("columns", "rows") if stem in _BY_ROWS else ("rows", "columns")
        raise ValueError(f"{name}: {shapes}; {longer} >= {shorter} >= reflectors are needed")
    with _placed(name, dtype, matrix):
        call, source = factor_call(name, dtype, {"tau": factors}, "a", matrix, overwrite_a)
        work = _workspace(call, lwork, n, cpu.workspace_of_orgqr, m, n, k)
        if matrix is a and not call.library.host:
            call.arrays = tau, a  # as a repeated call passes them
        (q,) = _run(call, stem, {}, source, tuple(call.inputs[:1]), lwork, key=key)
        return shaped_like(q, a), work, 0


def product_of(
    stem: str,
    name: str,
    dtype: Dtype | None,
    passed: Mapping[str, Flag],
    a: Array,
    tau: Array,
    c: Array,
    lwork: int | None,
    overwrite_c: Flag,
    key: Any,
) -> tuple[Array, Array, int]:
    """The results of `ormqr`, or of `ormlq`, that are not kept."""
    side, op = Side.parse(decoded(passed["side"]), name, "side"), parsed_op(name, passed["trans"])
    matrix, factors = as_stack(name, "a", a, dtype), column_of(name, tau, dtype)
    target = as_stack(name, "c", c, dtype)
    _check_product(stem, name, side, matrix, factors, target)
    with _placed(name, dtype, matrix, target):
        inputs = {"tau": factors, "a": matrix}
        call, source = factor_call(name, dtype, inputs, "c", target, overwrite_c)
        check_op(name, op, passed["trans"], call.dtype)
        (m, n), k = target.shape[-2:], factors.shape[-2]
        least = n if side is Side.LEFT else m
        work = _workspace(call, lwork, least, cpu.workspace_of_ormqr, side, m, n, k)
        if matrix is a and target is c and not call.library.host:
            call.arrays = tau, a, c
        flags = {"side": side, "trans": op}
        (product,) = _run(call, stem, flags, source, tuple(call.inputs[:2]), lwork, key=key)
        return shaped_like(product, c), work, 0


def _along(stem: str, matrix: Array) -> tuple[int, int]:
    """The rows and columns of a matrix; of one whose reflectors are in rows those of its transpose."""
    m, n = matrix.shape[-2:]
    return (n, m) if stem in _BY_ROWS else (m, n)


def column_of(name: str, tau: Array, dtype: Dtype | None) -> Array:
    """The factors of reflectors, of shape (..., k), as matrices of one column."""
    array = checked_array(name, "tau", tau, dtype)
    if not array.shape:
        raise ValueError(f"{name}: tau has no dimensions; a vector, or a stack, is needed")
    return reshaped(array, (*array.shape, 1))


def _workspace(
    call: FactorCall, lwork: int | None, least: int, best: Callable[..., int], *extents: Any
) -> np.ndarray[Any, Any]:
    """The array `work` that SciPy's function returns, which begins with the best `lwork`.

    Raises
    ------
    ValueError
        When `lwork` is neither -1, which is a query, nor at least `least`.
    """
    dtype, least = np.dtype(call.dtype.name), max(least, 1)
    given = checked_workspace(call.name, lwork, least)
    length = 1 if lwork == -1 else given or 3 * least
    if not call.library.host:
        return of_device(call.dtype, least)
    work = np.zeros(length, dtype)
    work[0] = best(dtype, *extents)
    return work


def checked_workspace(name: str, lwork: int | None, least: int) -> int | None:
    """Return `lwork` as an int; None where there is none, or where it is -1, a query.

    Raises
    ------
    ValueError
        When it is no integer, or less than `least` and 1.
    """
    length = None if lwork is None else whole(lwork, name, "lwork")
    if length is None or length == -1:
        return None
    if length < max(least, 1):
        raise ValueError(f"{name}: lwork={item(lwork)} is less than {max(least, 1)}")
    return length


def of_device(dtype: Dtype | None, least: int) -> np.ndarray[Any, Any]:
    """The array `work` of device arrays."""
    return np.full(1, max(least, 1), dtype.name if dtype else "float64")


def _placed(name: str, dtype: Dtype | None, *arrays: Array) -> AbstractContextManager[None]:
    """The context of a call, which SciPy's LAPACK computes if matrices in host memory are small."""
    return small_on_processor(dtype or common_dtype_of(name, arrays), *arrays)


def _run(
    call: FactorCall,
    stem: str,
    flags: Mapping[str, Any],
    source: Any,
    inputs: tuple[Any, ...],
    lwork: int | None,
    counts: tuple[int, ...] = (),
    key: Any = None,
) -> tuple[Any, ...]:
    """Run a routine; a query of the workspace computes nothing, and returns the argument."""
    if lwork == -1:
        return call.arrays[-1], *call.integers_of([_zeros(call, count) for count in counts], counts)
    return run_by_row(call, stem, flags, source, inputs, counts=counts, key=key)


def _zeros(call: FactorCall, count: int) -> np.ndarray[Any, Any]:
    """Zeros, `count` of each matrix: integers, or `Factors`."""
    return np.zeros((*call.out.shape[:-2], count), call.dtype.name if isinstance(count, Factors) else "int32")


def _check_product(stem: str, name: str, side: Side, a: Array, tau: Array, c: Array) -> None:
    """Raise ValueError unless the reflectors fit together, and to `c`."""
    order, k = _along(stem, a)
    extent = c.shape[-2 if side is Side.LEFT else -1]
    if order != extent or k != tau.shape[-2] or k > order:
        long, short = ("columns", "rows") if stem in _BY_ROWS else ("rows", "columns")
        raise ValueError(
            f"{name}: a has shape {tuple(a.shape)}, tau {tuple(tau.shape[:-1])} and c {tuple(c.shape)}; from "
            f"the {side.name.lower()} a has {extent} {long}, as many {short} as tau has factors, and no more "
            f"{short} than {long}"
        )


def parsed_op(name: str, trans: Flag) -> Trans:
    """The op of a factor, whose letter may be bytes."""
    return Trans.parse(decoded(trans), name, "trans")


def check_op(name: str, op: Trans, passed: Flag, dtype: Dtype) -> None:
    """Raise ValueError for the transpose of complex matrices."""
    if op is Trans.TRANS and dtype.is_complex:
        raise ValueError(f"{name}: trans={passed!r} is for real matrices; 'C' is the conjugate transpose")


def decoded(flag: Any) -> Any:
    """The letter of a flag, which SciPy takes as bytes too."""
    return flag.decode("ascii", "replace") if isinstance(flag, bytes) else flag
