"""Panels of LU factors by a launch a column, in the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import lapack

from pyblasgpu.gpu.simulator import intrinsics as simulator
from pyblasgpu.kernels.factor.lu import getrf_column
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES

from .launching import run, strides
from .test_getrf_panel import random


def factor(a, first=0, info=-7, blocks=0, kernels=getrf_column):
    """Factor a panel in place by blocks of 32 threads: pivots and info."""
    letter = next(letter for letter, dtype in DTYPES.items() if dtype.name == a.dtype.name)
    config, (m, n) = kernels.GetrfColumn(letter, 32), a.shape
    blocks = blocks or config.grid(m)
    steps = min(m, n)
    piv, info_array = np.full(2 * steps, -7, np.int32), np.array([info], np.int32)
    state, labels = (
        np.full(config.state_reals(blocks, n), np.nan, DTYPES[letter].real),
        np.zeros(2 * blocks, np.int32),
    )
    for j in range(-1, steps):
        integers = m, n, j, first, *strides(a), 2
        run(kernels.source(config), blocks, (a, piv, info_array, state, labels), integers, ())
    assert (piv[1::2] == -7).all()
    return piv[::2], info_array[0]


def check(letter="d", m=90, n=6, order="F", kernels=getrf_column, start=None, **options) -> None:
    """LAPACK's pivots, factors and info, and nothing else written."""
    a = random(letter, m, n) if start is None else start
    lu, piv, info = getattr(lapack, f"{letter}getrf")(a)
    panel, unharmed = fenced(a, order)
    got_piv, got_info = factor(panel, kernels=kernels, **options)
    first = options.get("first", 0)
    np.testing.assert_array_equal(got_piv, piv + first)
    np.testing.assert_allclose(panel, lu, rtol=0, atol=100 * n * np.finfo(a.dtype).eps)
    assert got_info == (info + first if info else 0) and unharmed()


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("order", "CF")
def test_panels(letter, order):
    check(letter, 70, 5, order)


@pytest.mark.parametrize("m, n", [(1, 1), (33, 1), (40, 33), (64, 3), (200, 2)])
def test_edges(m, n):
    check("d", m, n)
    check("s", m, n, blocks=1)


def test_several_rows_a_thread():
    for seed in range(3):
        simulator.reseed(seed)
        check("d", 230, 4, blocks=3)


def test_further_down():
    check("d", 50, 4, first=12, info=0)
    check("d", 50, 4, start=np.zeros((50, 4)), first=12, info=0)


def check_columns_of_zeros(kernels=getrf_column) -> None:
    """The first of them is told; ties go to the uppermost row."""
    a = np.random.default_rng(0).choice([1.0, -1.0], (100, 6))
    a[:, 2] = a[:, 4] = 0
    check(start=a, kernels=kernels)


def test_columns_of_zeros():
    check_columns_of_zeros()


def test_what_is_not_a_number():
    a = random("d", 100, 3)
    a[7], a[50, 1] = np.nan, np.nan
    piv, _ = factor(a, kernels=getrf_column)
    assert piv[0] == 7 and (piv >= np.arange(3)).all()
    everything = np.full((70, 2), np.nan)
    assert list(factor(everything)[0]) == [0, 1]
