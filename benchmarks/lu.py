"""LU factors beside cuSOLVER, called directly: squares, panels, other Configs, and where the time goes.

    python benchmarks/lu.py --out DIR [--seconds 120] [--letters sd] [--kinds squares,solves,batches,...]

Medians by CUDA events. A is brought anew before each run and the L2 cache is emptied; neither is timed.
The device is kept busy meanwhile, so that the host's time does not count; batches tell it beside.
Files are written after each case.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cupy
from cupy.cuda import device as cupy_device
from cupy_backends.cuda.libs import cublas, cusolver

from pyblasgpu import lapack
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu import launch, workspace
from pyblasgpu.kernels.factor.getrf_panel import GetrfPanel
from pyblasgpu.operands import Operand
from pyblasgpu.routines import getrf
from pyblasgpu.types import DTYPES

SIZES = (512, 1024, 2048, 4096, 8192, 16384)
PANEL_ROWS = (64, 256, 512, 1024, 2048, 4096, 8192, 16384)
PANEL_COLS = 64
BATCH_ORDERS, MOST_BATCH = (4, 8, 16, 32, 64, 128, 256), 20000
CONFIG_ORDERS, KERNEL_ORDERS = (512, 1024, 2048, 4096, 8192), (512, 1024, 4096, 16384)
BUSY = 24  # times that the L2 cache is emptied before a run
FLUSH = 128 << 20  # bytes that are written for it
#: ROWS, COLS, DIRECT and CLUSTER of panels
CONFIGS = {
    "d": ((256, 32, 16, 0), (256, 32, 16, 16), (128, 32, 16, 16)),
    "s": ((256, 32, 16, 0), (256, 32, 16, 16), (128, 32, 16, 16)),
    "c": ((256, 32, 0, 0), (128, 32, 16, 16)),
    "z": ((256, 16, 0, 0), (128, 16, 16, 16)),
}


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
        for _ in range(BUSY):
            prepare()
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        run()
        stop.record()
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop) / 1e3)
    return statistics.median(times[1:])


def host_seconds(run: Callable[[], Any]) -> float:
    """The median of what the host takes to enqueue `run`."""
    times = []
    for _ in range(9):
        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def random(letter: str, m: int, n: int) -> cupy.ndarray:
    dtype, rng = DTYPES[letter], cupy.random.RandomState(1)
    a = rng.uniform(-1, 1, (m, n)).astype(dtype.name)
    if dtype.is_complex:
        a += 1j * rng.uniform(-1, 1, (m, n)).astype(dtype.real)
    return cupy.asfortranarray(a)


def flops(letter: str, m: int, n: int) -> float:
    k = min(m, n)
    count = m * n * k - (m + n) * k * k / 2 + k**3 / 3
    return count * (8 if letter in "cz" else 2)


def measure(letter: str, m: int, n: int, flush: cupy.ndarray, vendor: bool = True) -> dict[str, Any]:
    """One case: seconds of both, and the ratio."""
    start = random(letter, m, n)
    a = cupy.empty_like(start)
    ours = getattr(lapack, f"{letter}getrf")

    def prepare() -> None:
        a[...] = start
        flush.fill(0)

    repeats = 3 if m * n > 5000**2 else 9
    mine = seconds(lambda: ours(a, overwrite_a=1), prepare, repeats)
    theirs = seconds(Vendor(letter, a), prepare, repeats) if vendor else float("nan")
    rate = flops(letter, m, n) / 1e12
    return {
        "dtype": letter,
        "m": m,
        "n": n,
        "seconds": mine,
        "cusolver": theirs,
        "ratio": theirs / mine,
        "tflops": rate / mine,
        "cusolver_tflops": rate / theirs,
        "us_per_column": mine / min(m, n) * 1e6,
    }


def squares(letters: str, flush: cupy.ndarray) -> Iterator[dict[str, Any]]:
    """Squares and panels beside cuSOLVER."""
    return (measure(*case, flush) for case in cases(letters))


def solves(letters: str, flush: cupy.ndarray) -> Iterator[dict[str, Any]]:
    """getrs beside cuSOLVER's, and getri beside its getrs of the identity."""
    for letter in letters:
        for n in SIZES:
            a = random(letter, n, n)
            lu, piv, _ = getattr(lapack, f"{letter}getrf")(a)
            for columns in (1, 32, 512, n):
                yield solve(letter, lu, piv, columns, flush)
            yield inverse(letter, lu, piv, flush)


