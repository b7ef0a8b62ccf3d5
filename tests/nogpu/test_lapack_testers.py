"""Ratios of LAPACK's testers of factors and least squares, by launch lists whose kernels NumPy computes."""

from __future__ import annotations

import fake_device
import fake_kernels
import numpy as np
import pytest
from lapack_testers import PATHS, SHAPES, THRESHOLD, worst


def put(array) -> fake_device.Array:
    return fake_device.Array(np.array(array, order="F"))


def fetched(array) -> np.ndarray:
    return array.host


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("letter", "dz")
def test_ratios(fake, monkeypatch, path, letter):
    fake_kernels.install_below(monkeypatch)
    for m, n in SHAPES[:4]:
        ratios = worst(path, letter, m, n, (put, fetched))
        assert max(ratios.values()) < THRESHOLD, (m, n, ratios)


@pytest.mark.parametrize("letter", "sz")
def test_ratios_of_blocks_by_cholesky_factors(fake, monkeypatch, decide_by, letter):
    kernels = fake_kernels.install_below(monkeypatch)
    decide_by(cholesky_panel_min_rows=64)
    for m, n in ((150, 40), (270, 150)):
        ratios = worst("QR", letter, m, n, (put, fetched))
        assert max(ratios.values()) < THRESHOLD, (m, n, ratios)
    assert "orhr_leaf" in {name for name, *_ in kernels.launches}
