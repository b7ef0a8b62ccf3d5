"""Eigenvalues of small symmetric and Hermitian matrices of a batch, and their vectors, by Jacobi's method.

It is one launch: a matrix is in registers or in shared memory from beginning to end.
"""

from __future__ import annotations

from ...dispatch.choose import select
from ...dispatch.tuned_files import policy_of
from ...gpu.device import Device, current
from ...kernels.factor.eigen import jacobi_columns, jacobi_eigh, jacobi_svd, jacobi_thread
from ...kernels.registry import family_of
from ...operands import Operand
from ...types import Dtype
from ..launch_list import LaunchList
from .laswp import words

__all__ = ["Vectors", "emit", "max_order"]

#: Whether vectors are wanted, or the first one that is, and the one after the last.
Vectors = bool | tuple[int, int]


def max_order(dtype: Dtype, device: Device, count: int) -> int:
    """Return the largest order of `count` matrices of a dtype that are solved here on a device: there is a
    kernel, and divide and conquer is not faster.
    """
    policy = policy_of(device)
    if family_of(jacobi_eigh.STEM).gives_way(dtype.letter, device):
        config = select(jacobi_columns.STEM, dtype, "", (), device).config
        order = max(each.COLS for each in config.variants)
    else:
        order = select(jacobi_eigh.STEM, dtype, "", (), device).config.ORDER
    if count <= device.sm_count:
        order = min(order, policy.few_jacobi_eigh_max_order.get(dtype.letter, order))
    return int(min(order, policy.jacobi_eigh_max_order.get(dtype.letter, order)))


def emit(launches: LaunchList, w: Operand, info: Operand, v: Operand, a: Operand, vectors: Vectors) -> None:
    """Emit the whole call; the lower triangle of A is read. See `eigh_batched`."""
    device = current(launches.device)
    by_thread = select(jacobi_thread.STEM, launches.dtype, "", (), device).config
    if a.rows <= by_thread.ORDER:
        _emit_by_thread(launches, by_thread, w, info, v, a, bool(vectors))
        return
    in_columns = family_of(jacobi_eigh.STEM).gives_way(launches.dtype.letter, device)
    (_emit_in_columns if in_columns else _emit_two_sided)(launches, w, info, v, a, bool(vectors))


def _steps(a: Operand, w: Operand, v: Operand, info: Operand) -> tuple[int, ...]:
    """Strides of matrices, values, vectors and info, as the kernels with two-sided rotations take them."""
    reals = w.dtype.reals_per_element
    strides = a.row_stride, a.col_stride, w.row_stride * reals, v.row_stride, v.col_stride
    return *strides, a.batch_stride, w.batch_stride * reals, v.batch_stride, words(info)[1]


def _emit_by_thread(
    launches: LaunchList,
    config: jacobi_thread.JacobiThread,
    w: Operand,
    info: Operand,
    v: Operand,
    a: Operand,
    vectors: bool,
) -> None:
    def integers(a: Operand, *others: Operand) -> tuple[int, ...]:
        return a.rows, int(vectors), int(a.conj), a.batch, *_steps(a, *others)

    launches.emit_batch(jacobi_thread.source(config), config.grid(a.batch), (a, w, v, info), integers, ())


def _emit_two_sided(
    launches: LaunchList, w: Operand, info: Operand, v: Operand, a: Operand, vectors: bool
) -> None:
    n = a.rows
    config = select(jacobi_eigh.STEM, launches.dtype, "", (), current(launches.device)).config

    def integers(a: Operand, *others: Operand) -> tuple[int, ...]:
        return n, int(vectors), int(a.conj), config.lanes(n), a.batch, *_steps(a, *others)

    launches.emit_batch(jacobi_eigh.source(config), config.grid(n, a.batch), (a, w, v, info), integers, ())


def _emit_in_columns(
    launches: LaunchList, w: Operand, info: Operand, v: Operand, a: Operand, vectors: bool
) -> None:
    """Emit the launch for singular values of positive definite matrices, which have left vectors alone."""
    best = select(jacobi_columns.STEM, launches.dtype, "", (), current(launches.device)).config
    config, options = best.specialize(a.rows, False), jacobi_columns.SYMMETRIC
    options |= jacobi_svd.WANTS_U * vectors | jacobi_svd.CONJ_A * a.conj

    def integers(a: Operand, w: Operand, v: Operand, _: Operand, info: Operand) -> tuple[int, ...]:
        reals, steps = w.dtype.reals_per_element, (v.row_stride, v.col_stride)
        strides = a.row_stride, a.col_stride, w.row_stride * reals, *steps, *steps
        batches = a.batch_stride, w.batch_stride * reals, v.batch_stride, v.batch_stride, words(info)[1]
        return a.rows, a.rows, options, a.batch, *strides, *batches

    source, grid = jacobi_columns.source(config), config.grid(a.batch)
    launches.emit_batch(source, grid, (a, w, v, v, info), integers, ())
