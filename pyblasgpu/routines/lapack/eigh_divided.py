"""Eigenvalues of symmetric and Hermitian matrices of a batch, and their vectors, by divide and conquer.

A = Q T Qᴴ with T tridiagonal is one launch. T is torn into leaves, which Jacobi's method solves as one batch.
Neighbours are merged until one block is left: a launch, and a product for the vectors. All pairs of a batch
are merged at a time, and what deflates is multiplied too: so nothing depends on values. Vectors of T times Q
are products (LAPACK's ormtr).
"""

from __future__ import annotations

from math import isqrt

from ...database.policy import MAX_VALUE
from ...dispatch.choose import select
from ...dispatch.tensor import workspace_room
from ...gpu.device import Device, current
from ...kernels.factor.eigen import sytrd, tridiagonal_merge
from ...operands import Operand
from ...types import Dtype
from ..copies import emit_scale
from ..launch_list import LaunchList
from ..level3.gemm import emit_gemm
from . import eigh_jacobi, tridiagonal_by_band
from .eigh_jacobi import Vectors
from .factor_steps import real_dtype
from .tridiagonal_form import Tree, Tridiagonal, emit_back, emit_reduction, stack

__all__ = ["emit", "max_order"]

SCRATCH = 1 << 30  # bytes of scratch for matrices that go together, where they are more than fill the device
SQUARES = 6  # matrices of scratch for each, about
SQUARES_BY_BAND, MARGIN = 13, 64  # where a matrix becomes a band first, at most, and of a larger order


