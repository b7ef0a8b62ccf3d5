"""Random matrices on the device, and medians of what runs on them with an empty L2 cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import cupy
import numpy as np

from pyblasgpu.testing.clocks import device_clock, medians_in_turn
from pyblasgpu.types import DTYPES

__all__ = ["cold_medians", "cold_seconds", "normal", "repeats_at", "uniform"]

BUSY = 24  # times that the L2 cache is emptied before a run: the host enqueues the run meanwhile
FLUSH = 128 << 20  # bytes that are written for it


def cold_seconds(
    run: Callable[[], Any],
    restore: Callable[[], Any] = lambda: None,
    repeats: int = 9,
    busy: int | None = None,
) -> float:
    """Median seconds of `run` on the device; ``restore()`` brings what it overwrites anew, untimed."""
    return cold_medians({"": run}, restore, repeats, busy)[""]


def cold_medians(
    runs: Mapping[str, Callable[[], Any]],
    restore: Callable[[], Any] = lambda: None,
    repeats: int = 9,
    busy: int | None = None,
) -> dict[str, float]:
    """Median seconds of each of `runs` as by `cold_seconds`, in turn."""
    flush = cupy.empty(FLUSH, cupy.uint8)

    def prepare() -> None:
        for _ in range(BUSY if busy is None else busy):
            restore()
            flush.fill(0)

    return medians_in_turn(runs, device_clock(), prepare, repeats)


def repeats_at(n: int) -> int:
    return 3 if n > 5000 else 9


def uniform(letter: str, m: int, n: int) -> cupy.ndarray:
    """A column-major matrix of numbers in (-1, 1)."""
    dtype, rng = DTYPES[letter], cupy.random.RandomState(1)
    a = rng.uniform(-1, 1, (m, n)).astype(dtype.name)
    if dtype.is_complex:
        a += 1j * rng.uniform(-1, 1, (m, n)).astype(dtype.real)
    return cupy.asfortranarray(a)


def normal(letter: str, rows: int, cols: int, seed: int) -> cupy.ndarray:
    """A column-major matrix of normal numbers."""
    dtype = DTYPES[letter]
    shape = cols, rows * dtype.reals_per_element
    made = cupy.random.RandomState(seed).standard_normal(shape, dtype=np.dtype(dtype.real).type)
    return made.view(dtype.name).T
