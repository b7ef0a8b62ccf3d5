"""The search space of Kurzak, Tomov and Dongarra, *Autotuning GEMMs for Fermi* (2011), for any device.

``python tuning/papers/kurzak.py [--device fermi] [--dtype s,d] [--layout nn] [--json]``

Algorithm 2 is the nested loops, Algorithm 3 the constraints. The script prints how many variants each rule
removes. No device is needed; guidelines are options.

The paper prints the last tests of Algorithm 2 the wrong way round (``M_dimA % M_blk == 0``). What is meant is
that the reshaped threads tile the stripe. In Table 1 the reuse of CGEMM, 5.0, is more than the formula of
Algorithm 3 gives for its winner, 4.0. The formula is that of the paper; the guideline is an input.
``--unbracketed`` takes 4mn/(2m+n) for complex types, where the printed formula has 4mn/(2m+2n). Then CGEMM's
winner has 5.33, is kept at 5.0 and dropped at 6.0, as the paper says. ``--stripes-once`` adds the elements of
stripes to the registers after these have been multiplied by the size of an element, not before. With both the
counts are near those of the paper's Figure 5. `kurzak_timed.py` times the space.

The kernels of this package have more parameters, and rules of their own (`pyblasgpu.tuning.prune`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from rich.table import Table

from pyblasgpu.gpu.device import Device, known
from pyblasgpu.terminal import console, guarded
from pyblasgpu.tuning.prune import Guidelines
from pyblasgpu.types import DTYPES, Dtype
from tuning.papers.study import names_in

__all__ = [
    "LAYOUTS",
    "TABLE_1",
    "CodeVariant",
    "Count",
    "Formulas",
    "count",
    "counts",
    "main",
    "variants",
    "winner_of_table_2",
]

LAYOUTS = ("nn", "nt", "tn", "tt")
WIDTH = 170  # columns of a table that goes into a file or a pipe

DIM_MAX = 256  # of a thread grid, and of M_blk and N_blk
DEPTH_MAX = 64  # of K_blk
EXTENTS = np.arange(1, DIM_MAX + 1)

#: The guidelines of Table 1.
TABLE_1 = {
    "s": Guidelines(threads=512, blocks=2, reuse=3.0),
    "c": Guidelines(threads=512, blocks=2, reuse=5.0),
    "d": Guidelines(threads=512, blocks=2, reuse=2.0),
    "z": Guidelines(threads=512, blocks=2, reuse=2.0),
}


class CodeVariant(NamedTuple):
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


#: Table 2: tile, threads for C, for A, for B; in the order of `_WINNERS_LAYOUTS`.
_WINNERS = {
    "s": [
        (96, 96, 16, 16, 16, 32, 8, 8, 32),
        (96, 96, 16, 16, 16, 32, 8, 32, 8),
        (96, 96, 16, 16, 16, 16, 16, 32, 8),
        (96, 96, 16, 16, 16, 16, 16, 16, 16),
    ],
    "c": [
        (64, 64, 16, 16, 16, 32, 8, 16, 16),
        (64, 64, 16, 16, 16, 16, 16, 16, 16),
        (64, 64, 16, 16, 16, 16, 16, 32, 8),
        (64, 64, 16, 16, 16, 16, 16, 16, 16),
    ],
    "d": [(64, 64, 16, 16, 16, 16, 16, 16, 16)] * 4,
    "z": [
        (24, 16, 8, 8, 8, 8, 8, 8, 8),
        (16, 24, 8, 8, 8, 8, 8, 8, 8),
        (16, 24, 8, 8, 8, 4, 16, 8, 8),
        (24, 16, 8, 8, 8, 8, 8, 8, 8),
    ],
}
_WINNERS_LAYOUTS = ("nn", "nt", "tt", "tn")


def winner_of_table_2(dtype: str, layout: str) -> CodeVariant:
    """The paper's fastest variant on a Tesla S2050."""
    return CodeVariant(*_WINNERS[dtype][_WINNERS_LAYOUTS.index(layout)])


class Formulas(NamedTuple):
    """How Algorithm 3 is read, by default as it is printed.

    Attributes
    ----------
    unbracketed : bool
        Whether the reuse of complex types is 4mn/(2m+n).
    stripes_once : bool
        Whether an element of a stripe counts as one register, whatever its size.
    """

    unbracketed: bool = False
    stripes_once: bool = False


