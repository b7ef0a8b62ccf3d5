"""The pivoted panel in the simulator: by one block of threads, by several, of a batch."""

from __future__ import annotations

import numpy as np
import pytest
from covering import by_precision
from scipy.linalg import lapack

from pyblasgpu.gpu.simulator import intrinsics as simulator
from pyblasgpu.kernels.factor.lu import getrf_panel
from pyblasgpu.kernels.factor.lu.pivot_exchange import words_of_exchange
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES

from .launching import run, strides

NAN = float("nan")


def factor(
    a, rows=None, cols=8, first=0, info=None, kernels=getrf_panel, direct=0, cluster=0, each=1, beside=(0, 0)
):
    """Factor a panel, or a batch, in place: pivots, moves and info. No flag stays set. `beside`: columns of A
    left and right of the panel; `each`: rows of a thread.
    """
    letter = next(letter for letter, dtype in DTYPES.items() if dtype.name == a.dtype.name)
    stack = a if a.ndim == 3 else a[None]
    left, right = beside
    stack = stack[:, :, left : stack.shape[2] - right]
    batch, m, n = stack.shape
    config = kernels.GetrfPanel(
        letter, rows or (32 if m <= 32 * (2 - each) else 64), cols, direct, cluster, each
    )
    blocks = config.grid(m)
    piv, moves = np.full((batch, n), -7, np.int32), np.full((batch, 2 * cols), -7, np.int32)
    flags = np.zeros(words_of_exchange(config, blocks), np.int32)
    info = np.full(batch, -7, np.int32) if info is None else info
    step, *steps = strides(stack)
    integers = m, n, first, blocks, left, right, *steps, 1, step, n, 2 * cols, 1
    arrays = stack, piv, moves, info, flags
    run(kernels.source(config), blocks, arrays, integers, (), batch)
    assert not flags.any()
    return (piv, moves, info) if a.ndim == 3 else (piv[0], moves[0], info[0])


def check(letter="d", m=40, n=7, order="F", seed=0, kernels=getrf_panel, **options) -> None:
    """A panel of random numbers: LAPACK's pivots and factors, and moves that do what the pivots say."""
    a = random(letter, m, n, seed)
    lu, piv, info = getattr(lapack, f"{letter}getrf")(a)
    panel, unharmed = fenced(a, order)
    got_piv, moves, got_info = factor(panel, kernels=kernels, **options)
    first = options.get("first", 0)
    np.testing.assert_array_equal(got_piv, piv + first)
    assert got_info == info and unharmed()
    np.testing.assert_allclose(panel, lu, rtol=0, atol=100 * n * np.finfo(a.dtype).eps)
    check_moves(moves, piv, m)


def random(letter, m, n, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1, 1, (m, n)) + (1j * rng.uniform(-1, 1, (m, n)) if letter in "cz" else 0)
    return a.astype(DTYPES[letter].name)


def moved(piv, m) -> np.ndarray:
    """The rows in the order in which the interchanges leave them."""
    rows = np.arange(m)
    for step, pivot in enumerate(piv):
        rows[[step, pivot]] = rows[[pivot, step]]
    return rows


def check_beside(letter="d", m=40, left=3, n=5, right=6, order="F", seed=0, kernels=getrf_panel, **options):
    """The columns beside a panel: interchanged, and on the right rows of U on top."""
    a = random(letter, m, left + n + right, seed)
    lu, piv, _ = getattr(lapack, f"{letter}getrf")(a[:, left : left + n])
    expected = a[moved(piv, m)]
    expected[:, left : left + n] = lu
    unit_lower = np.tril(lu[:n], -1) + np.eye(n)
    expected[:n, left + n :] = np.linalg.solve(unit_lower, expected[:n, left + n :])
    view, unharmed = fenced(a, order)
    factor(view, kernels=kernels, beside=(left, right), **options)
    assert unharmed()
    np.testing.assert_allclose(view, expected, rtol=0, atol=100 * n * np.finfo(a.dtype).eps)


