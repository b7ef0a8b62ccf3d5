"""``gemv``: y := alpha op(A) x + beta y, one launch.

A is column-major. An *output* is an element of y: that of a row of A, or, `transposed`, of a column; what is
added up runs along the other dimension. All else is one text. Each thread has a few outputs, and enough
vectors of A in flight that memory is never idle. Threads, then slices of the sum, which blocks of their own
compute, are added in a fixed order: by the block of a tile that is the last to be done. How the threads are
along outputs and sums is a run-time option.

A triangle of A may be meant, its diagonal taken to be 1. What is beyond it is neither read nor multiplied.
"""

from __future__ import annotations

from typing import Any

from ...gpu.backend import cuda, ptx
from ...gpu.build.compile import KernelSource
from ..common.options import CONJUGATE, CONJUGATE_SECOND, UNIT, VECTORS
from ..common.parameters import parameters
from .gemv_config import AFTER, ALL, BEFORE, Gemv
from .gemv_sums import block_adder, finisher
from .gemv_terms import stepper, term_ranges

__all__ = [
    "AFTER",
    "ALL",
    "BEFORE",
    "Gemv",
    "source",
]

PARAMETERS = parameters(
    "pointer: a, x, w, flags, y",
    "int32: outputs, terms, slices, per_slice, log_r, which, bits",
    "int64: a_os, a_rs, incx, ldw, incy, stride_a, stride_x, stride_y",
    "real: alpha, alpha_i, beta, beta_i",
)


def source(config: Gemv) -> KernelSource:
    """The kernel of `config`.

    Parameters
    ----------
    config : Gemv
        Vectors are along the outputs, or the sums: A's stride there is 1, and it and the number of rows are
        multiples of a vector, unless loads are of single reals.

    Kernel parameters
    -----------------
    a, x: pointer, A and x
    w: pointer, the slices' sums, of a batch those of one matrix after the other
    flags: pointer, one for each tile of each matrix
    y: pointer, y
    outputs, terms: int32, their number
    slices, per_slice: int32, slices, and terms of a slice, ``config.terms_per_slice``
    log_r: int32, the logarithm of the threads along the sums, ``config.LOG_R``
    which: int32, the terms: `ALL`, `BEFORE`, `AFTER`
    bits: int32, `CONJUGATE`, `CONJUGATE_SECOND`, `UNIT`, `VECTORS`: x has stride 1, and vectors fit it
    a_os, a_rs: int64, strides of A along outputs and terms (elements)
    incx, ldw, incy: int64, stride of x, from slice to slice, of y (elements)
    stride_a, stride_x, stride_y: int64, batch strides (elements)
    alpha, alpha_i, beta, beta_i: real, parts of alpha and beta; with beta = 0 y is not read

    Grid: x ``config.grid(outputs) * slices``, z the batch.
    """
    config = config.kernel
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _build(config: Gemv) -> Any:
    facts, THR_O, TRANSPOSED = config.dtype_facts, config.THR_O, config.transposed
    REALS, real, VEC_O, VEC_R = facts.reals_per_element, ptx.REALS[facts.real], config.VEC_O, config.VEC_R
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    wait, quotient, zero = ptx.grid_dependency_wait, ptx.quotient, ptx.fill(THR_O * REALS)
    X, ACC = config.THR_R * VEC_R * REALS, THR_O * REALS
    A, LOG_THREADS, LOG_THR = X * THR_O, config.threads.bit_length() - 1, THR_O.bit_length() - 1
    run, run_border, ranges = stepper(config, False), stepper(config, True), term_ranges(config)
    add_block, finish = block_adder(config), finisher(config)
    ALL_, CONJ_A_, CONJ_X_, UNIT_, X_VECTORS_ = ALL, CONJUGATE, CONJUGATE_SECOND, UNIT, VECTORS

    def gemv(
        a, x, w, flags, y, outputs, terms, slices, per_slice, log_r, which, bits,
        a_os, a_rs, incx, ldw, incy, stride_a, stride_x, stride_y, alpha, alpha_i, beta, beta_i,
    ):  # fmt: skip
        # (1) the tile and slice of this block; the outputs and terms of this thread
        t, log_o = int32(cuda.threadIdx.x & 1023), int32(LOG_THREADS - log_r)
        dim_o, dim_r = int32(1 << log_o), int32(1 << log_r)
        to, tr = (t >> log_r, t & (dim_r - 1)) if TRANSPOSED else (t & (dim_o - 1), t >> log_o)
        tile, block = quotient(int32(cuda.blockIdx.x), slices), int32(dim_o * THR_O)
        slice_, batch = int32(cuda.blockIdx.x - tile * slices), int64(cuda.blockIdx.z)
        o0 = int32(tile * block)
        o, r = int32(o0 + to * VEC_O), int32(tr * VEC_R)
        a_here = offset(a, (batch * stride_a + o * int64(a_os) + r * int64(a_rs)) * REALS)
        x_here = offset(x, (batch * stride_x + r * int64(incx)) * REALS)
        sa, sx = real(-1 if bits & CONJ_A_ else 1), real(-1 if bits & CONJ_X_ else 1)
        unit, vectors = int32(1 if bits & UNIT_ else 0), bits & X_VECTORS_ != 0
        held, x_held, acc = cuda.local.array(A, real), cuda.local.array(X, real), cuda.local.array(ACC, real)
        sums = shared_pointer(cuda.shared.array(0, real, alignment=16))
        next_o, next_r = int32(dim_o * VEC_O), int32(dim_r * VEC_R)
        zero(acc, real(0))
        first, end, border, stop = ranges(o0, block, slice_, terms, per_slice, which)

        # (2) the terms of this thread
        wait()
        run(
            acc, held, x_held, a_here, x_here, a_os, a_rs, incx, next_o, next_r, o, r, first, end, outputs,
            which, unit, vectors, sa, sx,
        )  # fmt: skip
        if which != ALL_:
            run_border(
                acc, held, x_held, a_here, x_here, a_os, a_rs, incx, next_o, next_r, o, r, border, stop,
                outputs, which, unit, vectors, sa, sx,
            )  # fmt: skip

        # (3) the sums of the block, and of all slices
        lines, ld = add_block(sums, acc, t, int32(to), int32(tr), log_o, log_r)
        w_here = offset(w, (batch * slices * ldw + o0) * REALS)
        y_here = offset(y, (batch * stride_y + o0 * int64(incy)) * REALS)
        tiles = int32((outputs + block - 1) >> (log_o + LOG_THR))
        ticket, left = int32(batch * tiles + tile), int32(outputs - o0)
        finish(
            sums, w_here, flags, y_here, ticket, slice_, slices, ldw, incy, t, left, block, lines, ld,
            alpha, alpha_i, beta, beta_i,
        )  # fmt: skip

    return gemv
