"""What the device counts of one call: bytes of DRAM and L2, issue slots, conflicts in shared memory.

``python -m benchmarks.counters [--routine gemm,trmm,trsm] [--dtype d] [--variants NN,LLNN] [--sizes 1024,...]
[--metrics NAME,...] [--of ours,raster=4,cuBLAS,out-of-place] [--out FILE]``
runs itself once under Nsight Compute (``ncu``), which must be on the path. 'raster=4' is our product with C
rasterized by columns of four rows of tiles. Each call of ours and of cuBLAS's is profiled once, after one
that is not. The counters of its kernels are added up, shares weighted by their time. Caches are left as the
kernel before left them and clocks as they are. So what one kernel of a recursion finds in L2 from the one
before counts as it does in a call. The profiler repeats a kernel for what it cannot count at once; the bytes
of a call are exact where ``--metrics`` names them alone.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np

from benchmarks.study import Namespace, Option, Row, Rows, Study, device_facts, main, table
from pyblasgpu.bench.command import problems
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.errors import BackendUnavailable, PyblasgpuError
from pyblasgpu.testing.cublas import load as load_cublas
from pyblasgpu.testing.problems import ROUTINES, Problem

TIME = "gpu__time_duration.sum"
READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
L2 = "lts__t_bytes.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
ISSUED = "smsp__issue_active.avg.pct_of_peak_sustained_active"
METRICS = (TIME, READ, WRITTEN, L2, ISSUED, CONFLICTS, WAVEFRONTS)
#: Options of the profiler.
OPTIONS = "--csv --page raw --print-units base --cache-control none --clock-control none"
MARK = "a_call_begins"  # a kernel between the calls, which separates them

Sides = tuple[str, ...]
SIDES: Sides = ("ours", "cuBLAS", "out-of-place")  # the last of cuBLAS's TRMM alone
RASTER = "raster="  # and a number: ours with that raster


def run_profiled(cases: Iterable[Problem], sides: Sides) -> None:
    """Run every call of `cases` on each of `sides`: unprofiled, then profiled behind a mark."""
    import cupy

    library = load_cublas()
    mark = cupy.RawKernel(f'extern "C" __global__ void {MARK}() {{}}', MARK)
    for problem in cases:
        data = problem.data()
        for side in sides_of(problem, sides):
            for profiled in (False, True):
                x = data.map(lambda x: cupy.array(x, order="F"))
                out = cupy.empty_like(x.out)
                cupy.cuda.Device().synchronize()
                if profiled:
                    cupy.cuda.profiler.start()
                    mark((1,), (1,), ())
                if side == "ours":
                    problem.ours(x, "cuda")
                elif side.startswith(RASTER):
                    with override("raster", int(side.removeprefix(RASTER))):
                        problem.ours(x, "cuda")
                elif side == "out-of-place":
                    problem.cublas_out_of_place(library, x, out)
                else:
                    problem.cublas(library, x)
                cupy.cuda.Device().synchronize()
                if profiled:
                    cupy.cuda.profiler.stop()


def sides_of(problem: Problem, sides: Sides) -> Sides:
    """cuBLAS has two calls of TRMM, and one of the others; only products have rasters."""

    def has(side: str) -> bool:
        if side.startswith(RASTER):
            return problem.routine == "gemm"
        return side != "out-of-place" or problem.routine == "trmm"

    return tuple(side for side in sides if has(side))


def parse_sides(text: str) -> Sides:
    """Sides separated by commas, 'raster=4' among them."""
    for side in text.split(","):
        number = side.removeprefix(RASTER)
        if side not in SIDES and not (side.startswith(RASTER) and number.isdigit()):
            raise argparse.ArgumentTypeError(f"{side!r} is none of {', '.join(SIDES)}, {RASTER}N")
    return tuple(text.split(","))


def profile(arguments: Sequence[str], metrics: Sequence[str]) -> list[dict[str, Any]]:
    """Run this module with `arguments` under the profiler; the counters of each call.

    Raises
    ------
    BackendUnavailable
        Where there is no profiler.
    PyblasgpuError
        Where it fails, with what it said.
    """
    profiler = which("ncu")
    if profiler is None:
        raise BackendUnavailable("benchmarks.counters: Nsight Compute (ncu) is not on the path")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        command = [
            profiler,
            *OPTIONS.split(),
            "--profile-from-start",
            "off",
            "--log-file",
            str(log),
            "--metrics",
            ",".join(metrics),
        ]
        command += [sys.executable, "-m", "benchmarks.counters", "--profiled", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        output = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if done.returncode:
        raise PyblasgpuError(f"benchmarks.counters: ncu failed: {(output + done.stderr)[-2000:]}")
    return list(calls(output.splitlines(), metrics))


def calls(lines: Iterable[str], metrics: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The counters of each call in the profiler's table, a row a kernel, the calls parted by the mark."""
    table = csv.DictReader(line for line in lines if not line.startswith("=="))
    kernels: list[dict[str, str]] | None = None
    for row in table:
        if not (row["ID"] or "").isdigit():
            continue  # the row of units
        if row["Kernel Name"].startswith(MARK):
            if kernels is not None:
                yield together(kernels, metrics)
            kernels = []
        elif kernels is not None:
            kernels.append(row)
    if kernels is not None:
        yield together(kernels, metrics)