def max_order(dtype: Dtype, device: Device) -> int:
    """Return the largest order of matrices of a dtype for which there is a kernel on a device, and room. Half
    of the memory that is free has to hold the workspace of a matrix.
    """
    most: int = select(tridiagonal_merge.STEM, real_dtype(dtype), "", (), device).config.on(device).ORDER
    square = SQUARES_BY_BAND * dtype.itemsize
    return min(most, isqrt(workspace_room(device, square * (most + MARGIN) ** 2) // square) - MARGIN)


def emit(launches: LaunchList, w: Operand, info: Operand, v: Operand, a: Operand, vectors: Vectors) -> None:
    """Emit the whole call; the lower triangle of A is read. See `eigh_batched`."""
    tree = Tree.of(a.rows)
    first, end = vectors if isinstance(vectors, tuple) else (0, a.rows)
    v = v.block(0, first, a.rows, end - first) if vectors else v
    is_by_band = goes_by_band(launches, a)
    emit_part, count = (_emit_by_band, 1) if is_by_band else (_emit_part, _at_once(launches, a))
    for z in range(0, a.batch, count):
        w_z, info_z, v_z, a_z = (each.matrices(z, min(count, a.batch - z)) for each in (w, info, v, a))
        with launches.temporary():
            emit_part(launches, tree, w_z, info_z, v_z, a_z, first if vectors else None)


def _at_once(launches: LaunchList, a: Operand) -> int:
    """Matrices of a batch that go together: enough to fill the device, if half of what is free holds them."""
    device, square = current(launches.device), SQUARES * Tree.of(a.rows).padded ** 2 * a.dtype.itemsize
    count = min(max(SCRATCH // square, device.sm_count), a.batch)
    return max(workspace_room(device, count * square) // square, 1)


def goes_by_band(launches: LaunchList, a: Operand) -> bool:
    """Whether each matrix becomes a band first: one that is large enough, and those of too large orders."""
    most: int = select(sytrd.STEM, launches.dtype, "", (), current(launches.device)).config.ORDER
    least = launches.policy.band_eigh_min_order.get(launches.dtype.letter, MAX_VALUE)
    return a.rows > most or (a.batch == 1 and a.rows >= least)


def _emit_by_band(
    launches: LaunchList, tree: Tree, w: Operand, info: Operand, v: Operand, a: Operand, first: int | None
) -> None:
    """Emit the call for one matrix as `_emit_part` does, by way of a band."""
    t, chase = tridiagonal_by_band.emit_reduction(launches, tree, info, a, first is not None)
    real = real_dtype(a.dtype)
    if first is None:
        with launches.computing_in(real):
            _emit_tree(launches, tree, t, _real_parts(w), None, 0)
        return
    vectors = tridiagonal_by_band.new_vectors(launches, a.rows, v.cols)
    with launches.computing_in(real), launches.temporary():
        _emit_tree(launches, tree, t, _real_parts(w), _real_parts(vectors), first)
    tridiagonal_by_band.emit_back(launches, t, chase, vectors, v)


def _emit_part(
    launches: LaunchList, tree: Tree, w: Operand, info: Operand, v: Operand, a: Operand, first: int | None
) -> None:
    """Emit the call for some matrices; vectors from the `first` one on, as many as V has columns, or None."""
    has_vectors = first is not None
    t = emit_reduction(launches, tree, info, a)
    if has_vectors and a.dtype.is_complex:
        emit_scale(launches, 0.0, v, zero=True)
    with launches.computing_in(real_dtype(a.dtype)):
        _emit_tree(launches, tree, t, _real_parts(w), _real_parts(v) if has_vectors else None, first or 0)
    if has_vectors and a.rows > 1:
        emit_back(launches, t, v)


def _real_parts(x: Operand) -> Operand:
    """The real parts of an operand."""
    parts = x.dtype.reals_per_element
    strides = {name: getattr(x, name) * parts for name in ("row_stride", "col_stride", "batch_stride")}
    return x._replace(dtype=real_dtype(x.dtype), **strides)


def _emit_tree(
    launches: LaunchList, tree: Tree, t: Tridiagonal, w: Operand, v: Operand | None, first: int
) -> None:
    """Emit eigenvalues of T, and its eigenvectors from the `first` one on, as many as V has columns."""
    leaf, batch, order = tree.leaf, w.batch << tree.depth, tree.leaf
    values = stack(launches, leaf, batch)
    vectors = stack(launches, leaf * leaf, batch)._replace(rows=leaf, cols=leaf, col_stride=leaf)
    leaves = t.leaves._replace(rows=leaf, cols=leaf, col_stride=leaf, batch=batch, batch_stride=leaf * leaf)
    eigh_jacobi.emit(launches, values, stack(launches, 1, batch), vectors, leaves, True)
    while batch > w.batch:
        order, batch = 2 * order, batch // 2
        values, vectors = _emit_merge(launches, t, order, batch, values, vectors, w, v, first)


def _emit_pairs(
    launches: LaunchList, order: int, operands: tuple[Operand, ...], w: Operand, scale: Operand, options: int
) -> None:
    """Emit what makes eigenvalues and vectors of pairs of blocks: some at a time where a launch is for the
    whole device.
    """
    device, pairs = current(launches.device), operands[0].batch
    config = select(tridiagonal_merge.STEM, launches.dtype, "", (order,), device).config
    config = config.on(device).specialize(order, pairs, device)
    blocks = config.blocks(order, pairs, device)
    at_once = device.sm_count if config.IS_SPREAD else pairs

    def integers(*operands: Operand) -> tuple[int, ...]:
        q, *_, s, _, w, _, state, _ = operands
        ends = (q.rows - 1) * q.row_stride
        steps = q.batch_stride // 2, s.batch_stride, w.batch_stride, state.batch_stride
        return w.rows, order, options, ends, q.col_stride, w.row_stride, *steps

    for z in range(0, pairs, at_once):
        count = min(at_once, pairs - z)
        own = z if options & tridiagonal_merge.IS_LAST else 0  # w and scale are of matrices
        part = [each.matrices(z, count) for each in operands]
        part += [each.matrices(own, min(count, each.batch)) for each in (w, scale)]
        with launches.temporary():
            state = stack(launches, config.state(order, blocks), count)
            flags = launches.flags() if config.IS_SPREAD else state
            launches.emit(tridiagonal_merge.source(config), blocks, (*part, state, flags), integers, ())


def _emit_merge(
    launches: LaunchList,
    t: Tridiagonal,
    order: int,
    batch: int,
    values: Operand,
    vectors: Operand,
    w: Operand,
    v: Operand | None,
    first: int,
) -> tuple[Operand, Operand]:
    """Emit one level of the tree, and return its eigenvalues and the vectors, or their ends."""
    is_last, half = batch == w.batch, order // 2
    wanted = tridiagonal_merge.WANTS_VECTORS if v else 0 if is_last else tridiagonal_merge.WANTS_ENDS
    s, merged = stack(launches, order * order if v else 2 * order, batch), stack(launches, order, batch)
    pairs = vectors._replace(batch=batch, batch_stride=2 * vectors.batch_stride)
    couplings, d = (each._replace(batch=batch, batch_stride=order) for each in (t.e, values))
    targets = w, t.scale, wanted | tridiagonal_merge.IS_LAST * is_last
    _emit_pairs(launches, order, (pairs, d, couplings, s, merged), *targets)
    by_rows = s._replace(rows=order if v else 2, cols=order, row_stride=order, col_stride=1)
    if not v:
        return merged, by_rows
    if not is_last:
        new = stack(launches, order * order, batch)
        halves = by_rows._replace(rows=half, batch=2 * batch, batch_stride=half * order)
        emit_gemm(launches, 1.0, vectors, halves, 0.0, halves._replace(pointer=new.pointer))
        return merged, by_rows._replace(pointer=new.pointer)
    for top, rows in ((0, half), (half, v.rows - half)):
        half_vectors = vectors._replace(batch=batch, batch_stride=2 * vectors.batch_stride, rows=rows)
        if top:
            step = vectors.batch_stride * vectors.dtype.itemsize
            half_vectors = half_vectors._replace(pointer=vectors.pointer + step)
        emit_gemm(
            launches,
            1.0,
            half_vectors,
            by_rows.block(top, first, half, v.cols),
            0.0,
            v.block(top, 0, rows, v.cols),
        )
    return merged, by_rows
