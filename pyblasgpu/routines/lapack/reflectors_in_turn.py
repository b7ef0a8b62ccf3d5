"""Products with all reflectors of a matrix: V and T of its blocks, and what is made with one after the other.

A product with a block reads C twice and writes it once. So few wide blocks are faster than many, as long as
their T take a small part of the time. Where C has as many columns as rows, V T is made with T: then two
products follow one another in each block, not three.

V and T depend on nothing that products write. Those of small matrices are made at once, as stacks. Else those
of the next block are made on the side stream, while one is applied.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple

from ...dispatch.operand_copies import ALIGNED
from ...gpu.device import current
from ...kernels.factor.qr import larft_leaf
from ...operands import Operand
from ..copies import emit_resolved
from ..launch_list import CALL, LaunchList
from ..level3.gemm import emit_gemm
from .block_reflector import BlockReflector, emit_triangle, emit_vectors, new_block_reflector
from .factor_steps import leaf_config

__all__ = ["Group", "emit_in_turn"]

#: Triangles of `larft_leaf` that T of a block joins, at most; by bytes of a real.
WIDEST = {4: 2, 8: 4}
BLOCKS = 8  # blocks of a matrix, at least, where T joins some
SMALL = 16  # rows of a matrix whose V and T are made at once, at most, by the order of `larft_leaf`
AHEAD = 4  # groups, at least, for which the next one is made on the side stream
SHARE = 4  # multiprocessors of each matrix, at least, with which that gains


class Group(NamedTuple):
    """Neighbouring blocks of reflectors whose V and T are made together.

    Attributes
    ----------
    first : int
        The first reflector.
    width, blocks : int
        Reflectors of a block, and blocks: one, or of one matrix several.
    stack : BlockReflector or None
        The blocks as a stack, with the rows from `first` on; None: they are not made.
    """

    first: int
    width: int
    blocks: int
    stack: BlockReflector | None = None

    @property
    def cols(self) -> int:
        """Reflectors of all blocks."""
        return self.width * self.blocks

    def stacked(self, a: Operand, row_step: int = 0) -> Operand:
        """The columns of each block in `a`, which begins with those of the first one; every block begins
        `row_step` rows below the one before it.
        """
        part = a.block(0, 0, a.rows, self.width)
        if self.blocks == 1:
            return part
        return part._replace(
            batch=self.blocks, batch_stride=self.width * a.col_stride + row_step * a.row_stride
        )

    @property
    def made(self) -> BlockReflector:
        """The stack, which is there."""
        assert self.stack is not None
        return self.stack

    @property
    def heads(self) -> Operand:
        """The triangles on top of V of each block."""
        v, k = self.made.v, self.width
        return self.stacked((v if self.blocks == 1 else v._replace(batch=1)).block(0, 0, k, k), k)

    def block(self, j: int) -> tuple[int, BlockReflector]:
        """The first reflector of a block, and the block, without the zeros on top."""
        top = j * self.width

        def part(each: Operand, skipped: int) -> Operand:
            own = each if self.blocks == 1 else each.matrices(j, 1)
            return own.block(skipped, 0, own.rows - skipped, own.cols)

        v, t, vt = self.made
        return self.first + top, BlockReflector(
            part(v, top), part(t, 0), None if vt is None else part(vt, top)
        )


def emit_in_turn(
    launches: LaunchList,
    factors: tuple[Operand, Operand],
    cols: int,
    apply: Callable[[int, BlockReflector], None],
    adjoint: bool,
    prepare: Callable[[Group], None] | None = None,
) -> None:
    """Emit products with all reflectors, a block after the other.

    Parameters
    ----------
    launches : LaunchList
    factors : pair of Operand
        tau, and the vectors below a diagonal.
    cols : int
        Columns of what is multiplied.
    apply : callable
        ``apply(first, block)`` emits the product. It writes no vectors of the blocks after it.
    adjoint : bool
        Whether products are with adjoints, the first block's first; else with blocks, the last one's first.
    prepare : callable, optional
        ``prepare(group)`` emits what is done with the blocks of a group before they are applied. It reads
        and writes nothing that products with the blocks before them read or write.
    """
    groups, tau, a = _groups(launches, factors, cols), *factors
    if not adjoint:
        groups = groups[::-1]
    is_ahead = (
        len(groups) >= AHEAD
        and a.batch * SHARE <= current(launches.device).sm_count
        and launches.lane is CALL
    )
    applied, begun = list[int | None](), launches.mark()

    def make(j: int) -> tuple[Group, int | None]:
        with launches.on_side_stream() if is_ahead else nullcontext(), launches.temporary():
            if is_ahead:
                launches.wait_for(applied[j - 2] if j > 1 else None if j else begun)
            made = _emit_group(launches, tau, a, groups[j], memory[j % len(memory)], adjoint)
            if prepare is not None:
                prepare(made)
            return made, launches.mark()

    with launches.temporary():
        memory = [_new_memory(launches, a, groups, cols) for _ in range(1 + is_ahead)]
        following = make(0) if groups else None
        for j in range(len(groups)):
            assert following is not None
            group, made = following
            if is_ahead and j + 1 < len(groups):
                following = make(j + 1)
            if is_ahead:
                launches.wait_for(made)
            before = launches.mark()
            for each in range(group.blocks) if adjoint else reversed(range(group.blocks)):
                apply(*group.block(each))
            applied.append(None if launches.mark() == before else launches.mark())
            if not is_ahead and j + 1 < len(groups):
                following = make(j + 1)


def _groups(launches: LaunchList, factors: tuple[Operand, Operand], cols: int) -> list[Group]:
    """The groups of all reflectors, those of a last block of fewer apart."""
    tau, a = factors
    order = leaf_config(launches, larft_leaf.STEM, tau.rows).ORDER
    width, least = order, min(a.rows, tau.rows, cols)
    widest = WIDEST[launches.dtype.real_size] * order if a.batch == 1 else order
    while width < widest and 2 * BLOCKS * width <= least:
        width *= 2
    count, left = divmod(tau.rows, width)
    if a.batch == 1 and width == order and a.rows <= SMALL * order and count:
        groups = [Group(0, width, count)]
    else:
        groups = [Group(j * width, width, 1) for j in range(count)]
    return [*groups, Group(count * width, left, 1)] if left else groups


def _new_memory(launches: LaunchList, a: Operand, groups: list[Group], cols: int) -> BlockReflector:
    """Scratch for V and T of any of the groups, and for V T where that saves products."""
    width = max((group.width for group in groups), default=0)
    count = max((group.blocks for group in groups), default=0)
    v, _, _ = new_block_reflector(launches, a.rows, width * count, a.batch)
    t = launches.scratch(width, width, a.batch * count, ALIGNED)
    folds = a.batch == 1 and cols >= a.rows
    return BlockReflector(v, t, launches.scratch(a.rows, width * count, 1, ALIGNED) if folds else None)


def _emit_group(
    launches: LaunchList, tau: Operand, a: Operand, group: Group, memory: BlockReflector, adjoint: bool
) -> Group:
    """Emit V and T of the blocks of a group, and V T or V T^H where there is memory for it."""
    first, width, count, _ = group
    rows, out = a.rows - first, memory.part(a.rows - first, group.cols)
    v = group.stacked(emit_vectors(launches, a.block(first, first, rows, group.cols), out.v))
    t = memory.t.block(0, 0, width, width).matrices(0, a.batch * count)
    factors = emit_resolved(launches, tau.block(first, 0, group.cols, 1))
    emit_triangle(launches, group.stacked(factors.T).T, v, t)
    vt = None if out.vt is None else group.stacked(out.vt)
    if vt is not None:
        emit_gemm(launches, 1.0, v, t.T.conjugate() if adjoint else t, 0.0, vt)
    return group._replace(stack=BlockReflector(v, t, vt))