def together(kernels: Sequence[dict[str, str]], metrics: Sequence[str]) -> dict[str, Any]:
    """Counters of the kernels of one call: sums, and shares weighted by time."""
    values = {name: np.array([float(row[name].replace(",", "")) for row in kernels]) for name in metrics}
    weights = values.get(TIME, np.ones(len(kernels)))
    totals: dict[str, Any] = {"kernels": len(kernels)}
    for name, each in values.items():
        share = ".pct" in name
        total = (each * weights).sum() / max(weights.sum(), 1e-300) if share else each.sum()
        totals[name] = float(total)
    return totals


def least_bytes(problem: Problem) -> int:
    """Bytes that the call must read and write, each once."""
    case, size = problem.case, problem.dtype.itemsize
    if problem.routine == "gemm":
        return (case.m * case.k + case.k * case.n + case.m * case.n) * size
    return (case.order * (case.order + 1) // 2 + 2 * case.m * case.n) * size


def summary(rows: list[Row], options: Namespace) -> Iterator[Any]:
    """A row a call: bytes as multiples of the least, then shares."""
    lines = []
    for row in rows:
        counted = {name: row["counted"].get(name, 0.0) for name in METRICS}
        shown = (
            f"{row['dtype']}{row['routine']} {row['variant']}",
            row["n"],
            row["of"],
            row["counted"]["kernels"],
        )
        megabytes = (counted[name] / 1e6 for name in (READ, WRITTEN))
        least = (counted[READ] + counted[WRITTEN]) / row["least_bytes"]
        conflicts = 100 * counted[CONFLICTS] / max(counted[WAVEFRONTS], 1.0)
        others = counted[L2] / 1e6, counted[ISSUED], conflicts
        lines.append((*shown, counted[TIME] / 1e3, *megabytes, least, *others))
    heads = (
        "call | n | of | kernels | time, µs | DRAM read, MB | written, MB | of the least | L2, MB"
        " | issue slots used, % | conflicts, %"
    )
    yield table("what the device counts", heads, lines)


def rows(options: Namespace) -> Rows:
    cases = list(problems(options.routines, options.letters, options.variants, options.sizes))
    if options.profiled:
        run_profiled(cases, options.of)
        return
    counted = profile(sys.argv[1:], options.metrics)
    runs = [(problem, side) for problem in cases for side in sides_of(problem, options.of)]
    if len(counted) != len(runs):
        raise PyblasgpuError(
            f"benchmarks.counters: {len(counted)} calls were profiled, {len(runs)} were made"
        )
    for (problem, side), each in zip(runs, counted, strict=True):
        row: Row = {"routine": problem.routine, "dtype": problem.dtype.letter, "variant": problem.variant}
        row |= {"n": problem.case.n, "of": side, "least_bytes": least_bytes(problem)}
        yield {**row, "counted": each}


STUDY = Study(
    "counters",
    __doc__,
    rows,
    {
        "routines": Option(ROUTINES, ROUTINES),
        "letters": "d",
        "variants": ("NN", "LLNN"),
        "sizes": (512, 1024, 2048, 4096, 8192),
        "metrics": METRICS,
        "of": Option(SIDES, kind=parse_sides, help="ours, cuBLAS, out-of-place, raster=N"),
        "profiled": Option(False, help=argparse.SUPPRESS),
    },
    lambda options: {"schema": 1, **device_facts(options, load_cublas())},
    summary=summary,
    is_kept=True,
    prints_rows=False,
)

if __name__ == "__main__":
    main(STUDY)