def no_number_beside(kernels=getrf_panel) -> None:
    """Infinity in a row on top reaches the rows of U below it, of its column alone."""
    a = random("d", 70, 12)
    a[:8, :8] += 8 * np.eye(8)
    before = a.copy()
    a[3, 9] = np.inf
    for each in (a, before):
        factor(each, cluster=4, beside=(0, 4), kernels=kernels)
    reached = np.zeros(a.shape, bool)
    reached[3:8, 9] = True
    np.testing.assert_array_equal(a[~reached], before[~reached])
    assert not np.isfinite(a[reached]).any()


def check_moves(moves, piv, m) -> None:
    """The rows that stand on top, and where the rows that stood there are."""
    rows, n = moved(piv, m), len(piv)
    where = np.argsort(rows)
    to_top, from_top = moves.reshape(2, -1)
    assert np.array_equal(to_top[:n], rows[:n]) and np.array_equal(from_top[:n], where[:n])


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("order", "CF")
def test_one_block(letter, order):
    check(letter, 30, 7, order)
    check(letter, 32, 8, order, rows=64)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("m, left, n, right", [(30, 0, 7, 9), (70, 5, 8, 3), (150, 2, 6, 21), (9, 4, 1, 0)])
def test_columns_beside(letter, m, left, n, right):
    check_beside(letter, m, left, n, right, "CF"[m % 4 > 0], cluster=4)


def test_columns_beside_in_any_order_of_blocks():
    for seed in range(3):
        simulator.reseed(seed)
        check_beside("s", 64 * 2 + 3, 4, 5, 9, seed=seed, cluster=4, each=1 + seed % 2)


def test_no_number_beside_reaches_what_does_not_depend_on_it():
    no_number_beside()


TWO_ROWS = {"cluster": 4, "each": 2}  # of a thread
SEARCHES = ({}, {"direct": 1}, {"direct": 4}, {"cluster": 4}, TWO_ROWS)


@pytest.mark.parametrize("letter, m, search", by_precision([65, 150], SEARCHES))
def test_several_blocks(letter, m, search):
    """Pivots by labels, by labels after rows of warps, by rows of blocks, and in a cluster."""
    check(letter, m, 6, "CF"[m % 2], **search)


@pytest.mark.parametrize(
    "m, n", [(1, 1), (2, 1), (2, 2), (5, 5), (8, 8), (32, 1), (33, 8), (65, 1), (65, 8), (2100, 2)]
)
def test_edges(m, n):
    check("d", m, n)


def test_more_blocks_than_lanes():
    """Each lane sees two candidates: equal ones, and then one of a block that has none left."""
    assert factor(np.ones((2060, 1)))[0][0] == 0
    a = random("s", 2049, 2)
    a[-1, 0], a[:, 1], a[0, 1] = 5, a[:, 1] / 100, 1
    np.testing.assert_array_equal(factor(a.copy())[0], lapack.sgetrf(a)[1])


@pytest.mark.parametrize("search", SEARCHES)
def test_any_order_of_blocks(search):
    for seed in range(4):
        simulator.reseed(seed)
        check("s", 64 * 3 + 3, 5, seed=seed, **search)


def test_one_block_by_rows_of_its_warps():
    for letter in "sc":
        check(letter, 60, 8, rows=64, direct=4)
        check(letter, 20, 5, rows=64, cluster=1)
        check(letter, 60, 8, rows=64, cluster=2)
        check(letter, 250, 8, rows=128, **TWO_ROWS)


def test_more_blocks_than_warps_by_rows():
    """A warp receives the rows of several blocks; the last one has a row of its own alone."""
    a = random("s", 257, 2)
    a[-1, 0], a[:, 1], a[0, 1] = 5, a[:, 1] / 100, 1
    np.testing.assert_array_equal(factor(a.copy(), direct=8)[0], lapack.sgetrf(a)[1])
    np.testing.assert_array_equal(factor(a.copy(), cluster=8)[0], lapack.sgetrf(a)[1])


def test_a_panel_further_down_counts_from_the_first_row():
    check("d", 20, 4, first=12, info=np.zeros(1, np.int32))


