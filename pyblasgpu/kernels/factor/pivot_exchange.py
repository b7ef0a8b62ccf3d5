"""How `getrf_panel` chooses a pivot: the largest of a block of threads, then of all blocks.

Every block sends its candidate to all others through memory: size, label and row, each number with the step
as its tag (`ptx.send_real`), so that nobody waits for a fence. There are two places for each block, used in
turn: one that sends its next candidate but one has received those of all others for the step between, and
they had received this one before. What is received depends on all that the sender has read of A, so A may be
overwritten after the last step.
"""

from __future__ import annotations

from ...gpu.backend import cuda, device_function, ptx

__all__ = [
    "WARP",
    "among_blocks",
    "barrier",
    "exchange_clearer",
    "in_block",
    "slot_reals",
    "words_of_exchange",
]

WARP = 32
DONE, MESSAGES = 0, 32  # words of the flags: blocks that are over; where messages begin
SIZE, LABEL = 0, 1  # of a slot, behind the row


def slot_reals(row_reals: int) -> int:
    """Numbers of a candidate."""
    return row_reals + 2


def words_of_exchange(config, blocks: int) -> int:
    """Words of the flags that so many blocks use."""
    return MESSAGES + 2 * blocks * slot_reals(config.row_reals) * config.dtype_facts.real_size // 2


def barrier(config):
    """``wait()``: for all threads of a block, which may be a warp."""
    sync_warp, IS_WARP = ptx.sync_warp, config.ROWS == WARP

    @device_function
    def wait():
        if IS_WARP:
            sync_warp()
        else:
            cuda.syncthreads()

    return wait


def in_block(config):
    """``find(size, label, ok, sizes, labels, t)``: the label of the largest of a block, in all threads.

    A barrier must lie between two calls.
    """
    WARPS = config.ROWS // WARP
    int32, NO_LABEL, warp_first_max = ptx.types.int32, ptx.NO_LABEL, ptx.warp_first_max
    sync_warp = ptx.sync_warp

    @device_function
    def find(size, label, ok, sizes, labels, t):
        warp, lane = t // WARP, t % WARP
        largest = warp_first_max(size, label, ok)
        if WARPS > 1:
            if (ok & (label == largest)) | ((lane == 0) & (largest == NO_LABEL)):
                sizes[warp], labels[warp] = size, largest
            cuda.syncthreads()
            other = min(lane, WARPS - 1)
            label = int32(labels[other])
            largest = warp_first_max(sizes[other], label, (lane < WARPS) & (label != NO_LABEL))
        else:
            sync_warp()
        return largest

    return find


def _sender(config):
    """``send(pivot_row, label, size, messages, lane, slot, tag)``: a block's candidate, by a warp."""
    facts, REALS, SLOT = config.dtype_facts, config.row_reals, slot_reals(config.row_reals)
    real, send_real = ptx.REALS[facts.real], ptx.send_real

    @device_function
    def send(pivot_row, label, size, messages, lane, slot, tag):
        if lane == 0:
            send_real(messages, slot * SLOT + REALS + SIZE, size, tag)
        if lane == 1:
            send_real(messages, slot * SLOT + REALS + LABEL, real(label), tag)
        for k in range(lane, REALS, WARP):
            send_real(messages, slot * SLOT + k, pivot_row[k], tag)

    return send


def among_blocks(config):
    """``choose(pivot_row, chosen, size, got, flags, lane, block, blocks, step)``: what a warp does to find
    the pivot of all blocks.

    On entry `pivot_row`, `chosen` and `size` hold the row, label and size of the block's candidate; after it,
    and a barrier, the row and label of the pivot.
    """
    facts, REALS, SLOT = config.dtype_facts, config.row_reals, slot_reals(config.row_reals)
    real, int32, offset = ptx.REALS[facts.real], ptx.types.int32, ptx.offset
    NO_LABEL, warp_first_max, sync_warp = ptx.NO_LABEL, ptx.warp_first_max, ptx.sync_warp
    try_receive, send = ptx.try_receive_real, _sender(config)

    @device_function
    def is_better(size, label, than, than_label):
        is_nan, than_nan = size != size, than != than
        equal = (size == than) | (is_nan & than_nan)
        larger = (size > than) | (than_nan & (size == size))
        return (label != NO_LABEL) & ((than_label == NO_LABEL) | larger | (equal & (label < than_label)))

    @device_function
    def choose(pivot_row, chosen, size, got, flags, lane, block, blocks, step):
        messages, first, tag = offset(flags, MESSAGES), step % 2 * blocks, int32(step + 1)
        label = int32(chosen[0])
        send(pivot_row, -1 if label == NO_LABEL else label, size[0], messages, lane, first + block, tag)
        largest, largest_label, slot = real(0), int32(NO_LABEL), int32(0)
        other = int32(lane)
        while other < blocks:
            there = (first + other) * SLOT + REALS
            while not (
                try_receive(got, 0, messages, there + SIZE, tag)
                & try_receive(got, 1, messages, there + LABEL, tag)
            ):
                pass
            its_label = int32(NO_LABEL if got[1] < real(0) else int32(got[1]))
            if is_better(got[0], its_label, largest, largest_label):
                largest, largest_label, slot = got[0], its_label, int32(first + other)
            other = int32(other + WARP)
        pivot = warp_first_max(largest, largest_label, largest_label != NO_LABEL)
        sync_warp()
        if largest_label == pivot:
            chosen[0], chosen[1] = pivot, slot
        sync_warp()
        row = int32(chosen[1]) * SLOT
        for k in range(lane, REALS, WARP):
            while not try_receive(got, 0, messages, row + k, tag):
                pass
            pivot_row[k] = got[0]

    return choose


def exchange_clearer(config):
    """``finish(flags, told, t, blocks)``: by all threads of a block that has received all; the last block has
    the flags 0 again.
    """
    SLOT, WORDS = slot_reals(config.row_reals), config.dtype_facts.real_size // 2
    int32, atomic_add, store_relaxed = ptx.types.int32, ptx.atomic_add, ptx.store_relaxed
    ROWS = config.ROWS

    @device_function
    def finish(flags, told, t, blocks):
        if t == 0:
            told[0] = int32(atomic_add(flags, DONE, int32(1)) == blocks - 1)
        cuda.syncthreads()
        if told[0] != 0:
            for word in range(t, 2 * blocks * SLOT * WORDS, ROWS):
                store_relaxed(flags, MESSAGES + word, int32(0))
            if t == 0:
                store_relaxed(flags, DONE, int32(0))

    return finish
