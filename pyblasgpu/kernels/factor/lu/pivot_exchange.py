"""Search of `getrf_panel`'s pivot: the largest of a block of threads, then of all blocks.

This is the search by labels; see `row_exchange` for one that takes fewer barriers and more memory.

Every block sends its candidate to all others through memory: size, label and row, each number with the step
as its tag (`ptx.send_real`), so that nobody waits for a fence. There are two slots for each block, used in
turn: one that sends its next candidate but one has received those of all others for the step between, and
they had received this one before. What is received depends on all that the sender has read of A, so A may be
overwritten after the last step.
"""

from __future__ import annotations

from ....gpu.backend import cuda, device_function, ptx, unrolled
from ...common.kernel_config import WARP
from .panel_rows import row_putter, sizer

__all__ = [
    "LABEL",
    "MESSAGES",
    "SIZE",
    "WARP",
    "among_blocks",
    "candidate_sender",
    "exchange_clearer",
    "search_by_labels",
    "slot_reals",
    "words_of_exchange",
]

DONE, MESSAGES = 0, 32  # words of the flags: blocks that are over; where messages begin
SIZE, LABEL = 0, 1  # of a slot, behind the row


def slot_reals(row_reals: int) -> int:
    """Numbers of a candidate."""
    return row_reals + 2


def words_of_exchange(config, blocks: int) -> int:
    """Words of the flags that `blocks` blocks use."""
    return MESSAGES + 2 * blocks * slot_reals(config.row_reals) * config.dtype_facts.real_size // 2


def _barrier(config):
    """``wait()``: for all threads of a block, which may be a warp."""
    sync_warp, IS_WARP = ptx.sync_warp, config.ROWS == WARP

    @device_function
    def wait():
        if IS_WARP:
            sync_warp()
        else:
            cuda.syncthreads()

    return wait


def _in_block(config):
    """``find(size, label, ok, sizes, labels, t)``: the label of the largest of a block, in all threads.

    A barrier must separate two calls.
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


def search_by_labels(config):
    """``search(values, label, is_left, others, other, other_left, shared, words, got, flags, t, block,
    blocks, step)``: where in shared memory the pivot's row is, and its label; a thread has one row.

    A candidate's row is put out when all of the block know it, and fetched by other blocks when they do.
    """
    facts, COLS = config.dtype_facts, config.COLS
    SIZES, LABELS = config.row_reals + COLS * config.ROWS * facts.reals_per_element, config.words
    int32, offset, NO_LABEL = ptx.types.int32, ptx.offset, ptx.NO_LABEL
    size_of, put, wait = sizer(config), row_putter(config, (COLS,)), _barrier(config)
    find_in_block, choose_among_blocks = _in_block(config), among_blocks(config)

    @device_function
    def search(
        values, label, is_left, others, other, other_left, shared, words, got, flags, t, block, blocks, step
    ):
        sizes, labels, chosen = offset(shared, SIZES), offset(words, LABELS), offset(words, LABELS + WARP)
        largest, size = offset(sizes, WARP), size_of(values)
        pivot = find_in_block(size, label, is_left, sizes, labels, t)
        if is_left and label == pivot:
            put(shared, values, COLS)
            largest[0], chosen[0] = size, pivot
        elif t == 0 and pivot == NO_LABEL:
            chosen[0] = pivot
        wait()
        if blocks > 1:
            if t < WARP:
                choose_among_blocks(shared, chosen, largest, got, flags, t, block, blocks, step)
            wait()
        return int32(0), int32(chosen[0])

    return search


def candidate_sender(config):
    """``send(pivot_row, label, size, messages, lane, slot, tag)``: a block's candidate, by a warp."""
    facts, REALS, SLOT = config.dtype_facts, config.row_reals, slot_reals(config.row_reals)
    real, send_real = ptx.REALS[facts.real], ptx.send_real

    @device_function
    def send_some(x, pivot_row, messages, lane, there, tag):
        k = lane + x * WARP
        if k < REALS:
            send_real(messages, there + k, pivot_row[k], tag)

    send_row = unrolled(-(-REALS // WARP), send_some)

    @device_function
    def send(pivot_row, label, size, messages, lane, slot, tag):
        there = slot * SLOT
        if lane <= LABEL:
            send_real(messages, there + REALS + lane, size if lane == SIZE else real(label), tag)
        send_row(0, pivot_row, messages, lane, there, tag)

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
    try_receive, send = ptx.try_receive_real, candidate_sender(config)

    @device_function
    def is_better(size, label, than, than_label):
        is_nan, than_nan = size != size, than != than
        equal = (size == than) | (is_nan & than_nan)
        larger = (size > than) | (is_nan & (than == than))
        return (label != NO_LABEL) & ((than_label == NO_LABEL) | larger | (equal & (label < than_label)))

    @device_function
    def fetch_some(x, pivot_row, got, messages, lane, there, tag):
        k = lane + x * WARP
        if k < REALS:
            while not try_receive(got, 0, messages, there + k, tag):
                pass
            pivot_row[k] = got[0]

    fetch_row = unrolled(-(-REALS // WARP), fetch_some)

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
        fetch_row(0, pivot_row, got, messages, lane, int32(chosen[1] * SLOT), tag)

    return choose


def exchange_clearer(config):
    """``finish(flags, is_last, t, blocks)``: by all threads of a block that has received all; the last block
    has the flags 0 again.
    """
    SLOT, WORDS = slot_reals(config.row_reals), config.dtype_facts.real_size // 2
    int32, atomic_add, store_relaxed = ptx.types.int32, ptx.atomic_add, ptx.store_relaxed
    ROWS = config.ROWS

    @device_function
    def finish(flags, is_last, t, blocks):
        if t == 0:
            is_last[0] = int32(atomic_add(flags, DONE, int32(1)) == blocks - 1)
        cuda.syncthreads()
        if is_last[0] != 0:
            for word in range(t, 2 * blocks * SLOT * WORDS, ROWS):
                store_relaxed(flags, MESSAGES + word, int32(0))
            if t == 0:
                store_relaxed(flags, DONE, int32(0))

    return finish
