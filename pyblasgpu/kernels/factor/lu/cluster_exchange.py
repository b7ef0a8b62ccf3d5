"""Search of `getrf_panel`'s pivot in a cluster: blocks write into one another's shared memory.

Each block chooses among the candidates of its warps, as in `row_exchange`, and sends size, label and row to
all blocks. An mbarrier in each counts the arrivals. So a column takes one way between multiprocessors, and
none through memory.

There are two slots for each block, and two mbarriers, used in turn: a block that sends its next candidate but
one has received those of all others for the step between, and they had read this one before.
"""

from __future__ import annotations

from ....gpu.backend import device_function, ptx, unrolled
from .pivot_exchange import WARP
from .row_exchange import block_candidate, chooser, thread_candidate

__all__ = ["cluster_starter", "reals_of_cluster", "search_in_cluster", "words_of_cluster"]

TURNS = 2  # slots and mbarriers
MBARRIER_WORDS = 2


def reals_of_cluster(config) -> int:
    """Reals in shared memory: rows of the warps' candidates and their sizes; what blocks have sent."""
    return TURNS * (_warps(config) * (config.row_reals + 1) + config.CLUSTER * _message_reals(config))


def words_of_cluster(config) -> int:
    """Int32 in shared memory: labels of the warps' candidates and the mbarriers."""
    return TURNS * (_warps(config) + MBARRIER_WORDS)


def _warps(config) -> int:
    return config.threads // WARP


def _message_reals(config) -> int:
    """A row, size and label of a candidate, in whole vectors."""
    return config.row_reals + 16 // config.dtype_facts.real_size


def _mbarriers(config) -> int:
    """The word of shared memory with the first one."""
    return config.words + TURNS * _warps(config)


def cluster_starter(config):
    """``start(words, t, blocks)``: makes the mbarriers of the blocks of a cluster, by all of its threads."""
    MBARRIERS, offset, shared_address = _mbarriers(config), ptx.offset, ptx.shared_address
    mbarrier_init, init_fence, cluster_sync = ptx.mbarrier_init, ptx.mbarrier_init_fence, ptx.cluster_sync

    IS_ONE = config.CLUSTER > 1

    @device_function
    def start(words, t, blocks):
        if IS_ONE and blocks > 1:
            if t == 0:
                first = shared_address(offset(words, MBARRIERS))
                mbarrier_init(first, 1)
                mbarrier_init(first + 8, 1)
                init_fence()
            cluster_sync()

    return start


def _sender(config):
    """``send(row, size, label, target, mbarrier, lane, warp, blocks)``: a block's candidate to the slots at
    `target` of all blocks, by a warp to each.
    """
    facts, REALS, WARPS = config.dtype_facts, config.row_reals, _warps(config)
    SIZE, real_size, int32, store_async = (
        REALS * facts.real_size,
        facts.real_size,
        ptx.types.int32,
        ptx.store_async,
    )

    @device_function
    def send_some(x, row, target, mbarrier, lane, block):
        k = int32(lane + x * WARP)
        if k < REALS:
            store_async(int32(target + k * real_size), row[k], mbarrier, block)

    send_row = unrolled(-(-REALS // WARP), send_some)

    @device_function
    def send(row, size, label, target, mbarrier, lane, warp, blocks):
        block = int32(warp)
        while block < blocks:
            send_row(0, row, target, mbarrier, lane, block)
            if lane == 0:
                store_async(int32(target + SIZE), size, mbarrier, block)
            if lane == 1:
                store_async(int32(target + SIZE + real_size), label, mbarrier, block)
            block = int32(block + WARPS)

    return send


def search_in_cluster(config):
    """``search(values, label, is_left, others, other, other_left, shared, words, got, flags, t, block,
    blocks, step)``: where in shared memory the pivot's row is, and its label; see `thread_candidate`.
    """
    REALS, WARPS, MESSAGE = config.row_reals, _warps(config), _message_reals(config)
    AREA, MESSAGES = config.results, config.results + TURNS * WARPS * REALS
    SIZES, MBARRIERS = MESSAGES + TURNS * config.CLUSTER * MESSAGE, _mbarriers(config)
    WORDS = config.dtype_facts.real_size // 4
    NBYTES, SLOTS = (REALS + 1) * config.dtype_facts.real_size + 4, config.CLUSTER
    int32, offset, shared_address, pick = (
        ptx.types.int32,
        ptx.offset,
        ptx.shared_address,
        thread_candidate(config),
    )
    choose_in_block, choose, send = block_candidate(config, AREA, SIZES), chooser(config), _sender(config)
    expect, wait = ptx.mbarrier_expect, ptx.mbarrier_wait

    @device_function
    def search(
        values, label, is_left, others, other, other_left, shared, words, got, flags, t, block, blocks, step
    ):
        warp, lane, turn = int32(t // WARP), int32(t % WARP), int32(step & 1)
        which, pivot = choose_in_block(
            values, others, pick(values, label, is_left, others, other, other_left), shared, words, turn, t
        )
        if SLOTS == 1 or blocks == 1:
            return int32(AREA + which * REALS), pivot
        mbarrier = int32(shared_address(offset(words, MBARRIERS)) + 8 * turn)
        if t == 0:
            expect(mbarrier, int32(blocks * NBYTES))
        row, first = offset(shared, AREA + which * REALS), int32(MESSAGES + turn * SLOTS * MESSAGE)
        target = shared_address(offset(shared, first + block * MESSAGE))
        send(row, shared[SIZES + which], pivot, target, mbarrier, lane, warp, blocks)
        wait(mbarrier, int32((step >> 1) & 1))
        at = int32(first + min(lane, blocks - 1) * MESSAGE + REALS)
        which, pivot = choose(shared[at], int32(words[(at + 1) * WORDS]), lane < blocks)
        return int32(first + which * MESSAGE), pivot

    return search
