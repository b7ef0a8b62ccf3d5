"""Li's block LU, on the CPU: the factors are LAPACK's, whatever the panels; kernels recorded for it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg.lapack

from pyblasgpu.database import FAMILIES
from pyblasgpu.dispatch import leaf as dispatch_leaf
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.gemm.simt import STEM
from pyblasgpu.tuning.results import Record
from pyblasgpu.tuning.sweep_file import append
from tuning.papers import li, li_lu


@pytest.mark.parametrize("m, n", [(20, 20), (25, 13), (13, 25)])
@pytest.mark.parametrize("columns", [4, 7, 64])
def test_factors(monkeypatch, m, n, columns):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    a = np.asfortranarray(np.random.default_rng(0).normal(size=(m, n)))
    expected, piv, _ = scipy.linalg.lapack.dgetrf(a)
    pivots = li_lu.block_lu(a, columns, li_lu.ours)
    actual = np.concatenate([part + first for part, first in zip(pivots, range(0, n, columns), strict=False)])
    np.testing.assert_array_equal(actual, piv)
    np.testing.assert_allclose(a, expected, atol=1e-12)


def test_the_fastest_kernels_near_a_shape(tmp_path):
    sweep, family = tmp_path / "sweep.jsonl", FAMILIES[STEM]
    usual = family.parameters_of(dispatch_leaf.computed(STEM, "s", "nn", "low_rank", known("h200")))
    for size, unroll, rate in (("low_rank", 1, 3.0), ("low_rank", 2, 5.0), ("medium", 4, 9.0)):
        parameters = {**usual, "UNROLL": unroll}
        append(
            sweep, Record("A card", "sm_90", STEM, "s", "nn", size, (64,) * 3, parameters, "ok", 1.0, rate)
        )
    shape, other = li.SHAPES
    fastest = li.recorded(sweep, "s", "nn", shape, 6)
    assert [(stem, config.UNROLL) for stem, config in fastest] == [(STEM, 2), (STEM, 1)]
    assert li.recorded(sweep, "s", "nn", shape, 1) == fastest[:1]
    assert li.recorded(sweep, "s", "nn", other, 6) == [] == li.recorded(None, "s", "nn", shape, 6)
