"""Several routines of LAPACK on host arrays in one visit to the device: factor and solve, factor and invert.

Each would copy its arrays there and back. Here the matrix goes once, and its factors stay there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...cpu.scipy import cholesky as cpu_cholesky
from ...cpu.scipy import lu as cpu_lu
from ...cpu.scipy import qr as cpu_qr
from ...cpu.scipy.level3 import broadcast_matrices
from ...cpu.scipy.values import has_finite_diagonal
from ...frontend.calls.direct import order_on_processor, scipys
from ...frontend.calls.factor_call import FactorCall, plain_integers
from ...frontend.calls.factor_replay import ONE
from ...frontend.calls.lazy_routines import launch_list_of
from ...operands import Operand
from ...types import DTYPES, Dtype, Side, Trans, Uplo
from ..lapack.call import AfterOverwriting
from .condition import estimate_inverse_norms

__all__ = [
    "InverseNorms",
    "copied",
    "invert_definite",
    "invert_general",
    "orthogonal_from",
    "product_from",
    "reflectors_of",
    "solve_definite",
    "solve_general",
]

_DTYPES = {letter: np.dtype(dtype.name) for letter, dtype in DTYPES.items()}


def solve_general(
    a: np.ndarray,
    b: np.ndarray,
    dtype: Dtype,
    trans: Trans,
    out: Any,
    inverse_norms: InverseNorms,
    in_place: bool = False,
) -> tuple[Any, Any]:
    """x of op(a) x = b by LU factors, and info; `out` may be `b`.

    With `in_place` the factors may take the place of `a`. They do on the processor; a device has its copy.
    """
    if out is None and not in_place and _is_small((a, b), dtype):
        factors, pivots, info = scipys("lapack", dtype.letter + "getrf")(a)
        inverse_norms.estimate(factors, "gecon")
        code = "NTC".index(trans.value)
        x, _ = scipys("lapack", dtype.letter + "getrs")(factors, pivots, b, trans=code)
        return np.ascontiguousarray(x), info

    def cpu(piv: np.ndarray, info: np.ndarray, matrix: np.ndarray, right: np.ndarray) -> None:
        factors = matrix if in_place else copied(matrix, right)
        with AfterOverwriting(in_place):
            cpu_lu.getrf(piv, info, factors)
            inverse_norms.estimate(factors, "gecon")
            cpu_lu.getrs(piv, factors, right, trans)

    def prepare(_: Any, operands: Any) -> _InOrder:
        piv, info, matrix, right = operands
        first = launch_list_of("getrf")(piv, info, matrix)
        estimate = inverse_norms.on_device((piv, matrix), launch_list_of("getrs"))
        last = launch_list_of("getrs")(piv, matrix, right, trans=trans)
        return _InOrder((first, (0, 1, 2)), (estimate, (0, 2)), (last, (0, 2, 3)))

    x, _, info = _run("solve", (_own_matrices(a), b), dtype, out, cpu, prepare, (a.shape[-1], ONE))
    return x, info


def solve_definite(
    a: np.ndarray,
    b: np.ndarray,
    dtype: Dtype,
    uplo: Uplo,
    out: Any,
    inverse_norms: InverseNorms,
    in_place: bool = False,
) -> tuple[Any, Any]:
    """x of a x = b by Cholesky factors, and info; `out` and `in_place` as of `solve_general`."""
    if out is None and not in_place and _is_small((a, b), dtype):
        lower = uplo is Uplo.LOWER
        factor, info = scipys("lapack", dtype.letter + "potrf")(a, lower=lower, clean=0)
        if has_finite_diagonal(factor):  # else a pivot may be NaN
            inverse_norms.estimate(factor, "pocon", uplo=b"L" if lower else b"U")
            x, _ = scipys("lapack", dtype.letter + "potrs")(factor, b, lower=lower)
            return np.ascontiguousarray(x), info

    def cpu(info: np.ndarray, matrix: np.ndarray, right: np.ndarray) -> None:
        factor = matrix if in_place else copied(matrix, right)
        with AfterOverwriting(in_place):
            cpu_cholesky.potrf(info, factor, uplo, False)
            inverse_norms.estimate(factor, "pocon", uplo=b"L" if uplo is Uplo.LOWER else b"U")
            cpu_cholesky.potrs(factor, right, uplo)

    def prepare(_: Any, operands: Any) -> _InOrder:
        info, matrix, right = operands
        first, solver = launch_list_of("potrf")(info, matrix, uplo=uplo, clean=False), launch_list_of("potrs")

        def solve(matrix: Any, right: Any, trans: Trans) -> Any:
            return solver(matrix, right, uplo=uplo)

        estimate = inverse_norms.on_device((matrix,), solve)
        return _InOrder((first, (0, 1)), (estimate, (1,)), (solver(matrix, right, uplo=uplo), (1, 2)))

    x, info = _run("solve", (_own_matrices(a), b), dtype, out, cpu, prepare, (ONE,))
    return x, info


def invert_general(a: np.ndarray, dtype: Dtype, out: Any) -> tuple[Any, Any]:
    """The inverse by LU factors, and info; `out` may be `a`."""
    if out is None and _is_small((a,), dtype):
        factors, pivots, info = scipys("lapack", dtype.letter + "getrf")(a)
        if not info:
            inverse, info = scipys("lapack", dtype.letter + "getri")(factors, pivots)
            return np.ascontiguousarray(inverse), info

    def cpu(piv: np.ndarray, info: np.ndarray, inverse_info: np.ndarray, matrix: np.ndarray) -> None:
        with AfterOverwriting(out is not None):
            cpu_lu.getrf(piv, info, matrix)
            cpu_lu.getri(inverse_info, piv, matrix)

    def prepare(_: Any, operands: Any) -> _InOrder:
        piv, info, inverse_info, matrix = operands
        first = launch_list_of("getrf")(piv, info, matrix)
        return _InOrder((first, (0, 1, 3)), (launch_list_of("getri")(inverse_info, piv, matrix), (2, 0, 3)))

    inverse, _, info, _ = _run("inv", (a,), dtype, out, cpu, prepare, (a.shape[-1], ONE, ONE))
    return inverse, info


def invert_definite(a: np.ndarray, dtype: Dtype, uplo: Uplo, out: Any) -> tuple[Any, Any]:
    """A triangle of the inverse by Cholesky factors, and info; `out` may be `a`."""
    if out is None and _is_small((a,), dtype):
        lower = uplo is Uplo.LOWER
        factor, info = scipys("lapack", dtype.letter + "potrf")(a, lower=lower, clean=0)
        if not info and has_finite_diagonal(factor):  # else a pivot may be NaN
            inverse, info = scipys("lapack", dtype.letter + "potri")(factor, lower=lower, overwrite_c=1)
            return np.ascontiguousarray(inverse), info

    def cpu(info: np.ndarray, inverse_info: np.ndarray, matrix: np.ndarray) -> None:
        with AfterOverwriting(out is not None):
            cpu_cholesky.potrf(info, matrix, uplo, False)
            cpu_cholesky.potri(inverse_info, matrix, uplo)

    def prepare(_: Any, operands: Any) -> _InOrder:
        info, inverse_info, matrix = operands
        first = launch_list_of("potrf")(info, matrix, uplo=uplo, clean=False)
        return _InOrder((first, (0, 2)), (launch_list_of("potri")(inverse_info, matrix, uplo=uplo), (1, 2)))

    inverse, info, _ = _run("inv", (a,), dtype, out, cpu, prepare, (ONE, ONE))
    return inverse, info


class InverseNorms:
    """The 1-norms of the inverses of host matrices, estimated from their factors while these are there.

    Parameters
    ----------
    wanted : bool
        Nothing is estimated otherwise.

    Attributes
    ----------
    norms : list of float
        In the order of the stack.
    """

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self.norms: list[float] = []

    def estimate(
        self, factors: np.ndarray, name: str, pivots: np.ndarray | None = None, **flags: Any
    ) -> None:
        """Estimate from factors in host memory, by SciPy's LAPACK."""
        if not self.wanted:
            return
        run = cpu_cholesky.lapack(name, factors.dtype)
        left = () if pivots is None else (pivots,)
        if factors.ndim == 2:
            found = [(factors, *(each.ravel() for each in left))]
        else:
            stacks = factors.reshape(-1, *factors.shape[-2:])
            found = list(zip(stacks, *(each.reshape(len(stacks), -1) for each in left), strict=True))
        for arguments in found:
            reciprocal = run(*arguments, 1.0, **flags)[0]
            self.norms.append(1 / reciprocal if reciprocal else inf)

    def on_device(self, factors: tuple[Any, ...], solver: Callable[..., Any]) -> Any:
        """Return an object with the `run` of a launch list that estimates from factors on a device;
        ``solver(*factors, x, trans)`` returns the launch list of a solution. None where nothing is wanted.
        """
        if not self.wanted:
            return None
        return SimpleNamespace(run=partial(self._estimate_there, factors, solver))

    def _estimate_there(
        self,
        factors: tuple[Any, ...],
        solver: Callable[..., Any],
        pointers: list[int],
        *scalars: Any,
        stream: int,
    ) -> None:
        """The host waits for each of the few solutions."""
        matrix = factors[-1]
        memory = import_module("...gpu.memory", __package__)

        def solve(x: np.ndarray, trans: Trans) -> np.ndarray:
            count, n, columns = x.shape
            dense = np.ascontiguousarray(np.swapaxes(x, 1, 2))  # columns one after the other
            address = memory.allocate(dense.nbytes, matrix.device, stream)
            try:
                memory.to_device(address, dense, stream)
                operand = Operand(
                    address, n, columns, 1, n, matrix.dtype, False, count, n * columns, matrix.device
                )
                launches = solver(*factors, operand, trans=trans)
                launches.run([*pointers, address], *scalars, stream=stream)
                memory.to_host(dense, address, stream)
            finally:
                memory.release(address, stream)
            return np.swapaxes(dense, 1, 2)

        dtype = np.dtype(matrix.dtype.name)
        self.norms.extend(estimate_inverse_norms(solve, matrix.batch, matrix.rows, dtype).tolist())


