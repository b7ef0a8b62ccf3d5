"""What one call costs the host: ``gemm(out=)`` on 64 x 64 CuPy arrays, against CuPy and PyTorch.

Calls are queued without waiting, so that the time is the host's and not the kernel's. ``python -m
benchmarks.overhead [--out FILE]`` prints microseconds a call, the median of several rounds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import cupy

import pyblasgpu
from pyblasgpu.gpu.device import current

from . import machine

N, CALLS, ROUNDS = 64, 500, 9


def microseconds(call: Callable[[], object]) -> float:
    """Host microseconds of one `call`."""
    times = []
    for _ in range(ROUNDS + 1):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - start) / CALLS * 1e6)
    return median(times[1:])


def calls(dtype: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """The same product through each library that is there."""
    a, b, c = (cupy.random.standard_normal((N, N)).astype(dtype) for _ in range(3))
    yield "pyblasgpu.gemm", lambda: pyblasgpu.gemm(a, b, out=c)
    yield "cupy.matmul", lambda: cupy.matmul(a, b, out=c)
    try:
        import torch
    except ImportError:
        return
    x, y, z = (torch.as_tensor(array, device="cuda") for array in (a, b, c))
    yield "pyblasgpu.gemm (torch)", lambda: pyblasgpu.gemm(x, y, out=z)
    yield "torch.mm", lambda: torch.mm(x, y, out=z)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--out", type=Path, help="also write the results there as JSON")
    options = parser.parse_args()
    results = {
        f"{name} {dtype}": round(microseconds(call), 2)
        for dtype in ("float32", "float64")
        for name, call in calls(dtype)
    }
    for name, value in results.items():
        print(f"{name:32} {value:7.2f} us")
    if options.out:
        document = {**machine.describe(current(), None), "microseconds": results}
        options.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
