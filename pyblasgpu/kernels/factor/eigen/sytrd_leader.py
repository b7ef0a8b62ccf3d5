"""The warp of `sytrd_resident` that makes the reflectors, while the others multiply with the column of one.

The others have x, the column before its reflector is known. So A v is what they have times the factor of v,
and the column of A of whose diagonal element v has its one. A lane has rows ``32 a + lane`` of all vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import device_function, ptx, unrolled
from ....types import Dtype
from ...common.kernel_config import WARP
from ..cholesky.inverse_root import inverse_root
from ..lane_sums import adder, several_over_warp
from ..qr.reflector import BETA, FACTOR, NEGLIGIBLE, TAU
from ..quotient import quotients
from .rotation import barrier
from .sytrd_columns import TRIPLE

__all__ = ["cluster_elements", "gatherer", "leader"]

TURNS, MBARRIER_BYTES = 2, 8


def cluster_elements(config: Any) -> int:
    """Elements in shared memory of what blocks of a cluster exchange: two turns of sums and a column."""
    slots = TURNS * (config.BLOCKS + 1) * config.ORDER
    return 0 if config.BLOCKS == 1 else slots + TURNS * MBARRIER_BYTES // config.dtype_facts.real_size


def _summer(config: Any, count: int) -> Callable:
    """``add(0, y, parts, lane)``: the sums of `count` vectors in shared memory."""
    facts, ORDER = config.dtype_facts, config.ORDER
    REALS, int32 = facts.reals_per_element, ptx.types.int32

    @device_function
    def add(a, y, parts, lane):
        at = int32((lane + a * WARP) * REALS)
        for part in range(REALS):
            acc = parts[at + part]
            for which in range(1, count):
                acc += parts[at + part + which * ORDER * REALS]
            y[a * REALS + part] = acc

    return unrolled(config.ROWS, add)


def gatherer(config: Any) -> tuple[Callable, Callable]:
    """``start(shared, t)``: makes mbarriers; ``gather(y, parts, column, shared, q, skip, block, lane)``: the
    sums of all warps of all blocks, and column q, where it is: of one block in `column`, else in `shared`.
    """
    facts, ROWS, WARPS, BLOCKS = config.dtype_facts, config.ROWS, config.WARPS, config.BLOCKS
    REALS, SIZE, int32, offset = facts.reals_per_element, facts.real_size, ptx.types.int32, ptx.offset
    VECTOR, SLOTS, quotient = config.ORDER * REALS, config.SLOTS, ptx.quotient
    SLOT, STEP = VECTOR * (BLOCKS + 1), MBARRIER_BYTES // SIZE
    store_async, expect, wait = ptx.store_async, ptx.mbarrier_expect, ptx.mbarrier_wait
    init, init_fence, shared_address = ptx.mbarrier_init, ptx.mbarrier_init_fence, ptx.shared_address
    sum_warps, sum_blocks = _summer(config, WARPS), _summer(config, BLOCKS)

    @device_function
    def start(shared, t):
        if BLOCKS > 1 and t == 0:
            for turn in range(TURNS):
                init(shared_address(offset(shared, TURNS * SLOT + turn * STEP)), 1)
            init_fence()

    @device_function
    def send(a, y, column, target, mbarrier, is_owner, block, lane):
        for part in range(REALS):
            at = int32((lane + a * WARP) * REALS + part)
            for rank in range(BLOCKS):
                here = int32(target + (block * VECTOR + at) * SIZE)
                store_async(here, y[a * REALS + part], mbarrier, int32(rank))
                if is_owner:
                    store_async(
                        int32(target + (BLOCKS * VECTOR + at) * SIZE), column[at], mbarrier, int32(rank)
                    )

    sends = unrolled(ROWS, send)

    @device_function
    def gather(y, parts, column, shared, q, skip, block, lane):
        sum_warps(0, y, parts, lane)
        if BLOCKS == 1:
            return column
        step = int32(q - skip)
        turn = int32(step & 1)
        slot, mbarrier = (
            offset(shared, turn * SLOT),
            shared_address(offset(shared, TURNS * SLOT + turn * STEP)),
        )
        if lane == 0:
            expect(mbarrier, int32(SLOT * SIZE))
        inside = int32(q - quotient(q, int32(SLOTS)) * SLOTS)
        is_owner = (inside >= block * WARPS) & (inside < (block + 1) * WARPS)
        sends(0, y, column, shared_address(slot), mbarrier, is_owner, block, lane)
        wait(mbarrier, int32((step >> 1) & 1))
        sum_blocks(0, y, slot, lane)
        return offset(slot, BLOCKS * VECTOR)

    return start, gather


def _reflector(facts: Dtype) -> Callable:
    """``make(out, re, im, below)``: as `qr.reflector` has it, without divisions and roots that round
    correctly: all others wait for this chain.
    """
    real, COMPLEX, TINY = ptx.REALS[facts.real], facts.is_complex, NEGLIGIBLE[facts.real_size]
    divide, (_, inverse, _) = quotients(facts), inverse_root(facts)

    @device_function
    def make(out, re, im, below):
        for k in range(5):
            out[k] = real(0)
        out[BETA], rest = re, below
        if COMPLEX:
            rest += im * im
        square = re * re + rest
        if rest != real(0) and not square <= real(TINY):
            over = inverse(square)
            over = over if re < real(0) else -over
            beta = square * over
            first = re - beta
            out[BETA], out[TAU] = beta, -first * over
            if COMPLEX:
                out[TAU + 1] = -im * over
                both = divide(real(1), first * first + im * im)
                out[FACTOR], out[FACTOR + 1] = first * both, -im * both
            else:
                out[FACTOR] = divide(real(1), first)

    return make


def _maker(config: Any) -> Callable:
    """``make(v, x, h, acc, work, tau, d, e, k, skip, ld, is_mine, lane)``: reflector `h` of column k, which
    is x, and its vector. Where it `is_mine` they go to memory, too.
    """
    facts, ROWS = config.dtype_facts, config.ROWS
    REALS, COMPLEX, real, select = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.select,
    )
    int32, store_global, shuffle = ptx.types.int32, ptx.store_global, ptx.shuffle
    reflect, over_warp = _reflector(facts), several_over_warp(1, adder())

    @device_function
    def measure(a, acc, x, d, k, skip, is_mine, lane):
        i = int32(lane + a * WARP)
        store_global(d, int32(k - skip), x[a * REALS], (i == k) & is_mine)
        for part in range(REALS):
            value = x[a * REALS + part]
            acc[0] += select(i > k + 1, value * value, real(0))
            acc[1 + part] = select(i == k + 1, value, acc[1 + part])

    @device_function
    def unit(a, v, x, h, work, k, skip, ld, is_mine, lane):
        i, at = int32(lane + a * WARP), a * REALS
        is_below = i > k + 1
        re, im = h[FACTOR] * x[at], real(0)
        if COMPLEX:
            re -= h[FACTOR + 1] * x[at + 1]
            im = h[FACTOR] * x[at + 1] + h[FACTOR + 1] * x[at]
            v[at + 1] = select(is_below, im, real(0))
        v[at] = select(is_below, re, select((i == k + 1) & (k >= skip), real(1), real(0)))
        for part in range(REALS):
            of = int32(((k - skip) * ld + i - skip) * REALS + part)
            store_global(work, of, v[at + part], is_below & is_mine)

    measures, units = unrolled(ROWS, measure), unrolled(ROWS, unit)

    @device_function
    def make(v, x, h, acc, work, tau, d, e, k, skip, ld, is_mine, lane):
        for part in range(1 + REALS):
            acc[part] = real(0)
        measures(0, acc, x, d, k, skip, is_mine, lane)
        over_warp(acc, lane)
        at = int32((k + 1) & 31)
        re, im = shuffle(acc[1], at), real(0)
        if COMPLEX:
            im = shuffle(acc[2], at)
        reflect(h, re, im, acc[0])
        units(0, v, x, h, work, k, skip, ld, is_mine, lane)
        if lane == 0 and is_mine:
            e[k - skip] = h[BETA]
            for part in range(REALS):
                tau[(k - skip) * REALS + part] = h[TAU + part]

    return make


def _finisher(config: Any) -> Callable:
    """``finish(v, w, x, y, h, acc, vectors, column, q, lane)``: w from the products y with what is below the
    one of v, and the next x, which is column q with v and w taken off. All three go to `vectors`.
    """
    facts, ROWS = config.dtype_facts, config.ROWS
    REALS, COMPLEX, real, select = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.select,
    )
    int32, shuffle, over_warp = ptx.types.int32, ptx.shuffle, several_over_warp(1, adder())
    STEP, WIDTH = TRIPLE * REALS, 16 // facts.real_size
    store = ptx.store_shared(WIDTH)

    @device_function
    def complete(a, v, y, h, acc, column, q, lane):
        i, at = int32(lane + a * WARP), a * REALS
        of = int32(i * REALS)
        re = h[FACTOR] * y[at] + column[of]
        if COMPLEX:
            re -= h[FACTOR + 1] * y[at + 1]
            im = h[FACTOR] * y[at + 1] + h[FACTOR + 1] * y[at] + column[of + 1]
            acc[0] += v[at + 1] * im
            acc[2] = select(i == q, im, acc[2])
            y[at + 1] = im
        acc[0] += v[at] * re
        y[at] = re
        acc[1] = select(i == q, re, acc[1])

    @device_function
    def update(a, v, w, x, y, z, h, shift, head, head_im, vectors, column, q, lane):
        i, at = int32(lane + a * WARP), a * REALS
        of, is_left, is_below = int32(i * REALS), i >= q, i > q + 1
        if COMPLEX:
            re = h[TAU] * y[at] - h[TAU + 1] * y[at + 1] + shift * v[at]
            im = h[TAU] * y[at + 1] + h[TAU + 1] * y[at] + shift * v[at + 1]
            w[at], w[at + 1] = select(is_left, re, real(0)), select(is_left, im, real(0))
            x[at] = column[of] - v[at] * head - v[at + 1] * head_im - w[at]
            x[at + 1] = column[of + 1] - v[at + 1] * head + v[at] * head_im - w[at + 1]
        else:
            w[at] = select(is_left, h[TAU] * y[at] + shift * v[at], real(0))
            x[at] = column[of] - v[at] * head - w[at]
        for part in range(REALS):
            z[part], z[REALS + part] = v[at + part], w[at + part]
            z[2 * REALS + part] = select(is_below, x[at + part], real(0))
        for number in range(STEP // WIDTH):
            store(vectors, int32(i * STEP + number * WIDTH), z, number * WIDTH)

    completes, updates = unrolled(ROWS, complete), unrolled(ROWS, update)

    @device_function
    def finish(v, w, x, y, z, h, acc, vectors, column, q, lane):
        for part in range(1 + REALS):
            acc[part] = real(0)
        completes(0, v, y, h, acc, column, q, lane)
        over_warp(acc, lane)
        at = int32(q & 31)
        re, im = shuffle(acc[1], at), real(0)
        if COMPLEX:
            im = shuffle(acc[2], at)
        shift = real(-0.5) * (h[TAU] * h[TAU] + h[TAU + 1] * h[TAU + 1]) * acc[0]
        head, head_im = h[TAU] * re + shift, real(0)
        if COMPLEX:
            head -= h[TAU + 1] * im
            head_im = h[TAU] * im + h[TAU + 1] * re
        updates(0, v, w, x, y, z, h, shift, head, head_im, vectors, column, q, lane)

    return finish


def leader(config: Any) -> Callable:
    """``lead(v, w, x, y, z, h, acc, vectors, parts, column, shared, work, tau, d, e, skip, ld, block,
    lane)``: all steps of the warp that makes the reflectors.
    """
    REALS, ROWS, ORDER = config.dtype_facts.reals_per_element, config.ROWS, config.ORDER
    real, int32, store_global = ptx.REALS[config.dtype_facts.real], ptx.types.int32, ptx.store_global
    sync = barrier(config.threads)
    make, finish, (_, gather) = _maker(config), _finisher(config), gatherer(config)

    @device_function
    def clear(a, v, w, x):
        for part in range(REALS):
            v[a * REALS + part], w[a * REALS + part], x[a * REALS + part] = real(0), real(0), real(0)

    clears = unrolled(ROWS, clear)

    @device_function
    def lead(v, w, x, y, z, h, acc, vectors, parts, column, shared, work, tau, d, e, skip, ld, block, lane):
        clears(0, v, w, x)
        q = int32(skip)
        while q < ORDER:
            sync()
            is_mine = (q > skip) & (block == 0)
            make(v, x, h, acc, work, tau, d, e, int32(q - 1), skip, ld, is_mine, lane)
            sync()
            finish(
                v,
                w,
                x,
                y,
                z,
                h,
                acc,
                vectors,
                gather(y, parts, column, shared, q, skip, block, lane),
                q,
                lane,
            )
            q = int32(q + 1)
        is_last = (lane == WARP - 1) & (block == 0)
        store_global(d, int32(ORDER - 1 - skip), x[(ROWS - 1) * REALS], is_last)

    return lead
