"""How the blocks of a panel of `geqrf_panel` exchange sums of columns, and the row of a step.

Resident blocks write to memory, and meet. Those of a cluster write into one another's shared memory, where an
mbarrier counts what arrives. So a step takes one way between multiprocessors, and none through memory.

There are two slots, and two mbarriers, used by turns: a block that sends to a slot again has received what
all others sent for the step between, and they had read that slot before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import device_function, ptx, unrolled
from ...common.kernel_config import WARP
from ..clusters import MOST_BLOCKS
from ..lane_sums import adder
from .meeting import meeting

__all__ = ["cluster_exchanger", "exchanger", "gatherer", "slot_elements"]

TURNS, MBARRIER_BYTES = 2, 8


def slot_elements(config: Any) -> int:
    """Elements in shared memory of the slots and the mbarriers of a cluster, and to align them."""
    return (
        TURNS * config.COLS * (MOST_BLOCKS + 1) + (TURNS + 1) * MBARRIER_BYTES // config.dtype_facts.real_size
    )


def gatherer(config: Any, parts: int, combine: Callable) -> tuple[Callable, Callable]:
    """``leave(0, left, x, block, blocks, warp, lane)``: `parts` reals of each column of a block, for all
    blocks; ``gather(0, x, left, blocks, warp, lane)``: those of all blocks, each lane combines some of them.
    """
    WARPS, real, int32 = config.WARPS, ptx.REALS[config.dtype_facts.real], ptx.types.int32

    @device_function
    def leave(c, left, x, block, blocks, warp, lane):
        if lane == 0:
            for part in range(parts):
                left[((warp + c * WARPS) * parts + part) * blocks + block] = x[c * parts + part]

    @device_function
    def gather(c, x, left, blocks, warp, lane):
        for part in range(parts):
            y, block = real(0), int32(lane)
            while block < blocks:
                y = combine(y, left[((warp + c * WARPS) * parts + part) * blocks + block])
                block = int32(block + WARP)
            x[c * parts + part] = y

    return unrolled(config.OWN, leave), unrolled(config.OWN, gather)


def exchanger(config: Any) -> Callable:
    """``exchange(x, sums, left, flags, j, block, blocks, warp, lane, t)``: `sums` become parts of those of
    all blocks, which the lanes have; row j, which the first block has, is behind what blocks leave at `left`.
    """
    facts, ROWS, WARPS = config.dtype_facts, config.ROWS, config.WARPS
    REALS, SPAN = facts.reals_per_element, config.COLS * facts.reals_per_element
    int32, offset, (meet, _) = ptx.types.int32, ptx.offset, meeting()
    leave, gather = gatherer(config, REALS, adder())

    @device_function
    def leave_head(c, x, head, j, warp, lane):
        if lane == j:
            for part in range(REALS):
                head[(warp + c * WARPS) * REALS + part] = x[c * ROWS * REALS + part]

    leave_heads = unrolled(config.OWN, leave_head)

    @device_function
    def exchange(x, sums, left, flags, j, block, blocks, warp, lane, t):
        leave(0, left, sums, block, blocks, warp, lane)
        if block == 0:
            leave_heads(0, x, offset(left, SPAN * blocks), j, warp, lane)
        meet(flags, int32(j + 2), blocks, t)
        gather(0, sums, left, blocks, warp, lane)

    return exchange


def cluster_exchanger(config: Any, slots: int) -> tuple[Callable, Callable]:
    """``start(s, t)``: makes the mbarriers, before the blocks meet; ``exchange`` as of `exchanger`, with a
    slot at `left`. The slots are `slots` reals behind `s` in shared memory.
    """
    facts, ROWS, WARPS = config.dtype_facts, config.ROWS, config.WARPS
    REALS, SIZE, SPAN = facts.reals_per_element, facts.real_size, config.COLS * facts.reals_per_element
    int32, offset, shuffle, shared_address = ptx.types.int32, ptx.offset, ptx.shuffle, ptx.shared_address
    store_async, expect, wait = ptx.store_async, ptx.mbarrier_expect, ptx.mbarrier_wait
    init, init_fence = ptx.mbarrier_init, ptx.mbarrier_init_fence
    _, gather = gatherer(config, REALS, adder())
    MBARRIERS = slots + TURNS * SPAN * (MOST_BLOCKS + 1)  # place of the first one, in reals
    STEP = MBARRIER_BYTES // SIZE

    @device_function
    def start(s, t):
        if t == 0:
            for turn in range(TURNS):
                init(shared_address(offset(s, MBARRIERS + turn * STEP)), 1)
            init_fence()

    @device_function
    def send(c, sums, target, mbarrier, block, blocks, warp, lane):
        for part in range(REALS):
            at = ((warp + c * WARPS) * REALS + part) * blocks + block
            if lane < blocks:
                store_async(int32(target + at * SIZE), sums[c * REALS + part], mbarrier, lane)

    @device_function
    def send_head(c, x, target, mbarrier, blocks, j, warp, lane):
        for part in range(REALS):
            y = shuffle(x[c * ROWS * REALS + part], int32(j))
            at = SPAN * blocks + (warp + c * WARPS) * REALS + part
            if lane < blocks:
                store_async(int32(target + at * SIZE), y, mbarrier, lane)

    sends, send_heads = unrolled(config.OWN, send), unrolled(config.OWN, send_head)

    @device_function
    def exchange(x, sums, left, s, j, block, blocks, warp, lane, t):
        mbarrier = shared_address(offset(s, MBARRIERS + (j & 1) * STEP))
        target = shared_address(left)
        if t == 0:
            expect(mbarrier, int32(SPAN * (blocks + 1) * SIZE))
        sends(0, sums, target, mbarrier, block, blocks, warp, lane)
        if block == 0:
            send_heads(0, x, target, mbarrier, blocks, j, warp, lane)
        wait(mbarrier, int32((j >> 1) & 1))
        gather(0, sums, left, blocks, warp, lane)

    return start, exchange
