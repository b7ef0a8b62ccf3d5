"""Level 1 on contiguous vectors: ours, cuBLAS's, and a copy by the driver.

``python -m benchmarks.level1 [--dtypes sdcz] [--sizes N ...] [--out DIR]``. Each time is the device's: calls
are queued behind memsets that take longer than the host, on slices that together are larger than the L2 cache
where there are enough of them. Printed are microseconds, the median of several rounds.
``--configs`` times other Configs instead.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import product
from math import ceil, exp, log
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import pyblasgpu
from pyblasgpu.bench import machine
from pyblasgpu.bench.command import require_device
from pyblasgpu.database import FIXED
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu.device import current
from pyblasgpu.kernels.compile_ahead import ensure_compiled
from pyblasgpu.kernels.level1.map import Map
from pyblasgpu.kernels.level1.reduce import Reduce
from pyblasgpu.terminal import guarded
from pyblasgpu.testing.cublas_level1 import load_vectors
from pyblasgpu.types import DTYPES, Dtype

try:
    import cupy
except ImportError:  # `require_device` says so
    cupy = None

SIZES = (256, 4096, 65_536, 1 << 20, 1 << 24, 100_000_000)
MOST_SETS, ROUNDS = 128, 5
DELAY, DELAY_US = (
    4 << 30,
    900,
)  # bytes of a memset before what is timed, and microseconds that it takes at least
MARGIN, MOST_FILLS = 2.0, 100  # times as long as the host takes, the memsets last; how many there are at most
#: Vectors that are read and written.
MOVED = {"axpy": 3, "scal": 2, "copy": 2, "swap": 4, "rot": 4, "dot": 2, "nrm2": 1, "asum": 1, "iamax": 1}
REDUCTIONS = ("dot", "nrm2", "asum", "iamax")

Call = Callable[..., Any]


class Data:
    """Two large vectors of random numbers, of which slices are used in turn, and a place for results."""

    def __init__(self, dtype: Dtype, length: int):
        rng = np.random.default_rng(1)
        block = rng.standard_normal((1 << 20, dtype.reals_per_element)).astype(dtype.real)
        block = cupy.asarray(block.view(dtype.name)[:, 0])
        times = -(-length // block.size)
        self.x, self.y = cupy.tile(block, times), cupy.tile(block[::-1], times)
        self.results = {name: cupy.zeros((), kind) for name, kind in _result_types(dtype).items()}

    def sets(self, n: int) -> list[tuple[Any, Any]]:
        step = -(-n // 64) * 64
        l2 = cupy.cuda.Device().attributes["L2CacheSize"]
        enough = max(-(-2 * l2 // (n * self.x.itemsize)), 8)
        count = max(1, min(enough, self.x.size // step, MOST_SETS))
        return [(self.x[i * step : i * step + n], self.y[i * step : i * step + n]) for i in range(count)]


def _result_types(dtype: Dtype) -> dict[str, str]:
    return {"dot": dtype.name, "nrm2": dtype.real, "asum": dtype.real, "iamax": "int64"}


def ours(name: str, results: dict[str, Any]) -> Call:
    """``call(x, y)``."""
    calls: dict[str, Call] = {
        "axpy": lambda x, y: pyblasgpu.axpy(x, y, alpha=0.001, out=y),
        "scal": lambda x, y: pyblasgpu.scal(y, alpha=-1.0, out=y),
        "copy": lambda x, y: pyblasgpu.copy(x, out=y),
        "swap": lambda x, y: pyblasgpu.swap(x, y),
        "rot": lambda x, y: pyblasgpu.rot(x, y, 0.6, 0.8, out=(x, y)),
        "dot": lambda x, y: pyblasgpu.dot(x, y, out=results["dot"]),
        "nrm2": lambda x, y: pyblasgpu.nrm2(x, out=results["nrm2"]),
        "asum": lambda x, y: pyblasgpu.asum(x, out=results["asum"]),
        "iamax": lambda x, y: pyblasgpu.iamax(x, out=results["iamax"]),
    }
    return calls[name]


def theirs(name: str, results: dict[str, Any]) -> Call:
    """The same by cuBLAS."""
    vectors, numbers = load_vectors()
    for handle in (vectors, numbers):
        handle.set_stream(cupy.cuda.get_current_stream().ptr)
    calls: dict[str, Call] = {
        "axpy": lambda x, y: vectors.axpy(0.001, x, y),
        "scal": lambda x, y: vectors.scal(-1.0, y),
        "copy": lambda x, y: vectors.copy(x, y),
        "swap": lambda x, y: vectors.swap(x, y),
        "rot": lambda x, y: vectors.rot(x, y, 0.6, 0.8),
        "dot": lambda x, y: numbers.dot(x, y, results["dot"]),
        "nrm2": lambda x, y: numbers.nrm2(x, results["nrm2"]),
        "asum": lambda x, y: numbers.asum(x, results["asum"]),
        "iamax": lambda x, y: numbers.iamax(x, results["iamax"]),
    }
    return calls[name]


def copied(x: Any, y: Any) -> None:
    """The driver's copy."""
    y.data.copy_from_device_async(x.data, x.nbytes, cupy.cuda.get_current_stream())


