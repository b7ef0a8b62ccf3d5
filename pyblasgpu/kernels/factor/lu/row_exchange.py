"""Search of `getrf_panel`'s pivot with one barrier in a block, and one way through memory between blocks.

Each warp puts out the row of its candidate before it is known whether it is the largest. So after a barrier
all threads choose for themselves, and the row is there. Of a few blocks each receives the rows of all others
at once, a warp from a block, and chooses in the same way. More blocks go by labels (`pivot_exchange`).

There are two slots for each warp, used in turn: who writes the next but one has passed the barrier between,
and so have all that read this one.
"""

from __future__ import annotations

from ....gpu.backend import cuda, device_function, ptx, unrolled
from .panel_rows import row_putter, sizer
from .pivot_exchange import LABEL, MESSAGES, SIZE, WARP, among_blocks, candidate_sender, slot_reals

__all__ = [
    "block_candidate",
    "chooser",
    "reals_of_search",
    "search_by_rows",
    "thread_candidate",
    "words_of_search",
]


def reals_of_search(config) -> int:
    """Reals in shared memory: rows of the warps' candidates and of the blocks', and their sizes."""
    return _candidates(config) * (config.row_reals + 1)


def words_of_search(config) -> int:
    """Int32 in shared memory: labels of the candidates; what is chosen, and where."""
    return _candidates(config) + 2


