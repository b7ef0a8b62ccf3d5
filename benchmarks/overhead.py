"""What one call costs the host: products of 64 x 64 CuPy arrays and PyTorch tensors, ours and theirs.

``gemm(out=)``, and a plan called with the arrays that it was made with and with others. Calls are queued
without waiting, so that the time is the host's and not the kernel's. ``python -m benchmarks.overhead [--out
FILE]`` prints microseconds a call, the median of several rounds, and the device's own pace where calls follow
each other for long: no host can pass it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pyblasgpu
from pyblasgpu.bench import machine
from pyblasgpu.bench.command import require_device
from pyblasgpu.gpu.device import current
from pyblasgpu.terminal import guarded

try:
    import cupy
except ImportError:  # `require_device` says so
    cupy = None

N, CALLS, ROUNDS, LONG = 64, 500, 9, 20_000

Call = Callable[[], object]


def microseconds(call: Call) -> float:
    """Host microseconds of one `call`; the queue of the device holds them all."""
    times = []
    for _ in range(ROUNDS + 1):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - start) / CALLS * 1e6)
    return median(times[1:])


def pace(call: Call) -> float:
    """Microseconds of one of many calls, waiting for the last: the slower one's of host and device."""
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    for _ in range(LONG):
        call()
    cupy.cuda.Device().synchronize()
    return (time.perf_counter() - start) / LONG * 1e6


def calls(dtype: str) -> Iterator[tuple[str, Call]]:
    """The same product through each library that is there."""
    matrices = [cupy.random.standard_normal((N, N)).astype(dtype) for _ in range(4)]
    yield from products("cupy", matrices, cupy.matmul)
    try:
        import torch
    except ImportError:
        return
    yield from products("torch", [torch.as_tensor(x, device="cuda") for x in matrices], torch.mm)


def products(library: str, matrices: list, theirs: Callable) -> Iterator[tuple[str, Call]]:
    """Ways to multiply two of `matrices` into a third, by us and by their library."""
    a, b, c, other = matrices
    plan = pyblasgpu.plan_gemm(a, b, c)
    yield f"pyblasgpu.gemm, {library}", lambda: pyblasgpu.gemm(a, b, out=c)
    yield f"pyblasgpu plan, {library}", lambda: plan(a, b, c)
    yield f"pyblasgpu plan, other arrays, {library}", lambda: plan(a, other, c)
    yield f"{library}.{theirs.__name__}", lambda: theirs(a, b, out=c)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--out", type=Path, help="also write the results there as JSON")
    options = parser.parse_args()
    require_device()
    results = {
        f"{name} {dtype}": {"host": round(microseconds(call), 2), "pace": round(pace(call), 2)}
        for dtype in ("float32", "float64")
        for name, call in calls(dtype)
    }
    print(f"{'microseconds a call':48} {'host':>7} {'pace':>7}")
    for name, value in results.items():
        print(f"{name:48} {value['host']:7.2f} {value['pace']:7.2f}")
    if options.out:
        document = {**machine.describe(current(), None), "microseconds": results}
        options.out.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(guarded(["benchmarks.overhead"], main))
