"""``trmm_leaf``: C := alpha * T * B, T lower triangular, where C may be B (see `triangle_panel`).

Block rows are computed from the last to the first, so that what is read to the left of the diagonal is still
B's old content where C is B. The diagonal block is a k-tile like the others but for its masks: a product with
what is above the diagonal is left out, not made with a zero, so that a NaN in B reaches only what depends on
it. K-tiles of the next block row are on their way while the present one is multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ...gpu.backend import cuda, device_function, ptx
from ...gpu.build.compile import KernelSource
from ..common.options import UNIT
from ..common.parameters import parameters
from ..common.triangle_panel import (
    TrianglePanel,
    block_copier,
    k_tile_multiplier,
    slice_adder,
    step_multiplier,
    tile_visitor,
)

STEM = "trmm_leaf"
PARAMETERS = parameters(
    "pointer: tri, b, c",
    "int32: n, r, options",
    "int64: t_rs, t_cs, b_rs, b_cs, c_rs, c_cs, stride_t, stride_b, stride_c",
    "real: alpha, alpha_i",
)


@dataclass(frozen=True)
class TrmmLeaf(TrianglePanel):
    """Config of one `trmm_leaf` kernel; the parameters are those of `TrianglePanel`."""

    STEM: ClassVar[str] = STEM

    @property
    def shared_elements(self) -> int:
        """The stages, and the sums of the slices."""
        return self.ring_elements + self.sum_elements

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return self.tile_elements * self.dtype_facts.itemsize // 4


def source(config: TrmmLeaf, conj: bool = False, t_by_rows: bool = False) -> KernelSource:
    """The kernel of `config` for any T, or its conjugate.

    Kernel parameters
    -----------------
    tri, b, c: pointer, T, B and C
    n, r: int32, order of T, columns of B
    options: int32, whether the diagonal of T is one and not read (`options`)
    t_rs, t_cs, b_rs, b_cs, c_rs, c_cs: int64, row and column stride of T, B, C (elements)
    stride_t, stride_b, stride_c: int64, batch strides (elements)
    alpha, alpha_i: real, parts of alpha

    Grid: x ``config.grid(r)``, z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config, conj), flags=(("conj", conj),))


def plain_sources(config: TrmmLeaf) -> Iterator[KernelSource]:
    """All kernels of a Config."""
    conjs = (False, True) if config.dtype_facts.is_complex else (False,)
    return (source(config, conj) for conj in conjs)


