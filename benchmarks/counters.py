"""What the device counts of one call: bytes of DRAM and L2, issue slots, conflicts in shared memory.

``python -m benchmarks.counters [--routine gemm,trmm,trsm] [--dtype d] [--variants NN,LLNN] [--sizes 1024,...]
[--metrics NAME,...] [--of ours,raster=4,cuBLAS,out-of-place] [--out FILE]`` runs itself once under Nsight
Compute (``ncu``), which must be on the path. 'raster=4' is our product with C rasterized by columns of four
rows of tiles. Each call of ours and of cuBLAS's is profiled once, after one that is
not: the counters of its kernels are added up, shares weighted by their time. Caches are left as the kernel
before left them and clocks as they are, so that what one kernel of a recursion finds in L2 from the one
before counts as it does in a call. The profiler repeats a kernel for what it cannot count at once; the bytes
of a call are exact where ``--metrics`` asks for them alone.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
from rich.table import Table

from pyblasgpu.bench import machine
from pyblasgpu.bench.command import RESULTS, problems, require_device, slug
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.errors import BackendUnavailable, PyblasgpuError
from pyblasgpu.gpu.device import current
from pyblasgpu.options import parse_dtypes, parse_listed, parse_sizes, parse_variants
from pyblasgpu.terminal import console, guarded
from pyblasgpu.testing.cublas import load as load_cublas
from pyblasgpu.testing.problems import ROUTINES, Problem

SCHEMA = 1
TIME = "gpu__time_duration.sum"
READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
L2 = "lts__t_bytes.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
METRICS = (
    TIME,
    READ,
    WRITTEN,
    L2,
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    CONFLICTS,
    WAVEFRONTS,
)
MARK = "a_call_begins"  # a kernel between the calls, by which they are told apart
WIDTH = 170  # columns of a table that goes into a file or a pipe

Sides = tuple[str, ...]
SIDES: Sides = ("ours", "cuBLAS", "out-of-place")  # the last of cuBLAS's TRMM alone
RASTER = "raster="  # and a number: ours with that raster


# ------------------------------------------------------------------------------------- the profiled process


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
    """cuBLAS has two calls of TRMM, and one of the others; of products alone rasters are told."""

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


# ------------------------------------------------------------------------------------------- its profiling


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
            "--csv",
            "--page",
            "raw",
            "--print-units",
            "base",
            "--log-file",
            str(log),
            "--metrics",
            ",".join(metrics),
            "--cache-control",
            "none",
            "--clock-control",
            "none",
            "--profile-from-start",
            "off",
            sys.executable,
            "-m",
            "benchmarks.counters",
            "--profiled",
            *arguments,
        ]
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


# ------------------------------------------------------------------------------------------------ the report


def least_bytes(problem: Problem) -> int:
    """Bytes that the call must read and write, each once."""
    case, size = problem.case, problem.dtype.itemsize
    if problem.routine == "gemm":
        return (case.m * case.k + case.k * case.n + case.m * case.n) * size
    return (case.order * (case.order + 1) // 2 + 2 * case.m * case.n) * size


def show(results: Sequence[dict[str, Any]]) -> Table:
    """A row a call: bytes as multiples of the least, then shares."""
    table = Table(
        "call",
        "n",
        "of",
        "kernels",
        "time, µs",
        "DRAM read, MB",
        "written, MB",
        "of the least",
        "L2, MB",
        "issue slots used, %",
        "conflicts, %",
        title="what the device counts",
    )
    for result in results:
        counted = result["counted"]
        dram = counted.get(READ, 0.0) + counted.get(WRITTEN, 0.0)
        issue = next((value for name, value in counted.items() if name.startswith("smsp__issue")), 0.0)
        conflicts = counted.get(CONFLICTS, 0.0) / max(counted.get(WAVEFRONTS, 0.0), 1.0)
        numbers = (
            counted.get(TIME, 0.0) / 1e3,
            counted.get(READ, 0.0) / 1e6,
            counted.get(WRITTEN, 0.0) / 1e6,
        )
        table.add_row(
            f"{result['dtype']}{result['routine']} {result['variant']}",
            str(result["n"]),
            result["of"],
            str(counted["kernels"]),
            *(f"{number:.1f}" for number in numbers),
            f"{dram / result['least_bytes']:.2f}",
            f"{counted.get(L2, 0.0) / 1e6:.1f}",
            f"{issue:.1f}",
            f"{100 * conflicts:.1f}",
        )
    return table


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--routine", type=lambda text: parse_listed(text, ROUTINES), default=ROUTINES)
    options.add_argument("--dtype", type=parse_dtypes, default=("d",))
    options.add_argument("--variants", type=parse_variants, default=("NN", "LLNN"))
    options.add_argument("--sizes", type=parse_sizes, default=(512, 1024, 2048, 4096, 8192))
    options.add_argument("--metrics", type=lambda text: tuple(text.split(",")), default=METRICS)
    options.add_argument("--of", type=parse_sides, default=SIDES)
    options.add_argument("--out", type=Path)
    options.add_argument("--profiled", action="store_true", help=argparse.SUPPRESS)
    return options


def main(arguments: list[str] | None = None) -> int:
    """Profile, print the table, write the file; returns the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    options = parser().parse_args(words)
    require_device()
    cases = list(problems(options.routine, options.dtype, options.variants, options.sizes))
    if options.profiled:
        run_profiled(cases, options.of)
        return 0
    counted = profile(words, options.metrics)
    runs = [(problem, side) for problem in cases for side in sides_of(problem, options.of)]
    if len(counted) != len(runs):
        raise PyblasgpuError(
            f"benchmarks.counters: {len(counted)} calls were profiled, {len(runs)} were made"
        )
    device = current()
    results = [
        {
            "routine": problem.routine,
            "dtype": problem.dtype.letter,
            "variant": problem.variant,
            "n": problem.case.n,
            "of": side,
            "least_bytes": least_bytes(problem),
            "counted": each,
        }
        for (problem, side), each in zip(runs, counted, strict=True)
    ]
    described = {"schema": SCHEMA, **machine.describe(device, load_cublas()), "results": results}
    out = options.out or RESULTS / slug(device.name) / f"{described['date'][:10]}-counters.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(described, indent=1) + "\n")
    page = console(WIDTH)
    page.print(show(results))
    page.print(f"results in {out}")
    return 0


if __name__ == "__main__":
    sys.exit(guarded(["benchmarks.counters"], main))
