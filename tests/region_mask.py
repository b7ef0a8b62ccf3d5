"""Which elements of a matrix are of a region, by NumPy: what the tests hold the kernels to."""

from __future__ import annotations

import numpy as np

from pyblasgpu.types import Region


def mask(region: Region, rows: int, cols: int) -> np.ndarray:
    """True where an element is of `region`."""
    if region is Region.ALL:
        return np.ones((rows, cols), dtype=bool)
    if region.is_upper:
        return np.tri(cols, rows, dtype=bool).T
    return np.tri(rows, cols, k=-1 if region.strict else 0, dtype=bool)
