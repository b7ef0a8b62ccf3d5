"""`potrf_leaf` on small panels: exact factors, every dtype and order in memory, and bad pivots."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import special_pivots

from pyblasgpu.errors import ConfigError
from pyblasgpu.kernels.factor.cholesky import potrf_leaf
from pyblasgpu.kernels.factor.cholesky.potrf_leaf import PotrfLeaf
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES

from .launching import run, strides

NAN = float("nan")


def factors(rng, batch: int, n: int, dtype) -> np.ndarray:
    """Lower triangles of well-conditioned factors."""
    lower = np.tril(rng.uniform(-1, 1, (batch, n, n)) / 4)
    if dtype.is_complex:
        lower = lower + 1j * np.tril(rng.uniform(-1, 1, (batch, n, n)) / 4, -1)
    lower[:, range(n), range(n)] = rng.uniform(1, 2, (batch, n))
    return lower.astype(dtype.name)


def hermitian(lower: np.ndarray) -> np.ndarray:
    """The matrix of which `lower` is the factor: its lower triangle, and NaN where nothing is read."""
    wide = lower.astype(np.result_type(lower.dtype, np.float64))
    a = (wide @ wide.swapaxes(1, 2).conj()).astype(lower.dtype)
    n = a.shape[-1]
    a[:, *np.triu_indices(n, 1)] = NAN
    if a.dtype.kind == "c":
        a.imag[:, range(n), range(n)] = NAN
    return a


def factor(a, info, config, before=0, kernels=potrf_leaf, clean=0, source=None) -> None:
    """Factor a batch, in place or from a `source`; `info` holds an int32 a matrix."""
    batch, n, _ = a.shape
    source = a if source is None else source
    steps, of_source = strides(a), strides(source)
    run(
        kernels.source(config),
        1,
        (info, source, a),
        (n, before, clean, *of_source[1:], *steps[1:], 1, of_source[0], steps[0]),
        (),
        batch,
    )


def unknown(batch: int) -> np.ndarray:
    """Infos before a call."""
    return np.full(batch, -1, np.int32)


def check(
    letter="d", n=13, order="F", batch=1, kernels=potrf_leaf, threads=32, size=16, clean=0, blk=8
) -> None:
    """The factor of a random matrix within a few units in the last place, between fences."""
    dtype, rng = DTYPES[letter], np.random.default_rng(n)
    lower = factors(rng, batch, n, dtype)
    source, source_unharmed = fenced(hermitian(lower), order)
    # with zeros beyond the triangle from another matrix, for an odd n of the other order, else in place
    a, unharmed = source, source_unharmed
    if clean:
        a, unharmed = fenced(np.full_like(source, np.nan), "CF"["CF".index(order) ^ n % 2])
    info = unknown(batch)
    config = kernels.PotrfLeaf(letter, size, threads, blk)
    factor(a, info, config, kernels=kernels, clean=clean, source=source)
    assert info.tolist() == [0] * batch
    rows, cols = np.tril_indices(n)
    bound = 40 * dtype.unit_roundoff * max(n, 4)
    assert abs(a[:, rows, cols] - lower[:, rows, cols]).max() < bound
    above = a[:, *np.triu_indices(n, 1)]
    assert not above.any() if clean else np.isnan(above.real).all()
    assert not a.imag[:, range(n), range(n)].any()
    assert unharmed() and source_unharmed()


@pytest.mark.parametrize("letter, order", [("s", "F"), ("d", "C"), ("z", "F")])
def test_zeros_beyond_the_triangle(letter, order):
    for n, size, blk in ((2, 16, 8), (13, 16, 16), (16, 16, 8), (30, 32, 8), (31, 32, 16)):
        check(letter, n, order, batch=2, size=size, clean=1, blk=blk)


@pytest.mark.parametrize("letter, order", list(product(DTYPES, "CF")))
def test_every_dtype_and_order(letter, order):
    for n in (1, 5, 8, 13, 16):
        check(letter, n, order)


@pytest.mark.parametrize("letter", DTYPES)
def test_batches(letter):
    check(letter, 11, batch=3)


def test_more_threads_than_rows_and_more_tiles_than_threads():
    check("d", 21, threads=64, size=24)
    check("d", 32, threads=32, size=32)


def near_identity(letter="d", n=13, kernels=potrf_leaf) -> None:
    """Half of the difference from the identity is the factor where its square is less than a roundoff in all
    rows; else what the factor is without a look, of the other matrices of a batch.
    """
    dtype, rng = DTYPES[letter], np.random.default_rng(n)
    config = kernels.PotrfLeaf(letter, 16, 32, 8)
    a = np.tile(np.eye(n, dtype=dtype.name), (4, 1, 1))
    rows, cols = np.tril_indices(n, -1)
    a[0, rows, cols] = rng.uniform(-0.9, 0.9, len(rows)) * (dtype.unit_roundoff / n) ** 0.5
    a[0, range(n), range(n)] += 0.2 * (dtype.unit_roundoff / n) ** 0.5
    a[1, n - 1, :-1] = 1.1 * (dtype.unit_roundoff / (n - 1)) ** 0.5
    a[2, n // 2, n // 2] += 2.2 * dtype.unit_roundoff**0.5
    a[3, 1, 0] = NAN
    expected, infos, info = a.copy(), unknown(4), unknown(4)
    factor(expected, infos, config, kernels=kernels, clean=kernels.CLEAN)
    expected[0, rows, cols] = a[0, rows, cols]
    expected[0, range(n), range(n)] = np.diagonal(a[0]).real / 2 + 0.5
    factor(a, info, config, kernels=kernels, clean=kernels.CLEAN + kernels.NEAR)
    np.testing.assert_array_equal(a, expected)
    assert info.tolist() == infos.tolist() and not infos[:3].any()


@pytest.mark.parametrize("letter", DTYPES)
def test_matrices_near_the_identity(letter):
    near_identity(letter)


def bad_pivot(letter="d", n=14, at=5, before=0, kernels=potrf_leaf, value=-1.0) -> None:
    """The first pivot that is not positive is told, and the columns before it are factored."""
    dtype = DTYPES[letter]
    lower = factors(np.random.default_rng(at), 2, n, dtype)
    a = hermitian(lower)
    a[0, at, at] = value
    info = unknown(2) if before == 0 else np.zeros(2, np.int32)
    factor(a, info, kernels.PotrfLeaf(letter, 16, 32, 8), before, kernels)
    assert info.tolist() == [before + at + 1, 0]
    rows, cols = np.tril_indices(n)
    kept = cols < at
    error = abs(a[0, rows[kept], cols[kept]] - lower[0, rows[kept], cols[kept]])
    assert error.max(initial=0) < 300 * dtype.unit_roundoff


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("at", [0, 3, 4, 9, 13])
def test_a_bad_pivot(letter, at):
    bad_pivot(letter, at=at)


@pytest.mark.parametrize("value", [0.0, NAN, float("-inf")])
def test_pivots_that_are_not_positive(value):
    bad_pivot(value=value)


def test_rows_before():
    bad_pivot(before=64)


def earlier_pivot(kernels=potrf_leaf) -> None:
    """Where an earlier pivot was bad nothing changes; elsewhere the matrix is factored."""
    lower = factors(np.random.default_rng(1), 2, 9, DTYPES["d"])
    a = hermitian(lower)
    before, info = a.copy(), np.array([7, 0], np.int32)
    factor(a, info, kernels.PotrfLeaf("d", 16, 32, 8), 16, kernels)
    assert info.tolist() == [7, 0]
    np.testing.assert_array_equal(a[0], before[0])
    np.testing.assert_allclose(np.tril(a[1]), lower[1], rtol=1e-13)


def test_an_earlier_bad_pivot():
    earlier_pivot()


def extreme(letter="d", exponent=-1, kernels=potrf_leaf) -> None:
    """Pivots that are tiny, subnormal among them, or huge: nothing is flushed."""
    dtype = DTYPES[letter]
    limits = np.finfo(dtype.name)
    size = limits.smallest_subnormal * 1024 if exponent < 0 else limits.max / 8
    a = np.full((1, 5, 5), NAN, dtype.name)
    a[0, range(5), range(5)] = size
    a[0, *np.tril_indices(5, -1)] = 0
    info = np.zeros(1, np.int32)
    factor(a, info, kernels.PotrfLeaf(letter, 16, 32, 8), kernels=kernels)
    assert info.tolist() == [0]
    np.testing.assert_allclose(np.diagonal(a[0]), np.sqrt(a.dtype.type(size)), rtol=4 * dtype.unit_roundoff)


@pytest.mark.parametrize("letter", "sd")
@pytest.mark.parametrize("exponent", [-1, 1])
def test_tiny_and_huge_pivots(letter, exponent):
    extreme(letter, exponent)


def special(place: str, letter="d", n=14, kernels=potrf_leaf) -> None:
    """NaN and Inf: info and factor of LAPACK's divisions by the roots of the pivots."""
    a = special_pivots.matrix(place, letter, n)
    result, info = np.array(a[None]), unknown(1)
    factor(result, info, kernels.PotrfLeaf(letter, 16, 32, 8), kernels=kernels)
    special_pivots.check(result[0], info.tolist()[0], a)


