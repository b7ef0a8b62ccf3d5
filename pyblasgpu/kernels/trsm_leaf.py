"""``trsm_leaf``: solves T X = alpha * B in place, T lower triangular, by substitution (see `triangle`).

No inverse of more than a scalar is formed. Division is a multiplication by the reciprocal that one
residual makes as good as a division; where the reciprocal is not safe (zero, tiny, huge, not finite), the
block is solved with true divisions instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..errors import require
from ..gpu.backend import cuda, device_function, in_order, ptx
from ..gpu.compile import KernelSource
from ..types import Dtype
from .triangle import (
    TrianglePanel,
    Variant,
    block_copier,
    panel_source,
    slice_adder,
    stripe_multiplier,
    tile_walker,
)

STEM = "trsm_leaf"
#: A diagonal element within 2^-SAFE .. 2^SAFE has a normal reciprocal, and a square that neither over-
#: nor underflows (complex); by bytes of a real.
SAFE = {4: 60, 8: 500}


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
            "(SLICES - 1) * BLK_M * BLK_N <= elements of the ring",
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


def _panel_writer(config: TrsmLeaf, by_rows: bool):
    """``write(b, panel, row_stride, col_stride, t, rows, cols)``: the panel back to B."""
    PARTS, THREADS, ROW = (
        config.dtype_facts.parts,
        config.threads,
        config.row_of_panel * config.dtype_facts.parts,
    )
    FAST, TOTAL = (config.BLK_M if by_rows else config.BLK_N), config.BLK_M * config.BLK_N
    store = ptx.store_global

    @device_function
    def write(b, panel, row_stride, col_stride, t, rows, cols):
        for first in range(0, TOTAL, THREADS):
            fast, slow = (t + first) % FAST, (t + first) // FAST
            i, j = (fast, slow) if by_rows else (slow, fast)
            if t + first < TOTAL:
                ok, at = (i < rows) & (j < cols), (i * row_stride + j * col_stride) * PARTS
                for part in range(PARTS):
                    store(b, at + part, panel[i * ROW + j * PARTS + part], ok)

    return write


def _solver(config: TrsmLeaf, variant: Variant):
    """``solve(column, panel, diagonal, inverse, t, rows)``: the panel, a thread a column."""
    PARTS, BLK_N, offset = config.dtype_facts.parts, config.BLK_N, ptx.offset
    substitute, substitute_carefully = _register_solver(config, variant), _careful_solver(config, variant)
    invert = _inverter(config, variant)

    @device_function
    def solve(column, panel, diagonal, inverse, t, rows):
        safe = cuda.syncthreads_and(invert(diagonal, inverse, t, rows))
        if t < BLK_N:
            if safe:
                substitute(column, offset(panel, t * PARTS), diagonal, inverse)
            else:
                substitute_carefully(offset(panel, t * PARTS), diagonal)
        cuda.syncthreads()

    return solve


def _inverter(config: TrsmLeaf, variant: Variant):
    """``invert(diagonal, inverse, t, rows)``: reciprocals of the diagonal; whether thread t's is safe."""
    facts = config.dtype_facts
    real, PARTS, BLK_M, UNIT = ptx.REALS[facts.real], facts.parts, config.BLK_M, variant.unit
    COMPLEX, CONJ = facts.is_complex, -1 if variant.conj else 1
    TINY, HUGE = 2.0 ** -SAFE[facts.real_size], 2.0 ** SAFE[facts.real_size]
    divide, int32 = ptx.divide, ptx.types.int32

    @device_function
    def invert(diagonal, inverse, t, rows):
        safe = int32(1)
        if not UNIT and t < min(rows, BLK_M):
            at = t * (BLK_M + 1) * PARTS
            re, size = diagonal[at], abs(diagonal[at])
            if COMPLEX:
                im = real(CONJ) * diagonal[at + 1]
                size = max(size, abs(im))
                square = re * re + im * im
                inverse[2 * t] = divide(re, square)
                inverse[2 * t + 1] = divide(-im, square)
            else:
                inverse[t] = divide(real(1), re)
            safe = int32((size >= real(TINY)) & (size <= real(HUGE)))
        return safe

    return invert


def _quotient(facts: Dtype):
    """``quotient(b, t, r)`` = b / t from r = 1 / t: one residual makes it as good as a division."""
    fma = ptx.fma

    def real_quotient(b, t, r):
        x = b * r
        better = fma(fma(-x, t, b), r, x)
        return better if better == better else x  # an infinite x has no residual

    def complex_quotient(b_re, b_im, t_re, t_im, r_re, r_im):
        x_re, x_im = b_re * r_re - b_im * r_im, b_re * r_im + b_im * r_re
        e_re = fma(x_im, t_im, fma(-x_re, t_re, b_re))
        e_im = fma(-x_im, t_re, fma(-x_re, t_im, b_im))
        better_re = fma(-e_im, r_im, fma(e_re, r_re, x_re))
        better_im = fma(e_im, r_re, fma(e_re, r_im, x_im))
        finite = (better_re == better_re) & (better_im == better_im)
        return (better_re, better_im) if finite else (x_re, x_im)

    if facts.is_complex:
        return ptx.called(complex_quotient)
    return ptx.called(real_quotient)