@pytest.mark.parametrize(
    "letter, blocks, search", by_precision([1, 2], [{}, {"direct": 2}, {"cluster": 2}, TWO_ROWS])
)
def test_ties_go_to_the_uppermost_row(letter, blocks, search):
    """Ties are many where elements are 1, -1, i and the like: rows that are moved down count there."""
    rng = np.random.default_rng(1)
    units = [1, -1, 1j, -1j] if letter in "cz" else [1, -1]
    for _ in range(4):
        a = rng.choice(units, (60 * blocks - 30, 3 if letter in "cz" else 6))  # as long as sums are exact
        a = a.astype(DTYPES[letter].name)
        lu, piv, _ = getattr(lapack, f"{letter}getrf")(a)
        got, _, _ = factor(a, **search)
        np.testing.assert_array_equal(got, piv)
        np.testing.assert_allclose(a, lu, atol=1e-5 if letter in "sc" else 1e-13)


@pytest.mark.parametrize("search", [{}, {"direct": 2}, {"cluster": 2}, TWO_ROWS])
@pytest.mark.parametrize("blocks", [1, 2])
def test_a_column_of_zeros_is_told_and_left(blocks, search):
    a = np.asfortranarray(np.arange(160.0 * blocks).reshape(-1, 4) ** 2 % 7)
    a[:, 1] = 3 * a[:, 0]
    a[:, 3] = 0
    lu, piv, info = lapack.dgetrf(a)
    got_piv, _, got_info = factor(a, rows=64, **search)
    assert got_info == info == 2
    np.testing.assert_allclose(a, lu, atol=1e-13)
    np.testing.assert_array_equal(got_piv, piv)


def test_the_first_zero_pivot_of_the_whole_matrix_stays():
    a = np.zeros((9, 3))
    info = np.array([5], np.int32)
    factor(a, first=8, info=info)
    assert info[0] == 5
    info[0] = 0
    factor(a, first=8, info=info)
    assert info[0] == 9


@pytest.mark.parametrize("spoil", [np.nan, np.inf])
@pytest.mark.parametrize("m", [20, 80])
@pytest.mark.parametrize("search", [{}, {"direct": 2}, {"cluster": 2}, TWO_ROWS])
def test_what_is_not_finite(spoil, m, search):
    """NaN is a pivot, as the largest number would be; pivots are a permutation."""
    a = random("d", m, 5)
    a[7, 0] = spoil
    piv, moves, info = factor(a, **search)
    assert piv[0] == 7 and info == 0 and (piv >= np.arange(5)).all() and (piv < m).all()
    check_moves(moves, piv, m)
    assert not np.isfinite(a).all()
    everything = np.full((m, 3), np.nan)
    piv, _, info = factor(everything, **search)
    assert np.array_equal(piv, [0, 1, 2]) and info == 0 and np.isnan(everything).all()


@pytest.mark.parametrize("exponent", [-1040, -1000, 1000])
@pytest.mark.parametrize("letter", "dz")
def test_tiny_and_huge_pivots(exponent, letter):
    a = random(letter, 20, 4) * 2.0**exponent
    start, tiny = a.copy(), np.finfo(float).smallest_subnormal
    piv, _, info = factor(a)
    lower, upper = np.tril(a, -1) + np.eye(20, 4), np.triu(a)[:4]
    assert info == 0 and (abs(lower) <= np.sqrt(2) * 1.001).all()
    error = abs(lower @ upper - start[moved(piv, 20)])
    assert (error <= 4e-16 * abs(lower) @ abs(upper) + 20 * tiny).all()


@pytest.mark.parametrize("options", [{}, {"m": 70, "cluster": 2}])
@pytest.mark.parametrize("letter", DTYPES)
def test_a_batch(letter, options):
    check_batch(getrf_panel, letter, **options)


def check_batch(kernels, letter="d", m=20, **options):
    """Three matrices, of which the second has a column of zeros."""
    stack = np.stack([random(letter, m, 6, seed) for seed in range(3)])
    stack[1, :, 2] = 0
    expected = [getattr(lapack, f"{letter}getrf")(a) for a in stack]
    piv, _, info = factor(stack, kernels=kernels, **options)
    assert list(info) == [0, 3, 0]
    for (lu, pivots, _), got, got_piv in zip(expected, stack, piv, strict=True):
        np.testing.assert_array_equal(got_piv, pivots)
        np.testing.assert_allclose(got, lu, atol=1e-4 if letter in "sc" else 1e-13)