@pytest.mark.parametrize("place, letter", list(product(special_pivots.PLACES, DTYPES)))
def test_special_values(place, letter):
    for n in (8, 14, 16):
        special(place, letter, n)


@pytest.mark.parametrize("letter, value", list(product(DTYPES, (float("inf"), NAN, 0.0))))
def test_order_one(letter, value):
    a, info = np.full((1, 1, 1), value, DTYPES[letter].name), unknown(1)
    factor(a, info, PotrfLeaf(letter, 16, 32, 8))
    assert info.tolist() == [int(not value > 0)]
    if value > 0:
        np.testing.assert_array_equal(a, value)


def accurate(letter="d", kernels=potrf_leaf) -> None:
    """Square roots within two units in the last place."""
    dtype, values = DTYPES[letter], np.random.default_rng(3).uniform(0.5, 2, 16)
    a = np.diag(values).astype(dtype.name)[None]
    factor(a, np.zeros(1, dtype.name), kernels.PotrfLeaf(letter, 16, 32, 8), kernels=kernels)
    expected = np.sqrt(values.astype(dtype.name))
    np.testing.assert_allclose(np.diagonal(a[0]), expected, rtol=3 * dtype.unit_roundoff)


@pytest.mark.parametrize("letter", "sd")
def test_square_roots(letter):
    accurate(letter)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"DIM": 2048}, "max_threads"),
        ({"DIM": 144}, "whole_warps"),
        ({"ORDER": 100}, "order"),
        ({"DIM": 64}, "thread_a_row"),
        ({"BLK": 24}, "panels"),
        ({"BLK": 2}, "panels"),
    ],
)
def test_rules(changes, rule):
    with pytest.raises(ConfigError) as caught:
        PotrfLeaf("d", **changes)
    assert caught.value.rule == rule


