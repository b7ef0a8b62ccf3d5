"""`symmetrize`: W and its mirror image, on top of C or not, in one triangle, exactly."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from region_mask import mask

from pyblasgpu.errors import ConfigError
from pyblasgpu.kernels.common.options import options_of
from pyblasgpu.kernels.copy import symmetrize
from pyblasgpu.kernels.copy.symmetrize import Symmetrize
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES, Region, dtype_of

from .launching import in_region, run, strides
from .test_routines import lay, outside

NAN = float("nan")
BY_ROWS, BY_COLUMNS = (False, (1, 1), 3, False), (True, (1, 1), 3, False)
REGIONS = [
    *product("sdcz", (Region.LOWER, Region.UPPER)),
    *product("cz", (Region.HERMITIAN_LOWER, Region.HERMITIAN_UPPER)),
]


def launch(w, c, beta, region, kernels=symmetrize):
    """C := W + W' + beta C in `region`, for a batch of each; W (batch, n, n) is laid out here, with NaN
    between its columns. Tiles are 8 x 8.
    """
    batch, n, _ = c.shape
    config = kernels.Symmetrize(dtype_of(c.dtype).letter, BLK=8, DIM=32)
    grain = 16 // c.itemsize
    columns = np.full((batch, n, -(-n // grain) * grain), NAN, c.dtype)
    columns[:, :, :n] = w.swapaxes(1, 2)
    integers_ = (n, options_of(region), columns.shape[2], *strides(c)[1:], strides(columns)[0], strides(c)[0])
    run(kernels.source(config), config.grid(n, region), (columns, c), integers_, (beta,), batch)


def check(
    letter="d", n=21, region=Region.LOWER, how=BY_COLUMNS, beta=-1.0, batch=1, kernels=symmetrize
) -> None:
    """Integers, NaN where C is not read; compare with ``==``. C lies as `how`, see `stored`."""
    dtype, rng = DTYPES[letter], np.random.default_rng(n)
    w, old = (integers(rng, (batch, n, n), dtype) for _ in "wc")
    mirrored = w.swapaxes(1, 2).conj() if region.hermitian else w.swapaxes(1, 2)
    expected = (
        w + mirrored + (beta * old if beta else 0)
    )  # of a Hermitian diagonal `in_region` drops the rest
    expected, old = in_region(region, expected, old if beta else np.full_like(old, NAN))
    c = lay(old, how)
    before = outside(c)
    launch(w, c, beta, region, kernels)
    assert np.array_equal(c, expected)
    assert outside(c) == before


@pytest.mark.parametrize("letter, region", REGIONS)
@pytest.mark.parametrize("how", [BY_ROWS, BY_COLUMNS], ids=["rows", "columns"])
@pytest.mark.parametrize("beta", [0.0, -1.0])
def test_triangles(letter, region, how, beta):
    for n in (1, 7, 8, 9, 16, 37):
        check(letter, n, region, how, beta)


@pytest.mark.parametrize("letter, region", REGIONS)
def test_batches(letter, region):
    check(letter, 13, region, batch=3)


@pytest.mark.parametrize("letter, region", REGIONS)
def test_any_strides(letter, region):
    for transposed, steps in product((False, True), ((2, -3), (-1, 1), (3, 2))):
        check(letter, 11, region, (transposed, steps, 1, False), batch=2)


def test_complex_numbers_that_are_aligned_as_reals_are():
    w, memory = np.full((1, 9, 9), 1 - 1j), np.zeros(2 * 81 + 1)
    launch(w, memory[1:].view(complex).reshape(1, 9, 9), 0.0, Region.LOWER)
    assert np.array_equal(memory[1:].view(complex).reshape(9, 9), np.tril(2 * w[0]))


@pytest.mark.parametrize("region", [Region.LOWER, Region.UPPER])
@pytest.mark.parametrize("letter", "cz")
def test_complex_beta(letter, region):
    for beta in (2j, 1 - 2j):
        check(letter, region=region, beta=beta)


@pytest.mark.parametrize("letter, region", REGIONS)
def test_nan_and_infinity_stay_where_they_are(letter, region):
    """Values of W reach their own place or that of their mirror image, those of C their own."""
    w, c = (np.ones((1, 20, 20), DTYPES[letter].name) for _ in "wc")
    inside = c[0].T if region.is_upper else c[0]  # as if it were the lower triangle
    w[0, 12, 5] = w[0, 3, 17] = inside[15, 2] = NAN
    inside[19, 1] = np.inf
    before = c.copy()
    launch(w, c, 2.0, region)
    assert {(i, j) for i, j in np.argwhere(np.isnan(inside.real))} == {(12, 5), (17, 3), (15, 2)}
    assert inside[19, 1].real == np.inf
    assert not region.hermitian or inside[19, 1].imag == 0
    assert np.array_equal(c[:, ~mask(region, 20, 20)], before[:, ~mask(region, 20, 20)])


@pytest.mark.parametrize("letter", "cz")
def test_a_hermitian_diagonal_stays_real(letter):
    w = np.full((1, 3, 3), complex(np.inf, np.inf), DTYPES[letter].name)
    c = np.zeros_like(w)
    launch(w, c, 0.0, Region.HERMITIAN_LOWER)
    assert (np.diagonal(c[0]) == np.inf).all()


def test_only_tiles_that_the_triangle_meets_have_blocks():
    config = Symmetrize("d")
    assert [config.grid(n, Region.UPPER) for n in (1, 32, 33, 96, 100)] == [1, 1, 3, 6, 10]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"DIM": 2048}, "max_threads"),
        ({"DIM": 48}, "whole_warps"),
        ({"BLK": 0}, "threads_tile"),
        ({"BLK": 24}, "threads_tile"),
        ({"BLK": 8, "DIM": 512}, "threads_tile"),
    ],
)
def test_rules(changes, rule):
    with pytest.raises(ConfigError) as caught:
        Symmetrize("d", **changes)
    assert caught.value.rule == rule
