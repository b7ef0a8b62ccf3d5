"""``gemv_n``, ``gemv_t``: y := alpha op(A) x + beta y, one launch.

A is column-major. An *output* is an element of y; `gemv_n` has a row of A for each, `gemv_t` a column, and
what is added up runs along the other dimension. All else is one text. Each thread has a few outputs, and so
many vectors of A under way that memory never waits for it. Threads, then slices of the sum, which blocks of
their own compute, are added in a fixed order: by the block of a tile that is the last to be done.

A triangle of A may be meant, its diagonal taken to be 1. What lies beyond it is neither read nor multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...gpu.compile import KernelSource
from .gemv_config import AFTER, ALL, BEFORE, CONJ_A, CONJ_X, UNIT, Gemv, GemvN, GemvT
from .gemv_terms import stepper, term_ranges
from .sums import UNROLL, slot_adder, tree_adder, writer

__all__ = [
    "AFTER", "ALL", "BEFORE", "CONJ_A", "CONJ_X", "UNIT", "Gemv", "GemvN", "GemvT", "plain_sources", "source",
]  # fmt: skip

PARAMETERS = "ppppp iiiiii qqqqqqqq rrrr".replace(" ", "")


def source(config: Gemv) -> KernelSource:
    """The kernel of `config`.

    Parameters
    ----------
    config : GemvN or GemvT
        Vectors lie along the outputs, or the sums: A's stride there is 1, and it and the number of rows are
        multiples of a vector, unless loads are of single reals.

    Returns
    -------
    KernelSource
        Its parameters are pointers to A, x, the slices' sums, flags, and y; int32 number of outputs, of
        terms, slices, terms of a slice (``config.terms_per_slice``), which terms (`ALL`, `BEFORE`, `AFTER`),
        flags (`CONJ_A`, `CONJ_X`, `UNIT`); int64 strides of A along outputs and terms, of x, from slice to
        slice,
        of y, batch strides of A, x, y (elements); alpha and beta (real, imaginary part). With beta = 0 y is
        not read. Grid: x ``config.tiles(outputs) * slices``, z the batch. The sums of a matrix of the batch
        lie behind those of the one before; there is a flag for each tile of each matrix.
    """
    config = replace(config, MIN_STEPS=1)  # of which the kernel knows nothing
    return KernelSource.of(
        config, PARAMETERS, lambda: _build(config), min_blocks=max(512 // config.threads, 1)
    )


def plain_sources(config: Gemv) -> Iterator[KernelSource]:
    """Those of all forms, and the same for operands that vectors do not fit."""
    return iter(
        dict.fromkeys(source(form.with_alignment(size)) for form in config.forms() for size in (16, 1))
    )


def _keeper(config: Gemv) -> Any:
    """``keep(0, sums, acc, o, r)``: a thread's sums of its outputs go to shared memory."""
    PARTS, VEC_O, LEAD = config.dtype_facts.reals_per_element, config.VEC_O, config.BLK_O | 1
    DIM_O = config.DIM_O

    @device_function
    def keep(i, sums, acc, o, r):
        at = r * LEAD + o * VEC_O + i // VEC_O * (DIM_O * VEC_O) + i % VEC_O
        for part in range(PARTS):
            sums[at * PARTS + part] = acc[i * PARTS + part]

    return unrolled(config.THR_O, keep)


