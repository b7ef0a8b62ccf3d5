"""Eigenvalues of small symmetric and Hermitian matrices of a batch, and their vectors, by Jacobi's method.

It is one launch: a matrix is in the shared memory of a block from beginning to end.
"""

from __future__ import annotations

from ...dispatch.choose import select
from ...gpu.device import Device, current
from ...kernels.factor.eigen import jacobi_eigh
from ...operands import Operand
from ...types import Dtype
from ..launch_list import LaunchList
from .laswp import words

__all__ = ["Vectors", "emit", "max_order"]

#: Whether vectors are wanted, or the first one that is, and the one after the last.
Vectors = bool | tuple[int, int]


def max_order(dtype: Dtype, device: Device) -> int:
    """Return the largest order of matrices of a dtype for which there is a kernel on a device."""
    config = select(jacobi_eigh.STEM, dtype, "", (), device).config
    order: int = config.fitting(device.shared_per_block).ORDER
    return order


def emit(launches: LaunchList, w: Operand, info: Operand, v: Operand, a: Operand, vectors: Vectors) -> None:
    """Emit the whole call; the lower triangle of A is read. See `eigh_batched`."""
    device, n = current(launches.device), a.rows
    best = select(jacobi_eigh.STEM, launches.dtype, "", (n,), device).config.fitting(device.shared_per_block)
    config = best.specialize(n)

    def integers(a: Operand, w: Operand, v: Operand, info: Operand) -> tuple[int, ...]:
        reals = w.dtype.reals_per_element
        strides = a.row_stride, a.col_stride, w.row_stride * reals, v.row_stride, v.col_stride
        batches = a.batch_stride, w.batch_stride * reals, v.batch_stride, words(info)[1]
        return n, int(bool(vectors)), int(a.conj), config.lanes(n), a.batch, *strides, *batches

    launches.emit_batch(jacobi_eigh.source(config), config.grid(n, a.batch), (a, w, v, info), integers, ())
