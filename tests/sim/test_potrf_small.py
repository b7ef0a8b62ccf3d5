"""`potrf_small`: factors of batches of small matrices, every dtype and order in memory, and bad pivots."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import special_pivots

from pyblasgpu.errors import ConfigError
from pyblasgpu.kernels.factor.cholesky import potrf_small
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES

from .launching import run, strides
from .test_potrf_leaf import factors, hermitian

NAN = float("nan")


def factor(a, letter, kernels=potrf_small, clean=0, threads=32, source=None) -> np.ndarray:
    """Factor a batch, in place or from a `source`; the infos, which are amid other integers."""
    batch, n, _ = a.shape
    config, info = kernels.PotrfSmall(letter, threads), np.full((batch, 2), -7, np.int32)
    step, *steps = strides(a)
    integers = n, clean, config.lanes(n), batch, *steps, 2, step
    with np.errstate(all="ignore"):
        run(
            kernels.source(config),
            config.grid(n, batch),
            (info, a if source is None else source, a),
            integers,
            (),
        )
    assert (info[:, 1] == -7).all()
    return info[:, 0]


def check(letter="d", n=7, order="F", batch=5, clean=0, kernels=potrf_small, threads=32) -> None:
    """The factors of random matrices within a few units in the last place, between fences."""
    dtype = DTYPES[letter]
    lower = factors(np.random.default_rng(n), batch, n, dtype)
    source, source_unharmed = fenced(hermitian(lower), order)
    # with zeros beyond the triangle from another matrix, else in place
    a, unharmed = fenced(np.full_like(source, np.nan), order) if clean else (source, source_unharmed)
    assert not factor(a, letter, kernels, clean, threads, source=source).any()
    rows, cols = np.tril_indices(n)
    assert abs(a[:, rows, cols] - lower[:, rows, cols]).max() < 40 * dtype.unit_roundoff * max(n, 4)
    above = a[:, *np.triu_indices(n, 1)]
    assert not above.any() if clean else np.isnan(above.real).all()
    assert not a.imag[:, range(n), range(n)].any()
    assert unharmed() and source_unharmed()


@pytest.mark.parametrize("letter, order, clean", list(product(DTYPES, "CF", (0, 1))))
def test_factors(letter, order, clean):
    for n, batch in ((1, 9), (4, 17), (7, 9), (16, 3)):
        check(letter, n, order, batch, clean, threads=64 if n == 7 else 32)


def special(place: str, letter="d", n=14, kernels=potrf_small) -> None:
    """NaN and Inf: info and factor of LAPACK's divisions by the roots of the pivots."""
    a = special_pivots.matrix(place, letter, n)
    result = np.stack([a, special_pivots.matrix("first", letter, n)])
    info = factor(result, letter, kernels)
    special_pivots.check(result[0], info[0], a)


@pytest.mark.parametrize("place, letter", list(product(special_pivots.PLACES, DTYPES)))
def test_special_values(place, letter):
    for n in (8, 14, 16):
        special(place, letter, n)


def bad_pivots(letter="d", kernels=potrf_small) -> None:
    """The first pivot that is not positive, of each matrix its own; columns before it are factored."""
    dtype = DTYPES[letter]
    lower = factors(np.random.default_rng(3), 6, 6, dtype)
    a = hermitian(lower)
    for at in range(5):
        a[at, at, at] = (0.0, -1.0, NAN, float("-inf"), -1.0)[at]
    info = factor(a, letter, kernels)
    np.testing.assert_array_equal(info, [1, 2, 3, 4, 5, 0])
    for at in range(1, 5):
        np.testing.assert_allclose(
            np.tril(a[at])[:, :at], lower[at][:, :at], rtol=0, atol=100 * dtype.unit_roundoff
        )


@pytest.mark.parametrize("letter", DTYPES)
def test_bad_pivots(letter):
    bad_pivots(letter)


@pytest.mark.parametrize("letter", "sd")
def test_tiny_and_huge_pivots(letter):
    """Nothing is flushed."""
    limits = np.finfo(DTYPES[letter].name)
    for size in (limits.smallest_subnormal * 1024, limits.max / 8):
        a = np.eye(5, dtype=DTYPES[letter].name)[None] * size
        assert not factor(a, letter).any()
        np.testing.assert_array_equal(np.diagonal(a[0]), np.sqrt(a.dtype.type(size)))


def test_configs():
    config = potrf_small.PotrfSmall("d")
    assert config.grid(4, 20_000) == 1250 and config.lanes(5) == 8
    with pytest.raises(ConfigError, match="DIM"):
        potrf_small.PotrfSmall("d", 48)