def _register_solver(config: TrsmLeaf, variant: Variant):
    """``substitute(column, panel, diagonal, inverse)``: one column, in registers."""
    facts = config.dtype_facts
    PARTS, BLK_M, COMPLEX, UNIT = facts.parts, config.BLK_M, facts.is_complex, variant.unit
    real, CONJ, quotient = ptx.REALS[facts.real], -1 if variant.conj else 1, _quotient(facts)
    read, write = _column_reader(config), _column_writer(config)

    def column_step(j):
        spread = ptx.spread_column(BLK_M, j, PARTS, variant.conj, -1)

        @device_function
        def step(column, diagonal, inverse):
            if not UNIT:
                x, t = j * PARTS, j * (BLK_M + 1) * PARTS
                if COMPLEX:
                    t_im = real(CONJ) * diagonal[t + 1]
                    column[x], column[x + 1] = quotient(
                        column[x], column[x + 1], diagonal[t], t_im, inverse[x], inverse[x + 1]
                    )
                else:
                    column[x] = quotient(column[x], diagonal[t], inverse[x])
            spread(column, diagonal)

        return step

    substitute_steps = in_order([column_step(j) for j in range(BLK_M)])

    @device_function
    def substitute(column, panel, diagonal, inverse):
        read(column, panel)
        substitute_steps(column, diagonal, inverse)
        write(column, panel)

    return substitute


def _careful_solver(config: TrsmLeaf, variant: Variant):
    """``substitute(panel, diagonal)``: one column, in shared memory, with true divisions."""
    facts = config.dtype_facts
    PARTS, BLK_M, ROW = facts.parts, config.BLK_M, config.row_of_panel * facts.parts
    COMPLEX, UNIT = facts.is_complex, variant.unit
    real, CONJ, divide = ptx.REALS[facts.real], -1 if variant.conj else 1, ptx.divide

    @device_function
    def divide_complex(panel, at, t_re, t_im):
        # Smith's algorithm: scaled by the larger part of the divisor
        b_re, b_im = panel[at], panel[at + 1]
        if abs(t_re) >= abs(t_im):
            ratio = divide(t_im, t_re)
            scale = t_re + t_im * ratio
            panel[at] = divide(b_re + b_im * ratio, scale)
            panel[at + 1] = divide(b_im - b_re * ratio, scale)
        else:
            ratio = divide(t_re, t_im)
            scale = t_re * ratio + t_im
            panel[at] = divide(b_re * ratio + b_im, scale)
            panel[at + 1] = divide(b_im * ratio - b_re, scale)

    @device_function
    def substitute(panel, diagonal):
        for j in range(BLK_M):
            x, at = j * ROW, j * (BLK_M + 1) * PARTS
            if not UNIT:
                if COMPLEX:
                    divide_complex(panel, x, diagonal[at], real(CONJ) * diagonal[at + 1])
                else:
                    panel[x] = divide(panel[x], diagonal[at])
            for i in range(j + 1, BLK_M):
                t, y = (j * BLK_M + i) * PARTS, i * ROW
                if COMPLEX:
                    t_re, t_im = diagonal[t], real(CONJ) * diagonal[t + 1]
                    panel[y] = panel[y] - t_re * panel[x] + t_im * panel[x + 1]
                    panel[y + 1] = panel[y + 1] - t_re * panel[x + 1] - t_im * panel[x]
                else:
                    panel[y] = panel[y] - diagonal[t] * panel[x]

    return substitute


def _column_reader(config: TrsmLeaf):
    """``read(column, panel)``: a column of the panel into registers."""
    PARTS, BLK_M, ROW = config.dtype_facts.parts, config.BLK_M, config.row_of_panel * config.dtype_facts.parts

    @device_function
    def read(column, panel):
        for i in range(BLK_M):
            for part in range(PARTS):
                column[i * PARTS + part] = panel[i * ROW + part]

    return read


def _column_writer(config: TrsmLeaf):
    """``write(column, panel)``: registers back into a column of the panel."""
    PARTS, BLK_M, ROW = config.dtype_facts.parts, config.BLK_M, config.row_of_panel * config.dtype_facts.parts

    @device_function
    def write(column, panel):
        for i in range(BLK_M):
            for part in range(PARTS):
                panel[i * ROW + part] = column[i * PARTS + part]

    return write


def _build(config: TrsmLeaf, variant: Variant):
    facts = config.dtype_facts
    real, PARTS = ptx.REALS[facts.real], facts.parts
    int64, offset, shared_pointer = ptx.types.int64, ptx.offset, ptx.shared_pointer
    BLK_M, BLK_N, BLK_K, STAGES = config.BLK_M, config.BLK_N, config.BLK_K, config.stages
    DIM_X, VEC_M, VEC_N = config.DIM_X, config.VEC_M, config.VEC_N
    PLACES, DEPTH, ROW = DIM_X * config.DIM_Y, BLK_K // config.SLICES, config.row_of_panel
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
    write_panel = _panel_writer(config, variant.b_by_rows)
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
