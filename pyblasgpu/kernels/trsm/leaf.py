"""``trsm_leaf``: solves T X = alpha * B in place, T lower triangular, by substitution.

The sweep over the panel is in `triangle`, the solution of a diagonal block in `substitution`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx
from ...gpu.compile import KernelSource
from ..common.substitution import (
    column_reader,
    column_writer,
    diagonal_inverter,
    exact_division_solver,
    panel_writer,
    steps,
)
from ..common.triangle_panel import (
    TrianglePanel,
    Variant,
    block_copier,
    panel_source,
    slice_adder,
    stripe_multiplier,
    tile_walker,
)

STEM = "trsm_leaf"


@dataclass(frozen=True)
class TrsmLeaf(TrianglePanel):
    """Config of one `trsm_leaf` kernel; the parameters are those of `TrianglePanel`."""

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        super().__post_init__()
        require(
            self.threads >= self.BLK_M and self.threads >= self.BLK_N,
            "column_threads",
            "max(BLK_M, BLK_N) <= threads",
            BLK_M=self.BLK_M,
            BLK_N=self.BLK_N,
            threads=self.threads,
        )
        require(
            self.sum_elements <= self.ring_elements,
            "sums_fit_ring",
            "(SLICED_K - 1) * BLK_M * BLK_N <= elements of the ring",
            sums=self.sum_elements,
            ring=self.ring_elements,
        )

    @property
    def row_of_panel(self) -> int:
        """Elements from one row of the panel to the next in shared memory (odd, against conflicts)."""
        return self.BLK_N + 1

    @property
    def shared_elements(self) -> int:
        """The ring, the diagonal block, the inverse of its diagonal, the panel."""
        return self.ring_elements + self.BLK_M * (self.BLK_M + 1 + self.row_of_panel)

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread: the stencil's tile, or a column of the panel."""
        return max(self.tile_elements, self.BLK_M) * self.dtype_facts.itemsize // 4


def source(config: TrsmLeaf, variant: Variant) -> KernelSource:
    """The kernel of `config`; parameters and grid as in `triangle.panel_source`."""
    return panel_source(STEM, config, variant, _build)


def _combiner(config: TrsmLeaf):
    """``visit`` of `tile_walker`: alpha B - sum, in the panel."""
    COMPLEX = config.dtype_facts.is_complex

    @device_function
    def visit(panel, at, acc, x, ok, alpha, alpha_i):
        re = panel[at]
        if COMPLEX:
            im = panel[at + 1]
            panel[at] = alpha * re - alpha_i * im - acc[x]
            panel[at + 1] = alpha * im + alpha_i * re - acc[x + 1]
        else:
            panel[at] = alpha * re - acc[x]

    return visit


def _solver(config: TrsmLeaf, variant: Variant):
    """``solve(column, panel, diagonal, inverse, t, rows)``: the panel, a thread a column."""
    facts, BLK_M, BLK_N = config.dtype_facts, config.BLK_M, config.BLK_N
    PARTS, ROW = facts.reals_per_element, config.row_of_panel * facts.reals_per_element
    invert = diagonal_inverter(facts, BLK_M, BLK_M + 1, variant.conj, variant.unit)
    offset = ptx.offset
    read, write = column_reader(PARTS, BLK_M, ROW), column_writer(PARTS, BLK_M, ROW)
    substitute = steps(facts, BLK_M, variant.conj, not variant.unit)
    substitute_by_exact_division = exact_division_solver(facts, ROW, variant.conj, not variant.unit)

    @device_function
    def solve(column, panel, diagonal, inverse, t, rows):
        safe = cuda.syncthreads_and(invert(diagonal, inverse, t, rows))
        if t < BLK_N:
            mine = offset(panel, t * PARTS)
            if safe:
                read(column, mine)
                substitute(column, diagonal, inverse)
                write(column, mine)
            else:
                substitute_by_exact_division(mine, diagonal, 1, BLK_M, BLK_M)
        cuda.syncthreads()

    return solve


