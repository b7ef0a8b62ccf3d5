"""Which elements of a matrix are of a part, by NumPy: what the tests hold the kernels to."""

from __future__ import annotations

import numpy as np


def mask(part: str, rows: int, cols: int) -> np.ndarray:
    """True where an element is of `part`, as `kernels.common.region` names it."""
    if part == "all":
        return np.ones((rows, cols), dtype=bool)
    if part.endswith("upper"):
        return np.tri(cols, rows, dtype=bool).T
    return np.tri(rows, cols, k=-1 if part == "strict" else 0, dtype=bool)
