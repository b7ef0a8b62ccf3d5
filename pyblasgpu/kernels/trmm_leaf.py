"""``trmm_leaf``: B := alpha * T * B in place, T lower triangular (see `triangle` for the sweep).

Block rows are walked from the last to the first, so that what is read to the left of the diagonal is
still B's old content.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..gpu.backend import cuda, device_function, in_order, ptx
from ..gpu.compile import KernelSource
from .triangle import TrianglePanel, Variant, column_reader, column_writer, panel_source

STEM = "trmm_leaf"


@dataclass(frozen=True)
class TrmmLeaf(TrianglePanel):
    """Config of one `trmm_leaf` kernel; the parameters are those of `TrianglePanel`."""

    STEM: ClassVar[str] = STEM


def source(config: TrmmLeaf, variant: Variant) -> KernelSource:
    """The kernel of `config`; parameters and grid as in `triangle.panel_source`."""
    return panel_source(STEM, config, variant, _steps)


def _steps(config: TrmmLeaf, variant: Variant):
    """Walk downwards; the diagonal product before, alpha (product + acc) as the combination."""
    PARTS, BLK_M, BLK_N, COMPLEX = (
        config.dtype_facts.parts,
        config.BLK_M,
        config.BLK_N,
        config.dtype_facts.is_complex,
    )
    read, write = column_reader(config), column_writer(config)
    real, UNIT, CONJ = ptx.REALS[config.dtype_facts.real], variant.unit, -1 if variant.conj else 1

    @device_function
    def scale(j, column, diagonal):
        at = j * (BLK_M + 1) * PARTS
        re = column[j * PARTS]
        if COMPLEX:
            im, t_re, t_im = column[j * PARTS + 1], diagonal[at], real(CONJ) * diagonal[at + 1]
            column[j * PARTS] = t_re * re - t_im * im
            column[j * PARTS + 1] = t_re * im + t_im * re
        else:
            column[j] = diagonal[at] * re

    def column_step(j):
        spread = ptx.spread_column(BLK_M, j, PARTS, variant.conj, 1)

        @device_function
        def step(column, diagonal):
            spread(column, diagonal)
            if not UNIT:
                scale(j, column, diagonal)

        return step

    # from the last column of T on, so that column[j] is still old when it is spread
    multiply_column = in_order([column_step(j) for j in reversed(range(BLK_M))])

    @device_function
    def before(column, panel, diagonal, inverse, t, rows):
        if t < BLK_N:
            read(column, panel)
            multiply_column(column, diagonal)
            write(column, panel)
        cuda.syncthreads()

    @device_function
    def combine(panel, at, acc, x, alpha, alpha_i):
        re = panel[at] + acc[x]
        if COMPLEX:
            im = panel[at + 1] + acc[x + 1]
            panel[at] = alpha * re - alpha_i * im
            panel[at + 1] = alpha * im + alpha_i * re
        else:
            panel[at] = alpha * re

    @device_function
    def solve(column, panel, diagonal, inverse, t, rows):
        pass

    return True, before, combine, solve
