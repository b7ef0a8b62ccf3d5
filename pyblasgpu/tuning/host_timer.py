"""Seconds of products of host matrices, from the call to its result."""

from __future__ import annotations

import numpy as np

import pyblasgpu

from ..testing.clocks import median_seconds
from ..testing.reference import reals
from ..types import Dtype

__all__ = ["host_seconds"]

REPEATS = 7


def host_seconds(dtype: Dtype, extents: tuple[int, ...]) -> float:
    """Return the median of a call of `gemm` on NumPy arrays, after one that is not timed."""
    m, n, k = extents
    rng = np.random.default_rng(2011)
    a, b, out = reals(rng, (m, k), dtype), reals(rng, (k, n), dtype), np.empty((m, n), dtype.name)
    return median_seconds(lambda: pyblasgpu.gemm(a, b, out=out), repeats=REPEATS)
