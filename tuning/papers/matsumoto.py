"""Matsumoto, Nakasato, Sedukhin's experiment: their three-step search, Table 2, and Figures 4 and 5.

``python tuning/papers/matsumoto.py [--dtype s,d] [--seconds 20m] [--out FOLDER]``

1. Every kernel of the list is timed at two sizes: register tiles, vector widths, and for each operand whether
   it passes through shared memory.
2. The 50 best are timed at all multiples of 256 up to 8192, and with them kernels for packed operands. These
   are in column blocks (CBL), row blocks (RBL), by rows (ROW), each with its own. The time of packing is in
   theirs.
3. The one that reaches most wins.

The kernels multiply A transposed by B (TN). Figures 4 and 5 show the winner's operation alone, and the whole
product of matrices that must be copied into that layout first, copies included.

``--sample`` takes the first step alone, of kernels in random order, as many as time allows. It shows what a
search that begins with few of them may miss.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.table import Table

from pyblasgpu.database import families_of
from pyblasgpu.errors import ConfigError
from pyblasgpu.gpu.device import Device
from pyblasgpu.kernels.copy.packing import CBL, RBL, ROW
from pyblasgpu.kernels.gemm.simt import STEM, GemmSimt
from pyblasgpu.options import parse_count, parse_sizes
from pyblasgpu.terminal import guarded
from pyblasgpu.tuning.prune import best_few, candidates
from pyblasgpu.types import DTYPES
from tuning.papers import steinsland
from tuning.papers.experiment import Experiment, Extents, Kernel, Measured, Rows, share_of_peak
from tuning.papers.study import Figure, Study, add_options, interleaved, names_in, run_study

__all__ = ["STUDY", "best_of_few", "experiment", "kernels", "main", "packed", "sample", "table"]

SEED = 2012
LAYOUT = "tn"
FINALISTS = 50
PACKED = 8  # of each family: kernels for packed operands in CBL
TILES = 6  # of each choice of shared operands: kernels for operands in other layouts
PAIRS = ((CBL, CBL), (CBL, ROW), (RBL, RBL))  # those of Table 2's winners
STEP, LARGEST = 256, 8192
FIRST = "1024,4096"  # sizes of the first step
CURVES, SEARCH = 0.25, 0.4  # of the time that is left: the curves, then the first step
SAMPLE, FEW = "a sample of the first step", 40  # which is of `sample`; a smaller sample, beside it


def kernels(letter: str, device: Device) -> list[GemmSimt]:
    """Register tiles with every choice of operands that pass through shared memory, in random order."""
    found = [
        config
        for scheme, (_, _, tiled) in steinsland.SCHEMES.items()
        if tiled
        for config in steinsland.candidates(scheme, letter, LAYOUT, device)
    ]
    random.Random(SEED).shuffle(found)
    return found


def packed(letter: str, device: Device) -> list[Kernel]:
    """Kernels for packed operands: the likeliest of each family in CBL, and register tiles with every choice
    of operands that pass through shared memory, each in one pair of layouts after the other.
    """
    likely: list[Kernel] = []
    for stem in families_of("gemm", letter):
        found: dict[Any, None] = {}
        for config in candidates(stem, letter, LAYOUT, device, "quick").left:
            try:
                found[config.for_packed()] = None
            except ConfigError:
                continue
        likely += [(stem, config) for config in best_few(found, (4096,) * 3, device, PACKED, 1)]
    tiles = interleaved(
        steinsland.candidates(scheme, letter, "nt", device)[:TILES]
        for scheme, (_, _, tiled) in steinsland.SCHEMES.items()
        if tiled
    )
    others = []
    for config, pair in zip(tiles, itertools.cycle(PAIRS), strict=False):
        with suppress(ConfigError):
            others.append((STEM, config.packed_as(*pair)))
    return interleaved((likely, others))


def experiment(
    run: Experiment, letter: str, first: Sequence[int], step: int, largest: int, most: int | None
) -> dict[str, Any]:
    """The three steps and the curves of one type, as JSON holds them."""
    small: list[Extents] = [(n, n, n) for n in first]
    sizes: list[Extents] = [(n, n, n) for n in range(step, largest + 1, step)]
    with run.part(CURVES):
        curves = _curves(run, letter, sizes)
    with run.part(SEARCH):
        timed = list(run.times(STEM, LAYOUT, kernels(letter, run.device)[:most], small))
    finalists = _finalists([each for each in timed if len(each.rates) == len(small)], small)
    rows = _second_step(run, letter, finalists, sizes)
    rows.sort(key=lambda row: -row["tflops"])
    return {
        "dtype": letter,
        "outcomes": dict(Counter(each.outcome for each in timed)),
        "finalists": rows,
        "curves": curves,
    }


def sample(run: Experiment, letter: str, first: Sequence[int], most: int | None) -> dict[str, Any]:
    """The first step of kernels in random order, until time is over, as JSON holds it."""
    sizes: list[Extents] = [(n, n, n) for n in first]
    found = kernels(letter, run.device)
    timed = list(run.times(STEM, LAYOUT, found[:most], sizes))
    good = [each for each in timed if len(each.rates) == len(sizes)]
    return {
        "dtype": letter,
        "figure": SAMPLE,
        "kernels": len(found),
        "outcomes": dict(Counter(each.outcome for each in timed)),
        "tflops": {str(n): [round(each.rates[n, n, n], 3) for each in good] for n in first},
        "best": {
            str(n): _row(max(good, key=lambda each: each.rates[n, n, n]), run.device)
            for n in (first if good else ())
        },
    }


def best_of_few(rates: Sequence[float], few: int = FEW) -> float:
    """The mean of the best of all choices of `few` rates."""
    ranked = sorted(rates)
    if len(ranked) <= few:
        return ranked[-1]
    # the best is the one of a rank where all others are of those below
    chosen = sum(rate * math.comb(below, few - 1) for below, rate in enumerate(ranked))
    return chosen / math.comb(len(ranked), few)


def _second_step(
    run: Experiment, letter: str, finalists: Sequence[Measured], sizes: Sequence[Extents]
) -> Rows:
    """Rows of Table 2: the finalists, and kernels on packed operands in turn with them.

    A finalist that is far behind the best at a size is timed there once or twice. Those that no time is left
    for have the rates that are known.
    """
    packs = packed(letter, run.device)
    rows: Rows = []
    waiting = {each.config: each for each in finalists}
    for each, pack in itertools.zip_longest(run.times(STEM, LAYOUT, list(waiting), sizes), packs):
        if each is not None:
            before = waiting.pop(each.config)
            rows.append(_row(each if each.rates else before, run.device))
        if pack is not None and (run.is_over or run.compiled(pack[0], [pack[1]])):
            each = _of_packed(run, letter, pack, sizes)
            rows += [_row(each, run.device)] if each.rates else []
    known = [run.timed(STEM, LAYOUT, config, sizes, verify=False) for config in waiting]
    return rows + [_row(each, run.device) for each in known if each.rates]


def _finalists(timed: list[Measured], sizes: Sequence[Extents]) -> list[Measured]:
    """The best `FINALISTS` of either size in turn, each once."""
    ranked = [sorted(timed, key=lambda each: -each.rates[size]) for size in sizes]
    found = dict.fromkeys(each.config for ranks in zip(*ranked, strict=True) for each in ranks)
    by_config = {each.config: each for each in timed}
    return [by_config[config] for config in list(found)[:FINALISTS]]


def _of_packed(run: Experiment, letter: str, kernel: Kernel, sizes: Sequence[Extents]) -> Measured:
    """A kernel on packed operands; the time of packing is in it."""
    overrides = (("packed", True), kernel)
    return Measured(kernel[1], "ok", run.ours(letter, LAYOUT, sizes, "gemm", overrides))


def _row(each: Measured, device: Device) -> dict[str, Any]:
    """Table 2's columns of a kernel."""
    config, best = each.config, max(each.rates.values())
    shared = "".join(name for name, is_shared in zip("AB", config.shares, strict=True) if is_shared)
    return {
        "tflops": round(best, 3),
        "efficiency": share_of_peak(device, config.dtype, best),
        "at": max(each.rates, key=lambda size: each.rates[size])[0],
        "family": config.STEM,
        "tile": f"{config.BLK_M}x{config.BLK_N}x{config.BLK_K}",
        "per thread": f"{config.THR_M}x{config.THR_N}",
        "vector": max(getattr(config, name, 1) for name in ("VEC_M", "VEC_N", "VEC_K", "VEC_A", "VEC_B")),
        "shared": shared or "-",
        "layout": ", ".join(p.layout.upper() for p in config.packings) if config.packed else "as they lie",
        "curve": {str(size[0]): round(rate, 3) for size, rate in each.rates.items()},
        "config": asdict(config),
    }


