"""Cycles of a block of GEMM: its k-tiles, by FMA or on tensor cores, and its tile's way to memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ..gpu.device import Device
from ..gpu.intrinsics.mma import joins_parts
from ..kernels.common.smem_tile import SmemTile
from ..kernels.registry import family_of
from .block_cost import ANSWER, BARRIER, L2_BYTES, LINE, START, BlockCost, dram_rate, mma_time, slots_per_fma
from .columns import Columns, larger, pick
from .occupancy import K_TILES, alike

__all__ = ["Misaligned", "dram_cycles", "fma_step", "gemm_block", "k_tile_cycles"]

READ, WRITE = 0.9, 0.7  # cycles of a line that is read from, written to shared memory: some hide behind FMAs
#: Before this compute capability shared memory answers every other cycle, to a half of a warp where a lane
#: loads 8 bytes, to a quarter where it loads 16 (CUDA's Programming Guide 4.2, F.4.3).
WHOLE_WARPS, EVERY_OTHER, WORD = (3, 0), 2, 4
BEHIND_MMA = 0.3  # of what is read, where tensor cores are at work meanwhile
MOVES = 3  # instructions that move an element of a complex fragment to where four products read it
#: Times that for asynchronous copies, by their bytes, from where memory's sectors do not begin; of kernels
#: on tensor cores.
MISALIGNED = {4: 2.5, 8: 2.5, 16: 2.0}
#: Added to one for words in runs of a sector, where columns do not begin with vectors either.
STRADDLING = 1.5
SECTOR, VECTOR = 32, 16  # bytes
MISALIGNED_MMA = {8: 1.5, 16: 2.0}
PAST_L1 = 2.0  # times that, of 16 bytes that do not pass through the L1 cache
LOAD = 10  # instructions of a global load: address, mask, load
STORE = 16  # cycles in which a thread stores one real of C
#: Cycles in which a warp gets an instruction of a loop, by the most instructions of the loop: 64 KiB, 128
#: KiB.
FETCH = (4000, 1.0), (8000, 2.4), (inf, 4.2)
WAIT = 8  # issue slots of a k that are lost where its fragments are not fetched ahead
WALK = 50  # instructions of a persistent block on its way from one k-tile to the next
ONE_BANK = 0.15  # of a real FMA's cycles, lost where vectors along k put those of one k into one bank
#: Bytes at multiples of which columns of A, B begin, within sectors; or such a pair for each of `Columns`.
Misaligned = tuple[int, int] | tuple[tuple[int, int], ...]
BANKS = 1.1  # times the cycles of a complex FMA where the operands of one are in one bank of registers


def gemm_block(config: Any, k: int, device: Device, sector_misaligned: Misaligned) -> BlockCost:
    """A tile of C: its k-tiles, then its way to memory."""
    k_tile, count = _k_tile(config, device, sector_misaligned), -(-k // config.BLK_K)
    facts = config.dtype_facts
    written = config.BLK_M * config.BLK_N * facts.itemsize * device.sm_count / dram_rate(device)
    return BlockCost(
        count * k_tile.work + written,
        count * k_tile.latency,
        START,
        config.THR_M * config.THR_N * facts.reals_per_element * STORE,
        issue=count * k_tile.issue,
        schedulers=k_tile.schedulers,
        rest=count * k_tile.rest + written,
    )


def _k_tile(config: Any, device: Device, sector_misaligned: Misaligned) -> BlockCost:
    """One k-tile of a tile, as the Config, or `Columns`, remembers it."""
    kept = vars(config).setdefault(K_TILES, {})
    known, k_tile = kept.get(sector_misaligned, (None, None))
    if known is not device:
        k_tile = _k_tile_of(config, device, sector_misaligned)
        kept[sector_misaligned] = device, k_tile
    return k_tile


def _k_tile_of(config: Any, device: Device, sector_misaligned: Misaligned) -> BlockCost:
    """One k-tile of a tile; memory answers the later, the fewer the stages."""
    if isinstance(config, Columns):
        is_one = isinstance(sector_misaligned[0], int)
        strays: Any = [sector_misaligned] * len(config.configs) if is_one else sector_misaligned
        pairs = zip(map(alike, config.configs), strays, strict=True)
        rows = [k_tile_cycles(each, device, misaligned) for each, misaligned in pairs]
        k_tile = BlockCost(*config.rows(np.array(rows)).T[:, :, None])
    else:
        k_tile = k_tile_cycles(alike(config), device, sector_misaligned)
    return k_tile._replace(latency=larger(k_tile.latency, ANSWER / larger(config.stages - 1, 1)))


@lru_cache(maxsize=1 << 16)
def k_tile_cycles(config: Any, device: Device, sector_misaligned: tuple[int, int] = (0, 0)) -> BlockCost:
    """One k-tile of a tile, but for the time until memory answers; `config` represents those `alike`."""
    facts, warps = config.dtype_facts, config.threads // device.warp_size
    shares = zip((config.smem_tile_a, config.smem_tile_b), config.shares, sector_misaligned, strict=True)
    smem_tiles = [
        (smem_tile, _misaligned(config, smem_tile, strays) if strays and config.stages > 1 else 1)
        for smem_tile, shared, strays in shares
        if shared
    ]
    loads = LOAD * sum(s.blk * s.depth / (s.vec * config.threads) for s, _ in smem_tiles)
    loads += WALK * config.persistent
    step = _mma_step(config, device) if family_of(config.STEM).tensor_cores else fma_step(config, device)
    stored = sum(factor * _stored_lines(s, config.threads, device.warp_size) for s, factor in smem_tiles)
    lines = config.BLK_K / config.SLICES_K * step.lines * READ + stored * WRITE
    lines *= EVERY_OTHER if device.cc < WHOLE_WARPS else 1
    fetched = (config.BLK_M + config.BLK_N) * config.BLK_K * facts.itemsize / L2_BYTES
    depth = config.BLK_K / config.SLICES_K
    issue = depth * step.slots + loads
    alone = depth * step.alone + loads
    work = max(warps * (issue / device.partitions + lines), fetched)
    return BlockCost(
        work, alone + BARRIER, issue=issue, schedulers=warps / device.partitions, rest=warps * lines
    )


def _misaligned(config: Any, smem_tile: SmemTile, aligned: int) -> float:
    """Times the lines that asynchronous copies write, where columns begin at multiples of `aligned` bytes,
    within sectors. Single words of short runs meet up to twice the sectors.
    """
    load_bytes = smem_tile.load_bytes
    if not family_of(config.STEM).tensor_cores:
        if load_bytes == WORD and aligned < VECTOR:
            run = (smem_tile.depth if smem_tile.k_major else smem_tile.blk) * WORD
            return 1 + STRADDLING * (SECTOR / run) ** 2
        return MISALIGNED[load_bytes]
    return MISALIGNED_MMA[load_bytes] * (PAST_L1 if load_bytes == 16 and not config.through_l1 else 1.0)


def _fetching(instructions: float) -> float:
    """Cycles in which a warp gets an instruction of a loop of `instructions`."""
    return next(cycles for most, cycles in FETCH if instructions < most)


class _Step(NamedTuple):
    """Cost of one k to a warp: issue slots, cycles where it is alone, lines that it reads."""

    slots: float
    alone: float
    lines: float


def fma_step(config: Any, device: Device) -> _Step:
    """Return the step with ordinary FMAs; lanes that read one element share a line."""
    size, across = config.dtype_facts.itemsize, device.warp_size // config.WARP_X
    fmas = config.THR_M * config.THR_N * config.dtype_facts.reals_per_element**2
    others = lines = 0.0
    for smem_tile, shared, count, vec, lanes in (
        (config.smem_tile_a, config.share_a, config.THR_M, config.VEC_M, config.WARP_X),
        (config.smem_tile_b, config.share_b, config.THR_N, config.VEC_N, across),
    ):
        if smem_tile.is_kept:  # vectors along k
            vec = config.VEC_K
        if shared:
            others += count / vec
            lines += count / vec * max(_parts(vec * size, device), lanes * vec * size / LINE)
        else:  # element by element; along k every lane has a line of its own
            others += count * LOAD
            lines += count * (lanes if smem_tile.k_major else max(1.0, lanes * size / LINE))
    per_fma = slots_per_fma(config, device)
    if config.VEC_K > 1:  # the parts of a complex number are neighbours, so half of its products are spared
        per_fma *= 1 + ONE_BANK / config.dtype_facts.reals_per_element
    if config.dtype_facts.is_complex and not (config.by_rows and config.prefetch):
        per_fma *= BANKS
    loop = config.BLK_K if config.prefetch else config.UNROLL
    if not (config.prefetch or config.dtype_facts.is_complex):  # complex FMAs are enough to wait behind
        others += WAIT
    slots = fmas * per_fma + others
    alone = max(slots, (fmas + others) * _fetching(loop * (fmas + others)))
    return _Step(slots, alone, lines)


def _parts(load_bytes: int, device: Device) -> float:
    """Parts of a warp that shared memory serves one after the other, by the bytes of a lane."""
    return load_bytes / WORD if device.cc < WHOLE_WARPS else 1.0


def _mma_step(config: Any, device: Device) -> _Step:
    """On tensor cores: each element of a fragment is read by one lane."""
    facts, edges = config.dtype_facts, config.WARP_M + config.WARP_N
    fmas = (
        config.WARP_M
        * config.WARP_N
        / device.warp_size
        * facts.reals_per_element**2
        * mma_time(config, device)
    )
    others = edges / device.warp_size + (0 if config.prefetch else WAIT)
    if config.three_m:  # and the sums of parts
        fmas, others = fmas * 3 / 4, others + edges / device.warp_size * slots_per_fma(config, device)
    elif facts.is_complex and not joins_parts((config.MMA_M, config.MMA_K), facts.reals_per_element):
        others += MOVES * edges / device.warp_size
    slots = fmas * slots_per_fma(config, device) + others
    return _Step(slots, slots, BEHIND_MMA * edges * facts.itemsize / LINE)


@lru_cache(maxsize=1 << 16)
def _stored_lines(smem_tile: SmemTile, threads: int, warp_size: int) -> float:
    """Lines that a warp writes for its part of a k-tile, bank conflicts included."""
    width = 1 if smem_tile.transposes else smem_tile.vec
    size = min(width * smem_tile.dtype.itemsize, 16)
    addresses = []
    for lane in range(warp_size):
        major, minor = lane % smem_tile.dim_x * smem_tile.vec, lane // smem_tile.dim_x
        element = major * smem_tile.ld + minor if smem_tile.transposes else minor * smem_tile.ld + major
        addresses.append(element * smem_tile.dtype.itemsize // size)
    stores = smem_tile.blk * smem_tile.depth / (width * threads)
    return stores * _lines(addresses, LINE // size)


def _lines(addresses: Sequence[int], across: int) -> int:
    """Cycles of one store: its lanes are served `across` at a time, which may meet in a bank."""
    groups = (set(addresses[first : first + across]) for first in range(0, len(addresses), across))
    return sum(max(Counter(address % across for address in lanes).values()) for lanes in groups)


def dram_cycles(config: Any, extents: tuple[int, int, int], resident: Any, device: Device) -> Any:
    """Cycles that DRAM needs: each operand once if L2 holds them, else what each wave touches."""
    if not device.dram_bytes:
        return 0.0
    m, n, k = extents
    size = config.dtype_facts.itemsize
    read = (m + n) * k
    at_once = device.sm_count * resident * config.BLK_M * config.BLK_N
    by_waves = larger(read, m * n / at_once * 2 * at_once**0.5 * k)
    read = pick(read * size > device.l2_bytes, by_waves, read)
    return (read + m * n) * size / device.dram_bytes
