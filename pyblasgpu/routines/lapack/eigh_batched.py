"""Eigenvalues of small symmetric and Hermitian matrices of a batch, and their vectors, by Jacobi's method.

It is one launch: a matrix is in the shared memory of a block from beginning to end.
"""

from __future__ import annotations

from ...dispatch.choose import select
from ...gpu.device import Device, current
from ...kernels.factor.eigen import jacobi_eigh
from ...operands import Operand
from ...types import Dtype, Uplo
from ..launch_list import LaunchList, cached_launch_list
from .laswp import words

__all__ = ["emit", "launch_list", "max_order"]


def max_order(dtype: Dtype, device: Device) -> int:
    """Return the largest order of matrices of a dtype for which `launch_list` has a kernel on a device."""
    config = select(jacobi_eigh.STEM, dtype, "", (), device).config
    order: int = config.fitting(device.shared_per_block).ORDER
    return order


def launch_list(
    w: Operand, info: Operand, v: Operand, a: Operand, *, uplo: Uplo, vectors: bool
) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    w : Operand
        n by 1; becomes the eigenvalues in ascending order. They are reals: where its dtype is complex, they
        are the real parts of its elements, and imaginary parts stay as they are.
    info : Operand
        One element a matrix, of which the first four bytes become an int32: 0, or n where A is not finite, w
        and V are NaN then, or where the sweeps did not suffice.
    v : Operand
        n by n; its columns become orthonormal eigenvectors. Without `vectors` it is not touched. It may be
        `a` itself, and else must not overlap it.
    a : Operand
        n by n with n <= `max_order`; one triangle is read, imaginary parts of the diagonal are not. It is not
        written.
    uplo : Uplo
        The triangle that is read.
    vectors : bool
        Whether eigenvectors are wanted.
    """
    return None if a.is_empty else cached_launch_list(emit, (w, info, v, a), (uplo, vectors))


def emit(
    launches: LaunchList, w: Operand, info: Operand, v: Operand, a: Operand, uplo: Uplo, vectors: bool
) -> None:
    """Emit the whole call."""
    device, n = current(launches.device), a.rows
    best = select(jacobi_eigh.STEM, launches.dtype, "", (n,), device).config.fitting(device.shared_per_block)
    config, lower = best.specialize(n), a if uplo is Uplo.LOWER else a.T.conjugate()
    keeps_vectors = config.RESIDENT_VECTORS or not vectors

    def integers(a: Operand, w: Operand, v: Operand, work: Operand, info: Operand) -> tuple[int, ...]:
        reals = w.dtype.reals_per_element
        strides = a.row_stride, a.col_stride, w.row_stride * reals, v.row_stride, v.col_stride
        batches = a.batch_stride, w.batch_stride * reals, v.batch_stride, work.batch_stride
        numbers = n, int(vectors), int(a.conj), config.lanes(n), a.batch
        return *numbers, *strides, *batches, words(info)[1]

    with launches.temporary():
        work = v if keeps_vectors else launches.scratch(n, config.ldv, a.batch)
        operands = lower, w, v, work, info
        launches.emit_batch(jacobi_eigh.source(config), config.grid(n, a.batch), operands, integers, ())
