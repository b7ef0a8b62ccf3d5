"""Least squares of `lapack` by QR or LQ factors, of matrices of full rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...arguments import Array, Flag, enabled
from ...cpu.scipy.cholesky import lapack
from ...frontend.arrays.any_array import library_of
from ...frontend.calls.attempts import UNBLOCKED, by_scipy_without_row
from ...frontend.calls.factor_replay import ONE, call_key, replay_factor
from ...frontend.calls.lazy_routines import routine_module
from ...types import DTYPES, Dtype, Trans
from ..blas.arrays import common_dtype_of, shaped_like
from . import lq, qr
from .call import AfterOverwriting, as_stack, check_beside, dressed, factor_call, without_rows
from .docs import QR
from .host_stacks import HostStacks
from .qr_calls import check_op, checked_workspace, column_of, parsed_op

__all__ = ["FUNCTIONS"]


def _make_gels(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def gels(
        a: Array,
        b: Array,
        trans: Flag = "N",
        lwork: int | None = None,
        overwrite_a: Flag = 0,
        overwrite_b: Flag = 0,
    ) -> tuple[Array, Array, Any]:
        """Least squares by QR or LQ factors of a matrix of full rank.

        The solution of ``op(a) x = b`` has the least residual where there are more equations than unknowns,
        and the least norm where there are fewer.

        Parameters
        ----------
        a : array, shape (m, n) or (..., m, n)
            The matrix, or a stack.
        b : array, shape (max(m, n),), (max(m, n), k) or (..., max(m, n), k)
            The right-hand sides, in the first rows: as many as op(a) has. Leading dimensions broadcast.
        trans : {'N', 'T', 'C'}, default 'N'
            The op: the matrix itself, its conjugate transpose; 'T' for real matrices alone.

        Returns
        -------
        lqr : array, shape (m, n) or (..., m, n)
            The factors: those of `geqrf` if m >= n, else of `gelqf`.
        x : array, shape of `b`
            The solution in the first rows, as many as op(a) has columns. The rows below hold what the sums of
            squared residuals are made of.
        info : int, or array of int32
            0, or the number, from 1, of the first diagonal element of the triangular factor that is zero. No
            solution is computed then. SciPy's LAPACK solves with a host matrix of zeros, whose `info` is 0.

        See Also
        --------
        pyblasgpu.linalg.lstsq : SciPy's signature, for matrices of any rank.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> lqr, x, info = lapack.gels([[1], [1]], [1, 3])
        >>> x.real.round(3)[0].tolist(), info
        (2.0, 0)
        """
        op, arrays = parsed_op(name, trans), {"a": a, "b": b}
        _check_right_hand_sides(name, a, b, lwork)
        if lwork == -1:
            return a, b, 0
        if all(library_of(array, name, argument).host for argument, array in arrays.items()):
            enabled(overwrite_a, name, "overwrite_a"), enabled(overwrite_b, name, "overwrite_b")
            lqr, x, info = _on_host(HostStacks(name, arrays, dtype), op, trans, lwork)
        else:
            lqr, x, info = _on_device(name, dtype, a, b, op, trans, overwrite_a, overwrite_b)
        return shaped_like(lqr, a), shaped_like(x, b), info

    names = {letter: letter + stem for letter in (dtype.letter if dtype else DTYPES)}
    return by_scipy_without_row(dressed(gels, stem, name, dtype, QR), names, ("a", "b"), _has_few_rows)


def _has_few_rows(arrays: list[np.ndarray]) -> bool:
    """Whether the right-hand sides have the rows that are needed, and no longer workspace is faster."""
    (m, n), (rows, columns) = arrays[0].shape, arrays[1].shape
    return bool(max(m, n, columns) < UNBLOCKED and rows == max(m, n))


def _check_right_hand_sides(name: str, a: Array, b: Array, lwork: int | None) -> None:
    """Raise ValueError unless `b` has the rows, and the workspace the elements, that are needed."""
    matrix, right = as_stack(name, "a", a, None), as_stack(name, "b", b, None)
    (m, n), (rows, columns) = matrix.shape[-2:], right.shape[-2:]
    if rows != max(m, n):
        shapes = f"a has shape {np.shape(a)} and b {np.shape(b)}"
        raise ValueError(f"{name}: {shapes}; b needs {max(m, n)} rows")
    checked_workspace(name, lwork, min(m, n) + max(min(m, n), columns))


def _on_host(stacks: HostStacks, op: Trans, passed: Flag, lwork: int | None) -> list[Any]:
    """Factors, solution and info by SciPy's LAPACK."""
    letter = stacks.op(op, passed)

    def run(matrix: np.ndarray, right: np.ndarray) -> tuple[Any, ...]:
        if not matrix.size or not right.size:
            return matrix, np.zeros_like(right), 0
        query, _ = lapack("gels_lwork", matrix.dtype)(*matrix.shape, right.shape[1], trans=letter)
        return tuple(lapack("gels", matrix.dtype)(matrix, right, trans=letter, lwork=int(query.real)))

    return stacks.computed(run)


def _on_device(
    name: str,
    dtype: Dtype | None,
    a: Array,
    b: Array,
    op: Trans,
    passed: Flag,
    overwrite_a: Flag,
    overwrite_b: Flag,
) -> tuple[Array, Array, Any]:
    """Factors, solution and info of device arrays."""
    matrix, right = as_stack(name, "a", a, dtype), as_stack(name, "b", b, dtype)
    overwrites = check_beside(name, matrix, right, overwrite_a, overwrite_b)
    kind = dtype or common_dtype_of(name, (matrix, right))
    check_op(name, op, passed, kind)
    m, n = matrix.shape[-2:]
    factor = qr.FUNCTIONS[f"{kind.letter}geqrf"] if m >= n else lq.FUNCTIONS[f"{kind.letter}gelqf"]
    lqr, tau, _, _ = factor(matrix, overwrite_a=overwrites)
    with AfterOverwriting(lqr is matrix):
        return lqr, *_solution(name, kind, lqr, tau, right, op, overwrite_b)


def _solution(
    name: str, dtype: Dtype, lqr: Array, tau: Array, b: Array, op: Trans, overwrite_b: Flag
) -> tuple[Array, Any]:
    """Solution and info of device arrays from the factors of a matrix."""
    key = call_key(name, op)
    if (repeated := replay_factor(key, (tau, lqr, b), overwrite_b)) is not None:
        x, info = repeated
        return x, info
    inputs = {"tau": column_of(name, tau, dtype), "a": lqr}
    call, source = factor_call(name, dtype, inputs, "b", b, overwrite_b)
    if 0 in call.out.shape:
        (info,) = call.integers_of([np.zeros(call.out.shape[:-2], np.int32)], (ONE,))
        return call.delivered(), info
    call.arrays = tau, lqr, b  # as a repeated call passes them

    def launches(_: tuple[Any, ...], operands: Any) -> Any:
        return routine_module("lapack.gels").solution_launch_list(*operands, trans=op)

    read = tuple((layout, Trans.NO) for layout in call.inputs[:-1])
    (info,) = call.run_on_arrays(launches, read, source, (ONE,), (), key)
    return call.delivered(), info


FUNCTIONS = without_rows({"gels": _make_gels})
