"""`copy_scaled`: any strides to any strides, scaled, conjugated, in place, or zeros."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from region_mask import mask

from pyblasgpu.kernels.common.options import options_of
from pyblasgpu.kernels.copy import copy_scaled
from pyblasgpu.kernels.copy.copy_scaled import CopyScaled
from pyblasgpu.testing.reference import fenced, integers
from pyblasgpu.types import DTYPES, Region

from .launching import run, strides

M, N = 13, 18


def launch(
    letter,
    source,
    target,
    alpha,
    conj=False,
    zero=False,
    region=Region.ALL,
    mirrored=False,
):
    config = CopyScaled(letter, 8, 16, 8, 4)
    kernel = copy_scaled.source(config)
    options = options_of(region, conj=conj, zero=zero, mirrored=mirrored)
    m, n = target.shape
    run(
        kernel,
        config.grid(m, n),
        (source, target),
        (m, n, options, *strides(source), *strides(target), 0, 0),
        (alpha,),
    )


def in_order(matrix, by_rows):
    """`matrix` with neighbouring rows, or columns, side by side."""
    return np.asfortranarray(matrix) if by_rows else np.ascontiguousarray(matrix)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("read_by_rows, write_by_rows, conj", list(product((False, True), repeat=3)))
def test_copies(letter, read_by_rows, write_by_rows, conj):
    dtype = DTYPES[letter]
    alpha = 2 - 1j if dtype.is_complex else 2
    values = integers(np.random.default_rng(1), (2 * M, 3 * N), dtype)
    source = in_order(values, read_by_rows)[::2, ::-3]
    target, unharmed = fenced(np.full((M, N), np.nan, dtype.name), "F" if write_by_rows else "C")
    launch(letter, source, target, alpha, conj and dtype.is_complex)
    assert np.array_equal(target, alpha * (source.conj() if conj else source))
    assert unharmed()


@pytest.mark.parametrize("letter", DTYPES)
def test_scales_in_place(letter):
    dtype = DTYPES[letter]
    values = integers(np.random.default_rng(2), (M, N), dtype)
    target, unharmed = fenced(values, "F")
    launch(letter, target, target, -3)
    assert np.array_equal(target, -3 * values)
    assert unharmed()


@pytest.mark.parametrize("letter", DTYPES)
def test_zeros_without_reading(letter):
    target, unharmed = fenced(np.full((M, N), np.nan, DTYPES[letter].name), "C")
    launch(letter, target, target, 0, zero=True)
    assert not target.any()
    assert unharmed()


TRIANGLES = (Region.LOWER, Region.UPPER, Region.STRICT_LOWER, Region.HERMITIAN_LOWER, Region.HERMITIAN_UPPER)


def square(letter, region, seed=3):
    """A matrix of three tiles by two that is NaN where `region` does not read, and which elements it has."""
    dtype, order = DTYPES[letter], 21
    kept = mask(region, order, order)
    values = integers(np.random.default_rng(seed), (order, order), dtype)
    values[~kept] = np.nan
    if region.hermitian and dtype.is_complex:
        values.imag[np.diag_indices(order)] = np.nan
    return values, kept


def expected(values, kept, region, alpha, before):
    product = alpha * values
    if region.hermitian:
        np.fill_diagonal(product, alpha * values.real.diagonal())
    return np.where(kept, product, before)


@pytest.mark.parametrize("letter", "dc")
@pytest.mark.parametrize("region", TRIANGLES)
@pytest.mark.parametrize("read_by_rows, write_by_rows", list(product((False, True), repeat=2)))
def test_triangles_are_copied_alone(letter, region, read_by_rows, write_by_rows):
    values, kept = square(letter, region)
    before = np.full_like(values, 7)
    target, unharmed = fenced(before, "F" if write_by_rows else "C")
    launch(letter, in_order(values, read_by_rows), target, 2, conj=True, region=region)
    assert np.array_equal(target, expected(values.conj(), kept, region, 2, before))
    assert unharmed()


@pytest.mark.parametrize("letter", "dcz")
@pytest.mark.parametrize("region", [Region.LOWER, Region.HERMITIAN_LOWER])
@pytest.mark.parametrize("read_by_rows, write_by_rows", list(product((False, True), repeat=2)))
def test_a_triangle_is_mirrored(letter, region, read_by_rows, write_by_rows):
    conj = letter == "c"
    values, kept = square(letter, region)
    target, unharmed = fenced(np.full_like(values, 7), "F" if write_by_rows else "C")
    launch(letter, in_order(values, read_by_rows), target, 1, conj, region=region, mirrored=True)
    lower = expected(values.conj() if conj else values, kept, region, 1, 0)
    above = np.tril(lower, -1).T
    assert np.array_equal(target, lower + (above.conj() if region is Region.HERMITIAN_LOWER else above))
    assert unharmed()


@pytest.mark.parametrize("letter", "sz")
@pytest.mark.parametrize("region", TRIANGLES)
def test_triangles_are_scaled_in_place(letter, region):
    values, kept = square(letter, region)
    target, unharmed = fenced(values, "F")
    launch(letter, target, target, -3, region=region)
    np.testing.assert_array_equal(target, expected(values, kept, region, -3, values))
    assert unharmed()


@pytest.mark.parametrize("region", TRIANGLES)
def test_triangles_are_filled_with_zeros(region):
    values, kept = square("z", region)
    target, unharmed = fenced(np.full_like(values, np.nan), "C")
    launch("z", target, target, 0, zero=True, region=region)
    assert not target[kept].any() and np.isnan(target[~kept]).all()
    assert unharmed()


def test_batches_of_small_matrices_have_blocks_of_two_warps():
    config = CopyScaled("s", BLK_M=64)
    small = config.specialize(32, 7, 5)
    assert (small.BLK_M, small.BLK_N, small.threads, small.dtype) == (16, 16, 64, "s")
    assert config.specialize(33, 7, 5) is config and config.specialize(7, 33, 5) is config
    assert config.specialize(32, 7, 1) is config


def test_an_infinite_diagonal_stays_real():
    target, _ = fenced(np.full((3, 3), complex(np.inf, np.nan)), "C")
    launch("z", target, target, 2, region=Region.HERMITIAN_LOWER)
    assert (target.diagonal() == np.inf).all()


@pytest.mark.parametrize("letter", "cz")
def test_a_copy_keeps_what_is_not_finite_in_its_part(letter):
    source = np.array([[complex(np.inf, 1), complex(2, np.nan)]], DTYPES[letter].name)
    target, _ = fenced(np.zeros_like(source), "C")
    launch(letter, source, target, 1)
    assert np.array_equal(target.view(target.real.dtype), source.view(target.real.dtype), equal_nan=True)
