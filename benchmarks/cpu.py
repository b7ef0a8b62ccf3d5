"""GEMM, TRMM and TRSM on one core of the processor: Numba's kernels beside SciPy's BLAS.

``python -m benchmarks.cpu [--dtype s,d] [--sizes 256,512] [--out FOLDER]``

A time is the shortest of several in the thread's own seconds, so that other processes do not count, but for
what they take of caches and memory. SciPy's BLAS is held to one thread by threadpoolctl.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from rich.table import Table

from pyblasgpu.cpu.numba import level3 as numba_cpu
from pyblasgpu.cpu.numba import tuned_gemm
from pyblasgpu.cpu.numba.device import Processor, current
from pyblasgpu.cpu.scipy import level3 as cpu
from pyblasgpu.options import parse_count, parse_dtypes, parse_sizes
from pyblasgpu.terminal import console, guarded
from pyblasgpu.testing.reference import reals
from pyblasgpu.tuning.cpu_search import measured_peak, seconds_of
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo

__all__ = ["main", "measure"]

ROUTINES = ("gemm", "trmm", "trsm")


def main(arguments: Sequence[str] | None = None) -> int:
    """Time, print a table, write JSON; returns the exit code."""
    options = _parse(arguments)
    processor = current()
    peaks = {letter: measured_peak(letter, processor) for letter in options.dtype}
    rows = [
        {
            "dtype": letter,
            "routine": name,
            "n": n,
            "peak": peaks[letter],
            **measure(letter, name, n, options.repeats),
        }
        for letter in options.dtype
        for name in ROUTINES
        for n in options.sizes
    ]
    configs = {letter: str(tuned_gemm.choose(letter, processor)[0]) for letter in options.dtype}
    made = {"processor": processor.name, "cores": 1, "configs": configs, "results": rows}
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "cpu.json").write_text(json.dumps(made, indent=1) + "\n")
    if options.json:
        print(json.dumps(made, indent=2))
    else:
        console(120).print(_table(rows, processor))
    return 0


def measure(letter: str, name: str, n: int, repeats: int) -> dict[str, float]:
    """GFLOP/s of both, by host."""
    dtype = DTYPES[letter]
    flops = dtype.flops_per_fma * n**3 // (1 if name == "gemm" else 2)
    rates = {}
    for what, host in (("numba", numba_cpu), ("scipy", cpu)):
        run = _call(host, letter, name, n)
        run()
        rates[what] = round(flops / seconds_of(run, repeats) / 1e9, 2)
    return rates


def _call(host: Any, letter: str, name: str, n: int) -> Callable[[], None]:
    dtype, rng = DTYPES[letter], np.random.default_rng(n)
    a, b = (np.asfortranarray(reals(rng, (n, n), dtype)) for _ in range(2))
    if name == "gemm":
        c = np.zeros_like(a)
        return lambda: host.gemm(1, a, b, 0, c, Trans.NO, Trans.NO)
    a = np.asfortranarray(np.tril(a) / n + np.eye(n, dtype=dtype.name))  # repeated, it stays finite
    return lambda: getattr(host, name)(1, a, b, Side.LEFT, Uplo.LOWER, Trans.NO, Diag.NON_UNIT)


def _table(rows: list[dict[str, Any]], processor: Processor) -> Table:
    columns = ("routine", "n", "Numba, GFLOP/s", "of peak", "SciPy, GFLOP/s", "ratio")
    made = Table(*columns, title=f"one core of {processor.name}")
    for row in rows:
        ours, theirs = row["numba"], row["scipy"]
        made.add_row(
            row["dtype"] + row["routine"],
            str(row["n"]),
            f"{ours:.1f}",
            f"{ours / row['peak']:.2f}",
            f"{theirs:.1f}",
            f"{ours / theirs:.2f}",
        )
    return made


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", type=parse_dtypes, default="s,d,c,z", help="(%(default)s)")
    parser.add_argument("--sizes", type=parse_sizes, default="128,256,512,1024,2048", help="(%(default)s)")
    parser.add_argument("--repeats", type=parse_count, default=7, help="runs, of which the shortest counts")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="also write cpu.json there")
    parser.add_argument("--json", action="store_true", help="print JSON, not a table")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(guarded(["benchmarks.cpu"], main))
