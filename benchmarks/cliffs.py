"""Where products are slow beside cuBLAS's of the same size: ours / cuBLAS over n, and a plot of it.

``python -m benchmarks.cliffs [--dtype s,d] [--every 4] [--budget 170] [--out FILE]`` times square products of
every n from 1 to 600 and then in steps of 97 up to 8192: all transpositions of matrices as they come, and one
of them in turn of matrices with an odd leading stride, and of such that begin one element behind an aligned
address. The kernels are compiled first, many at a time; ``--compile-only h200`` does nothing else, and needs
no GPU.

Times are the device's share of a call (docs/measuring.md, "In the tuner"), the same for both libraries. Sizes
are taken from coarse to fine, so that a budget that ends leaves gaps of one width, and no end is missing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from pyblasgpu.bench import machine
from pyblasgpu.bench.command import RESULTS, slug
from pyblasgpu.bench.progress import within
from pyblasgpu.dispatch.overrides import KernelChoice
from pyblasgpu.errors import PyblasgpuError, lacking
from pyblasgpu.frontend.backend_status import backend_status
from pyblasgpu.frontend.calls.call import routine
from pyblasgpu.gpu.device import Device, current, named
from pyblasgpu.options import parse_count, parse_device, parse_dtypes, parse_seconds
from pyblasgpu.terminal import console, guarded
from pyblasgpu.testing.cublas import load as load_cublas
from pyblasgpu.tuning.measure import Timer, Workload, flops
from pyblasgpu.tuning.worker_bench import STREAM, vendor
from pyblasgpu.types import DTYPES, Dtype

from .kernels import choice_of, compiled, described

SCHEMA = 1
WIDTH = 140  # columns of a table that goes into a file or a pipe
FLOOR = 0.8  # of cuBLAS's rate: below it, it is a cliff
SMALL, LARGE, STEP = 600, 8192, 97
LAYOUTS = ("nn", "nt", "tn", "tt")
STORAGES = ("as they come", "odd leading stride", "misaligned")
REPEATS = 3
LONG = 5e10  # real operations: of what takes so long, one pass after the untimed calls will do
WORST = 12  # cases in the table


class Case(NamedTuple):
    """One product: n, how A and B lie, and which of `STORAGES` all matrices have."""

    n: int
    layout: str
    storage: str

    @property
    def pad(self) -> int:
        """Elements between two columns: so many that a misaligned matrix is that for its address alone."""
        plain, odd, _ = STORAGES
        return {plain: 0, odd: 1 + self.n % 2}.get(self.storage, -self.n % 4)

    @property
    def shift(self) -> int:
        """Elements between an aligned address and the first."""
        return int(self.storage == STORAGES[-1])


def sizes(every: int = 1) -> list[int]:
    """Each `every`-th n, the largest first, then always those in the middle of what is missing."""
    falling = [*range(1, SMALL + 1), *range(SMALL + STEP, LARGE + 1, STEP)][::-every]
    digits = len(falling).bit_length()
    return [falling[i] for i in sorted(range(len(falling)), key=lambda i: f"{i:0{digits}b}"[::-1])]


def cases(number: int, n: int) -> Iterator[Case]:
    """What is timed at the `number`-th size: all layouts, and one of them in the awkward storages."""
    plain, *awkward = STORAGES
    yield from (Case(n, layout, plain) for layout in LAYOUTS)
    yield from (Case(n, LAYOUTS[number % len(LAYOUTS)], storage) for storage in awkward)


def choice(case: Case, dtype: Dtype, device: Device) -> KernelChoice:
    """What a call would run."""
    return choice_of(dtype, case.layout, (case.n,) * 3, device, case.pad, case.shift)


def compile_kernels(dtype: Dtype, device: Device, every: int) -> None:
    """Put the kernels of all cases into the store of cubins."""
    every_case = (case for number, n in enumerate(sizes(every)) for case in cases(number, n))
    configs = dict.fromkeys(choice(case, dtype, device).config for case in every_case)
    for config, report in compiled(configs, device, f"compiling {dtype.letter}").items():
        if isinstance(report, str):
            raise PyblasgpuError(f"{config} does not compile: {report}")


class Machine:
    """Both libraries on the device here, and operands for them."""

    def __init__(self, device: Device):
        self.device = device
        self.timer, self._load = Timer(device, STREAM), Workload(device.ordinal, STREAM)
        self._ours, self._theirs = routine("gemm"), vendor("gemm")

    def measure(self, dtype: Dtype, case: Case) -> tuple[float, float]:
        """Seconds of ours and of cuBLAS's."""
        ours, theirs = (self._seconds(run, dtype, case) for run in (self._ours, self._theirs))
        return ours, theirs

    def _seconds(self, run: Callable, dtype: Dtype, case: Case) -> float:
        extents = (case.n,) * 3
        work = self._load.products(run, dtype, case.layout, extents, case.pad, case.shift)
        return self.timer(work, repeats=1 if flops("gemm", dtype, extents) > LONG else REPEATS)

    def close(self) -> None:
        """Give the memory back; raises `SpoiledMemory` where something was written beside an operand."""
        self._load.check()
        self._load.release()