AS_PRINTED = Formulas()


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
        ``Guidelines(0, 1, 0.0)`` requires no more than that a block runs.

    Returns
    -------
    Count
        A rule removes from what the rules before it have left. Each variant that is removed is counted with
        all shapes of its threads.
    """
    return counts(dtype, (layout,), device, guidelines)[layout]


def counts(
    dtype: Dtype,
    layouts: Iterable[str],
    device: Device,
    guidelines: Guidelines,
    formulas: Formulas = AS_PRINTED,
) -> dict[str, Count]:
    """`count` for several layouts, which but for the last rule have all in common."""
    by_layout = {layout: Count() for layout in layouts}
    threads = np.outer(EXTENTS, EXTENTS)  # of grids n_dim by m_dim
    points = DEPTH_MAX * np.outer(DIM_MAX // EXTENTS, DIM_MAX // EXTENTS)
    reshapes = _shapes_of_threads()[threads] ** 2
    too_many, ragged = _broken_by_threads(threads, device)
    removed = Counter(
        {
            rule: int((points * reshapes)[at].sum())
            for rule, at in (("max_threads", too_many), ("whole_warps", ragged))
        }
    )
    for each in by_layout.values():
        each.total, each.removed = int((points * reshapes).sum()), Counter(removed)
    for at in zip(*np.nonzero(~too_many & ~ragged), strict=True):
        own: Counter[str] = Counter()
        block = _Block(int(EXTENTS[at[1]]), int(EXTENTS[at[0]]), dtype, device, guidelines, formulas)
        tilings, ways = _tilings_left(block, int(reshapes[at]), own, by_layout), int((points * reshapes)[at])
        for layout, each in by_layout.items():
            each.left += tilings[layout]
            each.removed.update(own)
            each.removed["load_grid_tiles_smem_tile"] += ways - own.total() - tilings[layout]
    return by_layout


def _tilings_left(
    block: _Block, reshapes: int, removed: Counter[str], layouts: Iterable[str]
) -> dict[str, int]:
    """What the rules leave of a thread grid's blocks in each layout; what each rule removes is counted."""
    for rule, number in block.broken_by_stripes.items():
        removed[rule] += number * reshapes
    alive = np.ones(block.k.size, bool)
    for rule, holds in block.rules():
        kept = alive & holds
        removed[rule] += int(alive.sum() - kept.sum()) * reshapes
        alive = kept
    return {layout: int(np.where(alive, block.load_grids(layout), 0).sum()) for layout in layouts}


def variants(
    dtype: Dtype, layout: str, device: Device, guidelines: Guidelines, formulas: Formulas = AS_PRINTED
) -> Iterator[CodeVariant]:
    """The variants themselves, in the order of the loops; arguments as of `count`."""
    broken = np.logical_or(*_broken_by_threads(np.outer(EXTENTS, EXTENTS), device))
    for n_dim, m_dim in (np.argwhere(~broken) + 1).tolist():
        block = _Block(m_dim, n_dim, dtype, device, guidelines, formulas)
        alive = np.logical_and.reduce([holds for _, holds in block.rules()])
        for k_blk, n_blk, m_blk in np.stack([block.k, block.n, block.m], 1)[alive].tolist():
            for a in _grids(block.threads, *_as_stored(layout[0], m_blk, k_blk)):
                for b in _grids(block.threads, *_as_stored(layout[1], k_blk, n_blk)):
                    yield CodeVariant(m_blk, n_blk, k_blk, m_dim, n_dim, *a, *b)


def _broken_by_threads(threads: np.ndarray, device: Device) -> tuple[np.ndarray, np.ndarray]:
    """Where there are too many threads, and where other grids are no whole warps."""
    too_many = threads > device.max_threads_per_block
    return too_many, ~too_many & (threads % device.warp_size != 0)


Extent = TypeVar("Extent", int, np.ndarray)


@lru_cache(maxsize=1)
def _shapes_of_threads() -> np.ndarray:
    """The number of ways to write a number of threads as x * y, for all that the loops reach."""
    divisors = np.zeros(DIM_MAX**2 + 1, np.int64)
    for x in range(1, len(divisors)):
        divisors[x::x] += 1
    return divisors


@cache
def _divisors(number: int) -> list[int]:
    return [x for x in range(1, number + 1) if number % x == 0]


