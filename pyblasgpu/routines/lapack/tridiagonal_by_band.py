"""A = Q T Qᴴ with T real and tridiagonal, of one large matrix, in two stages: to a band, and from it.

`band_reduction` is products. `band_chase` makes the band tridiagonal in one launch. Its reflectors are kept
by groups of sweeps: those of the same step make a block reflector. The blocks of a group are applied from
the first step on, groups from the last one on. A block of group G at step k shares rows with those of group
G + 1 to step k. So blocks with the same k + L - G are one product of a batch.
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
from .block_reflector import emit_triangle
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
    work, tau = stack(launches, ld * config.columns(n), 1), stack(launches, n, 1)
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
    height = config_of(launches).WIDTH + GROUP
    memory = launches.scratch(n + GROUP - 1 + height, count, 1, ALIGNED)
    emit_scale(launches, 0.0, memory, zero=True)
    return memory.block(GROUP - 1, 0, n, count)


def emit_back(launches: LaunchList, form: Tridiagonal, chase: Chase, x: Operand, v: Operand) -> None:
    """Emit V, the product of Q with vectors X of T; X is of `new_vectors`, and is overwritten."""
    n = form.work.rows
    with launches.temporary():
        factors = _emit_factors(launches, chase)
        last = -(-(n - 1) // GROUP) - 1
        for wave in range(chase.steps + last):
            # of group L - u step wave - u, from row L GROUP + 1 + wave WIDTH - u height on
            low = max(-(-(last * GROUP + 2 + wave * chase.width - n) // chase.height), 0)
            high = min(wave, last)
            if low <= high:
                _emit_wave(launches, chase, factors, x, last - high, wave - high, high - low + 1)
    aligned = launches.scratch(n, x.cols, 1, ALIGNED)
    emit_copy(launches, 1.0, x, aligned)
    if n > chase.width + 1:
        emit_vectors(launches, form, aligned, chase.width)
    emit_copy(launches, 1.0, aligned, v)


def _emit_factors(launches: LaunchList, chase: Chase) -> Operand:
    """Emit T Vᴴ of all blocks: as it is stored, products need no copy of it."""
    rows, batch = chase.vectors.rows, chase.vectors.batch
    factors = stack(launches, GROUP * rows, batch)._replace(rows=GROUP, cols=rows, col_stride=GROUP)
    with launches.temporary():
        t = launches.scratch(GROUP, GROUP, batch, ALIGNED)
        emit_triangle(launches, chase.tau, chase.vectors, t)
        emit_gemm(launches, 1.0, t, chase.vectors.T.conjugate(), 0.0, factors)
    return factors


def _emit_wave(
    launches: LaunchList, chase: Chase, factors: Operand, v: Operand, group: int, step: int, count: int
) -> None:
    """Emit the blocks of `group` at `step`, and of those after it, each a step ahead of the one before."""

    def blocks(x: Operand) -> Operand:
        x = x.matrices(group * chase.steps + step, 1)
        return x._replace(batch=count, batch_stride=(chase.steps + 1) * x.cols * x.col_stride)

    def rows(x: Operand) -> Operand:
        top = x.block(group * GROUP + 1 + step * chase.width, 0, chase.height, x.cols)
        return top._replace(batch=count, batch_stride=chase.height * x.row_stride)

    with launches.temporary():
        w = launches.scratch(GROUP, v.cols, count, ALIGNED)
        emit_gemm(launches, 1.0, blocks(factors), rows(v), 0.0, w)
        emit_gemm(launches, -1.0, blocks(chase.vectors), w, 1.0, rows(v))
