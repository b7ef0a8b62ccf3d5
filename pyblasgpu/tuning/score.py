"""How fast a Config ought to be, by arithmetic alone: an estimate of its cycles on a multiprocessor.

Whole waves of blocks, then a last one that is not full. What a multiprocessor does for its blocks costs about
the larger of two: throughput (instructions issued, shared memory, bytes from L2 and of C to DRAM), which all
resident blocks share, and latency (the stripe of one warp and a barrier, or the memory's answer), which one
block suffers alone. A block's start hides behind the others; the stores of C at its end do not. DRAM bounds
the whole. The constants are rounded from a fit to recorded sweeps of an H200; `docs/tuning.md` says how
well the estimate ranks what was measured there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import ceil, inf, prod
from typing import Any, NamedTuple

from ..gpu.device import Device
from ..gpu.mma import joins_parts
from ..kernels.gemm_in_place import TRIANGLES, tile_counts, tile_orders
from ..kernels.gemm_persistent import under_way
from ..kernels.stripe import RUN, Stripe
from ..types import Dtype

__all__ = [
    "OVERHEAD",
    "blocks_per_sm",
    "comfortable",
    "cycles",
    "dram_rate",
    "in_place_cycles",
    "piece_bytes",
    "score",
    "summing_cycles",
    "tiles_of",
]

OVERHEAD = 24  # registers of addresses and counters that a kernel needs beside its Config's own estimate
COMFORT = 88  # what it takes beside it if it may; with less, some kernels spill

LINE = 128  # bytes that shared memory serves in a cycle
L2_BYTES = 64  # bytes that a multiprocessor gets from L2 in a cycle
READ, WRITE = 0.9, 0.7  # cycles of a line that is read from, written to shared memory: some hide behind FMAs
BEHIND_MMA = 0.3  # of what is read, where tensor cores are at work meanwhile
MOVES = 3  # instructions that bring an element of a complex fragment to where four products want it
ASTRAY = 3  # times that for asynchronous copies from where memory's sectors do not begin
ASTRAY_L1 = 2  # the same for copies of 16 bytes that pass through the L1 cache
LOAD = 10  # instructions of a global load: address, mask, load
COPY = 60  # those of a leaf's, which is element by element and knows no contiguous dimension
BARRIER = 50  # cycles of a barrier and of what begins a stripe
ANSWER = 1600  # cycles until memory answers
ROW = 200  # cycles between two block rows of a leaf
START = 2500  # cycles until a block runs and its first stripe is there
STORE = 16  # cycles in which a thread stores one real of C
#: Cycles in which a warp gets an instruction of a loop of at most so many: 64 KiB, 128 KiB.
FETCH = (4000, 1.0), (8000, 2.4), (inf, 4.2)
MMA_RATE = 2  # FMAs on tensor cores in the time of one elsewhere, in double precision; see `_mma_rate`
SMALL_MMA = 2  # times the cycles of a product of 8 x 8 x 4 where tensor cores are made for larger ones
WAIT = 8  # issue slots of a k that are lost where its fragments are not fetched ahead
WALK = 50  # instructions of a persistent block on its way from one stripe to the next
SUMMING = 8000  # cycles that it takes to part tiles, without what follows
LONGEST = 0.8  # of the tile with the most to do of a product in place: it hides others, or they hide it
LEVEL = 200  # cycles that each row of tiles costs there: a flag, and what waits for it
ADDING = 700  # cycles in which a block adds what its threads load at a time
ONE_BANK = 0.15  # of a real FMA's cycles, lost where vectors along k put those of one k into one bank
BANKS = 1.1  # times the cycles of a complex FMA where operands that meet come from one bank of registers
DEPENDENT = 4  # cycles until an FMA of a substitution can use the one before
SHARP = 3  # the larger of throughput and latency, the more the other hides behind it: a norm of this order


class _Block(NamedTuple):
    """What one block asks of its multiprocessor, in cycles: shared with others, on its own, before, after.

    Of its `work` each of its warps issues for `issue` cycles, on the one scheduler that it has; `schedulers`
    are the warps as parts of all schedulers. The `rest` is no scheduler's.
    """

    work: float
    latency: float
    start: float = 0.0
    end: float = 0.0
    issue: float = 0.0
    schedulers: float = 0.0
    rest: float = 0.0

    def together(self, count: int, last: bool = False) -> float:
        """Cycles of so many at once: the others hide a block's start, but not its stores."""
        lasting = self.lasting(count) if last else self._flowing(count)
        return lasting + self.start / count + self.end

    def lasting(self, count: int) -> float:
        """Cycles of so many at once between their start and their stores, if none takes an ended one's place.

        A scheduler has whole warps: five single ones on four take as long as eight.
        """
        busiest = ceil(count * self.schedulers) * self.issue + count * self.rest
        return _overlapped(max(busiest, count * self.work), self.latency)

    def _flowing(self, count: int) -> float:
        return _overlapped(count * self.work, self.latency)