def test_smaller_matrices_have_smaller_blocks():
    config = PotrfLeaf("d")
    blocks = [(config.specialize(n).ORDER, config.specialize(n).DIM) for n in (1, 17, 32, 33, 64, 65, 128)]
    assert blocks == [(16, 32), (32, 32), (32, 32), (64, 128), (64, 128), (128, 256), (128, 256)]


def test_devices_with_little_shared_memory():
    config = PotrfLeaf("d")
    assert config.fitting(232448) is config
    smaller = config.fitting(101376)
    assert (smaller.ORDER, smaller.DIM) == (64, 128) and smaller.shared_bytes <= 101376


def wide_tiles(letter="d", kernels=potrf_leaf) -> None:
    """Panels of sixteen columns, and tiles of sixteen rows on the tensor cores."""
    dtype = DTYPES[letter]
    lower = factors(np.random.default_rng(6), 1, 45, dtype)
    lower[:, np.tri(45, k=-9, dtype=bool)] /= 4
    a, info = hermitian(lower), unknown(1)
    factor(a, info, kernels.PotrfLeaf(letter, 48, 64, 16), kernels=kernels)
    assert info.tolist() == [0]
    np.testing.assert_allclose(np.tril(a[0]), lower[0], rtol=0, atol=1000 * dtype.unit_roundoff)


@pytest.mark.parametrize("letter", "dz")
def test_wide_tiles(letter):
    wide_tiles(letter)