def _as_stored(letter: str, rows: Extent, cols: Extent) -> tuple[Extent, Extent]:
    """The stripe in memory, the contiguous dimension first."""
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
    """The blocks of one thread grid whose stripes all threads load, and the rest of Algorithm 3 on them.

    Attributes
    ----------
    k, n, m : ndarray
        K_blk, N_blk and M_blk of each.
    broken_by_stripes : dict of str to int
        How many others each of the two rules of stripes removes.
    """

    def __init__(
        self,
        m_dim: int,
        n_dim: int,
        dtype: Dtype,
        device: Device,
        guidelines: Guidelines,
        formulas: Formulas = AS_PRINTED,
    ):
        self.formulas = formulas
        self.dtype, self.device, self.guidelines = dtype, device, guidelines
        self.threads = m_dim * n_dim
        depths = np.arange(1, DEPTH_MAX + 1)[:, None, None]
        rows = np.arange(m_dim, DIM_MAX + 1, m_dim)[None, None, :]
        cols = np.arange(n_dim, DIM_MAX + 1, n_dim)[None, :, None]
        loads_a, loads_b = (depths * extents % self.threads == 0 for extents in (rows, cols))
        depth, col, row = np.nonzero(loads_a & loads_b)
        left = int(loads_a.sum()) * cols.size
        points = depths.size * rows.size * cols.size
        self.broken_by_stripes = {"stripe_a": points - left, "stripe_b": left - depth.size}
        self.k, self.n_thr, self.m_thr = depth + 1, col + 1, row + 1
        self.n, self.m = self.n_thr * n_dim, self.m_thr * m_dim

    def rules(self) -> Iterator[tuple[str, np.ndarray]]:
        """(rule, where it holds), in the order of Algorithm 3, after those of stripes."""
        k, m, n, threads, device = self.k, self.m, self.n, self.threads, self.device
        shared = ((m + 1) * k + (k + 1) * n) * self.dtype.itemsize
        yield from self._occupancy("shared", shared, device.shared_per_block)
        thread = self.m_thr * self.n_thr + self.m_thr + self.n_thr
        size = self.dtype.itemsize // 4
        registers = thread * threads * size + (m * k + k * n) * (1 if self.formulas.stripes_once else size)
        yield from self._occupancy("registers", registers, device.registers_per_block)
        yield "reuse", self._reuse() >= self.guidelines.reuse

    def _reuse(self) -> np.ndarray:
        if self.formulas.unbracketed and self.dtype.is_complex:
            return 4 * self.m_thr * self.n_thr / (2 * self.m_thr + self.n_thr)
        return self.dtype.reuse(self.m_thr, self.n_thr)

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
        a = tilings[_as_stored(layout[0], self.m, self.k)]
        b = tilings[_as_stored(layout[1], self.k, self.n)]
        return a * b


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the counts; returns the exit code."""
    options = _parse(arguments)
    device = known(options.device)
    counted: dict[tuple[str, str], Count] = {}
    formulas = Formulas(options.unbracketed, options.stripes_once)
    for letter in options.dtype:
        guidelines = _guidelines(options, TABLE_1[letter])
        by_layout = counts(DTYPES[letter], options.layout, device, guidelines, formulas)
        counted.update(((letter, layout), each) for layout, each in by_layout.items())
    if options.json:
        print(json.dumps({"device": device.name, "kurzak": _as_json(counted)}, indent=2))
    else:
        console(WIDTH).print(_table(counted, device))
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="fermi", help="a name such as fermi, a100, h200; default: fermi")
    parser.add_argument("--dtype", default=list(DTYPES), type=names_in(DTYPES), help="s,d,c,z; default: all")
    parser.add_argument("--layout", default=LAYOUTS, type=names_in(LAYOUTS), help="nn,nt,tn,tt; default: all")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--unbracketed", action="store_true", help="reuse of complex types as 4mn/(2m+n)")
    parser.add_argument("--stripes-once", action="store_true", help="an element of a stripe is a register")
    for name, kind in (("threads", int), ("blocks", int), ("reuse", float)):
        parser.add_argument(f"--min-{name}", type=kind, metavar="X", help="default: of Table 1")
    return parser.parse_args(arguments)


def _guidelines(options: argparse.Namespace, otherwise: Guidelines) -> Guidelines:
    asked = {name: getattr(options, f"min_{name}") for name in ("threads", "blocks", "reuse")}
    return replace(otherwise, **{name: value for name, value in asked.items() if value is not None})


def _as_json(counted: dict[tuple[str, str], Count]) -> list[dict]:
    return [
        {
            "dtype": dtype,
            "layout": layout,
            "candidates": each.total,
            "removed": dict(+each.removed),
            "left": each.left,
        }
        for (dtype, layout), each in counted.items()
    ]


def _table(counted: dict[tuple[str, str], Count], device: Device) -> Table:
    """A rule a row, a GEMM a column, layouts with the same counts together."""
    columns: list[tuple[str, Count, list[str]]] = []
    for (dtype, layout), each in counted.items():
        if columns and (dtype, each) == columns[-1][:2]:
            columns[-1][2].append(layout)
        else:
            columns.append((dtype, each, [layout]))
    names = [f"{dtype}gemm {', '.join(layouts)}" for dtype, _, layouts in columns]
    table = Table("rule", *names, title=f"Algorithms 2 and 3 of Kurzak et al. on {device.name}")
    counts = [each for _, each, _ in columns]
    table.add_row("candidates", *(f"{each.total:,}" for each in counts))
    for rule in dict.fromkeys(rule for each in counts for rule in +each.removed):
        table.add_row(rule, *(f"−{each.removed[rule]:,}" for each in counts))
    table.add_row("left", *(f"{each.left:,}" for each in counts))
    return table


if __name__ == "__main__":
    sys.exit(guarded(["tuning/papers/kurzak.py"], main))