def solve(letter: str, lu: cupy.ndarray, piv: Any, columns: int, flush: cupy.ndarray) -> dict[str, Any]:
    n = lu.shape[0]
    start, b = random(letter, n, columns), random(letter, n, columns)
    pivots, info = cupy.asarray(piv).astype(cupy.int32) + 1, cupy.empty(1, cupy.int32)
    run, handle = getattr(cusolver, f"{letter}getrs"), cupy_device.get_cusolver_handle()

    def prepare() -> None:
        b[...] = start
        flush.fill(0)

    def vendor() -> None:
        pointers = lu.data.ptr, n, pivots.data.ptr, b.data.ptr, n, info.data.ptr
        run(handle, 0, n, columns, *pointers)

    ours = getattr(lapack, f"{letter}getrs")
    repeats = 3 if n > 5000 else 9
    mine = seconds(lambda: ours(lu, piv, b, overwrite_b=1), prepare, repeats)
    theirs = seconds(vendor, prepare, repeats)
    return {
        "routine": "getrs",
        "dtype": letter,
        "n": n,
        "columns": columns,
        "seconds": mine,
        "cusolver": theirs,
        "ratio": theirs / mine,
    }


def inverse(letter: str, lu: cupy.ndarray, piv: Any, flush: cupy.ndarray) -> dict[str, Any]:
    n = lu.shape[0]
    a, b = lu.copy(order="F"), cupy.empty_like(lu)
    pivots, info = cupy.asarray(piv).astype(cupy.int32) + 1, cupy.empty(1, cupy.int32)
    run, handle = getattr(cusolver, f"{letter}getrs"), cupy_device.get_cusolver_handle()

    def prepare() -> None:
        a[...] = lu
        flush.fill(0)

    def vendor() -> None:
        b.fill(0)
        cupy.fill_diagonal(b, 1)
        run(handle, 0, n, n, lu.data.ptr, n, pivots.data.ptr, b.data.ptr, n, info.data.ptr)

    ours = getattr(lapack, f"{letter}getri")
    repeats = 3 if n > 5000 else 9
    mine = seconds(lambda: ours(a, piv, overwrite_lu=1), prepare, repeats)
    theirs = seconds(vendor, prepare, repeats)
    return {
        "routine": "getri",
        "dtype": letter,
        "n": n,
        "columns": n,
        "seconds": mine,
        "cusolver": theirs,
        "ratio": theirs / mine,
    }


