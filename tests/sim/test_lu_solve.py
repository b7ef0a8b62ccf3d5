"""Solutions and inverses by LU factors, and interchanges of rows, in the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import lapack as scipys

from pyblasgpu import lapack
from pyblasgpu.kernels.factor.lu import laswp, permute_rows, pivot_moves, pivot_order
from pyblasgpu.testing.reference import fenced, integers
from pyblasgpu.types import DTYPES

from .launching import run, strides
from .test_getrf_panel import moved, random

NAN = float("nan")


@pytest.fixture(autouse=True)
def backend(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")


def interchange(a, piv, backwards=False, skip=(0, 0), base=0, kernels=laswp, movers=pivot_moves) -> None:
    """Both kernels, by groups of 16 and 64 threads; base: the first row on top."""
    letter = next(letter for letter, dtype in DTYPES.items() if dtype.name == a.dtype.name)
    stack, pivots = a if a.ndim == 3 else a[None], piv if piv.ndim == 2 else piv[None]
    (batch, _, n), count = stack.shape, pivots.shape[-1]
    mover, config = movers.PivotMoves("s", 16), kernels.Laswp(letter, 64, 2)
    groups = mover.grid(count)
    moves = np.full((batch, groups * 32), -9, np.int32)
    run(movers.source(mover), groups, (pivots, moves), (count, base, 1, count, groups * 32), (), batch)
    step, a_rs, a_cs = strides(stack)
    numbers = 16, groups, count - 16 * (groups - 1), n - skip[1], *skip
    flags = int(abs(a_rs) > abs(a_cs)), int(backwards)
    arguments = *numbers, *flags, a_rs, a_cs, step, groups * 32
    run(kernels.source(config), config.grid(n - skip[1], 16), (stack[:, base:], moves), arguments, (), batch)


def check(letter="d", m=40, n=11, count=21, order="F", backwards=False, skip=(0, 0), base=0, **kernels):
    rng = np.random.default_rng(m)
    start = integers(rng, (m, n), DTYPES[letter])
    piv = rng.integers(0, m, count).astype(np.int32)
    order_of_rows = np.arange(m)
    for i in reversed(range(count)) if backwards else range(count):
        order_of_rows[[base + i, piv[i]]] = order_of_rows[[piv[i], base + i]]
    expected = start[order_of_rows]
    left_out = np.s_[skip[0] : sum(skip)]
    start[:, left_out] = expected[:, left_out] = NAN
    a, unharmed = fenced(start, order)
    interchange(a, piv, backwards, skip, base, **kernels)
    np.testing.assert_array_equal(a, expected)
    assert unharmed()


def check_permuted(
    letter="d", m=70, n=11, count=40, block=0, columns=2, orders=pivot_order, kernels=permute_rows
) -> None:
    """Whole columns in the order by all pivots; or blocks of columns by those of later blocks alone."""
    rng, base, every = np.random.default_rng(m), 3, block or count
    dtype, complex_ = DTYPES[letter], letter in "cz"
    piv = np.array([rng.integers(i, m) for i in range(count)], np.int32)
    start = integers(rng, (m, n), dtype)
    expected = start.copy()
    for c in range(n):
        rows, first = np.arange(m), (c // block + 1) * block if block else 0
        for i in range(first, count):
            rows[[i, piv[i]]] = rows[[piv[i], i]]
        expected[:, c] = start[rows, c]
    a, unharmed = fenced(start, "F")
    maker, config = orders.PivotOrder("s", 32), kernels.PermuteRows("sd"[letter in "dz"], 64, 10)
    found = np.full((-(-count // every), m), -9, np.int32)
    numbers = count, base, m, every, maker.chunk(count, every), 1
    run(orders.source(maker), maker.grid(m), (piv + base, found), numbers, ())
    numbers = m, n, columns, block, int(complex_), strides(a)[1] << complex_
    run(kernels.source(config), -(-n // columns), (a, found), numbers, ())
    np.testing.assert_array_equal(a, expected)
    assert unharmed()


@pytest.mark.parametrize(
    "letter, m, n, count, block, columns",
    [("s", 70, 11, 40, 0, 2), ("c", 33, 3, 33, 0, 3), ("d", 600, 3, 20, 0, 1), ("z", 50, 12, 18, 6, 4)],
)
def test_whole_columns(letter, m, n, count, block, columns):
    check_permuted(letter, m, n, count, block, columns)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("backwards", [False, True])
def test_interchanges(letter, order, backwards):
    check(letter, 40, 11, 21, order, backwards)


@pytest.mark.parametrize("m, n, count", [(1, 1, 1), (16, 3, 16), (33, 20, 32), (20, 40, 17), (90, 2, 5)])
def test_edges_of_interchanges(m, n, count):
    check("d", m, n, count)
    check("s", m, n, count, "C", True)


def test_columns_that_are_left_out():
    for skip in ((0, 4), (3, 5), (7, 4)):
        check(skip=skip)
        check(skip=skip, order="C")


def test_rows_above_the_first():
    check(m=40, count=21, base=9)
    check(m=40, count=21, base=9, backwards=True)


def test_there_and_back_of_a_batch():
    rng = np.random.default_rng(0)
    stack = rng.normal(size=(3, 30, 7))
    start, piv = stack.copy(), rng.integers(0, 30, (3, 20)).astype(np.int32)
    interchange(stack, piv)
    for a, before, pivots in zip(stack, start, piv, strict=True):
        np.testing.assert_array_equal(a, before[moved(pivots, 30)])
    interchange(stack, piv, backwards=True)
    np.testing.assert_array_equal(stack, start)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_solutions(letter, trans):
    a, b = random(letter, 19, 19), random(letter, 19, 5, 7)
    lu, piv, _ = getattr(scipys, f"{letter}getrf")(a)
    view, unharmed = fenced(b, "CF"[trans % 2])
    x, info = getattr(lapack, f"{letter}getrs")(lu, piv, view, trans)
    expected, _ = getattr(scipys, f"{letter}getrs")(lu, piv, b, trans)
    assert info == 0 and unharmed()
    np.testing.assert_allclose(x, expected, rtol=2e-3 if letter in "sc" else 1e-11)


@pytest.mark.parametrize("letter", "dc")
def test_gesv(letter):
    a, b = random(letter, 17, 17), random(letter, 17, 1, 7)
    _, piv, x, _ = getattr(lapack, f"{letter}gesv")(a, b[:, 0])
    theirs = getattr(scipys, f"{letter}gesv")(a, b[:, 0])
    np.testing.assert_array_equal(piv, theirs[1])
    np.testing.assert_allclose(x, theirs[2], rtol=2e-3 if letter == "c" else 1e-11)
    a[:, 3] = 0
    _, _, x, info = getattr(lapack, f"{letter}gesv")(a, b[:, 0])
    assert info == 4 and np.array_equal(x, b[:, 0])


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("n", [1, 19])
def test_inverses(letter, n):
    a = random(letter, n, n)
    lu, piv, _ = getattr(scipys, f"{letter}getrf")(a)
    inverse, info = getattr(lapack, f"{letter}getri")(lu, piv)
    assert info == 0
    np.testing.assert_allclose(a @ inverse, np.eye(n), atol=1e-3 if letter in "sc" else 1e-11)


def test_an_inverse_of_a_singular_matrix():
    lu = np.triu(np.ones((9, 9)))
    lu[4, 4] = 0
    assert lapack.dgetri(lu, np.arange(9))[1] == 5


def test_batches():
    a, b = np.stack([random("d", 12, 12, seed) for seed in range(3)]), random("d", 12, 3)
    stacked = np.broadcast_to(b, (3, 12, 3))
    _, piv, x, info = lapack.gesv(a, stacked)
    assert piv.shape == (3, 12) and not info.any()
    np.testing.assert_allclose(a @ x, stacked, atol=1e-11)


def test_the_public_interchange():
    a, piv = random("d", 12, 5), np.array([3, 9, 2, 11, 4], np.int32)
    for options in ({}, {"inc": -1}, {"k1": 1, "k2": 3}, {"k1": 1, "k2": 2, "off": 1, "inc": 2}):
        np.testing.assert_array_equal(lapack.dlaswp(a, piv, **options), scipys.dlaswp(a, piv, **options))
