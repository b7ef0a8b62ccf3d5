"""Li's block LU, on the CPU: the factors are LAPACK's, whatever the panels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg.lapack

from tuning.papers import li_lu


@pytest.mark.parametrize("m, n", [(20, 20), (25, 13), (13, 25)])
@pytest.mark.parametrize("columns", [4, 7, 64])
def test_factors(monkeypatch, m, n, columns):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    a = np.asfortranarray(np.random.default_rng(0).normal(size=(m, n)))
    expected, piv, _ = scipy.linalg.lapack.dgetrf(a)
    pivots = li_lu.block_lu(a, columns, li_lu.ours)
    found = np.concatenate([part + first for part, first in zip(pivots, range(0, n, columns), strict=False)])
    np.testing.assert_array_equal(found, piv)
    np.testing.assert_allclose(a, expected, atol=1e-12)