class _InOrder:
    """Launch lists that run one after another, each on some of the operands."""

    def __init__(self, *steps: tuple[Any, tuple[int, ...]]) -> None:
        self._steps = steps

    def run(self, pointers: list[int], *scalars: Any, stream: int) -> None:
        """Enqueue all of them."""
        for launches, chosen in self._steps:
            if launches is not None:
                launches.run([pointers[index] for index in chosen], *scalars, stream=stream)


def reflectors_of(a: np.ndarray, dtype: Dtype, pivoted: bool) -> tuple[Any, Any, tuple[Any, ...]] | None:
    """Return the reflectors of a host matrix, their factors, and the order of columns, from 1, if `pivoted`;
    None where it is not for the processor.
    """
    if not _is_small((a,), dtype):
        return None
    factors, tau = np.array(a, order="F"), np.empty((min(a.shape), 1), a.dtype)
    if not pivoted:
        cpu_qr.geqrf(tau, factors)
        return factors, tau[:, 0], ()
    columns = np.empty((a.shape[-1], 1), np.int32)
    cpu_qr.geqp3(columns, tau, factors)
    return factors, tau[:, 0], (columns[:, 0],)


def orthogonal_from(factors: np.ndarray, tau: np.ndarray, dtype: Dtype, overwrite: bool) -> Any | None:
    """Return Q from reflectors as of `reflectors_of`, and None where that does."""
    if not _is_small((factors,), dtype):
        return None
    q = factors if overwrite and factors.flags.f_contiguous else np.array(factors, order="F")
    cpu_qr.orgqr(tau[:, None], q)
    return q


