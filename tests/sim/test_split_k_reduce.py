"""`split_k_reduce`: sums of any number of partials, scaled, on top of C or not, exactly."""

from __future__ import annotations

import numpy as np
import pytest

from pyblasgpu.kernels.copy import split_k_reduce
from pyblasgpu.kernels.copy.slices import slices_of
from pyblasgpu.kernels.copy.split_k_reduce import SplitKReduce
from pyblasgpu.testing.reference import fenced, integers
from pyblasgpu.types import DTYPES, Region

from .launching import in_region, run, strides


def check(
    letter="s",
    m=13,
    n=5,
    partials=9,
    alpha=2.0,
    beta=-1.0,
    slices=4,
    unroll=2,
    kernels=split_k_reduce,
    region=Region.ALL,
) -> None:
    """Sum integers, other numbers between their columns, into C between fences; compare with ``==``."""
    dtype, rng = DTYPES[letter], np.random.default_rng(m + 10 * n + 100 * partials)
    config = kernels.SplitKReduce(dtype=letter, DIM=32, SLICES=slices, UNROLL=unroll)
    lead = -(-m // config.VEC) * config.VEC
    p = np.full((partials, n, lead), 99, dtype.name)
    values, old = integers(rng, (partials, m, n), dtype), integers(rng, (m, n), dtype)
    p[:, :, :m] = values.swapaxes(1, 2)
    expected = alpha * values.sum(axis=0) + (beta * old if beta else 0)
    expected, old = in_region(region, expected, old if beta else np.full_like(old, np.nan))
    c, unharmed = fenced(old, "F")
    integers_ = (m, n, partials, config.options(region), lead, strides(c)[1], lead * n)
    run(kernels.source(config), config.grid(lead, n), (p, c), integers_, (alpha, beta))
    assert np.array_equal(c, expected)
    assert unharmed()


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("partials", [1, 2, 7, 8, 9, 23])
def test_numbers_of_partials(letter, partials):
    check(letter, partials=partials)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("m, n", [(1, 1), (1, 40), (40, 1), (4, 4), (3, 70), (64, 3), (129, 2)])
def test_shapes(letter, m, n):
    check(letter, m, n, 3)


@pytest.mark.parametrize("slices, unroll", [(1, 1), (1, 8), (2, 3), (8, 1), (32, 4)])
def test_slices(slices, unroll):
    check("d", 21, 6, 11, slices=slices, unroll=unroll)


@pytest.mark.parametrize("letter", "cz")
def test_complex_scalars(letter):
    check(letter, alpha=1 - 2j, beta=2j)
    check(letter, alpha=1j, beta=3)


@pytest.mark.parametrize("letter", DTYPES)
def test_beta_zero_does_not_read_c(letter):
    check(letter, beta=0.0)


def test_infinities_and_nans_stay_where_they_are():
    p = np.ones((3, 4, 8), np.float32)
    p[1, 2, 3], p[2, 0, 0] = np.nan, np.inf
    c, config = np.zeros((8, 4), np.float32, order="F"), SplitKReduce(dtype="s", DIM=32, SLICES=4, UNROLL=2)
    numbers = 8, 4, 3, config.options(Region.ALL), 8, 8, 32
    run(split_k_reduce.source(config), config.grid(8, 4), (p, c), numbers, (1.0, 0.0))
    assert np.isnan(c[3, 2]) and np.isinf(c[0, 0])
    assert (c == 3).sum() == 30


def test_the_order_of_a_sum_is_that_of_the_partials():
    """Within a slice from its first to its last; then the slices, from the first to the last."""
    rng = np.random.default_rng(3)
    p = rng.standard_normal((11, 1, 32)).astype(np.float32)
    for slices, per_slice in ((1, 11), (4, 3)):
        expected = np.zeros(32, np.float32)
        for first in range(0, 11, per_slice):
            region = np.zeros(32, np.float32)
            for values in p[first : first + per_slice, 0]:
                region += values
            expected += region
        c = np.zeros((32, 1), np.float32, order="F")
        config = SplitKReduce(dtype="s", DIM=32, SLICES=slices, UNROLL=2)
        numbers = 32, 1, 11, config.options(Region.ALL), 32, 32, 32
        run(split_k_reduce.source(config), config.grid(32, 1), (p, c), numbers, (1.0, 0.0))
        assert np.array_equal(c[:, 0], expected)


@pytest.mark.parametrize("letter", DTYPES)
def test_slices_are_no_more_than_partials_keep_busy(letter):
    config = SplitKReduce(dtype=letter)
    slices = {1: 1, 8: 1, 9: 2, 16: 2, 17: 4, 64: 8, 65: 16, 128: 16, 1000: 16}
    assert {count: config.specialize(count).SLICES for count in slices} == slices
    for count in slices:
        served = config.specialize(count)
        assert served.TILE * config.dtype_facts.itemsize * served.SLICES == served.shared_bytes


@pytest.mark.parametrize("letter", DTYPES)
def test_slices_cover_k_by_whole_sectors(letter):
    dtype, grain = DTYPES[letter], 32 // DTYPES[letter].itemsize
    for k in (1, 7, 64, 1000, 65536, 4099):
        for splits in (1, 2, 3, 7, 16, 128):
            depth, count = slices_of(k, splits, dtype)
            assert (count - 1) * depth < k <= count * depth and count <= splits
            assert depth % grain == 0 and (depth - grain) * splits < k
