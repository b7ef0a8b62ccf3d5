"""ATLAS's CacheEdge on a device: products over the rows of tiles of a column in which C is rasterized.

``python tuning/papers/cache_edge.py [--dtype s,d] [--sizes 4096,8192] [--seconds 2m] [--out FOLDER]``

A wave of blocks shares panels of A and B in the L2 cache; how many of each goes by the raster.
``--save`` puts the value that is best over all sizes into this user's tuned values.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.table import Table

from pyblasgpu.database import Document
from pyblasgpu.options import parse_sizes
from pyblasgpu.terminal import guarded
from pyblasgpu.tuning.tuned_file_writer import merge
from pyblasgpu.types import DTYPES
from tuning.papers.experiment import Experiment, Extents, Rows
from tuning.papers.study import Figure, Study, add_options, names_in, run_study

__all__ = ["STUDY", "best_raster", "experiment", "main", "table"]

RASTERS = "0,1,2,4,6,8,12,16,32"  # 0: as the kernels have it
ROUNDS = 7
WORTH = 1.01  # times as fast as the kernels' own raster, at least, to be kept


def experiment(run: Experiment, letter: str, sizes: Sequence[int], rasters: Sequence[int]) -> Rows:
    """TFLOP/s of square products by raster, as JSON holds them: medians of rounds in random order, as the
    clock of a device that is short of power drifts.
    """
    problems: list[Extents] = [(n, n, n) for n in sizes]
    found: dict[tuple[int, Extents], list[float]] = {}
    for repeat in range(ROUNDS):
        for raster in random.Random(repeat).sample(list(rasters), len(rasters)):
            rates = run.ours(letter, "nn", problems, "gemm", (("raster", raster),), repeat)
            for extents, rate in rates.items():
                found.setdefault((raster, extents), []).append(rate)
    rows: Rows = []
    for raster in rasters:
        points = {str(at[0]): round(median(found[raster, at]), 3) for at in problems if (raster, at) in found}
        if points:
            rows.append({"dtype": letter, "raster": raster, "tflops": points})
    return rows


def best_raster(rows: Rows, letter: str) -> int:
    """The raster with the best mean over the sizes that all have; 0 unless another one is worth it."""
    of_dtype = {row["raster"]: row["tflops"] for row in rows if row["dtype"] == letter}
    sizes = set.intersection(*(set(points) for points in of_dtype.values())) if of_dtype else set()
    if not sizes or 0 not in of_dtype:
        return 0
    means = {raster: geometric_mean(points[n] for n in sizes) for raster, points in of_dtype.items()}
    best = max(means, key=lambda raster: means[raster])
    return best if means[best] >= WORTH * means[0] else 0


def table(rows: Rows, sizes: Sequence[int], device: str) -> Table:
    """A raster a row, a size a column."""
    made = Table("GEMM, TFLOP/s", "raster", *map(str, sizes), title=device)
    for row in rows:
        rates = [row["tflops"].get(str(n)) for n in sizes]
        shown = ["" if rate is None else f"{rate:.2f}" for rate in rates]
        made.add_row(f"{row['dtype']}gemm", str(row["raster"]), *shown)
    return made


def _collect(run: Experiment, options: argparse.Namespace) -> dict[str, Any]:
    letters = run.in_turn(options.dtype)
    rows = [row for letter in letters for row in experiment(run, letter, options.sizes, options.rasters)]
    best = {letter: best_raster(rows, letter) for letter in options.dtype}
    if options.save:
        merge(Document(run.device.name, rasters={letter: each for letter, each in best.items() if each}))
    return {"results": rows, "best": best}


def _tables(made: dict[str, Any], options: argparse.Namespace) -> list[Table]:
    return [table(made["results"], options.sizes, made["device"])]


def _figures(made: dict[str, Any], options: argparse.Namespace) -> list[Figure]:
    curves = {
        f"{letter}gemm, n = {n}": [
            (float(row["raster"]), row["tflops"][str(n)])
            for row in made["results"]
            if row["dtype"] == letter and str(n) in row["tflops"] and row["raster"]
        ]
        for letter in options.dtype
        for n in options.sizes
    }
    labels = "rows of tiles of a column", "TFLOP/s"
    return [Figure("cache_edge", f"Rasters on {made['device']}", curves, labels)]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default=["s", "d"], type=names_in(DTYPES), help="(s,d)")
    parser.add_argument("--sizes", type=parse_sizes, default="2048,4096,8192", help="(%(default)s)")
    parser.add_argument("--rasters", type=parse_rasters, default=RASTERS, help="(%(default)s)")
    parser.add_argument("--save", action="store_true", help="keep the best in this user's tuned values")
    add_options(parser, "2m")
    return parser.parse_args(arguments)


def parse_rasters(text: str) -> list[int]:
    """Numbers from 0 on, separated by commas."""
    return [int(number) for number in text.split(",")]


STUDY = Study("cache_edge", _parse, lambda options, device: (), _collect, _tables, _figures)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment on the device that is here; returns the exit code."""
    return run_study(STUDY, arguments)


if __name__ == "__main__":
    sys.exit(guarded(["tuning/papers/cache_edge.py"], main))
