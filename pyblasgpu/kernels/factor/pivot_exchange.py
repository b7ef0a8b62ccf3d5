"""How `getrf_panel` chooses a pivot: the largest of a block of threads, then of all blocks.

Every block sends its candidate, with its row, to memory, sets its flag to the number of the step, and reads
the candidates of all blocks. There are two places for each, used in turn: a block that sends its next
candidate but one has seen that all others have read this one, as they have sent theirs of the step between.
"""

from __future__ import annotations

from ...gpu.backend import cuda, device_function, ptx

__all__ = ["MOST_BLOCKS", "WARP", "among_blocks", "flag_clearer", "in_block"]

WARP = 32
DONE, PROGRESS = 0, 32  # flags: blocks that are over, steps for which each block has sent a candidate
MOST_BLOCKS = 1024


def in_block(config):
    """``find(size, label, ok, sizes, labels, t)``: the label of the largest of a block, in all threads.

    A barrier must lie between two calls.
    """
    WARPS = config.ROWS // WARP
    int32, NO_LABEL, warp_first_max = ptx.types.int32, ptx.NO_LABEL, ptx.warp_first_max

    @device_function
    def find(size, label, ok, sizes, labels, t):
        warp, lane = t // WARP, t % WARP
        largest = warp_first_max(size, label, ok)
        if (ok & (label == largest)) | ((lane == 0) & (largest == NO_LABEL)):
            sizes[warp], labels[warp] = size, largest
        cuda.syncthreads()
        other = min(lane, WARPS - 1)
        label = int32(labels[other])
        return warp_first_max(sizes[other], label, (lane < WARPS) & (label != NO_LABEL))

    return find


def among_blocks(config):
    """``choose(pivot_row, chosen, size, exchange, candidates, flags, lane, block, blocks, step)``: what a
    warp does to find the pivot of all blocks.

    On entry `pivot_row`, `chosen` and `size` hold the row, label and size of the block's candidate; after it,
    and a barrier, the row and label of the pivot.
    """
    facts, REALS, SLOT = config.dtype_facts, config.row_reals, config.slot
    real, int32 = ptx.REALS[facts.real], ptx.types.int32
    NO_LABEL, warp_first_max, load_acquire = ptx.NO_LABEL, ptx.warp_first_max, ptx.load_acquire
    offset, sync_warp, store_release = ptx.offset, ptx.sync_warp, ptx.store_release

    @device_function
    def is_better(size, label, than, than_label):
        is_nan, than_nan = size != size, than != than
        equal = (size == than) | (is_nan & than_nan)
        larger = (size > than) | (than_nan & (size == size))
        return (label != NO_LABEL) & ((than_label == NO_LABEL) | larger | (equal & (label < than_label)))

    @device_function
    def send(pivot_row, chosen, size, exchange, candidates, flags, lane, place, block, step):
        there = offset(exchange, place * SLOT)
        for k in range(lane, REALS, WARP):
            there[k] = pivot_row[k]
        if lane == 0:
            there[REALS] = size[0]
            candidates[place] = chosen[0]
        sync_warp()
        if lane == 0:
            store_release(flags, PROGRESS + block, int32(step + 1))

    @device_function
    def choose(pivot_row, chosen, size, exchange, candidates, flags, lane, block, blocks, step):
        first = step % 2 * blocks
        send(pivot_row, chosen, size, exchange, candidates, flags, lane, first + block, block, step)
        largest, largest_label, place = real(0), int32(NO_LABEL), int32(0)
        other = int32(lane)
        while other < blocks:
            sent = int32(0)
            while sent <= step:
                sent = load_acquire(flags, PROGRESS + other)
            there = int32(first + other)
            its_size, its_label = exchange[there * SLOT + REALS], int32(candidates[there])
            if is_better(its_size, its_label, largest, largest_label):
                largest, largest_label, place = its_size, its_label, there
            other = int32(other + WARP)
        pivot = warp_first_max(largest, largest_label, largest_label != NO_LABEL)
        if largest_label == pivot:
            chosen[0], chosen[1] = pivot, place
        sync_warp()
        row = offset(exchange, int32(chosen[1]) * SLOT)
        for k in range(lane, REALS, WARP):
            pivot_row[k] = row[k]

    return choose


def flag_clearer():
    """``clear(flags, blocks)``: by a thread of each block; the last one has the flags 0 again, as all
    have read them.
    """
    int32, atomic_add, store_relaxed = ptx.types.int32, ptx.atomic_add, ptx.store_relaxed

    @device_function
    def clear(flags, blocks):
        if atomic_add(flags, DONE, int32(1)) == blocks - 1:
            for other in range(blocks):
                store_relaxed(flags, PROGRESS + other, int32(0))
            store_relaxed(flags, DONE, int32(0))

    return clear
