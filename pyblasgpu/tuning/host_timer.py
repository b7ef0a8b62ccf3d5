"""Seconds of products of host matrices, from the call to its result."""

from __future__ import annotations

import time
from statistics import median

import numpy as np

import pyblasgpu

from ..testing.reference import reals
from ..types import Dtype

__all__ = ["host_seconds"]

REPEATS = 7


def host_seconds(dtype: Dtype, extents: tuple[int, ...]) -> float:
    """Return the median of a call of `gemm` on NumPy arrays, after one that is not timed."""
    m, n, k = extents
    rng = np.random.default_rng(2011)
    a, b, out = reals(rng, (m, k), dtype), reals(rng, (k, n), dtype), np.empty((m, n), dtype.name)
    times = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        pyblasgpu.gemm(a, b, out=out)
        times.append(time.perf_counter() - start)
    return median(times[1:])
