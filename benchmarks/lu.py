"""LU factors beside cuSOLVER, called directly: squares, panels, and what a column of a panel takes.

    python benchmarks/lu.py --out DIR [--seconds 120] [--letters sd]

Medians by CUDA events. A is brought anew before each run and the L2 cache is emptied; neither is timed.
The file is written after each case.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cupy
from cupy.cuda import device as cupy_device
from cupy_backends.cuda.libs import cusolver

from pyblasgpu import lapack
from pyblasgpu.types import DTYPES

SIZES = (512, 1024, 2048, 4096, 8192, 16384)
PANEL_ROWS = (64, 256, 512, 1024, 2048, 4096, 8192, 16384)
PANEL_COLS = 64


def cases(letters: str) -> Iterator[tuple[str, int, int]]:
    """Letter, rows and columns."""
    for letter in letters:
        yield from ((letter, n, n) for n in SIZES if letter in "sd" or 1024 <= n <= 8192)
        if letter in "sd":
            yield from ((letter, m, PANEL_COLS) for m in PANEL_ROWS)


class Vendor:
    """cuSOLVER's getrf, with workspace of its own."""

    def __init__(self, letter: str, a: cupy.ndarray):
        self.handle, self.a = cupy_device.get_cusolver_handle(), a
        m, n = a.shape
        self.run = getattr(cusolver, f"{letter}getrf")
        size = getattr(cusolver, f"{letter}getrf_bufferSize")(self.handle, m, n, a.data.ptr, m)
        self.work, self.piv = cupy.empty(size, a.dtype), cupy.empty(min(m, n), cupy.int32)
        self.info = cupy.empty(1, cupy.int32)

    def __call__(self) -> None:
        m, n = self.a.shape
        pointers = self.work.data.ptr, self.piv.data.ptr, self.info.data.ptr
        self.run(self.handle, m, n, self.a.data.ptr, m, *pointers)


def seconds(run: Callable[[], Any], prepare: Callable[[], Any], repeats: int) -> float:
    """The median of what `run` takes on the device, after `prepare`."""
    times = []
    for _ in range(repeats + 1):
        prepare()
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        run()
        stop.record()
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop) / 1e3)
    return statistics.median(times[1:])


def flops(letter: str, m: int, n: int) -> float:
    k = min(m, n)
    count = m * n * k - (m + n) * k * k / 2 + k**3 / 3
    return count * (8 if letter in "cz" else 2)


def measure(letter: str, m: int, n: int, flush: cupy.ndarray) -> dict[str, Any]:
    """One case: seconds of both, and the ratio."""
    dtype, rng = DTYPES[letter], cupy.random.RandomState(1)
    start = rng.uniform(-1, 1, (m, n)).astype(dtype.name)
    if dtype.is_complex:
        start += 1j * rng.uniform(-1, 1, (m, n)).astype(dtype.real)
    start, a = cupy.asfortranarray(start), cupy.empty((m, n), dtype.name, order="F")
    ours = getattr(lapack, f"{letter}getrf")

    def prepare() -> None:
        a[...] = start
        flush.fill(0)

    repeats = 3 if m * n > 5000**2 else 9
    mine = seconds(lambda: ours(a, overwrite_a=1), prepare, repeats)
    theirs = seconds(Vendor(letter, a), prepare, repeats)
    rate = flops(letter, m, n) / 1e12
    return {
        "dtype": letter, "m": m, "n": n, "seconds": mine, "cusolver": theirs, "ratio": theirs / mine,
        "tflops": rate / mine, "cusolver_tflops": rate / theirs, "us_per_column": mine / min(m, n) * 1e6,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--letters", default="dscz")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    flush, begin, results = cupy.empty(128 << 20, cupy.uint8), time.monotonic(), []
    for letter, m, n in cases(options.letters):
        if time.monotonic() - begin > options.seconds:
            break
        results.append(measure(letter, m, n, flush))
        print({key: round(x, 7) if isinstance(x, float) else x for key, x in results[-1].items()}, flush=True)
        name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        text = json.dumps({"device": name, "getrf": results}, indent=1)
        (options.out / "lu.json").write_text(text)


if __name__ == "__main__":
    main()
