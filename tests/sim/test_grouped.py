"""Routines on lists of matrices of unequal sizes and layouts in the simulator, exactly."""

from __future__ import annotations

import grouped_cases
import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.kernels.gemm.grouped import LARGE, SMALL, GemmGrouped
from pyblasgpu.ragged import products
from pyblasgpu.types import DTYPES

ORDERS = (5, 0, 2, 34, 3)
SYSTEMS = ((1, 1), (5, 3), (2, 2), (7, 4), (33, 2), (3, 3))
MIXED = ((3, 70, 9), (33, 5, 20), (1, 1, 1), (2, 3, 0), (7, 6, 5))


def check(on_device, letter, sizes=grouped_cases.SIZES):
    """Compare each product with its exact result; all are in one allocation, as the simulator needs it."""
    made = grouped_cases.products(DTYPES[letter], sizes)
    a, b, out = ([on_device(x) for x in arrays] for arrays in (made.a, made.b, made.options["out"]))
    pyblasgpu.gemm_grouped(a, b, **{**made.options, "out": out})
    for result, expected in zip(out, made.expected, strict=True):
        np.testing.assert_array_equal(result.host, expected)


@pytest.mark.parametrize("letter", DTYPES)
def test_products_of_unequal_sizes(on_device, letter):
    check(on_device, letter)


@pytest.mark.parametrize(("letter", "tile"), [("s", LARGE), ("z", LARGE), ("d", SMALL), ("z", SMALL)])
def test_every_tile_and_no_tensor_cores(on_device, monkeypatch, letter, tile):
    monkeypatch.setattr(products, "TILES", (tile, tile))
    if tile == SMALL:
        monkeypatch.setattr(GemmGrouped, "on", lambda config, device: config)
    check(on_device, letter, MIXED)


def check_systems(on_device, letter):
    """Compare each solution with its exact result."""
    made = grouped_cases.systems(DTYPES[letter], SYSTEMS)
    a, b = ([*map(on_device, arrays)] for arrays in (made.a, made.b))
    results = pyblasgpu.trsm_grouped(a, b, out=b, **made.options)
    for result, expected in zip(results, made.expected, strict=True):
        np.testing.assert_array_equal(result.host, expected)


@pytest.mark.parametrize("letter", "z")
def test_triangles_of_unequal_sizes(on_device, letter):
    check_systems(on_device, letter)


def check_factors(on_device, letter):
    """Compare each factor with its exact result."""
    matrices, lower, factors = grouped_cases.definite(DTYPES[letter], ORDERS)
    a = [*map(on_device, matrices)]
    results, info = pyblasgpu.potrf_grouped(a, lower=lower, out=a)
    assert info.host.tolist() == [0, 0, 0, 1, 0]
    for i, (result, factor) in enumerate(zip(results, factors, strict=True)):
        if ORDERS[i] != 34:
            np.testing.assert_array_equal(result.host, factor)


@pytest.mark.parametrize("letter", "c")
def test_factors_of_unequal_sizes(on_device, letter):
    check_factors(on_device, letter)
