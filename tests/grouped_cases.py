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
        a, b, c = (
            arena.take(integers(rng, shape, dtype), order)
            for shape, order in zip(shapes, orders, strict=True)
        )
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


#: Orders, and right-hand sides, of triangular systems.
SYSTEMS = ((1, 1), (5, 3), (9, 2), (7, 7), (0, 3), (4, 0), (12, 1), (8, 9), (3, 4), (5, 3), (2, 2), (6, 5))
#: Orders of Cholesky factors; a pivot of the last but one is not positive.
ORDERS = (1, 5, 0, 9, 12, 3, 2)
FAILED = len(ORDERS) - 2


class Systems(NamedTuple):
    """Arguments of a call, and the solutions."""

    a: list[np.ndarray]
    b: list[np.ndarray]
    options: dict[str, list[Any]]
    expected: list[np.ndarray]


def unit_numbers(rng: np.random.Generator, n: int, dtype: Dtype) -> np.ndarray:
    """Numbers of magnitude 1, by which divisions are exact."""
    return rng.choice([1, -1, 1j, -1j] if dtype.is_complex else [1, -1], n).astype(dtype.name)


def systems(dtype: Dtype, sizes: tuple[tuple[int, int], ...] = SYSTEMS) -> Systems:
    """Systems whose flags and scalars take all values in turn; integers solve them."""
    rng, arena = np.random.default_rng(62), Arena(1 << 14, dtype)
    names = ("alpha", "side", "lower", "trans", "unit_diag")
    made = Systems([], [], {name: [] for name in names}, [])
    for i, (n, count) in enumerate(sizes):
        alpha, trans, side = (1, 2, 0, -1)[i % 4], "NTC"[i % 3], "LR"[i // 2 % 2]
        lower, unit = i % 2 == 1, i // 3 % 2 == 1
        whole = np.tril(integers(rng, (n, n), dtype, 1), -1)
        whole[np.diag_indices(n)] = 1 if unit else unit_numbers(rng, n, dtype)
        whole = whole if lower else whole.T
        stored = np.where(np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T, whole, np.nan)
        stored[np.diag_indices(n)] = np.nan if unit else np.diag(whole)
        x = integers(rng, (n, count) if side == "L" else (count, n), dtype)
        b = op(whole, trans) @ x if side == "L" else x @ op(whole, trans)
        if alpha == 0:
            stored[...] = b[...] = np.nan  # neither is read
        made.a.append(arena.take(stored.astype(dtype.name), "CF"[i % 2]))
        made.b.append(arena.take(b, "CF"[i // 2 % 2]))
        made.expected.append(alpha * x)
        for name, value in zip(names, (alpha, side, lower, trans, unit), strict=True):
            made.options[name].append(value)
    return made


def definite(dtype: Dtype, orders: tuple[int, ...] = ORDERS) -> tuple[list[Any], list[bool], list[Any]]:
    """Matrices, which triangles of them are to be read, and their factors, all integers."""
    rng, arena = np.random.default_rng(62), Arena(1 << 13, dtype)
    stored, flags, factors = [], [], []
    for i, n in enumerate(orders):
        factor = np.tril(integers(rng, (n, n), dtype, 1), -1)
        factor[np.diag_indices(n)] = rng.integers(1, 3, n)
        whole, lower = factor @ factor.T.conj(), bool(i % 2)
        if i == len(orders) - 2:
            whole[0, 0] = -1
        read = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
        stored.append(arena.take(np.where(read, whole, np.nan).astype(dtype.name), "CF"[i // 2 % 2]))
        flags.append(lower)
        factors.append(factor if lower else factor.T.conj())
    return stored, flags, factors
