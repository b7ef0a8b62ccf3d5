"""ATLAS's CacheEdge on a device: products over the rows of tiles of a column in which C is rasterized.

``python tuning/papers/cache_edge.py [--dtype s,d] [--sizes 4096,8192] [--seconds 2m] [--out FOLDER]``

A wave of blocks shares panels of A and B in the L2 cache; how many of each goes by the raster. The value that
is best over all sizes belongs into `pyblasgpu/dispatch/raster.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.table import Table

from pyblasgpu.gpu import device as devices
from pyblasgpu.options import parse_sizes
from pyblasgpu.terminal import console, guarded
from pyblasgpu.types import DTYPES
from tuning.papers.experiment import Experiment, Extents, Rows, add_options, draw, names_in, on_device, write

__all__ = ["experiment", "main", "table"]

WIDTH = 110
RASTERS = "1,2,4,6,8,12,16,32"


def experiment(run: Experiment, letter: str, sizes: Sequence[int], rasters: Sequence[int]) -> Rows:
    """TFLOP/s of square products by raster, as JSON holds them."""
    problems: list[Extents] = [(n, n, n) for n in sizes]
    rows: Rows = []
    for raster in rasters:
        if run.is_over:
            break
        rates = run.ours(letter, "nn", problems, "gemm", (("raster", raster),))
        points = {str(extents[0]): round(rate, 3) for extents, rate in rates.items()}
        rows.append({"dtype": letter, "raster": raster, "tflops": points})
    return rows


def table(rows: Rows, sizes: Sequence[int], device: str) -> Table:
    """A raster a row, a size a column."""
    made = Table("GEMM, TFLOP/s", "raster", *map(str, sizes), title=device)
    for row in rows:
        rates = [row["tflops"].get(str(n)) for n in sizes]
        shown = ["" if rate is None else f"{rate:.2f}" for rate in rates]
        made.add_row(f"{row['dtype']}gemm", str(row["raster"]), *shown)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment on the device that is here; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default=["s", "d"], type=names_in(DTYPES), help="(s,d)")
    parser.add_argument("--sizes", type=parse_sizes, default="2048,4096,8192", help="(%(default)s)")
    parser.add_argument("--rasters", type=parse_sizes, default=RASTERS, help="(%(default)s)")
    parser.add_argument("--device", help="number or name of the device (0)")
    add_options(parser, "2m")
    options = parser.parse_args(arguments)
    device = devices.present(options.device)
    with on_device(device, options.seconds) as run:
        rows = [
            row
            for letter in run.in_turn(options.dtype)
            for row in experiment(run, letter, options.sizes, options.rasters)
        ]
    report(rows, device.name, options)
    return 0


def report(rows: Rows, device: str, options: argparse.Namespace) -> None:
    """Print, and write to the folder that is asked for."""
    made = {"paper": "cache_edge", "device": device, "results": rows}
    page = console(WIDTH)
    with page.capture() as captured:
        page.print(table(rows, options.sizes, device))
    print(json.dumps(made, indent=2) if options.json else captured.get(), end="")
    write(options.out, "cache_edge", made, captured.get())
    curves = {
        f"{letter}gemm, n = {n}": [
            (float(row["raster"]), row["tflops"][str(n)])
            for row in rows
            if row["dtype"] == letter and str(n) in row["tflops"]
        ]
        for letter in options.dtype
        for n in options.sizes
    }
    draw(options.out, "cache_edge", f"Rasters on {device}", curves, ("rows of tiles of a column", "TFLOP/s"))


if __name__ == "__main__":
    sys.exit(guarded(["tuning/papers/cache_edge.py"], main))
