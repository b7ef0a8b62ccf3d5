"""The search-space generator of Kurzak, Tomov and Dongarra, *Autotuning GEMMs for Fermi* (2011).

Algorithm 2 are the nested loops, Algorithm 3 the constraints, for any device. The paper prints the last tests
of Algorithm 2 the wrong way round (``M_dimA % M_blk == 0``): what is meant, and done here, is that the
reshaped threads tile the stripe. Of Table 1, CGEMM's reuse of 5.0 is more than the formula of Algorithm 3
gives its own winner (4.0); the formula stands as printed, the guideline is an input.

Our kernels have more parameters than the paper's, and their rules stand with them (`prune`). This is the
paper's own space, to be asked how a guideline or a device changes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from ..gpu.device import Device
from ..types import Dtype
from .prune import Guidelines

__all__ = ["TABLE_1", "Count", "Variant", "count", "counts", "variants"]

DIM_MAX = 256  # of a thread grid, and of M_blk and N_blk
DEPTH_MAX = 64  # of K_blk

#: The guidelines of Table 1.
TABLE_1 = {
    "s": Guidelines(threads=512, blocks=2, reuse=3.0),
    "c": Guidelines(threads=512, blocks=2, reuse=5.0),
    "d": Guidelines(threads=512, blocks=2, reuse=2.0),
    "z": Guidelines(threads=512, blocks=2, reuse=2.0),
}


class Variant(NamedTuple):
    """One code variant: tile of C, depth of a stripe, threads for C, and reshaped to load A and B."""

    m_blk: int
    n_blk: int
    k_blk: int
    m_dim: int
    n_dim: int
    m_dim_a: int
    n_dim_a: int
    m_dim_b: int
    n_dim_b: int


@dataclass
class Count:
    """How many variants the loops make, how many each rule removes in its turn, how many are left."""

    total: int = 0
    removed: Counter[str] = field(default_factory=Counter)
    left: int = 0


def count(dtype: Dtype, layout: str, device: Device, guidelines: Guidelines) -> Count:
    """Count the variants of one GEMM without making them.

    Parameters
    ----------
    dtype : Dtype
    layout : str
        'nn', 'nt', 'tn', 'tt': whether A, B are transposed.
    device : Device
    guidelines : Guidelines
        ``Guidelines(0, 1, 0.0)`` asks for no more than that a block runs.

    Returns
    -------
    Count
        A rule removes what the rules before it have left; what has been removed is counted with all the
        ways to reshape its threads.
    """
    return counts(dtype, (layout,), device, guidelines)[layout]


def counts(dtype: Dtype, layouts: Iterable[str], device: Device, guidelines: Guidelines) -> dict[str, Count]:
    """`count` for several layouts, which but for the last rule have all in common."""
    found = {layout: Count(removed=Counter(max_threads=0, whole_warps=0)) for layout in layouts}
    shapes = _shapes_of_threads()
    for n_dim in range(1, DIM_MAX + 1):
        for m_dim in range(1, DIM_MAX + 1):
            threads = m_dim * n_dim
            ways = shapes[threads] ** 2
            points = DEPTH_MAX * (DIM_MAX // n_dim) * (DIM_MAX // m_dim)
            removed: Counter[str] = Counter()
            broken, tilings = _broken_by_threads(threads, device), dict.fromkeys(found, 0)
            if broken:
                removed[broken] += points * ways
            else:
                tilings = _tilings_left(_Block(m_dim, n_dim, dtype, device, guidelines), ways, removed, found)
            for layout, each in found.items():
                each.total += points * ways
                each.left += tilings[layout]
                each.removed.update(removed)
                if not broken:
                    each.removed["load_grid_tiles_stripe"] += (
                        points * ways - removed.total() - tilings[layout]
                    )
    return found


def _tilings_left(block: _Block, ways: int, removed: Counter[str], layouts: Iterable[str]) -> dict[str, int]:
    """What the rules leave of a thread grid's blocks in each layout; what each rule removes is counted."""
    alive = np.ones(block.shape, bool)
    for rule, holds in block.rules():
        kept = alive & holds
        removed[rule] += int(alive.sum() - kept.sum()) * ways
        alive = kept
    return {layout: int(np.where(alive, block.load_grids(layout), 0).sum()) for layout in layouts}


def variants(dtype: Dtype, layout: str, device: Device, guidelines: Guidelines) -> Iterator[Variant]:
    """The variants themselves, in the order of the loops; arguments as of `count`."""
    for n_dim in range(1, DIM_MAX + 1):
        for m_dim in range(1, DIM_MAX + 1):
            threads = m_dim * n_dim
            if _broken_by_threads(threads, device):
                continue
            block = _Block(m_dim, n_dim, dtype, device, guidelines)
            alive = np.logical_and.reduce([np.broadcast_to(holds, block.shape) for _, holds in block.rules()])
            for at in np.argwhere(alive):
                k_blk, n_blk, m_blk = int(at[0] + 1), int(at[1] + 1) * n_dim, int(at[2] + 1) * m_dim
                for a in _grids(threads, *_turned(layout[0], m_blk, k_blk)):
                    for b in _grids(threads, *_turned(layout[1], k_blk, n_blk)):
                        yield Variant(m_blk, n_blk, k_blk, m_dim, n_dim, *a, *b)


