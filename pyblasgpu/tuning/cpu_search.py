"""``pyblasgpu tune --device cpu``: register tiles, then blocks for the caches, timed on one core.

A time is the shortest of several, in seconds of the processor that the thread has used. Other processes on
the machine do not count, but for what they take of the caches.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from .. import terminal
from ..cpu.numba import level3 as numba_cpu
from ..cpu.numba import peak, space, tuned_gemm
from ..cpu.numba.config import CpuGemm
from ..cpu.numba.device import Processor, current
from ..cpu.numba.level3 import Operand
from ..cpu.numba.tuned_gemm import TunedProcessor
from ..cpu.scipy import level3 as scipys
from ..testing.reference import reals
from ..types import DTYPES, Trans
from .cpu_wisdom import merge

__all__ = ["SearchResult", "main", "measured_peak", "search", "seconds_of"]

SIZES = {"s": 768, "d": 768, "c": 512, "z": 512}
REPEATS = 3
BUDGET = 240.0  # seconds for all dtypes, by default
ROUNDS = 200_000


class SearchResult(NamedTuple):
    """Result of a search: the Config, its GFLOP/s, and how many were timed."""

    config: CpuGemm
    gflops: float
    timed: int


def seconds_of(
    run: Callable[[], Any], repeats: int = REPEATS, clock: Callable[[], float] = time.thread_time
) -> float:
    """The shortest of several runs, in the thread's own seconds or those of a clock."""
    best = math.inf
    for _ in range(repeats):
        start = clock()
        run()
        best = min(best, clock() - start)
    return max(best, 1e-9)


def measured_peak(letter: str, processor: Processor) -> float:
    """GFLOP/s of a core that does nothing but FMAs on registers."""
    lanes = processor.lanes(DTYPES[letter].real_size)
    run = peak.kernel(letter, lanes)
    return 2 * lanes * peak.CHAINS * ROUNDS / seconds_of(lambda: run(ROUNDS, 0.5), 5) / 1e9


def search(
    letter: str, processor: Processor, until: float, clock: Callable[[], float] = time.monotonic
) -> SearchResult:
    """The fastest Config of a dtype: the best register tile, then the best blocks for it.

    Parameters
    ----------
    letter : str
    processor : Processor
    until : float
        The moment, of `clock`, from which on nothing is begun.
    clock : callable, optional
    """
    measure = _Measure(letter)
    start = space.default(letter, processor)
    best = SearchResult(start, measure(start), 1)
    middle = clock() + (until - clock()) * 0.7  # blocks need no compiler
    for end, candidates in ((middle, space.tiles(letter, processor)), (until, None)):
        best = _best_of(best, candidates or space.blocks(best.config, processor), measure, end, clock)
    return best


def _best_of(
    best: SearchResult,
    candidates: Iterable[CpuGemm],
    measure: Callable[[CpuGemm], float],
    until: float,
    clock: Callable[[], float],
) -> SearchResult:
    for config in candidates:
        if clock() >= until:
            break
        rate = measure(config)
        config, rate = (config, rate) if rate > best.gflops else best[:2]
        best = SearchResult(config, rate, best.timed + 1)
    return best


class _Measure:
    """GFLOP/s of Configs, whose results are compared with SciPy's first."""

    def __init__(self, letter: str):
        dtype, n, rng = DTYPES[letter], SIZES[letter], np.random.default_rng(2012)
        self.a, self.b = (np.asfortranarray(reals(rng, (n, n), dtype)) for _ in range(2))
        self.c, self.right = (np.zeros_like(self.a) for _ in range(2))
        scipys.gemm(1, self.a, self.b, 0, self.right, Trans.NO, Trans.NO)
        self.flops = dtype.flops_per_fma * n**3
        self.error = 4 * n * dtype.unit_roundoff * float(abs(self.right).max())

    def __call__(self, config: CpuGemm) -> float:
        def run() -> None:
            numba_cpu.multiply(config, 1, Operand(self.a), Operand(self.b), 0, self.c)

        run()
        if not abs(self.c - self.right).max() <= self.error:
            return 0.0
        return self.flops / seconds_of(run) / 1e9


def main(options: Any) -> int:
    """Search for each requested dtype, write what was found, and print it; returns the exit code."""
    processor = current()
    if options.dry_run:
        _count(options, processor)
        return 0
    end = time.monotonic() + (options.budget or BUDGET)
    results: dict[str, SearchResult] = {}
    with terminal.console(stderr=True).status("") as status:
        for left, letter in zip(range(len(options.dtype), 0, -1), options.dtype, strict=True):
            status.update(f"{letter}gemm on {processor.name}")
            now = time.monotonic()
            results[letter] = search(letter, processor, now + (end - now) / left)
    merge(TunedProcessor(processor.name, {letter: each.config for letter, each in results.items()}))
    _show(results, processor, options.json)
    return 0


def _count(options: Any, processor: Processor) -> None:
    counts = {
        letter: {
            "register tiles": len(list(space.tiles(letter, processor))),
            "blocks of each": len(list(space.blocks(space.default(letter, processor), processor))),
        }
        for letter in options.dtype
    }
    print(json.dumps({"processor": processor.name, "candidates": counts}, indent=2))


def _show(results: dict[str, SearchResult], processor: Processor, as_json: bool) -> None:
    peaks = {letter: measured_peak(letter, processor) for letter in results}
    if as_json:
        rows = {
            letter: {
                "config": str(each.config),
                "gflops": each.gflops,
                "timed": each.timed,
                "peak": peaks[letter],
            }
            for letter, each in results.items()
        }
        print(json.dumps({"processor": processor.name, "found": rows}, indent=2))
        return
    columns = ("GEMM", "timed", "register tile", "block", "GFLOP/s", "of a core's peak")
    table = Table(*columns, title=f"{processor.name}, one core")
    for letter, (config, rate, timed) in results.items():
        tile = f"{config.THR_M}×{config.THR_N}, unrolled {config.UNROLL}"
        block = f"{config.BLK_M}×{config.BLK_N}×{config.BLK_K}"
        table.add_row(f"{letter}gemm", str(timed), tile, block, f"{rate:.1f}", f"{rate / peaks[letter]:.0%}")
    page = terminal.console(terminal.WIDTH)
    page.print(table)
    page.print(f"written to {tuned_gemm.tuned_file(processor.name)}", soft_wrap=True)
