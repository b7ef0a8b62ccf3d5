"""Blocks of Householder reflectors: H1 H2 ... = I - V T V^H, and its product with a matrix in place.

V is copied from where a factorization left it, T is made from V^H V, and the rest are products (Schreiber and
Van Loan, 1989).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple

from ...dispatch.operand_copies import ALIGNED
from ...gpu.device import current
from ...kernels.factor.qr import larft_leaf, reflector_copy
from ...kernels.registry import FIXED
from ...operands import Operand
from ..copies import emit_copy_to_workspace, emit_resolved
from ..launch_list import CALL, LaunchList
from ..level3.gemm import emit_gemm
from .factor_steps import leaf_config

__all__ = [
    "BlockReflector",
    "blocks_of",
    "emit_block_reflector",
    "emit_conjugate",
    "emit_identity",
    "emit_in_turn",
    "emit_joined_triangle",
    "emit_product",
    "emit_triangle",
    "emit_zeros",
    "new_block_reflector",
]


AHEAD = 4  # blocks, at least, for which the next one is made on the side stream
SHARE = 4  # multiprocessors of each matrix, at least, with which that gains


class BlockReflector(NamedTuple):
    """I - V T V^H.

    Attributes
    ----------
    v : Operand
        m by k, zeros above its diagonal of ones.
    t : Operand
        k by k, zeros below its diagonal.
    """

    v: Operand
    t: Operand

    def part(self, rows: int, count: int) -> BlockReflector:
        """Memory for `count` reflectors of `rows` rows."""
        return BlockReflector(self.v.block(0, 0, rows, count), self.t.block(0, 0, count, count))

    def leading(self, count: int) -> BlockReflector:
        """The first `count` reflectors."""
        return self.part(self.v.rows, count)


def blocks_of(launches: LaunchList, count: int) -> list[tuple[int, int]]:
    """Return the first reflector of each block and the one after its last, of `count` in all."""
    width = leaf_config(launches, larft_leaf.STEM, count).ORDER
    return [(first, min(first + width, count)) for first in range(0, count, width)]


def new_block_reflector(launches: LaunchList, rows: int, count: int, batch: int) -> BlockReflector:
    """Return scratch for the V and T of `count` reflectors of `rows` rows."""
    return BlockReflector(*(launches.scratch(each, count, batch, ALIGNED) for each in (rows, count)))


def emit_block_reflector(
    launches: LaunchList, tau: Operand, a: Operand, out: BlockReflector | None = None
) -> BlockReflector:
    """Emit V and T of the reflectors in the columns of A below its diagonal.

    Parameters
    ----------
    launches : LaunchList
    tau : Operand
        k by 1, of a block of `blocks_of` or fewer.
    a : Operand
        m by k, m >= k.
    out : BlockReflector, optional
        Memory for them; new scratch by default.
    """
    v, t = new_block_reflector(launches, a.rows, a.cols, a.batch) if out is None else out
    _emit_copy(launches, a, v, 0, copies=True)
    v = v._replace(conj=a.conj)  # the copy is of what is in memory
    emit_triangle(launches, emit_resolved(launches, tau), v, t)
    return BlockReflector(v, t)


def emit_in_turn(
    launches: LaunchList,
    factors: tuple[Operand, Operand],
    blocks: list[tuple[int, int]],
    apply: Callable[[int, BlockReflector], None],
) -> None:
    """Emit products with blocks of reflectors, one after the other.

    V and T of the next block are made on the side stream while one is applied, where these are many blocks
    of few matrices.

    Parameters
    ----------
    factors : pair of Operand
        tau, and the vectors below a diagonal.
    blocks : list
        The first reflector of each block, and the one after its last.
    apply : callable
        ``apply(first, block)`` emits the product. It writes no vectors of the blocks after it.
    """
    if not blocks:
        return
    tau, a = factors
    device, width = current(launches.device), max(last - first for first, last in blocks)
    is_ahead = len(blocks) >= AHEAD and a.batch * SHARE <= device.sm_count and launches.lane is CALL
    applied, begun = list[int | None](), launches.mark()

    def make(j: int) -> tuple[BlockReflector, int | None]:
        (first, last), out = blocks[j], memory[j % len(memory)]
        rows, count = a.rows - first, last - first
        with launches.on_side_stream() if is_ahead else nullcontext(), launches.temporary():
            if is_ahead:
                launches.wait_for(applied[j - 2] if j > 1 else None if j else begun)
            vectors = a.block(first, first, rows, count)
            part = out.part(rows, count)
            made = emit_block_reflector(launches, tau.block(first, 0, count, 1), vectors, part)
            return made, launches.mark()

    with launches.temporary():
        memory = [new_block_reflector(launches, a.rows, width, a.batch) for _ in range(1 + is_ahead)]
        following = make(0)
        for j, (first, _) in enumerate(blocks):
            block, made = following
            if is_ahead and j + 1 < len(blocks):
                following = make(j + 1)
            if is_ahead:
                launches.wait_for(made)
            apply(first, block)
            applied.append(launches.mark())
            if not is_ahead and j + 1 < len(blocks):
                following = make(j + 1)


def emit_triangle(launches: LaunchList, tau: Operand, v: Operand, t: Operand) -> None:
    """Emit T of the reflectors in the columns of V."""
    k = v.cols
    emit_gemm(launches, 1.0, v.T.conjugate(), v, 0.0, t)
    leaf = leaf_config(launches, larft_leaf.STEM, k).specialize(k)

    def numbers_of_t(tau: Operand, t: Operand) -> tuple[int, ...]:
        return k, tau.row_stride, t.col_stride, tau.batch_stride, t.batch_stride

    launches.emit(larft_leaf.source(leaf), 1, (tau, t), numbers_of_t, ())


def emit_joined_triangle(launches: LaunchList, block: BlockReflector, first: int) -> None:
    """Emit what T of all reflectors has between T1 of the first ones and T2 of the others, which are there:
    -T1 V1^H V2 T2.
    """
    (v, t), rows, others = block, block.v.rows - first, block.v.cols - first
    left, right = v.block(first, 0, rows, first), v.block(first, first, rows, others)
    with launches.temporary():
        products, x = (launches.scratch(first, others, v.batch, ALIGNED) for _ in range(2))
        emit_gemm(launches, 1.0, left.T.conjugate(), right, 0.0, products)
        emit_gemm(launches, 1.0, products, t.block(first, first, others, others), 0.0, x)
        emit_gemm(launches, -1.0, t.block(0, 0, first, first), x, 0.0, t.block(0, first, first, others))


def emit_conjugate(launches: LaunchList, tau: Operand) -> Operand:
    """Emit and return the conjugated factors of reflectors."""
    if tau.dtype.is_complex and not tau.is_empty:
        return emit_copy_to_workspace(launches, tau.conjugate())
    return tau


def emit_identity(launches: LaunchList, a: Operand, first: int) -> None:
    """Emit columns of the identity; the one of the first column is in row `first`."""
    _emit_copy(launches, a, a, first, copies=False)


def emit_zeros(launches: LaunchList, a: Operand) -> None:
    """Emit a matrix of zeros."""
    emit_identity(launches, a, a.rows)


def _emit_copy(launches: LaunchList, a: Operand, v: Operand, first: int, copies: bool) -> None:
    config, (m, n) = FIXED[reflector_copy.STEM].fixed_config(launches.dtype.letter), (v.rows, v.cols)

    def integers(a: Operand, v: Operand) -> tuple[int, ...]:
        strides = a.row_stride, a.col_stride, v.row_stride, v.col_stride
        return m, n, first, int(copies), *strides, a.batch_stride, v.batch_stride

    launches.emit(reflector_copy.source(config), config.grid(m, n), (a, v), integers, ())


def emit_product(
    launches: LaunchList, block: BlockReflector, c: Operand, adjoint: bool, conj: bool = False
) -> None:
    """Emit C := H C for the H of a block, its adjoint, its conjugate (`conj`), or with both its transpose.

    The latter two serve products from the right: C H is (H^T C^T)^T.
    """
    if c.is_empty:
        return
    v, t = block
    with launches.temporary():
        w, x = (launches.scratch(v.cols, c.cols, c.batch, ALIGNED) for _ in range(2))
        if adjoint:
            t = t.T.conjugate()
        if conj:
            v, t = v.conjugate(), t.conjugate()
        emit_gemm(launches, 1.0, v.T.conjugate(), c, 0.0, w)
        emit_gemm(launches, 1.0, t, w, 0.0, x)
        emit_gemm(launches, -1.0, v, x, 1.0, c)
