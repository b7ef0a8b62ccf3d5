"""Sums of `gemv` over the threads and the blocks: always in the same order."""

from __future__ import annotations

from typing import Any

from ...gpu.backend import cuda, device_function, ptx, unrolled
from .config import WARP
from .gemv_config import Gemv
from .sums import UNROLL, slot_adder, writer

__all__ = ["block_adder", "finisher"]


def _lane_adder(config: Gemv) -> Any:
    """``add(acc, lane, low, high)``: the sums of lanes whose numbers differ in the bits from `low` to below
    `high`; all of them get them.
    """
    shuffle, int32 = ptx.shuffle, ptx.types.int32

    @device_function
    def add_one(i, acc, other):
        acc[i] += shuffle(acc[i], other)

    add_all = unrolled(config.THR_O * config.dtype_facts.reals_per_element, add_one)

    @device_function
    def add(acc, lane, low, high):
        mask = int32(low)
        while mask < high:
            add_all(0, acc, int32(lane ^ mask))
            mask = int32(mask * 2)

    return add


def block_adder(config: Gemv) -> Any:
    """``add(sums, acc, t, to, tr, log_o, log_r)``: ``sums[line * ld + o]`` of an output o of the block;
    returns how many lines there are, and `ld`. The logarithms are of threads along outputs and sums.

    Lanes add first, by shuffles; each line is the sum of a warp. It ends with a barrier.
    """
    REALS, VEC_O, THR_O = config.dtype_facts.reals_per_element, config.VEC_O, config.THR_O
    TRANSPOSED, add_lanes, int32 = config.transposed, _lane_adder(config), ptx.types.int32
    WARP_, LOG_WARP = int32(WARP), int32(WARP.bit_length() - 1)

    @device_function
    def keep(i, sums, acc, at, next_o):
        slot = at + i // VEC_O * next_o + i % VEC_O
        for part in range(REALS):
            sums[slot * REALS + part] = acc[i * REALS + part]

    keep_all = unrolled(THR_O, keep)

    @device_function
    def add(sums, acc, t, to, tr, log_o, log_r):
        log_lanes = min(log_r, LOG_WARP) if TRANSPOSED else max(int32(LOG_WARP - log_o), int32(0))
        dim_o, lanes = int32(1 << log_o), int32(1 << log_lanes)
        add_lanes(acc, t % WARP_, int32(1) if TRANSPOSED else dim_o, lanes if TRANSPOSED else WARP_)
        ld, line = int32((dim_o * THR_O) | 1), int32(tr >> log_lanes)
        if tr & (lanes - 1) == 0:
            keep_all(0, sums, acc, int32(line * ld + to * VEC_O), int32(dim_o * VEC_O))
        cuda.syncthreads()
        return int32(1 << (log_r - log_lanes)), ld

    return add


def _line_adder(config: Gemv) -> Any:
    """``add(total, sums, o, lines, ld)``: the sum of the lines of an output, in their order."""
    REALS, LINES = config.dtype_facts.reals_per_element, config.WARPS
    real, select, int32 = ptx.REALS[config.dtype_facts.real], ptx.select, ptx.types.int32

    @device_function
    def add_line(i, total, sums, o, first, lines, ld):
        line = int32(first + i)
        at = (o + min(line, int32(lines - 1)) * ld) * REALS
        for part in range(REALS):
            total[part] += select(line < lines, sums[at + part], real(0))

    add_all = unrolled(LINES, add_line)

    @device_function
    def add(total, sums, o, lines, ld):
        for part in range(REALS):
            total[part] = real(0)
        first = int32(0)
        while first < lines:
            add_all(0, total, sums, o, first, lines, ld)
            first = int32(first + LINES)

    return add


def _slice_adder(config: Gemv) -> Any:
    """``add(sums, total, prefetched, w, ldw, t, left, block, slices)``: the slices' sums of each output of a
    block; the threads share the slices. Returns how many lines of `sums` hold them, and the distance between
    them.
    """
    REALS, THREADS = config.dtype_facts.reals_per_element, config.threads
    real, int32, offset = ptx.REALS[config.dtype_facts.real], ptx.types.int32, ptx.offset
    add_slots, AT_A_TIME, quotient = slot_adder(config.dtype_facts), UNROLL, ptx.quotient

    @device_function
    def add(sums, total, prefetched, w, ldw, t, left, block, slices):
        share = max(int32((slices * block + THREADS - 1) // THREADS), int32(AT_A_TIME))
        lines, ld = quotient(int32(slices + share - 1), share), int32(block | 1)
        for e in range(t, lines * block, THREADS):
            line = quotient(int32(e), block)
            o, begin = int32(e - line * block), int32(line * share)
            for part in range(REALS):
                total[part] = real(0)
            if o < left:
                add_slots(
                    total, prefetched, offset(w, o * REALS), ldw, begin, min(int32(begin + share), slices)
                )
            for part in range(REALS):
                sums[(line * ld + o) * REALS + part] = total[part]
        cuda.syncthreads()
        return lines, ld

    return add


def finisher(config: Gemv) -> Any:
    """``finish(sums, w, flags, y, ...)``: the sums of a block's outputs go to y, or those of a slice to `w`;
    the last slice of a tile adds up all of them, in their order.
    """
    facts, THREADS, take_ticket = config.dtype_facts, config.threads, ptx.take_ticket
    REALS, COMPLEX, real, int32 = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.types.int32,
    )
    HELD, offset, store, store_relaxed = UNROLL * REALS, ptx.offset, ptx.store_global, ptx.store_relaxed
    WORD = config.shared_bytes // facts.real_size - 1
    write, add_lines, add_slices = writer(facts), _line_adder(config), _slice_adder(config)

    @device_function
    def write_tile(total, old, sums, y, incy, t, count, lines, ld, reads, alpha, alpha_i, beta, beta_i):
        for o in range(t, count, THREADS):
            add_lines(total, sums, o, lines, ld)
            im = total[1] if COMPLEX else total[0]
            write(offset(y, o * incy * REALS), old, total[0], im, reads, alpha, alpha_i, beta, beta_i)

    @device_function
    def finish(
        sums, w, flags, y, ticket, slice_, slices, ldw, incy, t, left, block, lines, ld, alpha, alpha_i,
        beta, beta_i,
    ):  # fmt: skip
        old, prefetched = cuda.local.array(REALS, real), cuda.local.array(HELD, real)
        total, count = cuda.local.array(REALS, real), min(left, block)
        reads = (beta != real(0)) | (beta_i != real(0))
        if slices > 1:
            for o in range(t, count, THREADS):
                add_lines(total, sums, o, lines, ld)
                for part in range(REALS):
                    store(w, (slice_ * ldw + o) * REALS + part, total[part], True)
            cuda.syncthreads()
            if t == 0:
                sums[WORD] = real(1 if take_ticket(flags, ticket) == slices - 1 else 0)
            cuda.syncthreads()
            if sums[WORD] == real(0):
                return
            if t == 0:
                store_relaxed(flags, ticket, int32(0))
            lines, ld = add_slices(sums, total, prefetched, w, ldw, t, left, block, slices)
        write_tile(total, old, sums, y, incy, t, count, lines, ld, reads, alpha, alpha_i, beta, beta_i)

    return finish
