"""Several routines of LAPACK on host arrays in one visit to the device: factor and solve, factor and invert.

Each would copy its arrays there and back. Here the matrix goes once, and its factors stay there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..frontend import cpu_cholesky, cpu_lu
from ..frontend.factor_call import ONE, FactorCall
from ..frontend.lazy_routines import launch_list_of
from ..types import Dtype, Trans, Uplo

__all__ = ["invert_definite", "invert_general", "solve_definite", "solve_general"]


def solve_general(a: np.ndarray, b: np.ndarray, dtype: Dtype, trans: Trans, out: Any) -> tuple[Any, Any]:
    """x of op(a) x = b by LU factors, and info; `out` may be `b`."""

    def cpu(piv: np.ndarray, info: np.ndarray, matrix: np.ndarray, right: np.ndarray) -> None:
        factors = _copied(matrix, right)
        cpu_lu.getrf(piv, info, factors)
        cpu_lu.getrs(piv, factors, right, trans)

    def prepare(_: Any, operands: Any) -> _InOrder:
        piv, info, matrix, right = operands
        first = launch_list_of("getrf")(piv, info, matrix)
        return _InOrder(
            (first, (0, 1, 2)), (launch_list_of("getrs")(piv, matrix, right, trans=trans), (0, 2, 3))
        )

    x, _, info = _solved(a, b, dtype, out, cpu, prepare, (a.shape[-1], ONE))
    return x, info


def solve_definite(a: np.ndarray, b: np.ndarray, dtype: Dtype, uplo: Uplo, out: Any) -> tuple[Any, Any]:
    """x of a x = b by Cholesky factors, and info; `out` may be `b`."""

    def cpu(info: np.ndarray, matrix: np.ndarray, right: np.ndarray) -> None:
        factor = _copied(matrix, right)
        cpu_cholesky.potrf(info, factor, uplo, False)
        cpu_cholesky.potrs(factor, right, uplo)

    def prepare(_: Any, operands: Any) -> _InOrder:
        info, matrix, right = operands
        first = launch_list_of("potrf")(info, matrix, uplo=uplo, clean=False)
        return _InOrder((first, (0, 1)), (launch_list_of("potrs")(matrix, right, uplo=uplo), (1, 2)))

    x, info = _solved(a, b, dtype, out, cpu, prepare, (ONE,))
    return x, info


def invert_general(a: np.ndarray, dtype: Dtype, out: Any) -> tuple[Any, Any]:
    """The inverse by LU factors, and info; `out` may be `a`."""

    def cpu(piv: np.ndarray, info: np.ndarray, matrix: np.ndarray) -> None:
        cpu_lu.getrf(piv, info, matrix)
        cpu_lu.getri(np.zeros_like(info), piv, matrix)

    def prepare(_: Any, operands: Any) -> _InOrder:
        piv, info, again, matrix = operands
        first = launch_list_of("getrf")(piv, info, matrix)
        return _InOrder((first, (0, 1, 3)), (launch_list_of("getri")(again, piv, matrix), (2, 0, 3)))

    inverse, _, info, _ = _inverted(
        a, dtype, out, lambda piv, info, _, matrix: cpu(piv, info, matrix), prepare, (a.shape[-1], ONE, ONE)
    )
    return inverse, info


def invert_definite(a: np.ndarray, dtype: Dtype, uplo: Uplo, out: Any) -> tuple[Any, Any]:
    """A triangle of the inverse by Cholesky factors, and info; `out` may be `a`."""

    def cpu(info: np.ndarray, again: np.ndarray, matrix: np.ndarray) -> None:
        cpu_cholesky.potrf(info, matrix, uplo, False)
        cpu_cholesky.potri(again, matrix, uplo)

    def prepare(_: Any, operands: Any) -> _InOrder:
        info, again, matrix = operands
        first = launch_list_of("potrf")(info, matrix, uplo=uplo, clean=False)
        return _InOrder((first, (0, 2)), (launch_list_of("potri")(again, matrix, uplo=uplo), (1, 2)))

    inverse, info, _ = _inverted(a, dtype, out, cpu, prepare, (ONE, ONE))
    return inverse, info


class _InOrder:
    """Launch lists that run one after another, each on some of the operands."""

    def __init__(self, *steps: tuple[Any, tuple[int, ...]]) -> None:
        self._steps = steps

    def run(self, pointers: list[int], *scalars: Any, stream: int) -> None:
        """Enqueue all of them."""
        for launches, chosen in self._steps:
            if launches is not None:
                launches.run([pointers[index] for index in chosen], *scalars, stream=stream)


def _solved(
    a: np.ndarray,
    b: np.ndarray,
    dtype: Dtype,
    out: Any,
    cpu: Callable[..., Any],
    prepare: Callable[..., Any],
    counts: tuple[int, ...],
) -> tuple[Any, ...]:
    if 0 in a.strides and a.ndim > 2:
        a = a.copy()  # its copy on the device is factored in place, each matrix by itself
    call = FactorCall("solve", {"a": a, "b": b}, None, None, None, dtype)
    rows, cols = b.shape[-2:]
    call.set_output(out, b.shape[:-2], rows, cols, column_major=True)
    source = call.out if out is not None else call.inputs[1]
    return call.run_factor(cpu, prepare, ((call.inputs[0], Trans.NO),), source, counts)


def _inverted(
    a: np.ndarray,
    dtype: Dtype,
    out: Any,
    cpu: Callable[..., Any],
    prepare: Callable[..., Any],
    counts: tuple[int, ...],
) -> tuple[Any, ...]:
    call = FactorCall("inv", {"a": a}, None, None, None, dtype)
    rows, cols = a.shape[-2:]
    call.set_output(out, a.shape[:-2], rows, cols, column_major=True)
    source = call.out if out is not None else call.inputs[0]
    return call.run_factor(cpu, prepare, (), source, counts)


def _copied(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The matrices of `matrix`, one for each of `right`, to be overwritten."""
    return np.array(np.broadcast_to(matrix, right.shape[:-2] + matrix.shape[-2:]))
