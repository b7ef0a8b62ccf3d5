"""Ratios of LAPACK's testers of eigenvalues and singular values, with kernels that NumPy computes."""

from __future__ import annotations

import fake_device
import fake_kernels
import numpy as np
import pytest
from eigen_testers import ORDERS, SHAPES, THRESHOLD, singular_ratios, symmetric_ratios, worst


def put(array) -> fake_device.Array:
    return fake_device.Array(np.array(array, order="F"))


def fetched(array) -> np.ndarray:
    return array.host


@pytest.mark.parametrize("letter", "sz")
def test_ratios_of_eigenvalues(fake, monkeypatch, letter):
    fake_kernels.install_below(monkeypatch)
    for n in ORDERS[2::2]:
        ratios = worst(symmetric_ratios, letter, n, (put, fetched))
        assert max(ratios.values()) < THRESHOLD, (n, ratios)


@pytest.mark.parametrize("letter", "dc")
def test_ratios_of_singular_values(fake, monkeypatch, letter):
    fake_kernels.install_below(monkeypatch)
    for shape in SHAPES[2::2]:
        ratios = worst(singular_ratios, letter, shape, (put, fetched))
        assert max(ratios.values()) < THRESHOLD, (shape, ratios)