def _candidates(config) -> int:
    return 2 * (config.ROWS // WARP) + max(config.DIRECT, 1)


def chooser(config):
    """``choose(size, label, ok)``: the lane whose candidate is the largest of a warp's with `ok`, and its
    label; lane 0 where there is none.
    """
    int32, NO_LABEL, first_max_lane, shuffle = ptx.types.int32, ptx.NO_LABEL, ptx.first_max_lane, ptx.shuffle

    @device_function
    def choose(size, label, ok):
        which = int32(max(first_max_lane(size, label, ok & (label != NO_LABEL)), 0))
        return which, int32(shuffle(label, which))

    return choose


def thread_candidate(config):
    """``pick(values, label, is_left, others, other, other_left)``: size and label of a thread's candidate,
    whether there is one, and whether it is the second one of its rows.
    """
    size_of = sizer(config)

    @device_function
    def only_row(values, label, is_left, others, other, other_left):
        return size_of(values), label, is_left, False

    @device_function
    def pick(values, label, is_left, others, other, other_left):
        size, second = size_of(values), size_of(others)
        is_larger = (second > size) | ((second != second) & (size == size))
        equal = (second == size) | ((second != second) & (size != size))
        is_second = other_left & ((not is_left) | is_larger | (equal & (other < label)))
        if is_second:
            size, label = second, other
        return size, label, is_left | other_left, is_second

    return pick if config.PER_THREAD == 2 else only_row


def _candidate_putter(config):
    """``put(there, values, others, is_second)``: a thread's candidate into shared memory."""
    put, COLS = row_putter(config, (config.COLS,)), config.COLS

    @device_function
    def put_only_row(there, values, others, is_second):
        put(there, values, COLS)

    @device_function
    def put_either(there, values, others, is_second):
        if is_second:
            put(there, others, COLS)
        else:
            put(there, values, COLS)

    return put_either if config.PER_THREAD == 2 else put_only_row


def block_candidate(config, area: int, sizes: int):
    """``find(values, others, candidate, shared, words, turn, t)``: which row of those at `area` in shared
    memory is the candidate of the block, and its label; its size is next to those at `sizes`. `candidate` is
    a thread's.
    """
    REALS, WARPS = config.row_reals, config.threads // WARP
    AREA, SIZES, LABELS = area, sizes, config.words
    int32, offset, first_max_lane, NO_LABEL = ptx.types.int32, ptx.offset, ptx.first_max_lane, ptx.NO_LABEL
    put, choose = _candidate_putter(config), chooser(config)

    @device_function
    def find(values, others, candidate, shared, words, turn, t):
        size, label, is_left, is_second = candidate
        warp, lane, first = int32(t // WARP), int32(t % WARP), int32(turn * WARPS)
        best = first_max_lane(size, label, is_left)
        if lane == best:
            put(offset(shared, AREA + (first + warp) * REALS), values, others, is_second)
            shared[SIZES + first + warp], words[LABELS + first + warp] = size, label
        elif best < 0 and lane == 0:
            words[LABELS + first + warp] = NO_LABEL
        cuda.syncthreads()
        at = int32(first + min(lane, WARPS - 1))
        which, pivot = choose(shared[SIZES + at], int32(words[LABELS + at]), lane < WARPS)
        return int32(first + which), pivot

    return find


def _receiver(config):
    """``receive(rows, sizes, labels, got, messages, lane, warp, first, blocks, tag)``: the candidates of all
    blocks into shared memory, each by a warp.
    """
    facts, REALS, SLOT = config.dtype_facts, config.row_reals, slot_reals(config.row_reals)
    WARPS, real, int32 = config.ROWS // WARP, ptx.REALS[facts.real], ptx.types.int32
    NO_LABEL, try_receive = ptx.NO_LABEL, ptx.try_receive_real

    @device_function
    def receive_some(x, rows, sizes, labels, got, messages, lane, there, other, tag):
        k = lane + x * WARP
        if k < REALS:
            second = there + (REALS + k if k <= LABEL else k)  # loaded at once, not one after the other
            while not (
                try_receive(got, 0, messages, there + k, tag) & try_receive(got, 1, messages, second, tag)
            ):
                pass
            rows[other * REALS + k] = got[0]
            if k == SIZE:
                sizes[other] = got[1]
            if k == LABEL:
                labels[other] = int32(NO_LABEL if got[1] < real(0) else int32(got[1]))

    receive_candidate = unrolled(-(-REALS // WARP), receive_some)

    @device_function
    def receive(rows, sizes, labels, got, messages, lane, warp, first, blocks, tag):
        other = int32(warp)
        while other < blocks:
            there = int32((first + other) * SLOT)
            receive_candidate(0, rows, sizes, labels, got, messages, lane, there, other, tag)
            other = int32(other + WARPS)

    return receive


def search_by_rows(config):
    """``search(values, label, is_left, others, other, other_left, shared, words, got, flags, t, block,
    blocks, step)``: where in shared memory the pivot's row is, and its label; see `thread_candidate`.
    """
    REALS, WARPS, DIRECT = config.row_reals, config.ROWS // WARP, config.DIRECT
    AREA, SIZES = config.results, config.results + _candidates(config) * config.row_reals
    LABELS, CHOSEN = config.words, config.words + _candidates(config)
    int32, offset, NO_LABEL, sync_warp = ptx.types.int32, ptx.offset, ptx.NO_LABEL, ptx.sync_warp
    pick, choose_in_block = thread_candidate(config), block_candidate(config, AREA, SIZES)
    choose, receive, send = chooser(config), _receiver(config), candidate_sender(config)
    choose_among_blocks = among_blocks(config)

    @device_function
    def search(
        values, label, is_left, others, other, other_left, shared, words, got, flags, t, block, blocks, step
    ):
        # (a) the candidate of this warp, for all of the block
        warp, lane, turn = int32(t // WARP), int32(t % WARP), int32(step & 1)
        sizes, labels = offset(shared, SIZES), offset(words, LABELS)
        which, pivot = choose_in_block(
            values, others, pick(values, label, is_left, others, other, other_left), shared, words, turn, t
        )
        if blocks == 1:
            return int32(AREA + which * REALS), pivot

        # (b) the candidates of all blocks, with their rows
        RECEIVED, messages = int32(2 * WARPS), offset(flags, MESSAGES)
        row, tag, there = offset(shared, AREA + which * REALS), int32(step + 1), int32(step % 2 * blocks)
        if blocks <= DIRECT:
            if t < WARP:
                sent = int32(-1) if pivot == NO_LABEL else pivot
                send(row, sent, sizes[which], messages, lane, there + block, tag)
            rows = offset(shared, AREA + RECEIVED * REALS)
            receive(
                rows,
                offset(sizes, RECEIVED),
                offset(labels, RECEIVED),
                got,
                messages,
                lane,
                warp,
                there,
                blocks,
                tag,
            )
            cuda.syncthreads()
            at = int32(RECEIVED + min(lane, blocks - 1))
            which, pivot = choose(sizes[at], int32(labels[at]), lane < blocks)
            return int32(AREA + (RECEIVED + which) * REALS), pivot

        # (c) or the largest of them, and then its row
        chosen = offset(words, CHOSEN)
        if t < WARP:
            if lane == 0:
                chosen[0] = pivot
            sync_warp()
            choose_among_blocks(row, chosen, offset(sizes, which), got, flags, lane, block, blocks, step)
        cuda.syncthreads()
        return int32(AREA + which * REALS), int32(chosen[0])

    return search
