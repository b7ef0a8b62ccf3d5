"""Where products are slow against cuBLAS's of the same size: ours / cuBLAS over n, and a plot of it.

``python -m benchmarks.cliffs [--dtype s,d] [--every 4] [--budget 170] [--out FILE]`` times square products of
every n from 1 to 600 and then in steps of 97 up to 8192: all transpositions of matrices as they come. One of
them in turn is of matrices with an odd leading stride, and of such that begin one element behind an aligned
address. The kernels are compiled first, many at a time; ``--compile-only h200`` does nothing else, and needs
no GPU.

Times are the device's share of a call (docs/measuring.md, "In the tuner"), the same for both libraries. Sizes
are taken from coarse to fine, so that a budget that ends leaves gaps of one width, and no end is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from statistics import geometric_mean
from typing import Any, NamedTuple

from benchmarks.kernels import COMPILE_ONLY, choice_of, compiled, described, device_of, kept_facts
from benchmarks.study import Namespace, Option, Row, Rows, Study, main, table
from pyblasgpu.bench.progress import within
from pyblasgpu.dispatch.overrides import KernelChoice
from pyblasgpu.errors import PyblasgpuError
from pyblasgpu.frontend.calls.call import routine
from pyblasgpu.gpu.device import Device
from pyblasgpu.options import parse_count, parse_seconds
from pyblasgpu.testing.cublas import load as load_cublas
from pyblasgpu.tuning.measure import Timer, Workload, flops
from pyblasgpu.tuning.worker_bench import STREAM, vendor
from pyblasgpu.types import DTYPES, Dtype

FLOOR = 0.8  # of cuBLAS's rate: below it, it is a cliff
SMALL, LARGE, STEP = 600, 8192, 97
LAYOUTS = ("nn", "nt", "tn", "tt")
STORAGES = ("as they come", "odd leading stride", "misaligned")
REPEATS = 3
LONG = 5e10  # real operations: of what takes so long, one pass after the untimed calls will do
WORST = 12  # cases in the table


class Case(NamedTuple):
    """One product: n, the layout of A and B, and which of `STORAGES` all matrices have."""

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
        """Give the memory back; raises `SpoiledMemory` where something was written next to an operand."""
        self._load.check()
        self._load.release()


def rows(options: Namespace) -> Rows:
    """A row for each dtype and case, from coarse to fine sizes."""
    device, dtypes = device_of(options), [DTYPES[letter] for letter in options.letters]
    for dtype in dtypes:
        compile_kernels(dtype, device, options.every)
    if options.compile_only:
        return
    here = Machine(device)
    for dtype in dtypes:
        for number, n in enumerate(
            within(options.budget, sizes(options.every), f"{dtype.letter}gemm", "sizes")
        ):
            for case in cases(number, n):
                ours, theirs = here.measure(dtype, case)
                row = {"dtype": dtype.letter, "layout": case.layout, "storage": case.storage, "n": n}
                yield row | {"microseconds": round(ours * 1e6, 2), "ratio": round(theirs / ours, 3)}
    here.close()


def document(facts: Row, lists: dict[str, list[Row]]) -> Row:
    """Series over n by dtype, layout and storage."""
    series: dict[tuple[str, ...], Row] = {}
    for row in lists["series"]:
        case = {name: row[name] for name in ("dtype", "layout", "storage")}
        each = series.setdefault(tuple(case.values()), case | {"n": [], "microseconds": [], "ratio": []})
        for name in ("n", "microseconds", "ratio"):
            each[name].append(row[name])
    return {**facts, "series": list(series.values())}


def summary(rows: list[Row], options: Namespace) -> Iterator[Any]:
    """The mean and the least ratio of each dtype and storage, the worst cases with their kernels."""
    lines = []
    by_storage = sorted(
        rows, key=lambda row: (options.letters.index(row["dtype"]), STORAGES.index(row["storage"]))
    )
    for names, group in groupby(by_storage, lambda row: (row["dtype"], row["storage"])):
        ratios = [row["ratio"] for row in group]
        below = sum(ratio < FLOOR for ratio in ratios)
        lines.append((*names, len(ratios), f"{geometric_mean(ratios):.3f}", f"{min(ratios):.3f}", below))
    heads = f"dtype | matrices | products | geometric mean | least | below {FLOOR}"
    yield table("ours / cuBLAS", heads, lines)
    for row in sorted(rows, key=lambda row: row["ratio"])[:WORST]:
        case = Case(row["n"], row["layout"], row["storage"])
        kernel = described(choice(case, DTYPES[row["dtype"]], device_of(options)))
        yield f"{row['ratio']:.3f} {row['dtype']}gemm {case.layout} {case.n}, {case.storage}: {kernel}"


def facts(options: Namespace) -> Row:
    cublas = None if options.compile_only else load_cublas()
    return kept_facts(options, cublas) | {"floor": FLOOR, "every": options.every}


STUDY = Study(
    "cliffs",
    __doc__,
    rows,
    {
        "letters": "sdcz",
        "every": Option(1, kind=parse_count, help="each of these sizes only"),
        "budget": Option(170.0, kind=parse_seconds, help="seconds a dtype (%(default)s)"),
        "compile_only": COMPILE_ONLY,
    },
    facts,
    key="series",
    document=document,
    summary=summary,
    seconds=None,
    is_kept=True,
    is_plotted=True,
    prints_rows=False,
)

if __name__ == "__main__":
    main(STUDY)