def _broken_by_threads(threads: int, device: Device) -> str:
    """The first rule of the thread grid that is broken, or ''."""
    if threads > device.max_threads_per_block:
        return "max_threads"
    return "whole_warps" if threads % device.warp_size else ""


Extent = TypeVar("Extent", int, np.ndarray)


@lru_cache(maxsize=1)
def _shapes_of_threads() -> list[int]:
    """The number of ways to write a number of threads as x * y, for all that the loops reach."""
    found = np.zeros(DIM_MAX**2 + 1, np.int64)
    for x in range(1, len(found)):
        found[x::x] += 1
    return found.tolist()


@cache
def _divisors(number: int) -> list[int]:
    return [x for x in range(1, number + 1) if number % x == 0]


def _turned(letter: str, rows: Extent, cols: Extent) -> tuple[Extent, Extent]:
    """The stripe as it lies in memory, the contiguous dimension first."""
    return (rows, cols) if letter == "n" else (cols, rows)


def _grids(threads: int, rows: int, cols: int) -> list[tuple[int, int]]:
    """The shapes of `threads` threads that tile a stripe."""
    return [(x, threads // x) for x in _divisors(threads) if rows % x == 0 and cols % (threads // x) == 0]


@cache
def _tilings(threads: int) -> np.ndarray:
    """How many shapes of `threads` threads tile a stripe of (i, j), at [i, j]; rows up to DIM_MAX."""
    extents = np.arange(DIM_MAX + 1)
    table = np.zeros((DIM_MAX + 1, DIM_MAX + 1), np.int64)
    for x in _divisors(threads):
        table += np.outer(extents % x == 0, extents % (threads // x) == 0)
    return table


class _Block:
    """All blocks of one thread grid: arrays over (K_blk, N_blk, M_blk), and Algorithm 3 on them."""

    def __init__(self, m_dim: int, n_dim: int, dtype: Dtype, device: Device, guidelines: Guidelines):
        self.dtype, self.device, self.guidelines = dtype, device, guidelines
        self.threads = m_dim * n_dim
        self.k = np.arange(1, DEPTH_MAX + 1)[:, None, None]
        self.n = np.arange(n_dim, DIM_MAX + 1, n_dim)[None, :, None]
        self.m = np.arange(m_dim, DIM_MAX + 1, m_dim)[None, None, :]
        self.m_thr, self.n_thr = self.m // m_dim, self.n // n_dim
        self.shape = (self.k.size, self.n.size, self.m.size)

    def rules(self) -> Iterator[tuple[str, np.ndarray]]:
        """(rule, where it holds), in the order of Algorithm 3."""
        k, m, n, threads, device = self.k, self.m, self.n, self.threads, self.device
        yield "stripe_a", m * k % threads == 0
        yield "stripe_b", k * n % threads == 0
        shared = ((m + 1) * k + (k + 1) * n) * self.dtype.itemsize
        yield from self._occupancy("shared", shared, device.shared_per_block)
        thread = self.m_thr * self.n_thr + self.m_thr + self.n_thr
        registers = (thread * threads + m * k + k * n) * (self.dtype.itemsize // 4)
        yield from self._occupancy("registers", registers, device.registers_per_block)
        yield "reuse", self.dtype.reuse(self.m_thr, self.n_thr) >= self.guidelines.reuse

    def _occupancy(self, name: str, needed: np.ndarray, available: int) -> Iterator[tuple[str, np.ndarray]]:
        """Blocks and threads of a multiprocessor, by one resource; at least one block must run."""
        device, warps_per_block = self.device, self.threads // self.device.warp_size
        blocks = np.minimum(available // needed, device.max_blocks_per_sm)
        most_warps = device.max_threads_per_sm // device.warp_size
        warps = np.minimum(blocks * warps_per_block, most_warps)
        blocks = warps // warps_per_block
        yield name, blocks >= 1
        yield f"blocks_by_{name}", blocks >= self.guidelines.blocks
        yield f"threads_by_{name}", self.threads * blocks >= self.guidelines.threads

    def load_grids(self, layout: str) -> np.ndarray:
        """Ways to reshape the threads for A times those for B."""
        tilings = _tilings(self.threads)
        a = tilings[_turned(layout[0], self.m, self.k)]
        b = tilings[_turned(layout[1], self.k, self.n)]
        return a * b