def sweep(dtype: Dtype, every: int, budget: float, measure: Callable) -> list[dict[str, Any]]:
    """Series by layout and storage of what ``measure(dtype, case)`` says, within `budget` seconds."""
    series: dict[tuple[str, str], dict[str, Any]] = {}
    for number, n in enumerate(within(budget, sizes(every), f"{dtype.letter}gemm", "sizes")):
        for case in cases(number, n):
            ours, theirs = measure(dtype, case)
            key = case.layout, case.storage
            points = series.setdefault(
                key,
                {
                    "dtype": dtype.letter,
                    "layout": case.layout,
                    "storage": case.storage,
                    "n": [],
                    "microseconds": [],
                    "ratio": [],
                },
            )
            points["n"].append(n)
            points["microseconds"].append(round(ours * 1e6, 2))
            points["ratio"].append(round(theirs / ours, 3))
    return list(series.values())


def show(series: Sequence[dict[str, Any]], console: Console, about: Callable[[str, Case], str]) -> None:
    """Print the mean and the least ratio of each dtype and storage, then the worst cases.

    ``about(dtype, case)`` names the kernel that ran.
    """
    table = Table(
        "dtype", "matrices", "products", "geometric mean", "least", f"below {FLOOR}", title="ours / cuBLAS"
    )
    groups: dict[tuple[str, str], list[float]] = {}
    for each in series:
        groups.setdefault((each["dtype"], each["storage"]), []).extend(each["ratio"])
    for (dtype, storage), ratios in groups.items():
        below = sum(ratio < FLOOR for ratio in ratios)
        mean = geometric_mean(ratios)
        table.add_row(dtype, storage, str(len(ratios)), f"{mean:.3f}", f"{min(ratios):.3f}", str(below))
    console.print(table)
    cases_by_ratio = (
        (ratio, each["dtype"], Case(n, each["layout"], each["storage"]))
        for each in series
        for ratio, n in zip(each["ratio"], each["n"], strict=True)
    )
    for ratio, dtype, case in sorted(cases_by_ratio)[:WORST]:
        what = f"{dtype}gemm {case.layout} {case.n}, {case.storage}"
        console.print(f"{ratio:.3f} {what}: {about(dtype, case)}", highlight=False)


def main(options: argparse.Namespace) -> None:
    """Run what `options` ask for."""
    device = named(options.compile_only) if options.compile_only else current()
    dtypes = [DTYPES[letter] for letter in options.dtype]
    for dtype in dtypes:
        compile_kernels(dtype, device, options.every)
    if options.compile_only:
        return
    cublas, here = load_cublas(), Machine(device)
    document: dict[str, Any] = {
        "schema": SCHEMA,
        **machine.describe(device, cublas),
        "floor": FLOOR,
        "every": options.every,
        "series": [],
    }
    out = options.out or RESULTS / slug(device.name) / f"{document['date'][:10]}-cliffs.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    for dtype in dtypes:
        document["series"] += sweep(dtype, options.every, options.budget, here.measure)
        out.write_text(
            json.dumps(document) + "\n"
        )  # after every dtype: a run that is cut short keeps what it has
    here.close()
    show(
        document["series"], console(WIDTH), lambda dtype, case: described(choice(case, DTYPES[dtype], device))
    )
    print(f"results in {out}", file=sys.stderr)
    try:
        from pyblasgpu.bench.plot import draw_ratios
    except ImportError as missing:
        print(f"no plot: {lacking(missing, 'plot')}", file=sys.stderr)
        return
    print(f"plot in {draw_ratios(document, out.with_suffix('.svg'))}", file=sys.stderr)


def _command() -> int:
    options = parser().parse_args()
    if not options.compile_only:
        backend_status("cuda")  # raises BackendUnavailable, with the reason
    main(options)
    return 0


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cliffs", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument(
        "--dtype", type=parse_dtypes, default=",".join(DTYPES), metavar="T,T,...", help="(%(default)s)"
    )
    parser.add_argument("--every", type=parse_count, default=1, metavar="K", help="each K-th size only")
    parser.add_argument(
        "--budget", type=parse_seconds, default=170.0, metavar="S", help="seconds a dtype (%(default)s)"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the results go as JSON (by device)")
    parser.add_argument(
        "--compile-only", type=parse_device, metavar="DEVICE", help="compile for a known device, time nothing"
    )
    return parser


if __name__ == "__main__":
    sys.exit(guarded(["benchmarks.cliffs"], _command))
