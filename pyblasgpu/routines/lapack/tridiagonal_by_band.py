"""A = Q T Qᴴ with T real and tridiagonal, of one large matrix, in two stages: to a band, and from it.

`band_reduction` is products. `band_chase` makes the band tridiagonal in one launch. Its reflectors are kept
by groups of sweeps: those of the same step make a block reflector. The blocks of a group are applied from
the first step on, groups from the last one on. A block of group G at step k shares rows with those of group
G + 1 to step k. So blocks with the same k + L - G are one product of a batch, with rows without gaps. They
are whole matrices, and the product goes from one copy of the vectors to another one: so each wave reads and
writes them once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...dispatch.choose import select
from ...dispatch.operand_copies import ALIGNED
from ...gpu.device import current
from ...kernels.factor.eigen import band_chase
from ...operands import Operand
from ..copies import emit_copy, emit_scale
from ..launch_list import LaunchList
from ..level3.gemm import emit_gemm
from . import band_reduction
from .block_reflector import emit_identity, emit_triangle
from .tridiagonal_form import Tree, Tridiagonal, emit_vectors, stack

__all__ = ["Chase", "config_of", "emit_back", "emit_reduction", "new_vectors"]

GROUP = 32  # sweeps of a group


class Chase(NamedTuple):
    """The reflectors of `band_chase`.

    Attributes
    ----------
    width, steps : int
        Rows of a reflector, and the number of blocks of a group.
    vectors, tau : Operand
        V and tau of each block, those of a group one after the other.
    """

    width: int
    steps: int
    vectors: Operand
    tau: Operand

    @property
    def height(self) -> int:
        """Rows of a block, and from one to the next of a wave."""
        return self.vectors.rows


def config_of(launches: LaunchList) -> Any:
    """The Config of the kernel."""
    return select(band_chase.STEM, launches.dtype, "", (), current(launches.device)).config


def emit_reduction(
    launches: LaunchList, tree: Tree, info: Operand, a: Operand, with_vectors: bool
) -> tuple[Tridiagonal, Chase]:
    """Emit T of one matrix; without vectors no reflectors of the chase are kept."""
    n, config = a.rows, config_of(launches)
    ld, steps = config.leading_dimension(n), config.steps(n)
    columns = max(config.columns(n), n + band_reduction.columns(config.WIDTH))
    work, tau = stack(launches, ld * columns, 1), stack(launches, n, 1)
    form = Tridiagonal.in_scratch(launches, tree, work, tau)
    count = -(-(n - 1) // GROUP) * steps if with_vectors else 1
    height = config.WIDTH + GROUP
    vectors, factors = stack(launches, height * GROUP, count), stack(launches, GROUP, count)
    if with_vectors:
        for each in (vectors, factors):
            columns = each._replace(cols=each.batch, col_stride=each.batch_stride, batch=1, batch_stride=0)
            emit_scale(launches, 0.0, columns, zero=True)
    band, progress = stack(launches, config.LD * n, 1), stack(launches, n, 1)
    operands = (
        a, work, band, vectors, factors, form.d, form.e, form.leaves, form.scale, info, progress,
        launches.flags(),
    )  # fmt: skip

    def emit_launch(options: int, blocks: int) -> None:
        def integers(a: Operand, *_: Operand) -> tuple[int, ...]:
            numbers = n, ld, tree.leaf, tree.padded, int(a.conj), options, GROUP, steps
            return *numbers, a.row_stride, a.col_stride

        whole = tuple(each.matrices(0, 1) for each in operands)
        launches.emit(band_chase.source(config), blocks, whole, integers, ())

    multiprocessors = current(launches.device).sm_count
    emit_launch(band_chase.FILLS, min(-(-n // config.WARPS), multiprocessors))
    form = form._replace(work=work._replace(rows=n, cols=n, col_stride=ld))
    if n > config.WIDTH + 1:
        band_reduction.emit(launches, tau._replace(rows=n - config.WIDTH), form.work, config.WIDTH)
    options = band_chase.WANTS_VECTORS if with_vectors else 0
    emit_launch(options, config.grid(n, multiprocessors))
    whole = {"rows": height, "cols": GROUP, "col_stride": height}
    return form, Chase(config.WIDTH, steps, vectors._replace(**whole), factors)


def new_vectors(launches: LaunchList, n: int, count: int) -> Operand:
    """Scratch for vectors of T, zero; the row of each block of reflectors is at an aligned address."""
    memory = _with_margins(launches, n, count)
    emit_scale(launches, 0.0, memory, zero=True)
    return memory.block(GROUP - 1, 0, n, count)


def _with_margins(launches: LaunchList, n: int, count: int) -> Operand:
    """Scratch for n rows, and for those of blocks of reflectors before the first and behind the last one."""
    height = config_of(launches).WIDTH + GROUP
    return launches.scratch(n + GROUP - 1 + height, count, 1, ALIGNED)


def emit_back(launches: LaunchList, form: Tridiagonal, chase: Chase, x: Operand, v: Operand) -> None:
    """Emit V, the product of Q with vectors X of T; X is of `new_vectors`, and is overwritten."""
    n, rows = form.work.rows, chase.width * chase.steps + 1
    aligned = launches.scratch(rows, x.cols, 1, ALIGNED)
    with launches.temporary():
        _emit_waves(launches, chase, x, aligned)
    aligned = aligned.block(0, 0, n, x.cols)
    if n > chase.width + 1:
        emit_vectors(launches, form, aligned, chase.width)
    emit_copy(launches, 1.0, aligned, v)


def _emit_waves(launches: LaunchList, chase: Chase, x: Operand, out: Operand) -> None:
    """Emit the product of all blocks of reflectors with X, to `out`, whose rows are whole steps and one."""
    n, last = x.rows, -(-(x.rows - 1) // GROUP) - 1
    blocks, other = _emit_blocks(launches, chase), _with_margins(launches, n, x.cols)
    emit_copy(launches, 1.0, x.block(1 - GROUP, 0, other.rows, x.cols), other)
    both = x, other.block(GROUP - 1, 0, n, x.cols)
    for wave in range(chase.steps + last):
        # of group L - u step wave - u, from row L GROUP + 1 + wave WIDTH - u height on
        low = max(-(-(last * GROUP + 2 + wave * chase.width - n) // chase.height), 0)
        high = min(wave, last)
        block = blocks.matrices((last - high) * chase.steps + wave - high, 1)
        first = (last - high) * GROUP + 1 + (wave - high) * chase.width
        source, target = both[wave % 2], both[1 - wave % 2]
        _emit_wave(launches, chase, block, (source, target), first, high - low + 1)

    def every_other(operand: Operand, step: int) -> Operand:
        """Rows of every other step from a step on."""
        rows = operand.block(1 + step * chase.width, 0, chase.width, x.cols)
        count = -(-(chase.steps - step) // 2)
        return rows._replace(batch=count, batch_stride=2 * chase.width * rows.row_stride)

    emit_copy(launches, 1.0, x.block(0, 0, 1, x.cols), out.block(0, 0, 1, x.cols))
    for step in range(min(2, chase.steps)):  # rows of one are final after wave L + step, where that wrote
        source = both[1 - (last + step) % 2]
        emit_copy(launches, 1.0, every_other(source, step), every_other(out, step))


def _emit_blocks(launches: LaunchList, chase: Chase) -> Operand:
    """Emit I - V T Vᴴ of all blocks."""
    height, batch = chase.height, chase.vectors.batch
    blocks = stack(launches, height * height, batch)._replace(rows=height, cols=height, col_stride=height)
    emit_identity(launches, blocks, 0)
    with launches.temporary():
        t = launches.scratch(GROUP, GROUP, batch, ALIGNED)
        factors = stack(launches, GROUP * height, batch)._replace(rows=GROUP, cols=height, col_stride=GROUP)
        emit_triangle(launches, chase.tau, chase.vectors, t)
        emit_gemm(launches, 1.0, t, chase.vectors.T.conjugate(), 0.0, factors)
        emit_gemm(launches, -1.0, chase.vectors, factors, 1.0, blocks)
    return blocks


def _emit_wave(
    launches: LaunchList,
    chase: Chase,
    block: Operand,
    both: tuple[Operand, Operand],
    first: int,
    count: int,
) -> None:
    """Emit the product of a `block` with rows from the `first` one on, from one operand to the other. The
    blocks behind it, of the next group and step each, multiply the rows behind those.
    """
    blocks = block._replace(batch=count, batch_stride=(chase.steps + 1) * block.cols * block.col_stride)
    source, target = (
        each.block(first, 0, chase.height, each.cols)._replace(
            batch=count, batch_stride=chase.height * each.row_stride
        )
        for each in both
    )
    emit_gemm(launches, 1.0, blocks, source, 0.0, target)
