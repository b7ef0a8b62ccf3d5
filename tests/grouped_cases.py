"""Ragged batches of integers, whose results are exact: shapes, layouts, flags and scalars of many kinds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pyblasgpu.testing.reference import integers
from pyblasgpu.types import Dtype

#: m, n, k of the products.
SIZES = (
    (1, 1, 1),
    (17, 33, 5),
    (40, 9, 30),
    (0, 4, 4),
    (4, 4, 0),
    (4, 3, 0),
    (33, 70, 2),
    (5, 6, 7),
    (1, 8, 3),
)


class Products(NamedTuple):
    """Arguments of a call, and the entries of `out` after it."""

    a: list[np.ndarray]
    b: list[np.ndarray]
    options: dict[str, list[Any]]
    expected: list[np.ndarray]


class Arena:
    """NaN, of which matrices are cut one after another, in the order of rows or columns."""

    def __init__(self, size: int, dtype: Dtype):
        self.memory, self.at = np.full(size, np.nan, dtype.name), 0

    def take(self, values: np.ndarray, order: str) -> np.ndarray:
        start, self.at = self.at + 3, self.at + 3 + values.size
        shape = values.shape if order == "C" else values.shape[::-1]
        view = self.memory[start : self.at].reshape(shape)
        view = view if order == "C" else view.T
        view[...] = values
        return view


def op(matrix: np.ndarray, flag: str) -> np.ndarray:
    """The matrix with its flag applied."""
    return {"N": matrix, "T": matrix.T, "C": matrix.T.conj()}[flag]


def products(dtype: Dtype, sizes: tuple[tuple[int, int, int], ...] = SIZES) -> Products:
    """Products whose layouts, flags and scalars take all values in turn; `out` is NaN where beta is 0."""
    rng, arena = np.random.default_rng(62), Arena(1 << 16, dtype)
    made = Products([], [], {name: [] for name in ("out", "alpha", "beta", "trans_a", "trans_b")}, [])
    for i, (m, n, k) in enumerate(sizes):
        trans_a, trans_b, alpha, beta = (
            "NTC"[i % 3],
            "TNC"[i // 2 % 3],
            (1, 2, 0, 3)[i % 4],
            (0, 1, -1)[i % 3],
        )
        shapes = (k, m) if trans_a != "N" else (m, k), (n, k) if trans_b != "N" else (k, n), (m, n)
        orders = "CF"[i % 2], "CF"[i // 2 % 2], "FC"[i // 3 % 2]
        a, b, c = (arena.take(integers(rng, *each, dtype), order) for *each, order in zip(shapes, orders))
        made.a.append(a)
        made.b.append(b)
        product = op(a, trans_a) @ op(b, trans_b)
        made.expected.append(alpha * product + beta * c)
        if alpha == 0:
            a[...] = b[...] = np.nan  # neither is read
        if beta == 0:
            c[...] = np.nan
        for name, value in zip(made.options, (c, alpha, beta, trans_a, trans_b), strict=True):
            made.options[name].append(value)
    return made