def microseconds(call: Call, sets: list[tuple[Any, Any]], delay: Any) -> tuple[float, float]:
    """Microseconds of one `call` on the device, and of the host."""
    times, host = [], [0.0]
    for _ in range(1 + ROUNDS):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        fills = 1 + ceil(MARGIN * host[-1] * len(sets) / DELAY_US)
        for _ in range(min(fills, MOST_FILLS)):
            delay.data.memset_async(0, delay.nbytes, cupy.cuda.get_current_stream())
        start.record()
        before = time.perf_counter()
        for x, y in sets:
            call(x, y)
        host.append((time.perf_counter() - before) * 1e6 / len(sets))
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, end) * 1e3 / len(sets))
    return median(times[1:]), median(host[2:])


def rows(letters: str, names: list[str], sizes: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """A row of results for each operation, dtype and size."""
    delay = cupy.empty(DELAY, "u1")
    for letter in letters:
        dtype = DTYPES[letter]
        data = Data(dtype, max(sizes))
        for n in sizes:
            sets = data.sets(n)
            driver, _ = microseconds(copied, sets, delay)
            for name in names:
                ours_us, ours_host = microseconds(ours(name, data.results), sets, delay)
                cublas_us, cublas_host = microseconds(theirs(name, data.results), sets, delay)
                row: dict[str, Any] = {
                    "operation": name,
                    "dtype": letter,
                    "n": n,
                    "sets": len(sets),
                    "ours_us": ours_us,
                    "cublas_us": cublas_us,
                    "copy_us": driver,
                    "ours_host_us": ours_host,
                    "cublas_host_us": cublas_host,
                }
                bytes_moved = MOVED[name] * n * dtype.itemsize
                copy_rate = 2 * n * dtype.itemsize / driver
                row["speedup"] = row["cublas_us"] / row["ours_us"]
                row["of_copy_rate"] = bytes_moved / row["ours_us"] / copy_rate
                yield row
        del data, sets


def configs(letter: str) -> Iterator[tuple[str, Any]]:
    """Other Configs, with the operation by which each is timed."""
    for name, dim, unroll in product(("swap", "axpy"), (128, 256, 512), (1, 2)):
        yield name, Map(dtype=letter, DIM=dim, UNROLL=unroll)
    for name, unroll, alone, blocks in product(REDUCTIONS, (4, 8), (2, 4), (528, 1056)):
        yield name, Reduce(dtype=letter, UNROLL=unroll, ALONE=alone, BLOCKS=blocks)


def rows_of_configs(letters: str, names: list[str], sizes: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """A row for each Config and size."""
    delay = cupy.empty(DELAY, "u1")
    for letter in letters:
        data = Data(DTYPES[letter], max(sizes))
        for (name, config), n in product((c for c in configs(letter) if c[0] in names), sizes):
            with override(config.STEM, config):
                ours_us, _ = microseconds(ours(name, data.results), data.sets(n), delay)
            yield {"operation": name, "config": repr(config), "n": n, "ours_us": ours_us}
        del data


def sources(letters: str, names: list[str], variants: bool) -> list[Any]:
    """The kernels that will run."""
    families = FIXED["level1_map"], FIXED["level1_reduce"]
    if not variants:
        pairs = ((f, f.fixed_config(letter)) for f, letter in product(families, letters))
        return list(dict.fromkeys(each for family, config in pairs for each in family.plain_sources(config)))
    listed = (each for letter in letters for each in configs(letter) if each[0] in names)
    kernels = dict.fromkeys(FIXED[config.STEM].source(config, name) for name, config in listed)
    return list(kernels)


def summary(results: list[dict[str, Any]]) -> Iterator[str]:
    """The geometric mean over all sizes for each operation and dtype."""
    for name, letter in dict.fromkeys((row["operation"], row["dtype"]) for row in results):
        ratios = [r["speedup"] for r in results if (r["operation"], r["dtype"]) == (name, letter)]
        rate = [r["of_copy_rate"] for r in results if (r["operation"], r["dtype"]) == (name, letter)][-1]
        mean = exp(sum(map(log, ratios)) / len(ratios))
        yield f"{letter}{name:6} mean {mean:5.2f} least {min(ratios):5.2f} copy rate {rate:4.2f}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtypes", default="sdcz")
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--operations", nargs="*", default=list(MOVED), choices=MOVED)
    parser.add_argument("--configs", action="store_true")
    parser.add_argument("--out", type=Path, help="a folder")
    chosen = parser.parse_args(arguments)
    require_device()
    ensure_compiled(sources(chosen.dtypes, chosen.operations, chosen.configs), 0)
    measure = rows_of_configs if chosen.configs else rows
    results = []
    with cupy.cuda.Stream(non_blocking=True) if not chosen.configs else nullcontext():
        for row in measure(chosen.dtypes, chosen.operations, tuple(chosen.sizes)):
            results.append(row)
            shown = (f"{v:.3f}" if isinstance(v, float) else str(v) for v in row.values())
            print(" ".join(shown), flush=True)
    for line in () if chosen.configs else summary(results):
        print(line)
    if chosen.out:
        chosen.out.mkdir(parents=True, exist_ok=True)
        name = "level1-configs.json" if chosen.configs else "level1.json"
        document = {**machine.describe(current(0), None), "results": results}
        (chosen.out / name).write_text(json.dumps(document, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(guarded(["benchmarks.level1"], lambda: main(sys.argv[1:])))
