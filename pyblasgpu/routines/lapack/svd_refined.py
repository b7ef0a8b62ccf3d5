"""Singular values and vectors of a batch from right vectors that are accurate to some digits.

Columns of B = A V and of V are orthogonal but for a few digits. Both are multiplied by I + E, which takes off
what they have of one another to first order. So a step doubles the digits, and is products but for one launch
(Ogita and Aishima, *Iterative refinement for singular value decomposition based on matrix multiplication*,
2020). In B a small singular value keeps the digits that V has lost of it.
"""

from __future__ import annotations

from typing import NamedTuple

from ...dispatch.choose import select
from ...dispatch.tensor import workspace_room
from ...gpu.device import current
from ...kernels.factor.eigen import svd_correction, svd_results
from ...operands import Operand
from ...types import Dtype, Region
from ..copies import emit_copy
from ..launch_list import LaunchList, cached_launch_list
from ..level3.gemm import emit_gemm
from .laswp import words

__all__ = ["emit", "max_columns", "new_launch_list"]

SCRATCH = 1 << 30  # bytes of scratch for matrices that go together, where they are more than fill the device


def max_columns(dtype: Dtype, device: int) -> int:
    """Return the most columns of matrices of a dtype for which there is a kernel on a device."""
    most: int = select(svd_results.STEM, dtype, "", (), current(device)).config.ORDER
    return most


def new_launch_list(
    info: Operand, sigma: Operand, vh: Operand, v: Operand, a: Operand, u: Operand, *, steps: int
) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    info : Operand
        One int32 a matrix: 0, or n where columns are not orthogonal after the steps.
    sigma : Operand
        n by 1; becomes the singular values in descending order, reals.
    vh : Operand
        Becomes the adjoint of V: the elements in one column, by rows.
    v : Operand
        n by n, nearly orthonormal columns; columns of A V are nearly orthogonal.
    a : Operand
        m by n with n <= m and n <= `max_columns`; like `v` it is not written.
    u : Operand
        m by n; becomes U.
    steps : int
        How many times digits are doubled, at least once.
    """
    return None if a.is_empty else cached_launch_list(emit, (info, sigma, vh, v, a, u), (steps,))


class _Problem(NamedTuple):
    """The operands of a call."""

    info: Operand
    sigma: Operand
    vh: Operand
    v: Operand
    a: Operand
    u: Operand


class _Columns(NamedTuple):
    """Columns of B and of V; where they are as long, both are one stack, B first."""

    left: Operand
    right: Operand
    stacks: tuple[Operand, ...]

    @classmethod
    def in_scratch(cls, launches: LaunchList, a: Operand) -> _Columns:
        m, n, batch = a.rows, a.cols, a.batch
        if m == n:
            both = launches.scratch(n, n, 2 * batch)
            return cls(both.matrices(0, batch), both.matrices(batch, batch), (both,))
        left, right = launches.scratch(m, n, batch), launches.scratch(n, n, batch)
        return cls(left, right, (left, right))


def emit(
    launches: LaunchList,
    info: Operand,
    sigma: Operand,
    vh: Operand,
    v: Operand,
    a: Operand,
    u: Operand,
    steps: int,
) -> None:
    """Emit the whole call."""
    n, device = a.cols, current(launches.device)
    vh = vh._replace(rows=n, cols=n, row_stride=n * vh.row_stride, col_stride=vh.row_stride)
    each = (2 * (a.rows + n) + 4 * n) * n * a.dtype.itemsize
    count = min(max(SCRATCH // each, device.sm_count), a.batch)
    count = max(workspace_room(device, count * each) // each, 1)
    for z in range(0, a.batch, count):
        matrices = min(count, a.batch - z)
        part = _Problem(*(x.matrices(z, matrices) for x in (info, sigma, vh, v, a, u)))
        with launches.temporary():
            _emit_part(launches, part, steps)


def _emit_part(launches: LaunchList, problem: _Problem, steps: int) -> None:
    """Emit the call for some matrices."""
    a, n, batch = problem.a, problem.a.cols, problem.a.batch
    columns, others = (_Columns.in_scratch(launches, a) for _ in range(2))
    products, factors = (launches.scratch(n, n, 2 * batch) for _ in range(2))
    emit_copy(launches, 1.0, problem.v, columns.right)
    emit_gemm(launches, 1.0, a, columns.right, 0.0, columns.left)
    for _ in range(steps):
        _emit_products(launches, columns, products)
        _emit_correction(launches, problem.info, products, factors)
        for stack, updated in zip(columns.stacks, others.stacks, strict=True):
            emit_gemm(launches, 1.0, stack, factors.matrices(0, stack.batch), 0.0, updated)
        columns, others = others, columns
    _emit_products(launches, columns, products)
    _emit_results(launches, problem, columns, products)


def _emit_products(launches: LaunchList, columns: _Columns, products: Operand) -> None:
    """Emit the lower triangles of BᴴB and VᴴV."""
    first = 0
    for stack in columns.stacks:
        target = products.matrices(first, stack.batch)
        emit_gemm(launches, 1.0, stack.T.conjugate(), stack, 0.0, target, Region.LOWER)
        first += stack.batch


def _emit_correction(launches: LaunchList, info: Operand, products: Operand, factors: Operand) -> None:
    """Emit I + E, twice."""
    config = select(svd_correction.STEM, launches.dtype, "", (), current(launches.device)).config
    n, batch = products.rows, info.batch
    halves = [x.matrices(first, batch) for x in (products, factors) for first in (0, batch)]

    def integers(*operands: Operand) -> tuple[int, ...]:
        return n, products.col_stride, 2, *(x.batch_stride for x in operands[:4]), words(info)[1]

    launches.emit(svd_correction.source(config), config.grid(n), (*halves, info), integers, ())


def _emit_results(launches: LaunchList, problem: _Problem, columns: _Columns, products: Operand) -> None:
    """Emit singular values and vectors in their order."""
    config = select(svd_results.STEM, launches.dtype, "", (), current(launches.device)).config
    (left, right, _), batch = columns, problem.a.batch
    info, sigma, vh, u = problem.info, problem.sigma, problem.vh, problem.u
    options = svd_results.CONJ_U * u.conj | svd_results.CONJ_V * (not vh.conj)
    halves = [products.matrices(first, batch) for first in (0, batch)]

    def integers(*operands: Operand) -> tuple[int, ...]:
        reals = sigma.dtype.reals_per_element
        numbers = u.rows, u.cols, options, right.col_stride, left.col_stride
        steps = sigma.row_stride * reals, u.row_stride, u.col_stride, vh.col_stride, vh.row_stride
        *strides, _ = (x.batch_stride for x in operands)
        return *numbers, *steps, *strides, words(info)[1]

    operands = *halves, left, right, sigma, u, vh, info
    launches.emit(svd_results.source(config), config.grid(u.cols), operands, integers, ())