def product_from(
    factors: np.ndarray, tau: np.ndarray, other: np.ndarray, dtype: Dtype, side: Side
) -> Any | None:
    """Return the product of Q and another matrix from one side, and None where `reflectors_of` does."""
    if not _is_small((factors, other), dtype):
        return None
    product = np.array(other, order="F")
    cpu_qr.ormqr(tau[:, None], factors, product, side, Trans.NO)
    return product


def _run(
    name: str,
    arrays: tuple[np.ndarray, ...],
    dtype: Dtype,
    out: Any,
    cpu: Callable[..., Any],
    prepare: Callable[..., Any],
    counts: tuple[int, ...],
) -> tuple[Any, ...]:
    """Return the results of a call on `arrays`, a and maybe b: in the last one or in a new array by rows."""
    if _is_small(arrays, dtype):
        result = np.array(arrays[-1], order="C") if out is None else out
        integers = [np.zeros((abs(count), 1), np.int32) for count in counts]
        cpu(*integers, *arrays[:-1], result)
        return result, *map(plain_integers, integers, counts)
    call = FactorCall(name, dict(zip("ab", arrays, strict=False)), None, None, None, dtype)
    *batch, rows, cols = arrays[-1].shape
    call.set_output(out, tuple(batch), rows, cols, column_major=False)
    source = call.out if out is not None else call.inputs[-1]
    inputs = tuple((array, Trans.NO) for array in call.inputs[:-1])
    return call.run_factor(cpu, prepare, inputs, source, counts, by_columns=True)


def _is_small(arrays: tuple[np.ndarray, ...], dtype: Dtype) -> bool:
    """Whether these are matrices of this dtype that the processor has factored before a device has them."""
    order, own = order_on_processor(dtype.letter), _DTYPES[dtype.letter]
    for array in arrays:
        if array.ndim != 2 or array.dtype != own or not array.size or max(array.shape) >= order:
            return False
    return True


def _own_matrices(a: np.ndarray) -> np.ndarray:
    """`a`, each element by itself: its copy on the device is factored in place."""
    return a.copy() if 0 in a.strides else a


def copied(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The matrices of `matrix`, one for each of `right`, to be overwritten."""
    (matrices,) = broadcast_matrices(right.shape[:-2], matrix)
    return np.array(matrices)