def _overlapped(work: float, latency: float) -> float:
    """Cycles of both: the larger where they differ much, more than it where they do not."""
    return (work**SHARP + latency**SHARP) ** (1 / SHARP)


@lru_cache(maxsize=1 << 16)
def blocks_per_sm(config: Any, device: Device) -> int:
    """Blocks that a multiprocessor holds, by the estimated registers, as the launch bounds leave them."""
    return device.occupancy(config.threads, _registers(config, device), config.shared_bytes)


def score(stem: str, config: Any, extents: tuple[int, ...], device: Device) -> float:
    """The share of the FMA rate that `config` may reach at `extents`, for comparison within a family."""
    if blocks_per_sm(config, device) == 0:
        return 0.0
    spill = min(1.0, (_limit(config, device) / (config.registers + OVERHEAD)) ** 2)
    facts = config.dtype_facts
    products = extents[0] ** 2 / 2 * extents[1] if stem in _LEAVES else prod(extents)
    ideal = products * facts.parts**2 / (device.fma_lanes(facts) * device.sm_count)
    best = cycles(stem, config, extents, device)
    if getattr(config, "persistent", False):
        streamed = cycles(stem, config, extents, device, True) + summing_cycles(config, extents, device)
        best = min(best, streamed)
    return spill * ideal / best


def cycles(
    stem: str,
    config: Any,
    extents: tuple[int, ...],
    device: Device,
    streamed: bool = False,
    part: str = "all",
    astray: tuple[bool, bool] = (False, False),
) -> float:
    """Estimated cycles of one launch, without what every launch takes.

    Parameters
    ----------
    stem : str
        The kernel family.
    config : object
        A Config that fits on `device`.
    extents : tuple of int
        (m, n, k[, batch]) of a GEMM, (order, right-hand sides) of a leaf.
    device : Device
    streamed : bool
        Whether the blocks of a persistent kernel part the last tiles; `summing_cycles` come on top.
    part : str
        Of the C of a GEMM, as `kernels.part` names it; or the triangle by which C is multiplied in place, as
        `kernels.gemm_in_place` does.
    astray : (bool, bool)
        Whether columns of the A, B of a GEMM (rows, if transposed) begin within sectors of memory.
    """
    resident = blocks_per_sm(config, device)
    if part in TRIANGLES:
        share, longest = in_place_cycles(config, extents, device, part, astray)
        levels, _ = tile_counts(config, part, *extents[:2])
        return _overlapped(share, LONGEST * longest) + LEVEL * levels
    if stem in _LEAVES:
        return _leaf_cycles(stem, config, extents[:2], resident, device)
    m, n, k, *batch = extents
    count = prod(batch)  # no tile holds parts of two matrices
    block, tiles = _gemm_block(config, k, device, astray), tiles_of(config, extents, part)
    if not config.persistent:
        waves = _waves(block, tiles, resident, device)
    else:
        waves = (_parted if streamed else _rounds)(block, tiles, config.min_blocks, device)
    return max(waves, count * _dram_cycles(config, (m, n, k), resident, device))


