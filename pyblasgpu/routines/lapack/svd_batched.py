"""Singular values of small matrices of a batch, and their vectors, by one-sided Jacobi.

It is one launch where A and V fit into the shared memory of a block. Taller matrices are factored before:
A = Q R, and the singular values of A are those of R. Wide ones are transposed.
"""

from __future__ import annotations

from typing import NamedTuple

from ...dispatch.choose import select
from ...gpu.device import Device, current
from ...kernels.factor.eigen import jacobi_columns, jacobi_svd
from ...kernels.registry import family_of
from ...operands import Operand
from ...types import Dtype, Region, Side, Trans
from ..copies import emit_copy, emit_scale
from ..launch_list import LaunchList, cached_launch_list
from . import geqrf, ormqr
from .block_reflector import emit_identity
from .laswp import words

__all__ = ["emit", "launch_list", "serves"]


def serves(rows: int, cols: int, dtype: Dtype, device: Device, *, vectors: bool) -> bool:
    """Whether `launch_list` has a kernel for matrices of this shape and dtype on a device."""
    n = min(rows, cols)
    return _best(dtype, device).specialize(n + n * vectors, n) is not None


def _best(dtype: Dtype, device: Device) -> jacobi_svd.JacobiSvd:
    config: jacobi_svd.JacobiSvd = select(jacobi_svd.STEM, dtype, "", (), device).config
    return config.fitting(device.shared_per_block)


def launch_list(
    sigma: Operand, info: Operand, u: Operand, vh: Operand, a: Operand, *, vectors: bool
) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    sigma : Operand
        k by 1, k the lesser of m and n; becomes the singular values in descending order. They are reals:
        where its dtype is complex, they are the real parts of its elements.
    info : Operand
        One element a matrix, of which the first four bytes become an int32. It is 0, or k where A is not
        finite, sigma, U and V are NaN then, or where the sweeps did not suffice.
    u, vh : Operand
        m by k and k by n, or m by m and n by n; become U and the adjoint of V. Without `vectors` they are not
        touched. One of them may be `a` itself.
    a : Operand
        m by n, a matrix that `serves` has a kernel for. It is not written.
    vectors : bool
        Whether singular vectors are wanted.
    """
    return None if a.is_empty else cached_launch_list(emit, (sigma, info, u, vh, a), (vectors,))


class _Tall(NamedTuple):
    """The problem of matrices with no fewer rows than columns: A, and where U and V are written.

    `left` and `right` may be meant conjugated.
    """

    sigma: Operand
    info: Operand
    left: Operand
    right: Operand
    a: Operand
    vectors: bool


def emit(
    launches: LaunchList,
    sigma: Operand,
    info: Operand,
    u: Operand,
    vh: Operand,
    a: Operand,
    vectors: bool,
) -> None:
    """Emit the whole call."""
    tall = _Tall(sigma, info, u, vh.T.conjugate(), a, vectors)
    if a.rows < a.cols:
        tall = _Tall(sigma, info, vh.T.conjugate(), u, a.T.conjugate(), vectors)
    is_full, config = vectors and tall.left.cols > tall.a.cols, _config(launches, tall.a, vectors)
    if config is not None and not is_full:
        _emit_kernel(launches, config, tall)
        return
    with launches.temporary():
        _emit_by_factors(launches, tall)


def _config(
    launches: LaunchList, a: Operand, vectors: bool
) -> jacobi_columns.JacobiColumns | jacobi_svd.JacobiSvd | None:
    """The Config of the kernel that has matrices in registers, if they are small, or else of that
    which has them in shared memory; None where they have no room.
    """
    device = current(launches.device)
    if family_of(jacobi_columns.STEM).serves(launches.dtype.letter, device):
        best = select(jacobi_columns.STEM, launches.dtype, "", (), device).config
        config: jacobi_columns.JacobiColumns | None = best.specialize(a.cols, vectors)
        if config is not None and a.rows <= config.COLS:
            return config
    return _best(launches.dtype, device).specialize(a.rows + a.cols * vectors, a.cols)


def _emit_kernel(
    launches: LaunchList, config: jacobi_columns.JacobiColumns | jacobi_svd.JacobiSvd, tall: _Tall
) -> None:
    """Emit the launch of a problem that has a kernel."""
    sigma, info, left, right, a, vectors = tall
    options, threads = jacobi_svd.options_of(vectors, a.conj, left.conj, right.conj), tuple[int, ...]()
    if isinstance(config, jacobi_columns.JacobiColumns):
        source, grid = jacobi_columns.source(config), config.grid(a.batch)
    else:
        team = config.team(a.rows + a.cols * vectors, a.cols)
        threads = team.lanes, team.width
        source, grid = jacobi_svd.source(config), config.grid(team, a.batch)
    reals = sigma.dtype.reals_per_element

    def integers(a: Operand, sigma: Operand, left: Operand, right: Operand, info: Operand) -> tuple[int, ...]:
        numbers = a.rows, a.cols, options, *threads, a.batch
        strides = a.row_stride, a.col_stride, sigma.row_stride * reals, left.row_stride, left.col_stride
        batches = a.batch_stride, sigma.batch_stride * reals, left.batch_stride, right.batch_stride
        return *numbers, *strides, right.row_stride, right.col_stride, *batches, words(info)[1]

    launches.emit_batch(source, grid, (a, sigma, left, right, info), integers, ())


def _emit_by_factors(launches: LaunchList, tall: _Tall) -> None:
    """Emit the same by way of A = Q R: U is Q times the left vectors of R."""
    m, n, batch = tall.a.rows, tall.a.cols, tall.a.batch
    factors, tau = launches.scratch(m, n, batch), launches.scratch(n, 1, batch)
    r = launches.scratch(n, n, batch)
    emit_copy(launches, 1.0, tall.a, factors)
    geqrf.emit(launches, tau, factors)
    emit_scale(launches, 0.0, r, zero=True)
    emit_copy(launches, 1.0, factors.block(0, 0, n, n).T, r.T, Region.LOWER)
    config = _config(launches, r, tall.vectors)
    assert config is not None
    if not tall.vectors:
        _emit_kernel(launches, config, tall._replace(a=r))
        return
    columns = tall.left.cols
    left = launches.scratch(m, columns, batch)
    emit_scale(launches, 0.0, left, zero=True)
    if columns > n:
        emit_identity(launches, left.block(0, n, m, columns - n), n)
    _emit_kernel(launches, config, tall._replace(a=r, left=left.block(0, 0, n, n)))
    ormqr.emit(launches, tau, factors, left, Side.LEFT, Trans.NO)
    emit_copy(launches, 1.0, left.conjugate() if tall.left.conj else left, tall.left._replace(conj=False))
