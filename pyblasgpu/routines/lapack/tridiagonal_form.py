"""A = Q T Qᴴ with T real and tridiagonal, what is left of it, and blocks of T for divide and conquer."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...dispatch.choose import select
from ...gpu.device import current
from ...kernels.factor.eigen import ormtr, sytrd, sytrd_resident
from ...kernels.registry import FIXED
from ...operands import Operand
from ...types import Side, Trans
from ..copies import emit_copy
from ..launch_list import LaunchList
from ..level3.gemm import contiguous
from . import ormqr
from .factor_steps import real_dtype
from .laswp import words

__all__ = ["Tree", "Tridiagonal", "emit_back", "emit_reduction", "emit_vectors", "stack"]

LEAF = 16  # the largest order of a leaf


class Tree(NamedTuple):
    """Blocks of T: 2**depth leaves of order `leaf`, which continue T to `padded` where need be."""

    leaf: int
    depth: int

    @classmethod
    def of(cls, n: int) -> Tree:
        depth = max((-(-n // LEAF) - 1).bit_length(), 1)
        return cls(-(-n >> depth), depth)

    @property
    def padded(self) -> int:
        return self.leaf << self.depth


class Tridiagonal(NamedTuple):
    """T and what is left of its reduction. Reals but for `work` and `tau`.

    Attributes
    ----------
    work : Operand
        Below a subdiagonal the vectors of the reflectors.
    tau : Operand
        Their factors.
    d, e : Operand
        The diagonal and the subdiagonal.
    leaves : Operand
        The blocks that are solved first.
    scale : Operand
        The factor of the eigenvalues.
    """

    work: Operand
    tau: Operand
    d: Operand
    e: Operand
    leaves: Operand
    scale: Operand

    @classmethod
    def in_scratch(cls, launches: LaunchList, tree: Tree, work: Operand, tau: Operand) -> Tridiagonal:
        """T of matrices at work."""
        padded, batch = tree.padded, work.batch
        with launches.computing_in(real_dtype(work.dtype)):
            d, e = (stack(launches, padded, batch) for _ in range(2))
            leaves, scale = stack(launches, padded * tree.leaf, batch), stack(launches, 1, batch)
        return cls(work, tau, d, e, leaves, scale)


def stack(launches: LaunchList, size: int, batch: int) -> Operand:
    """Scratch of `size` elements for each matrix, without gaps."""
    memory = launches.scratch(size * batch, 1, 1)
    return memory._replace(rows=size, col_stride=size, batch=batch, batch_stride=size)


def _held(launches: LaunchList, stem: str) -> Any:
    """The Config of a kernel that holds matrices in registers, None where the dtype has none."""
    has_kernel = launches.dtype.letter in FIXED[stem].dtypes
    return select(stem, launches.dtype, "", (), current(launches.device)).config if has_kernel else None


def emit_reduction(launches: LaunchList, tree: Tree, info: Operand, a: Operand) -> Tridiagonal:
    """Emit the launch that makes T of each matrix, which stays in registers where they hold it."""
    device, n, batch, held = current(launches.device), a.rows, a.batch, _held(launches, sytrd_resident.STEM)
    resident = held and held.on(device).specialize(n, batch, device)
    config = select(sytrd.STEM, launches.dtype, "", (), device).config.on(device)
    ld = config.leading_dimension(n)
    work, tau = stack(launches, ld * config.columns(n), batch), stack(launches, n, batch)
    sums = () if resident else (stack(launches, 2 * ld, batch),)
    form = Tridiagonal.in_scratch(launches, tree, work, tau)

    def integers(a: Operand, *others: Operand) -> tuple[int, ...]:
        *stacks, _, leaves, _, info = others
        steps = [each.batch_stride for each in (a, *stacks, leaves)]
        return n, ld, tree.leaf, tree.padded, int(a.conj), a.row_stride, a.col_stride, *steps, words(info)[1]

    kernel = sytrd_resident.source(resident) if resident else sytrd.source(config)
    blocks = resident.BLOCKS if resident else config.blocks(n, batch, device)
    operands = a, work, tau, *sums, form.d, form.e, form.leaves, form.scale, info
    launches.emit(kernel, blocks, operands, integers, ())
    return form._replace(work=work._replace(rows=n, cols=n, col_stride=ld))


def emit_back(launches: LaunchList, form: Tridiagonal, v: Operand) -> None:
    """Emit the product of Q with vectors of T, in place; one launch where registers hold the vectors."""
    held = _held(launches, ormtr.STEM)
    config = held and held.specialize(v.rows, current(launches.device).shared_per_block)
    if config is not None:

        def integers(work: Operand, tau: Operand, v: Operand) -> tuple[int, ...]:
            strides = v.row_stride, v.col_stride, work.batch_stride, tau.batch_stride, v.batch_stride
            return v.rows, v.cols, work.col_stride, *strides

        blocks = -(-v.cols // config.block_cols)
        launches.emit(ormtr.source(config), blocks, (form.work, form.tau, v), integers, ())
        return
    is_dense = contiguous(v) or contiguous(v.T)
    target = v if is_dense else launches.scratch(v.rows, v.cols, v.batch)
    if not is_dense:
        emit_copy(launches, 1.0, v, target)
    emit_vectors(launches, form, target, 1)
    if not is_dense:
        emit_copy(launches, 1.0, target, v)


def emit_vectors(launches: LaunchList, form: Tridiagonal, v: Operand, first: int) -> None:
    """Emit the product of V with the reflectors of `work`, of which the first one begins in row `first`."""
    n = form.work.rows
    reflectors = form.work.block(first, 0, n - first, n - first)
    tau = form.tau._replace(rows=n - first)
    ormqr.emit(launches, tau, reflectors, v.block(first, 0, n - first, v.cols), Side.LEFT, Trans.NO)