def _curves(run: Experiment, letter: str, sizes: Sequence[Extents]) -> dict[str, dict[str, float]]:
    """Figures 4 and 5: a TN product alone, and products whose operands are copied or packed first."""
    cases = {
        "TN alone": (LAYOUT, ()),
        "NN, copied to TN": ("nn", (("layout", LAYOUT),)),
        "NN, packed": ("nn", (("packed", True),)),
        "NN as it lies": ("nn", ()),
    }
    found = {
        name: run.ours(letter, layout, sizes, "gemm", overrides)
        for name, (layout, overrides) in cases.items()
    }
    found["cuBLAS TN"] = run.vendor(letter, LAYOUT, sizes)
    return {
        name: {str(size[0]): round(rate, 3) for size, rate in rates.items()} for name, rates in found.items()
    }


def table(results: Rows, device: str, most: int = 5) -> Table:
    """Table 2: the best few of each type."""
    columns = ("GEMM", "tile", "per thread", "vector", "shared", "layout", "TFLOP/s", "efficiency", "at n")
    made = Table(*columns, title=f"The three-step search of Matsumoto et al. on {device}")
    for result in _searches(results):
        for row in result["finalists"][:most]:
            share = row["efficiency"]
            made.add_row(
                f"{result['dtype']}gemm {LAYOUT}",
                row["tile"],
                row["per thread"],
                str(row["vector"]),
                row["shared"],
                row["layout"],
                f"{row['tflops']:.2f}",
                "" if share is None else f"{share:.0%}",
                str(row["at"]),
            )
    return made


