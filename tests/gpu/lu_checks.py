"""Checks of LU factors, for tests of several modules."""

from __future__ import annotations

import numpy as np


def moved(piv, m):
    rows = np.arange(m)
    for step, pivot in enumerate(piv):
        rows[[step, pivot]] = rows[[pivot, step]]
    return rows


def check_factors(a, lu, piv) -> None:
    """P L U differs from A by n u P |L| |U|, L has no element above 1, and pivots are where they can be."""
    m, n = a.shape
    k, wide = min(m, n), np.result_type(a, np.float64)
    lower, upper = np.tril(lu[:, :k], -1) + np.eye(m, k, dtype=a.dtype), np.triu(lu[:k])
    complex_ = np.iscomplexobj(a)
    unit = np.finfo(a.dtype).eps / 2 * (np.sqrt(8) if complex_ else 1)
    assert ((piv >= np.arange(k)) & (piv < m)).all()
    assert abs(lower).max() <= (1.4143 if complex_ else 1)
    error = abs(lower.astype(wide) @ upper.astype(wide) - a[moved(piv, m)])
    assert (error <= k * unit * (abs(lower) @ abs(upper)) * (1 + 1e-3)).all()