def _diagonal_multiplier(config: TrmmLeaf, conj: bool):
    """``multiply(acc, rt, rx, pt, px, tx, shift, unit)``: a slice's part of a k-tile that meets the diagonal.

    `shift` is how far the tile's first row is below the row that the slice's first k belongs to.
    """
    THR_M, THR_N, REALS = config.THR_M, config.THR_N, config.dtype_facts.reals_per_element
    DIM_X, VEC_M, DEPTH = config.DIM_X, config.VEC_M, config.BLK_K // config.SLICED_K
    ACC, LD_T, LD_X = THR_M * THR_N * REALS, config.ld_t * REALS, config.ld_x * REALS
    real, offset = ptx.REALS[config.dtype_facts.real], ptx.offset
    step = step_multiplier(config, conj)

    @device_function
    def set_unit_diagonal(pt, tx, diagonal):
        # the row whose diagonal element this k is, if the thread has it; its zero is in the k-tile
        for i in range(THR_M):
            row = (i // VEC_M) * (DIM_X * VEC_M) + tx * VEC_M + i % VEC_M
            if row == diagonal:
                pt[((i // VEC_M) * (DIM_X * VEC_M) + i % VEC_M) * REALS] = real(1)

    @device_function
    def multiply(acc, old, rt, rx, pt, px, tx, ty, shift, unit):
        for kk in range(DEPTH):
            if unit and ty == 0:
                set_unit_diagonal(offset(pt, kk * LD_T), tx, kk - shift)
        if unit:
            cuda.syncthreads()
        for kk in range(DEPTH):
            for x in range(ACC):
                old[x] = acc[x]
            step(0, acc, rt, rx, offset(pt, kk * LD_T), offset(px, kk * LD_X))
            for i in range(THR_M):
                row = (i // VEC_M) * (DIM_X * VEC_M) + tx * VEC_M + i % VEC_M
                keep = row + shift >= kk
                for j in range(THR_N):
                    for part in range(REALS):
                        x = (j * THR_M + i) * REALS + part
                        acc[x] = acc[x] if keep else old[x]

    return multiply


def _writer(config: TrmmLeaf):
    """``visit`` of `tile_visitor`: alpha times the sum goes to C."""
    COMPLEX, store = config.dtype_facts.is_complex, ptx.store_global

    @device_function
    def visit(c, at, acc, x, ok, alpha, alpha_i):
        if COMPLEX:
            store(c, at, alpha * acc[x] - alpha_i * acc[x + 1], ok)
            store(c, at + 1, alpha * acc[x + 1] + alpha_i * acc[x], ok)
        else:
            store(c, at, alpha * acc[x], ok)

    return visit


def _build(config: TrmmLeaf, conj: bool):
    facts = config.dtype_facts
    real, REALS = ptx.REALS[facts.real], facts.reals_per_element
    int64, offset, shared_pointer = ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait = ptx.grid_dependency_wait
    BLK_M, BLK_N, BLK_K, STAGES = config.BLK_M, config.BLK_N, config.BLK_K, config.stages
    DIM_X, VEC_M, VEC_N = config.DIM_X, config.VEC_M, config.VEC_N
    SLICE_THREADS, DEPTH = DIM_X * config.DIM_Y, BLK_K // config.SLICED_K
    ACC, FRAG_T, FRAG_X = config.THR_M * config.THR_N * REALS, config.THR_M * REALS, config.THR_N * REALS
    LD_T, LD_X = config.ld_t * REALS, config.ld_x * REALS
    X_TILE, STAGE = LD_T * BLK_K, config.stage_elements * REALS
    SUMS = STAGES * STAGE

    copy_t = block_copier(config, BLK_M, BLK_K, 1, config.ld_t, triangular=True)
    copy_x = block_copier(config, BLK_K, BLK_N, config.ld_x, 1)
    multiply, multiply_diagonal = k_tile_multiplier(config, conj), _diagonal_multiplier(config, conj)
    add_slices, write = slice_adder(config), tile_visitor(config, _writer(config))
    zero, commit, wait = ptx.fill(ACC), ptx.commit_async, ptx.wait_async(STAGES - 2)

    @device_function
    def start(stage, tri, b, t_rs, t_cs, b_rs, b_cs, t, n, cols, row0, k, first):
        if row0 >= 0:
            t_part, b_part = offset(tri, (row0 * t_rs + k * t_cs) * REALS), offset(b, k * b_rs * REALS)
            depth = min(row0 + BLK_M, n) - k
            copy_t(stage, t_part, t_rs, t_cs, t, n - row0, depth, row0 - k, first)
            copy_x(offset(stage, X_TILE), b_part, b_rs, b_cs, t, depth, cols, 0, 0)
        commit()

    @device_function
    def start_next(stage, tri, b, t_rs, t_cs, b_rs, b_cs, t, n, cols, row0, k, first):
        start(stage, tri, b, t_rs, t_cs, b_rs, b_cs, t, n, cols, row0, k, first)
        is_last = k + BLK_K >= min(row0 + BLK_M, n)
        return row0 - BLK_M if is_last else row0, int64(0) if is_last else k + BLK_K

    def trmm_leaf(
        tri, b, c, n, r, options, t_rs, t_cs, b_rs, b_cs, c_rs, c_cs, stride_t, stride_b, stride_c, alpha,
        alpha_i,
    ):  # fmt: skip
        # (1) the columns of this block, the coordinates of this thread
        t = cuda.threadIdx.x
        slice, thread = t // SLICE_THREADS, t % SLICE_THREADS
        tx, ty = thread % DIM_X, thread // DIM_X
        col0, batch = cuda.blockIdx.x * BLK_N, int64(cuda.blockIdx.z)
        cols, unit = r - col0, options & UNIT != 0
        first = 1 if unit else 0
        tri = offset(tri, batch * stride_t * REALS)
        b = offset(b, (batch * stride_b + col0 * b_cs) * REALS)
        c = offset(c, (batch * stride_c + col0 * c_cs) * REALS)
        stages = shared_pointer(cuda.shared.array(0, real, alignment=16))
        my_t = slice * DEPTH * LD_T + tx * VEC_M * REALS
        my_x = X_TILE + slice * DEPTH * LD_X + ty * VEC_N * REALS
        acc, old = cuda.local.array(ACC, real), cuda.local.array(ACC, real)
        rt, rx = cuda.local.array(FRAG_T, real), cuda.local.array(FRAG_X, real)

        # (2) prologue: the first k-tiles; `next_row` and `next_k` are the k-tile that is started next
        grid_dependency_wait()
        blocks = (n + BLK_M - 1) // BLK_M
        next_row, next_k = int64(blocks - 1) * BLK_M, int64(0)
        for s in range(STAGES - 1):
            into = offset(stages, s * STAGE)
            next_row, next_k = start_next(
                into, tri, b, t_rs, t_cs, b_rs, b_cs, t, n, cols, next_row, next_k, first
            )

        reading, writing = 0, STAGES - 1
        for step in range(blocks):
            # (3) acc := T[i, :i+1] B[:i+1]
            row0 = int64(blocks - 1 - step) * BLK_M
            zero(acc, real(0))
            for k in range(0, min(row0 + BLK_M, n), BLK_K):
                wait()
                cuda.syncthreads()
                into = offset(stages, writing * STAGE)
                next_row, next_k = start_next(
                    into, tri, b, t_rs, t_cs, b_rs, b_cs, t, n, cols, next_row, next_k, first
                )
                stage = offset(stages, reading * STAGE)
                at_t, at_x = offset(stage, my_t), offset(stage, my_x)
                if k + BLK_K <= row0:
                    multiply(acc, rt, rx, at_t, at_x)
                else:
                    shift = row0 - k - slice * DEPTH
                    multiply_diagonal(acc, old, rt, rx, at_t, at_x, tx, ty, shift, unit)
                reading = reading + 1 if reading < STAGES - 1 else 0
                writing = writing + 1 if writing < STAGES - 1 else 0

            # (4) C[i] := alpha acc
            add_slices(acc, offset(stages, SUMS), slice, thread)
            if slice == 0:
                c_row = offset(c, row0 * c_rs * REALS)
                write(0, tx, ty, acc, c_row, c_rs, c_cs, n - row0, cols, alpha, alpha_i)

    return trmm_leaf