def _build(config: TrsmLeaf, variant: Variant):
    facts = config.dtype_facts
    real, PARTS = ptx.REALS[facts.real], facts.reals_per_element
    int64, offset, shared_pointer = ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait = ptx.grid_dependency_wait
    BLK_M, BLK_N, BLK_K, STAGES = config.BLK_M, config.BLK_N, config.BLK_K, config.stages
    DIM_X, VEC_M, VEC_N = config.DIM_X, config.VEC_M, config.VEC_N
    PLACES, DEPTH, ROW = DIM_X * config.DIM_Y, BLK_K // config.SLICED_K, config.row_of_panel
    ACC, FRAG_T, FRAG_X = config.THR_M * config.THR_N * PARTS, config.THR_M * PARTS, config.THR_N * PARTS
    COLUMN = BLK_M * PARTS
    LEAD_T, LEAD_X = config.lead_t * PARTS, config.lead_x * PARTS
    X_STRIPE, STAGE = LEAD_T * BLK_K, config.stage_elements * PARTS
    DIAGONAL = STAGES * STAGE
    INVERSE = DIAGONAL + BLK_M * BLK_M * PARTS
    PANEL = INVERSE + BLK_M * PARTS

    copy_t = block_copier(config, BLK_M, BLK_K, 1, config.lead_t, variant.t_by_rows)
    copy_x = block_copier(config, BLK_K, BLK_N, config.lead_x, 1, variant.b_by_rows)
    copy_diagonal = block_copier(config, BLK_M, BLK_M, 1, BLK_M, variant.t_by_rows, 1 if variant.unit else 0)
    copy_panel = block_copier(config, BLK_M, BLK_N, config.row_of_panel, 1, variant.b_by_rows)
    write_panel = panel_writer(PARTS, BLK_M, BLK_N, ROW * PARTS, config.threads, variant.b_by_rows)
    multiply, add_slices = stripe_multiplier(config, variant.conj), slice_adder(config)
    combine, solve = tile_walker(config, _combiner(config)), _solver(config, variant)
    zero, commit = ptx.fill(ACC), ptx.commit_async
    wait, wait_all = ptx.wait_async(STAGES - 2), ptx.wait_async(0)

    @device_function
    def start(stage, t_row, b, t_rs, t_cs, b_rs, b_cs, t, rows, cols, depth, k):
        if k < depth:
            t_part, b_part = offset(t_row, k * t_cs * PARTS), offset(b, k * b_rs * PARTS)
            copy_t(stage, t_part, t_rs, t_cs, t, rows, depth - k, 0)
            copy_x(offset(stage, X_STRIPE), b_part, b_rs, b_cs, t, depth - k, cols, 0)
        commit()

    def trsm_leaf(tri, b, n, r, t_rs, t_cs, b_rs, b_cs, stride_t, stride_b, alpha, alpha_i):
        # (1) the columns of this block, the place of this thread
        t = cuda.threadIdx.x
        slice, place = t // PLACES, t % PLACES
        tx, ty = place % DIM_X, place // DIM_X
        col0, batch = cuda.blockIdx.x * BLK_N, int64(cuda.blockIdx.z)
        cols = r - col0
        tri = offset(tri, batch * stride_t * PARTS)
        b = offset(b, (batch * stride_b + col0 * b_cs) * PARTS)
        ring = shared_pointer(cuda.shared.array(0, real, alignment=16))
        diagonal, inverse, panel = offset(ring, DIAGONAL), offset(ring, INVERSE), offset(ring, PANEL)
        my_t = slice * DEPTH * LEAD_T + tx * VEC_M * PARTS
        my_x = X_STRIPE + slice * DEPTH * LEAD_X + ty * VEC_N * PARTS
        acc, column = cuda.local.array(ACC, real), cuda.local.array(COLUMN, real)
        rt, rx = cuda.local.array(FRAG_T, real), cuda.local.array(FRAG_X, real)

        grid_dependency_wait()
        for step in range((n + BLK_M - 1) // BLK_M):
            row0 = int64(step) * BLK_M
            rows, stripes = n - row0, (row0 + BLK_K - 1) // BLK_K
            t_row, b_row = offset(tri, row0 * t_rs * PARTS), offset(b, row0 * b_rs * PARTS)

            # (2) the panel and the diagonal block set out for shared memory
            copy_panel(panel, b_row, b_rs, b_cs, t, rows, cols, 0)
            copy_diagonal(diagonal, offset(t_row, row0 * t_cs * PARTS), t_rs, t_cs, t, rows, rows, 0)

            # (3) acc := T[i, :i] X[:i]
            zero(acc, real(0))
            for s in range(STAGES - 1):
                start(
                    offset(ring, s * STAGE), t_row, b, t_rs, t_cs, b_rs, b_cs, t, rows, cols, row0, s * BLK_K
                )
            for s in range(stripes):
                wait()
                cuda.syncthreads()
                ahead = s + STAGES - 1
                stage = offset(ring, ahead % STAGES * STAGE)
                start(stage, t_row, b, t_rs, t_cs, b_rs, b_cs, t, rows, cols, row0, ahead * BLK_K)
                stage = offset(ring, s % STAGES * STAGE)
                multiply(acc, rt, rx, offset(stage, my_t), offset(stage, my_x))
            wait_all()
            cuda.syncthreads()

            # (4) panel := alpha B[i] - acc, then the substitution
            add_slices(acc, ring, slice, place)
            if slice == 0:
                combine(0, tx, ty, acc, panel, ROW, 1, BLK_M, BLK_N, alpha, alpha_i)
            cuda.syncthreads()
            solve(column, panel, diagonal, inverse, t, rows)

            # (5) the panel goes back to B
            write_panel(b_row, panel, b_rs, b_cs, t, rows, cols)
            cuda.syncthreads()

    return trsm_leaf
