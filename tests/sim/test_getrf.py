"""LU factors in the simulator: the recursion, the interchanges, batches, what must not be touched."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import lapack as scipys

from pyblasgpu import lapack
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.kernels.factor.lu.getrf_panel import GetrfPanel
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES

from .test_getrf_panel import random


@pytest.fixture(autouse=True)
def backend(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")


def check(letter, m, n, order="F", cols=4, seed=0, cluster=0) -> None:
    """Panels of a few columns and blocks of 32 rows: pivots and factors of LAPACK's."""
    a = random(letter, m, n, seed)
    lu, piv, info = getattr(scipys, f"{letter}getrf")(a)
    view, unharmed = fenced(a, order)
    with override("getrf_panel", GetrfPanel(letter, 32 if m <= 32 else 64, cols, CLUSTER=cluster)):
        got, got_piv, got_info = getattr(lapack, f"{letter}getrf")(view)
    np.testing.assert_array_equal(got_piv, piv)
    assert got_info == info and got_piv.dtype == np.int32 and unharmed()
    np.testing.assert_allclose(got, lu, rtol=0, atol=200 * max(m, n) * np.finfo(a.dtype).eps)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("order", "CF")
def test_recursion(letter, order):
    check(letter, 11, 11, order)
    check(letter, 67, 7, order)


@pytest.mark.parametrize("m, n", [(1, 1), (1, 7), (7, 1), (4, 4), (5, 5), (5, 9), (9, 5), (65, 6), (14, 20)])
def test_shapes(m, n):
    check("d", m, n)


@pytest.mark.parametrize("m, n, cluster, least", [(20, 20, 0, 0), (17, 26, 4, 0), (70, 13, 4, 99)])
def test_lookahead(m, n, cluster, least):
    """Blocks of two panels, the last one of less; clusters have the columns of a block beside their panel."""
    with override("lookahead", 8), deciding_by(getrf_permuted_min_order=least):
        check("d", m, n, "FC"[m % 2], cluster=cluster)


def test_the_config_that_serves():
    for m, n in ((7, 7), (30, 30), (50, 50)):
        a = random("d", m, n)
        lu, piv, _ = scipys.dgetrf(a)
        got, got_piv, _ = lapack.dgetrf(a)
        np.testing.assert_array_equal(got_piv, piv)
        np.testing.assert_allclose(got, lu, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rows", [12, 70])
def test_a_batch(rows):
    stack = np.stack([random("d", rows, 10, seed) for seed in range(3)])
    stack[1, :, 6] = 0
    with override("getrf_panel", GetrfPanel("d", 32 if rows < 32 else 64, 4)):
        lu, piv, info = lapack.dgetrf(stack)
    for a, got, got_piv, got_info in zip(stack, lu, piv, info, strict=True):
        expected, pivots, theirs = scipys.dgetrf(a)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)
        assert np.array_equal(got_piv, pivots) and got_info == theirs


@pytest.mark.parametrize("letter", "dz")
def test_singular(letter):
    a = random(letter, 20, 20)
    a[:, 5] = a[:, 13] = 0
    with override("getrf_panel", GetrfPanel(letter, 32, 4)):
        lu, piv, info = getattr(lapack, f"{letter}getrf")(a)
    expected, pivots, theirs = getattr(scipys, f"{letter}getrf")(a)
    assert info == theirs == 6
    np.testing.assert_array_equal(piv, pivots)
    np.testing.assert_allclose(lu, expected, atol=1e-13)


def test_a_factor_in_place():
    a = np.asfortranarray(random("d", 20, 20))
    start = a.copy()
    lu = lapack.dgetrf(a, overwrite_a=1)[0]
    assert lu is a
    np.testing.assert_allclose(lu, scipys.dgetrf(start)[0], atol=1e-12)


def test_more_rows_than_threads(monkeypatch):
    """Panels by columns, where their blocks would not all run at the same time."""
    monkeypatch.setattr(GetrfPanel, "resident", lambda config, device: 1)
    check("s", 270, 6)