def _finisher(config: Gemv) -> Any:
    """``finish(sums, w, flags, y, ...)``: the sums of a block's outputs go to y, or those of a slice to `w`;
    the last slice of a tile adds up all of them, in their order.
    """
    facts, BLK_O, THREADS = config.dtype_facts, config.BLK_O, config.threads
    PARTS, COMPLEX, real, int32 = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.types.int32,
    )
    WORD, HELD = config.DIM_R * (BLK_O | 1) * PARTS, UNROLL * PARTS
    offset, store, store_relaxed, take_ticket = (
        ptx.offset,
        ptx.store_global,
        ptx.store_relaxed,
        ptx.take_ticket,
    )
    write, add_slots, LEAD = writer(facts), slot_adder(facts), (BLK_O | 1) * PARTS
    LINES = 1 << max(THREADS // BLK_O, 1).bit_length() - 1  # of threads, which share the slices
    add_lines = tree_adder(facts, LINES, BLK_O, THREADS)

    @device_function
    def write_tile(sums, y, incy, t, left, old, reads, alpha, alpha_i, beta, beta_i):
        for o in range(t, min(left, BLK_O), THREADS):
            im = sums[o * PARTS + 1] if COMPLEX else sums[o]
            write(offset(y, o * incy * PARTS), old, sums[o * PARTS], im, reads, alpha, alpha_i, beta, beta_i)

    @device_function
    def finish(sums, w, flags, y, ticket, slice_, slices, ldw, incy, t, left, alpha, alpha_i, beta, beta_i):
        old, ahead = cuda.local.array(PARTS, real), cuda.local.array(HELD, real)
        total = cuda.local.array(PARTS, real)
        reads = (beta != real(0)) | (beta_i != real(0))
        if slices == 1:
            write_tile(sums, y, incy, t, left, old, reads, alpha, alpha_i, beta, beta_i)
            return
        for e in range(t, min(left, BLK_O) * PARTS, THREADS):
            store(w, slice_ * ldw * PARTS + e, sums[e], True)
        cuda.syncthreads()
        if t == 0:
            sums[WORD] = real(1 if take_ticket(flags, ticket) == slices - 1 else 0)
        cuda.syncthreads()
        if sums[WORD] != real(0):
            if t == 0:
                store_relaxed(flags, ticket, int32(0))
            share = int32((slices + LINES - 1) // LINES)
            for e in range(t, LINES * BLK_O, THREADS):
                o, begin = e % BLK_O, int32(e // BLK_O * share)
                for part in range(PARTS):
                    total[part] = real(0)
                if o < left:
                    add_slots(
                        total, ahead, offset(w, o * PARTS), ldw, begin, min(int32(begin + share), slices)
                    )
                for part in range(PARTS):
                    sums[e // BLK_O * LEAD + o * PARTS + part] = total[part]
            add_lines(sums, t)
            write_tile(sums, y, incy, t, left, old, reads, alpha, alpha_i, beta, beta_i)

    return finish


def _build(config: Gemv):
    facts, BLK_O, DIM_O, DIM_R, BY_OUTPUT = (
        config.dtype_facts, config.BLK_O, config.DIM_O, config.DIM_R, config.BY_OUTPUT,
    )  # fmt: skip
    PARTS, real, VEC_O, VEC_R = facts.reals_per_element, ptx.REALS[facts.real], config.VEC_O, config.VEC_R
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait, quotient, zero = (
        ptx.grid_dependency_wait,
        ptx.quotient,
        ptx.fill(config.THR_O * PARTS),
    )
    A, X, ACC = (
        config.THR_R * config.THR_O * VEC_R * PARTS, config.THR_R * VEC_R * PARTS, config.THR_O * PARTS,
    )  # fmt: skip
    run, run_border, ranges = stepper(config, False), stepper(config, True), term_ranges(config)
    keep, finish = _keeper(config), _finisher(config)
    add_threads = tree_adder(facts, DIM_R, BLK_O, config.threads)
    ALL_, CONJ_A_, CONJ_X_, UNIT_ = ALL, CONJ_A, CONJ_X, UNIT

    def gemv(
        a, x, w, flags, y, outputs, terms, slices, per_slice, which, bits,
        a_os, a_rs, incx, ldw, incy, stride_a, stride_x, stride_y, alpha, alpha_i, beta, beta_i,
    ):  # fmt: skip
        # (1) the tile and slice of this block; the outputs and terms of this thread
        t = int32(cuda.threadIdx.x & 1023)
        to, tr = (t % DIM_O, t // DIM_O) if BY_OUTPUT else (t // DIM_R, t % DIM_R)
        tile = quotient(int32(cuda.blockIdx.x), slices)
        slice_, batch = int32(cuda.blockIdx.x - tile * slices), int64(cuda.blockIdx.z)
        o0 = int32(tile * BLK_O)
        o, r = int32(o0 + to * VEC_O), int32(tr * VEC_R)
        a_here = offset(a, (batch * stride_a + o * int64(a_os) + r * int64(a_rs)) * PARTS)
        x_here = offset(x, (batch * stride_x + r * int64(incx)) * PARTS)
        sa, sx = real(-1 if bits & CONJ_A_ else 1), real(-1 if bits & CONJ_X_ else 1)
        unit = int32(1 if bits & UNIT_ else 0)
        held, x_held, acc = cuda.local.array(A, real), cuda.local.array(X, real), cuda.local.array(ACC, real)
        sums = shared_pointer(cuda.shared.array(0, real, alignment=16))
        zero(acc, real(0))
        first, end, border, stop = ranges(o0, slice_, terms, per_slice, which)

        # (2) the terms of this thread
        grid_dependency_wait()
        run(
            acc, held, x_held, a_here, x_here, a_os, a_rs, incx, o, r, first, end, outputs, which, unit,
            sa, sx,
        )  # fmt: skip
        if which != ALL_:
            run_border(
                acc, held, x_held, a_here, x_here, a_os, a_rs, incx, o, r, border, stop, outputs, which, unit,
                sa, sx,
            )  # fmt: skip

        # (3) the sums of the block, and of all slices
        keep(0, sums, acc, to, tr)
        add_threads(sums, t)
        w_here = offset(w, (batch * slices * ldw + o0) * PARTS)
        y_here = offset(y, (batch * stride_y + o0 * int64(incy)) * PARTS)
        tiles = int32((outputs + BLK_O - 1) // BLK_O)
        ticket, left = int32(batch * tiles + tile), int32(outputs - o0)
        finish(
            sums,
            w_here,
            flags,
            y_here,
            ticket,
            slice_,
            slices,
            ldw,
            incy,
            t,
            left,
            alpha,
            alpha_i,
            beta,
            beta_i,
        )

    return gemv