def in_place_cycles(
    config: Any,
    extents: tuple[int, ...],
    device: Device,
    triangle: str,
    astray: tuple[bool, bool] = (False, False),
) -> tuple[float, float]:
    """Of a product in place by a triangle of order k: those of all tiles, spread over the multiprocessors,
    and those of the tile with the most to do.
    """
    m, n, k, *_ = extents
    resident, (block, _) = blocks_per_sm(config, device), tile_orders(config, triangle)
    tiles = config.grid(m, n)
    mean = _gemm_block(config, (k + block) // 2, device, astray)
    all_tiles = tiles * mean.together(resident) / (device.sm_count * resident)
    beside = min(resident, -(-tiles // device.sm_count))
    longest = _gemm_block(config, k, device, astray).together(beside, last=True)
    dram = _dram_cycles(config, (m, n, k // 2), resident, device)
    return max(all_tiles, dram), longest


def tiles_of(config: Any, extents: tuple[int, ...], part: str = "all") -> int:
    """Tiles of all matrices of a product of (m, n, k[, batch])."""
    m, n, _, *batch = extents
    return prod(batch) * config.grid(m, n, part)


def summing_cycles(config: Any, extents: tuple[int, ...], device: Device, part: str = "all") -> float:
    """Those in which the pieces of a streamed product are written and added up."""
    pieces = ceil(device.sm_count * config.min_blocks / tiles_of(config, extents, part))  # of a tile
    loads, together = under_way(config)
    rounds = ceil(pieces / together) * (config.THR_M * config.THR_N * config.dtype_facts.parts // loads)
    return SUMMING + ADDING * rounds


def piece_bytes(config: Any, device: Device) -> int:
    """Bytes of scratch for the pieces of all blocks that the device holds."""
    tile = config.BLK_M * config.BLK_N * config.dtype_facts.itemsize
    return device.sm_count * config.min_blocks * tile


def comfortable(config: Any, device: Device) -> bool:
    """Whether `config` leaves the compiler so many registers that it need not be seen to compile."""
    # a column that is solved in registers: as many again as a step of it has real products
    column = config.BLK_M * config.dtype_facts.parts**2 if config.STEM == "trsm_leaf" else 0
    return config.registers + column + COMFORT <= _limit(config, device)


def _limit(config: Any, device: Device) -> int:
    """Registers a thread may have under the Config's launch bounds."""
    bound = device.registers_per_sm // (config.threads * config.min_blocks)
    return min(device.max_registers_per_thread, bound)


def _registers(config: Any, device: Device) -> int:
    return min(config.registers + OVERHEAD, _limit(config, device) // 8 * 8)


def _waves(block: _Block, blocks: int, resident: int, device: Device) -> float:
    """Full waves, then what is left, spread over the multiprocessors."""
    full, rest = divmod(blocks, device.sm_count * resident)
    alone = -(-rest // device.sm_count)
    last = block.together(alone, last=True) if rest else 0.0
    return full * block.together(resident) + last


def _rounds(block: _Block, blocks: int, resident: int, device: Device) -> float:
    """The same of persistent blocks: only the first tile of each has a start."""
    full, rest = divmod(blocks, device.sm_count * resident)
    alone = -(-rest // device.sm_count)
    last = block.lasting(alone) + block.end if rest else 0.0
    return block.start + full * (block.lasting(resident) + block.end) + last


def _parted(block: _Block, tiles: int, resident: int, device: Device) -> float:
    """The same where all blocks end at once."""
    share = tiles / (device.sm_count * resident)
    # of the last tiles a block has pieces more than its share
    return block.start + share * (block.lasting(resident) + block.end) + 2 * block.end


def _gemm_block(config: Any, k: int, device: Device, astray: tuple[bool, bool]) -> _Block:
    """A tile of C: its stripes, then its way to memory."""
    stripe, count = _gemm_stripe(config, device, astray), -(-k // config.BLK_K)
    facts = config.dtype_facts
    written = config.BLK_M * config.BLK_N * facts.itemsize * device.sm_count / dram_rate(device)
    return _Block(
        count * stripe.work + written, count * stripe.latency, START,
        config.THR_M * config.THR_N * facts.parts * STORE, issue=count * stripe.issue,
        schedulers=stripe.schedulers, rest=count * stripe.rest + written,
    )  # fmt: skip


@lru_cache(maxsize=1 << 16)
def _gemm_stripe(config: Any, device: Device, astray: tuple[bool, bool] = (False, False)) -> _Block:
    """One stripe of a tile."""
    facts, warps = config.dtype_facts, config.threads // device.warp_size
    shares = zip((config.stripe_a, config.stripe_b), config.shares, astray, strict=True)
    stripes = [
        (stripe, _astray(stripe) if strays and config.stages > 1 else 1)
        for stripe, shared, strays in shares
        if shared
    ]
    loads = LOAD * sum(s.blk * s.depth / (s.vec * config.threads) for s, _ in stripes)
    loads += WALK * config.persistent
    step = _mma_step(config, device) if config.STEM == "gemm_mma" else _fma_step(config, device)
    stored = sum(times * _stored_lines(s, config.threads, device.warp_size) for s, times in stripes)
    lines = config.BLK_K * step.lines * READ + stored * WRITE
    fetched = (config.BLK_M + config.BLK_N) * config.BLK_K * facts.itemsize / L2_BYTES
    issue = config.BLK_K * step.slots + loads
    alone = config.BLK_K * step.alone + loads
    work = max(warps * (issue / device.partitions + lines), fetched)
    latency = max(alone + BARRIER, ANSWER / max(config.stages - 1, 1))
    return _Block(work, latency, issue=issue, schedulers=warps / device.partitions, rest=warps * lines)


def _astray(stripe: Stripe) -> int:
    return ASTRAY_L1 if stripe.through_l1 and stripe.load_bytes == RUN else ASTRAY


def dram_rate(device: Device) -> float:
    """Bytes of DRAM in a cycle; where that is unknown, a quarter of what L2 gives."""
    return device.dram_bytes or device.sm_count * L2_BYTES / 4


def _fetching(instructions: float) -> float:
    """Cycles in which a warp gets an instruction of a loop of so many."""
    return next(cycles for most, cycles in FETCH if instructions < most)


class _Step(NamedTuple):
    """What a warp does for one k: issue slots, cycles where it is alone, lines that it reads."""

    slots: float
    alone: float
    lines: float


def _slots_per_fma(config: Any, device: Device) -> float:
    return device.warp_size * device.partitions / device.fma_lanes(config.dtype_facts)


def _mma_rate(facts: Dtype, device: Device) -> int:
    """FMAs on tensor cores in the time of one elsewhere, in double precision; cards for graphics run tensor
    code on their few units for it (NVIDIA's GA102 white paper).
    """
    return MMA_RATE if device.fma_lanes(facts) >= device.warp_size else 1


def _mma_time(config: Any, device: Device) -> float:
    """An FMA's time by the instructions of a Config, as a part of that elsewhere; `SMALL_MMA`."""
    small = config.MMA_M == 8 and device.cc >= (9, 0)
    return (SMALL_MMA if small else 1) / _mma_rate(config.dtype_facts, device)


def _fma_step(config: Any, device: Device) -> _Step:
    """With ordinary FMAs; lanes that want the same share a line."""
    size, across = config.dtype_facts.itemsize, device.warp_size // config.WARP_X
    fmas = config.THR_M * config.THR_N * config.dtype_facts.parts**2
    others = lines = 0.0
    for stripe, shared, count, vec, lanes in (
        (config.stripe_a, config.share_a, config.THR_M, config.VEC_M, config.WARP_X),
        (config.stripe_b, config.share_b, config.THR_N, config.VEC_N, across),
    ):
        if stripe.is_kept:  # vectors along k
            vec = config.VEC_K
        if shared:
            others += count / vec
            lines += count / vec * max(1.0, lanes * vec * size / LINE)
        else:  # element by element; along k every lane has a line of its own
            others += count * LOAD
            lines += count * (lanes if stripe.k_major else max(1.0, lanes * size / LINE))
    per_fma = _slots_per_fma(config, device)
    if config.VEC_K > 1:  # the parts of a complex number are neighbours, so half of its products are spared
        per_fma *= 1 + ONE_BANK / config.dtype_facts.parts
    if config.dtype_facts.is_complex and not (config.by_rows and config.prefetch):
        per_fma *= BANKS
    loop = config.BLK_K if config.prefetch else config.UNROLL
    if not (config.prefetch or config.dtype_facts.is_complex):  # complex FMAs are enough to wait behind
        others += WAIT
    slots = fmas * per_fma + others
    alone = max(slots, (fmas + others) * _fetching(loop * (fmas + others)))
    return _Step(slots, alone, lines)


def _mma_step(config: Any, device: Device) -> _Step:
    """On tensor cores: each element of a fragment is read by one lane."""
    facts, edges = config.dtype_facts, config.WARP_M + config.WARP_N
    fmas = config.WARP_M * config.WARP_N / device.warp_size * facts.parts**2 * _mma_time(config, device)
    others = edges / device.warp_size + (0 if config.prefetch else WAIT)
    if config.three_m:  # and the sums of parts
        fmas, others = fmas * 3 / 4, others + edges / device.warp_size * _slots_per_fma(config, device)
    elif facts.is_complex and not joins_parts((config.MMA_M, config.MMA_K), facts.parts):
        others += MOVES * edges / device.warp_size
    slots = fmas * _slots_per_fma(config, device) + others
    return _Step(slots, slots, BEHIND_MMA * edges * facts.itemsize / LINE)


@lru_cache(maxsize=1 << 16)
def _stored_lines(stripe: Stripe, threads: int, warp_size: int) -> float:
    """Lines that a warp writes for its part of a stripe, bank conflicts included."""
    width = 1 if stripe.transposes else stripe.vec
    size = min(width * stripe.dtype.itemsize, 16)
    places = []
    for lane in range(warp_size):
        major, minor = lane % stripe.dim_x * stripe.vec, lane // stripe.dim_x
        place = major * stripe.lead + minor if stripe.transposes else minor * stripe.lead + major
        places.append(place * stripe.dtype.itemsize // size)
    stores = stripe.blk * stripe.depth / (width * threads)
    return stores * _lines(places, LINE // size)


def _lines(places: Sequence[int], across: int) -> int:
    """Cycles of one store: its lanes are served `across` at a time, which may meet in a bank."""
    parts = (set(places[first : first + across]) for first in range(0, len(places), across))
    return sum(max(Counter(place % across for place in part).values()) for part in parts)


def _dram_cycles(config: Any, extents: tuple[int, int, int], resident: int, device: Device) -> float:
    """Cycles that DRAM needs: each operand once if L2 holds them, else what each wave touches."""
    if not device.dram_bytes:
        return 0.0
    m, n, k = extents
    size = config.dtype_facts.itemsize
    read = (m + n) * k
    if read * size > device.l2_bytes:
        at_once = device.sm_count * resident * config.BLK_M * config.BLK_N
        read = max(read, m * n / at_once * 2 * at_once**0.5 * k)
    return (read + m * n) * size / device.dram_bytes


_WARP_LEAVES = ("trsm_mma", "trsm_fma")
_LEAVES = ("trsm_leaf", "trmm_leaf", *_WARP_LEAVES)


def _leaf_cycles(stem: str, config: Any, extents: tuple[int, ...], resident: int, device: Device) -> float:
    """A leaf of all of the triangle; of a family that has a largest order, leaves and products between."""
    n, rhs = extents
    if stem not in _WARP_LEAVES:
        return _waves(_leaf_block(stem, config, n, device), config.grid(rhs), resident, device)
    leaves = -(-n // config.ORDER)
    block = _warp_leaf_block(stem, config, min(n, config.ORDER), device)
    products = max(n * n - leaves * config.ORDER**2, 0) / 2 * rhs * config.dtype_facts.parts**2
    on_tensor_cores = device.has_double_mma and config.dtype_facts.real == "float64"
    faster = _mma_rate(config.dtype_facts, device) if on_tensor_cores else 1
    rate = faster * device.fma_lanes(config.dtype_facts) * device.sm_count
    between = (leaves - 1) * START + products / rate
    return leaves * _waves(block, config.grid(rhs), resident, device) + between


def _warp_leaf_block(stem: str, config: Any, n: int, device: Device) -> _Block:
    """Warps that solve their columns, a lane a column, and update all rows below."""
    facts, BLK = config.dtype_facts, config.BLK
    tiles = -(-n // BLK)
    below = tiles * (tiles - 1) / 2
    per_fma = _slots_per_fma(config, device)
    solve = BLK**2 / 2 * facts.parts**2 * per_fma
    update = BLK**2 * config.WARP_N / device.warp_size * facts.parts**2 * per_fma
    if stem == "trsm_mma":  # each element of T is read by one lane, else by the four of a row, in vectors
        update, loads = update * _mma_time(config, device), BLK**2 / device.warp_size
    else:
        loads = 4 * BLK**2 / (device.warp_size * config.vector)
    update += loads
    warps = config.WARPS / device.partitions
    fetched = (n * n / 2 + 2 * n * config.BLK_N) * facts.itemsize / L2_BYTES
    work = max(warps * (tiles * solve + below * update), fetched)
    # of two warps that take turns the other one updates meanwhile, but for the tile that comes next
    chained = max(below / config.SPLIT, tiles) * update
    return _Block(work, tiles * (solve + BLK * DEPENDENT + ROW + BARRIER) + chained, START)


def _leaf_block(stem: str, config: Any, n: int, device: Device) -> _Block:
    """A panel of columns: the stripes to the left of each block row, then its diagonal block."""
    facts, warps = config.dtype_facts, config.threads // device.warp_size
    rows, solves = -(-n // config.BLK_M), stem == "trsm_leaf"
    ends = (min((row + (not solves)) * config.BLK_M, n) for row in range(rows))
    stripes = sum(-(-end // config.BLK_K) for end in ends)
    loads = (config.BLK_M + config.BLK_N) * config.BLK_K / config.threads
    slots = config.THR_M * config.THR_N * facts.parts**2 * _slots_per_fma(config, device)
    slots += config.THR_M / config.VEC_M + config.THR_N / config.VEC_N
    issue = config.BLK_K / config.SLICES * slots + loads * COPY
    lines = config.BLK_K / config.SLICES * (config.THR_M + config.THR_N) * facts.itemsize * 8 / LINE
    fetched = (config.BLK_M + config.BLK_N) * config.BLK_K * facts.itemsize / L2_BYTES
    work = max(warps * (issue / device.partitions + lines), fetched)
    latency = max(issue + 2 * BARRIER, ANSWER / (config.stages - 1))
    sums = (config.SLICES - 1) * config.THR_M * config.THR_N * facts.itemsize
    # a thread a column, one product after the other
    substitution = config.BLK_M**2 / 2 * facts.parts**2 * _slots_per_fma(config, device) * solves
    columns = -(-config.BLK_N // device.warp_size) / device.partitions
    return _Block(
        stripes * work + rows * substitution * columns,
        stripes * latency + rows * (ROW + sums + substitution * DEPENDENT),
    )
