"""Level 1 on contiguous vectors: ours, cuBLAS's, and a copy by the driver.

``python -m benchmarks.level1 [--dtypes sdcz] [--sizes N ...] [--out DIR]``. Each time is the device's, as
calls are queued behind memsets that take longer than the host. Slices together are larger than the L2 cache
where there are enough of them. Printed are microseconds, the median of several rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import product
from math import ceil
from statistics import median
from typing import Any

import numpy as np

import pyblasgpu
from benchmarks.study import Namespace, Option, Row, Rows, Study, cupy, main, means
from pyblasgpu.database import FIXED
from pyblasgpu.kernels.compile_ahead import ensure_compiled
from pyblasgpu.testing.clocks import device_clock, median_seconds
from pyblasgpu.testing.cublas_level1 import load_vectors
from pyblasgpu.types import DTYPES, Dtype

MOST_SETS, ROUNDS = 128, 5
#: Bytes of a memset before what is timed, and microseconds that it takes at least.
DELAY, DELAY_US = 4 << 30, 900
MARGIN, MOST_FILLS = 2.0, 100  # times as long as the host takes, the memsets last; how many there are at most
#: Vectors that are read and written.
MOVED = {"axpy": 3, "scal": 2, "copy": 2, "swap": 4, "rot": 4, "dot": 2, "nrm2": 1, "asum": 1, "iamax": 1}

Call = Callable[..., Any]


class Data:
    """Two large vectors of random numbers, of which slices are used in turn, and a place for results."""

    def __init__(self, dtype: Dtype, length: int):
        rng = np.random.default_rng(1)
        block = rng.standard_normal((1 << 20, dtype.reals_per_element)).astype(dtype.real)
        block = cupy.asarray(block.view(dtype.name)[:, 0])
        times = -(-length // block.size)
        self.x, self.y = cupy.tile(block, times), cupy.tile(block[::-1], times)
        kinds = {"dot": dtype.name, "nrm2": dtype.real, "asum": dtype.real, "iamax": "int64"}
        self.results = {name: cupy.zeros((), kind) for name, kind in kinds.items()}

    def sets(self, n: int) -> list[tuple[Any, Any]]:
        step = -(-n // 64) * 64
        l2 = cupy.cuda.Device().attributes["L2CacheSize"]
        enough = max(-(-2 * l2 // (n * self.x.itemsize)), 8)
        count = max(1, min(enough, self.x.size // step, MOST_SETS))
        return [(self.x[i * step : i * step + n], self.y[i * step : i * step + n]) for i in range(count)]


def ours(name: str, results: dict[str, Any]) -> Call:
    """``call(x, y)``."""
    calls: dict[str, Call] = {
        "axpy": lambda x, y: pyblasgpu.axpy(x, y, alpha=0.001, out=y),
        "scal": lambda x, y: pyblasgpu.scal(y, alpha=-1.0, out=y),
        "copy": lambda x, y: pyblasgpu.copy(x, out=y),
        "swap": lambda x, y: pyblasgpu.swap(x, y),
        "rot": lambda x, y: pyblasgpu.rot(x, y, 0.6, 0.8, out=(x, y)),
        "dot": lambda x, y: pyblasgpu.dot(x, y, out=results["dot"]),
    }
    return calls.get(name) or (lambda x, y: getattr(pyblasgpu, name)(x, out=results[name]))


def theirs(name: str, results: dict[str, Any]) -> Call:
    """A call of cuBLAS for the same routine."""
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
    }
    return calls.get(name) or (lambda x, y: getattr(numbers, name)(x, results[name]))


def copied(x: Any, y: Any) -> None:
    """The driver's copy."""
    y.data.copy_from_device_async(x.data, x.nbytes, cupy.cuda.get_current_stream())


def microseconds(call: Call, sets: list[tuple[Any, Any]], delay: Any) -> tuple[float, float]:
    """Microseconds of one `call` on the device, and of the host."""
    host, stream = [0.0], cupy.cuda.get_current_stream()

    def prepare() -> None:
        fills = 1 + ceil(MARGIN * host[-1] * len(sets) / DELAY_US)
        for _ in range(min(fills, MOST_FILLS)):
            delay.data.memset_async(0, delay.nbytes, stream)

    def run() -> None:
        before = time.perf_counter()
        for x, y in sets:
            call(x, y)
        host.append((time.perf_counter() - before) * 1e6 / len(sets))

    taken = median_seconds(run, device_clock(stream.ptr), prepare, ROUNDS)
    return taken * 1e6 / len(sets), median(host[2:])


def rows(options: Namespace) -> Rows:
    """A row of results for each operation, dtype and size."""
    families = FIXED["level1_map"], FIXED["level1_reduce"]
    configs = [(family, family.fixed_config(letter)) for family, letter in product(families, options.letters)]
    sources = [source for family, config in configs for source in family.plain_sources(config)]
    ensure_compiled(list(dict.fromkeys(sources)), 0)
    delay = cupy.empty(DELAY, "u1")
    with cupy.cuda.Stream(non_blocking=True):
        for letter in options.letters:
            data = Data(DTYPES[letter], max(options.sizes))
            for n in options.sizes:
                yield from rows_of_size(letter, n, data, delay, options.routines)
            del data


def rows_of_size(letter: str, n: int, data: Data, delay: Any, names: tuple[str, ...]) -> Rows:
    sets = data.sets(n)
    driver, _ = microseconds(copied, sets, delay)
    for name in names:
        ours_us, ours_host = microseconds(ours(name, data.results), sets, delay)
        cublas_us, cublas_host = microseconds(theirs(name, data.results), sets, delay)
        case = {"operation": name, "dtype": letter, "n": n, "sets": len(sets)}
        times = {"ours_us": ours_us, "cublas_us": cublas_us, "copy_us": driver}
        host = {"ours_host_us": ours_host, "cublas_host_us": cublas_host}
        of_copy = MOVED[name] / ours_us / (2 / driver)
        yield {**case, **times, **host, "speedup": cublas_us / ours_us, "of_copy_rate": of_copy}


def summary(rows: list[Row], options: Namespace) -> Iterator[str]:
    return means(rows, "speedup", ("dtype", "operation"))


STUDY = Study(
    "level1",
    __doc__,
    rows,
    {
        "letters": "sdcz",
        "sizes": (256, 4096, 65_536, 1 << 20, 1 << 24, 100_000_000),
        "routines": Option(tuple(MOVED), MOVED),
    },
    summary=summary,
)

if __name__ == "__main__":
    main(STUDY)
