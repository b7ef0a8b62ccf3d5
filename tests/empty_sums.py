"""Sums without terms: what the keyword functions leave of matrices without rows or columns."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

import pyblasgpu

__all__ = ["FACTORS", "check"]

#: Of alpha and beta.
FACTORS = list(product((0, 1, 2), repeat=2))


def check(alpha: float, beta: float, put: Callable[..., Any], host: Callable[[Any], np.ndarray]) -> None:
    """Compare with the formulas all functions that take beta, for extents of 0 and 2 of arrays from `put`."""
    rng = np.random.default_rng(2)

    def numbers(*shape: int) -> np.ndarray:
        return rng.integers(-3, 4, shape).astype(float)

    for m, n, k in product((0, 2), repeat=3):
        a, b, c, d, x, y = (numbers(*s) for s in ((m, k), (k, n), (m, n), (m, k), (k,), (m,)))
        s, low = numbers(m, m), np.tri(m, dtype=bool)
        s += s.T
        for name, inputs, out, term, flags in (
            ("gemm", (a, b), c, a @ b, {}),
            ("gemv", (a, x), y, a @ x, {}),
            ("gemv", (a, y), x, a.T @ y, {"trans": "T"}),
            ("symv", (s, y), y, s @ y, {}),
            ("symm", (s, c), numbers(m, n), s @ c, {}),
            ("syrk", (a,), s, np.where(low, a @ a.T, 0), {"lower": True}),
            ("syr2k", (a, d), s, np.where(low, a @ d.T + d @ a.T, 0), {"lower": True}),
        ):
            scaled = beta * out if name[:3] != "syr" else np.where(low, beta * out, out)
            options = {"alpha": alpha, "beta": beta, "out": put(out.copy()), **flags}
            result = getattr(pyblasgpu, name)(*map(put, inputs), **options)
            what = f"{name} {m} {n} {k} {alpha} {beta}"
            np.testing.assert_array_equal(host(result), alpha * term + scaled, err_msg=what)