def batches(letters: str, flush: cupy.ndarray) -> Iterator[dict[str, Any]]:
    """Factors and solutions of batches beside cuBLAS's getrfBatched and getrsBatched."""
    for letter in letters:
        for n in BATCH_ORDERS:
            case = Batch(letter, n, min(max((1 << 22) // n**2, 64), MOST_BATCH), flush)
            yield case.factors()
            for columns in (1, 4):
                yield case.solutions(columns)


class Batch:
    """A batch of matrices of one order, ours and cuBLAS's."""

    def __init__(self, letter: str, n: int, count: int, flush: cupy.ndarray):
        self.letter, self.n, self.count, self.flush = letter, n, count, flush
        self.start = random(letter, n, n * count).T.reshape(count, n, n)
        self.a = self.start.copy()
        self.view = self.a.swapaxes(1, 2)
        self.piv, self.info = cupy.empty((count, n), cupy.int32), cupy.empty(count, cupy.int32)
        self.handle = cupy_device.get_cublas_handle()

    def addresses(self, stack: cupy.ndarray) -> cupy.ndarray:
        """Pointers to its matrices."""
        return stack.data.ptr + cupy.arange(self.count, dtype=cupy.uint64) * stack[0].nbytes

    def prepare(self) -> None:
        self.a[...] = self.start
        self.flush.fill(0)

    def line(self, routine: str, columns: int, ours: Callable, theirs: Callable) -> dict[str, Any]:
        """Seconds of both, and of our host."""
        prepare = self.prepare if routine == "getrf" else lambda: self.flush.fill(0)
        mine, host = seconds(ours, prepare, 5), host_seconds(ours)
        try:
            vendor = seconds(theirs, prepare, 5)
        except Exception:  # CuPy binds it for some types alone
            vendor = float("nan")
        case = {"dtype": self.letter, "n": self.n, "count": self.count, "columns": columns}
        times = {"seconds": mine, "host": host, "cublas": vendor, "ratio": vendor / mine}
        return {"routine": routine, **case, **times}

    def factors(self) -> dict[str, Any]:
        run, pointers = getattr(cublas, f"{self.letter}getrfBatched"), self.addresses(self.a)
        numbers = pointers.data.ptr, self.n, self.piv.data.ptr, self.info.data.ptr, self.count
        ours = getattr(lapack, f"{self.letter}getrf")
        return self.line(
            "getrf", 0, lambda: ours(self.view, overwrite_a=1), lambda: run(self.handle, self.n, *numbers)
        )

    def solutions(self, columns: int) -> dict[str, Any]:
        """With the factors that are there."""
        self.prepare()
        pivots = getattr(lapack, f"{self.letter}getrf")(self.view, overwrite_a=1)[1]
        b = cupy.ones((self.count, columns, self.n), self.a.dtype)
        ours = getattr(lapack, f"{self.letter}getrs")
        answer, matrices, rights = ctypes.c_int(), self.addresses(self.a), self.addresses(b)
        theirs = cupy.asarray(pivots) + 1
        numbers = matrices.data.ptr, self.n, theirs.data.ptr, rights.data.ptr, self.n
        right = b.swapaxes(1, 2)

        def vendor() -> None:
            run = getattr(cublas, f"{self.letter}getrsBatched")
            run(self.handle, 0, self.n, columns, *numbers, ctypes.addressof(answer), self.count)

        return self.line("getrs", columns, lambda: ours(self.view, pivots, right, overwrite_b=1), vendor)


def configs(letters: str, flush: cupy.ndarray) -> Iterator[dict[str, Any]]:
    """The same by other Configs of the panel."""
    for letter in letters:
        for values in CONFIGS[letter]:
            with override("getrf_panel", GetrfPanel(letter, *values)):
                for n in CONFIG_ORDERS:
                    config = dict(zip(("rows", "cols", "direct", "cluster"), values, strict=True))
                    yield {**config, **measure(letter, n, n, flush, vendor=False)}


def kernels(letters: str, flush: cupy.ndarray) -> Iterator[dict[str, Any]]:
    """Launches and seconds of each kernel of a square."""
    for letter in letters:
        for n in KERNEL_ORDERS if letter in "sd" else KERNEL_ORDERS[2:3]:
            yield {"dtype": letter, "n": n, **launch_times(letter, n)}


def launch_times(letter: str, n: int) -> dict[str, Any]:
    """What the launches of a square take, one after the other, summed by kernel."""
    dtype, a = DTYPES[letter], random(letter, n, n)
    piv, info = cupy.empty(n, dtype.name), cupy.empty(1, dtype.name)
    launches = getrf.launch_list(
        Operand(piv.data.ptr, n, 1, 1, n, dtype),
        Operand(info.data.ptr, 1, 1, 1, 1, dtype),
        Operand(a.data.ptr, n, n, 1, n, dtype),
    )
    assert launches is not None
    launches.run((piv.data.ptr, info.data.ptr, a.data.ptr), 1.0, stream=0)
    a[...] = random(letter, n, n)
    taken = workspace.take(launches.workspace_bytes, 0, 0, flags=True)
    bases = piv.data.ptr, info.data.ptr, a.data.ptr, 0, taken.address  # the slots of a launch list
    events = []
    for entry in launches.entries:
        pointers = [bases[slot] + distance for slot, distance in entry.addresses]
        reals = tuple(part for x in entry.scalars for part in (1.0 if isinstance(x, str) else x, 0.0))
        events.append((cupy.cuda.Event(), cupy.cuda.Event()))
        events[-1][0].record()
        launch.kernel(entry.source, 0).launch(entry.grid, 0, pointers, entry.integers, reals)
        events[-1][1].record()
    events[-1][1].synchronize()
    workspace.give(taken)
    sums: dict[str, Any] = {}
    for entry, (start, stop) in zip(launches.entries, events, strict=True):
        count, total = sums.get(entry.source.name, (0, 0.0))
        sums[entry.source.name] = count + 1, total + cupy.cuda.get_elapsed_time(start, stop) / 1e3
    return sums


KINDS = {f.__name__: f for f in (squares, solves, batches, configs, kernels)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--letters", default="dscz")
    parser.add_argument("--kinds", default="squares,solves,batches,kernels,configs")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    flush, begin = cupy.empty(FLUSH, cupy.uint8), time.monotonic()
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    for kind in options.kinds.split(","):
        results = []
        for result in KINDS[kind](options.letters, flush):
            results.append(result)
            print({key: round(x, 7) if isinstance(x, float) else x for key, x in result.items()}, flush=True)
            text = json.dumps({"device": device, kind: results}, indent=1)
            (options.out / f"lu_{kind}.json").write_text(text)
            if time.monotonic() - begin > options.seconds:
                break


if __name__ == "__main__":
    main()
