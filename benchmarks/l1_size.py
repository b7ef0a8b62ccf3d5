"""The size of a multiprocessor's L1 cache by measurement, as ATLAS finds it: cycles of a load by footprint.

    python -m benchmarks.l1_size [--sizes 16 32 64 ...] [--out FOLDER]

A thread follows a chain of loads, one in each line, in random order, after it went through all of them once.
While they fit into L1 each takes the same time. The largest footprint at which it does is the size. L1 shares
its memory with shared memory, of which the kernel has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.study import Namespace, Option, Row, Rows, Study, cupy, device_facts, main, table
from pyblasgpu.gpu.device import current

__all__ = ["STUDY", "chain", "detected"]

LINE = 128  # bytes
SLOWER = 1.25  # times the shortest load: what is not served by L1 alone
KERNEL = """extern "C" __global__ void chase(
    const unsigned *next, unsigned count, unsigned steps, unsigned *at, long long *cycles) {
    unsigned i = 0;
    for (unsigned k = 0; k < count; ++k) i = next[i];
    long long begun = clock64();
    for (unsigned k = 0; k < steps; ++k) i = next[i];
    cycles[0] = clock64() - begun;
    at[0] = i;
}"""


def chain(count: int) -> np.ndarray:
    """Where each of `count` lines leads, all of them in one circle."""
    order = np.random.default_rng(count).permutation(count).astype(np.uint32)
    words = np.zeros(count * (LINE // 4), np.uint32)
    words[order * (LINE // 4)] = np.roll(order, -1) * (LINE // 4)
    return words


def detected(cycles: Mapping[int, float]) -> int | None:
    """The largest footprint before the first at which loads take longer; None where there is none."""
    sizes = sorted(cycles)
    fast = min(cycles.values()) * SLOWER
    slow = next((number for number, size in enumerate(sizes) if cycles[size] > fast), None)
    return sizes[slow - 1] if slow else None


def rows(options: Namespace) -> Rows:
    """Cycles of a load by KiB."""
    chase = cupy.RawKernel(KERNEL, "chase")
    for kib in options.sizes:
        count = kib * 1024 // LINE
        following, at, cycles = cupy.asarray(chain(count)), cupy.zeros(1, "u4"), cupy.zeros(1, "i8")
        for _ in range(2):  # the first loads the kernel
            steps = max(4 * count, 1024)
            chase((1,), (1,), (following, np.uint32(count), np.uint32(steps), at, cycles))
        yield {"kib": kib, "cycles": round(float(cycles[0]) / steps, 2)}


def facts(options: Namespace) -> Row:
    return {**device_facts(options), "shared_kib": current().shared_per_sm // 1024}


def summary(rows: list[Row], options: Namespace) -> Iterator[Any]:
    yield table("cycles of a load", "KiB | cycles", ((row["kib"], row["cycles"]) for row in rows))
    found = detected({row["kib"]: row["cycles"] for row in rows})
    yield f"L1: {'not found' if found is None else f'{found} KiB'}"


STUDY = Study(
    "l1_size",
    __doc__,
    rows,
    {"sizes": Option((16, 32, 64, 96, 128, 160, 192, 208, 224, 240, 256, 288, 320, 384, 512))},
    facts,
    summary=summary,
)

if __name__ == "__main__":
    main(STUDY)