def layouts_table(results: Rows, device: str) -> Table:
    """The best kernel of each way in which operands are laid out and shared."""
    columns = ("GEMM", "layout", "shared", "tile", "TFLOP/s", "at n")
    made = Table(*columns, title=f"The best of each layout and sharing on {device}")
    for result in _searches(results):
        best: dict[tuple[str, str], dict[str, Any]] = {}
        for row in result["finalists"]:  # the best first
            best.setdefault((row["layout"], row["shared"]), row)
        for (layout, shared), row in best.items():
            rate, name = f"{row['tflops']:.2f}", f"{result['dtype']}gemm {LAYOUT}"
            made.add_row(name, layout, shared, row["tile"], rate, str(row["at"]))
    return made


def sample_table(results: Rows, device: str) -> Table:
    """A type and an order of a sample a row: the best, how near others are, and the best of few."""
    columns = ("GEMM", "n", "kernels", "timed", "best", "tile", "shared", "within 5 %", "half are above")
    made = Table(*columns, f"best of {FEW}, mean", title=f"{SAMPLE.capitalize()} on {device}, TFLOP/s")
    for row in results:
        for n, best in row["best"].items() if row.get("figure") == SAMPLE else ():
            rates = row["tflops"][n]
            made.add_row(
                f"{row['dtype']}gemm {LAYOUT}",
                n,
                str(row["kernels"]),
                str(len(rates)),
                f"{max(rates):.2f}",
                best["tile"],
                best["shared"],
                str(sum(rate >= 0.95 * max(rates) for rate in rates)),
                f"{statistics.median(rates):.2f}",
                f"{best_of_few(rates):.2f}",
            )
    return made


def _searches(results: Rows) -> Rows:
    return [row for row in results if row.get("figure") != SAMPLE]


def _kernels(options: argparse.Namespace, device: Device) -> Iterable[Kernel]:
    for letter in options.dtype:
        yield from ((STEM, config) for config in kernels(letter, device)[: options.most])
        yield from () if options.sample else packed(letter, device)


def _collect(run: Experiment, options: argparse.Namespace) -> dict[str, Any]:
    if options.sample:
        rows = [sample(run, letter, options.first, options.most) for letter in run.in_turn(options.dtype)]
        return {"results": rows}
    rest = options.first, options.step, options.largest, options.most
    return {"results": [experiment(run, letter, *rest) for letter in run.in_turn(options.dtype)]}


def _tables(made: dict[str, Any], options: argparse.Namespace) -> list[Table]:
    tables = [of(made["results"], made["device"]) for of in (table, layouts_table, sample_table)]
    return [each for each in tables if each.row_count]


def _figures(made: dict[str, Any], options: argparse.Namespace) -> list[Figure]:
    figures = []
    for result in _searches(made["results"]):
        name = f"{result['dtype']}gemm"
        curves = {
            what: [(float(n), rate) for n, rate in points.items()]
            for what, points in result["curves"].items()
        }
        title = f"{name} with and without copies on {made['device']}"
        figures.append(Figure(f"matsumoto_{name}", title, curves))
    return figures


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default=["s", "d"], type=names_in(DTYPES), help="(s,d)")
    parser.add_argument(
        "--first", type=parse_sizes, default=FIRST, help="sizes of the first step (%(default)s)"
    )
    parser.add_argument(
        "--step", type=parse_count, default=STEP, help="of the second step's sizes (%(default)s)"
    )
    parser.add_argument("--largest", type=parse_count, default=LARGEST, help="of these (%(default)s)")
    parser.add_argument("--most", type=parse_count, metavar="N", help="number of kernels to begin with")
    parser.add_argument("--sample", action="store_true", help="the first step alone, as far as time goes")
    add_options(parser, "20m")
    return parser.parse_args(arguments)


STUDY = Study("matsumoto", _parse, _kernels, _collect, _tables, _figures)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment on the device that is here; returns the exit code."""
    return run_study(STUDY, arguments)


if __name__ == "__main__":
    sys.exit(guarded(["tuning/papers/matsumoto.py"], main))
