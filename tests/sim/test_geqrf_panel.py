"""`geqrf_panel` and `geqrf_tall`: LAPACK's reflectors, special columns, batches, any strides."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import lapack

from pyblasgpu.kernels.factor.qr import geqrf_panel, geqrf_tall
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES

from .launching import run, strides


def factor(a, tau, kernels=geqrf_panel) -> None:
    """Factor a batch in place, a block a matrix or several."""
    (batch, m, n), steps = a.shape, strides(a)
    letter = {array: letter for letter, array in zip("sdcz", "fdFD", strict=True)}[a.dtype.char]
    numbers = strides(tau)[1], *steps[1:], strides(tau)[0]
    if hasattr(kernels, "GeqrfPanel"):
        source = kernels.source(kernels.GeqrfPanel(letter, 64, 24))
        run(source, 1, (tau, a), (m, n, *numbers, steps[0]), (), batch)
        return
    config = kernels.GeqrfTall(letter, 32, 8)
    blocks, flags = config.grid(m, 3), np.zeros(2, np.int32)
    for z in range(batch):
        state = np.full(config.state(blocks), np.nan, a.dtype)
        run(kernels.source(config), blocks, (tau[z], state, a[z], flags), (m, n, *numbers[:3]), ())
        assert not flags.any()


def lapacks(a, letter):
    """LAPACK's factors of a batch, in double precision, without blocks."""
    wide = "dz"[letter in "cz"]
    return [getattr(lapack, f"{wide}geqrf")(matrix)[:2] for matrix in a.astype(DTYPES[wide].name)]


def check(letter="d", m=13, n=5, order="F", batch=1, kernels=geqrf_panel, scale=1.0) -> None:
    """LAPACK's reflectors, R and tau of a random batch, between fences."""
    rng, dtype = np.random.default_rng(m + n), DTYPES[letter]
    a = rng.standard_normal((batch, m, n))
    if dtype.is_complex:
        a = a + 1j * rng.standard_normal((batch, m, n))
    a, unharmed = fenced((a * scale).astype(dtype.name), order)
    tau, tau_unharmed = fenced(np.full((batch, n), np.nan, dtype.name), "C")
    expected = lapacks(a, letter)
    factor(a, tau, kernels)
    for z, (qr, scalars) in enumerate(expected):
        tolerance = 60 * dtype.unit_roundoff
        np.testing.assert_allclose(tau[z], scalars, rtol=0, atol=tolerance)
        sizes = np.where(np.tri(m, n, -1, dtype=bool), 1, scale)
        np.testing.assert_allclose(a[z] / sizes, qr / sizes, rtol=0, atol=10 * tolerance)
        assert (np.diagonal(a[z]).imag == 0).all()
    assert unharmed() and tau_unharmed()


KERNELS = pytest.mark.parametrize("kernels", [geqrf_panel, geqrf_tall], ids=["panel", "tall"])


@KERNELS
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("letter", DTYPES)
def test_reflectors_are_lapacks(letter, order, kernels):
    for m, n in ((1, 1), (7, 7), (70, 6)):
        check(letter, m, n, order, kernels=kernels)


@KERNELS
@pytest.mark.parametrize("letter", DTYPES)
def test_batches(letter, kernels):
    check(letter, 39, 3, batch=3, kernels=kernels)


@KERNELS
@pytest.mark.parametrize(
    "letter, scale", [("s", 1e37), ("s", 1e-37), ("d", 1e307), ("d", 1e-307), ("z", 1e307)]
)
def test_large_and_small_numbers(letter, scale, kernels):
    check(letter, 12, 4, scale=scale, kernels=kernels)


def special(letter="d", kernels=geqrf_panel) -> None:
    """Columns of zeros, of one element, of small ones beside it, and NaN or Inf, as LAPACK has them."""
    a = np.zeros((4, 9, 3), DTYPES[letter].name)
    a[:, :, 2] = np.arange(9) + 1
    a[0, 0, 0], a[0, 1, 1] = -2, 3
    a[1, :, 0] = [3, *[1e-18 if letter in "sc" else 1e-150] * 8]
    a[2, 4, 1] = np.nan
    a[3, 1, 1], a[3, 0, 0] = np.inf, 1
    tau, expected = np.full((4, 3), np.nan, a.dtype), lapacks(a, letter)
    factor(a, tau, kernels)
    for z, (qr, scalars) in enumerate(expected):
        np.testing.assert_array_equal(np.isfinite(tau[z]), np.isfinite(scalars))
        finite = np.isfinite(scalars)
        np.testing.assert_allclose(tau[z, finite], scalars[finite], rtol=0, atol=1e-5)
        np.testing.assert_allclose(a[z][:, finite], qr[:, finite], rtol=0, atol=1e-5)
        assert not np.isfinite(np.triu(a[z])[:, ~finite]).all(axis=0).any()


@KERNELS
@pytest.mark.parametrize("letter", DTYPES)
def test_special_columns(letter, kernels):
    special(letter, kernels)


def imaginary(letter="z", kernels=geqrf_panel) -> None:
    """A complex element alone becomes a real one; tau is LAPACK's."""
    a = np.array([[[1 + 2j, 1], [0, 3j]]], DTYPES[letter].name)
    tau, ((qr, scalars),) = np.full((1, 2), np.nan, a.dtype), lapacks(a, letter)
    factor(a, tau, kernels)
    np.testing.assert_allclose(a[0], qr, rtol=0, atol=1e-6)
    np.testing.assert_allclose(tau[0], scalars, rtol=0, atol=1e-6)


@KERNELS
@pytest.mark.parametrize("letter", "cz")
def test_imaginary_parts(letter, kernels):
    imaginary(letter, kernels)


def negligible(letter="d", kernels=geqrf_panel) -> None:
    """What an elimination leaves far below the size of its column counts as zero; Q stays unitary."""
    tiny = 1.3 * (2.0**-75 if letter in "sc" else 2.0**-537)
    a = np.zeros((1, 5, 2), DTYPES[letter].name)
    a[0, :, 0], a[0, 0, 1], a[0, 2:, 1] = [1, 0, 0, 0, 0], 1, [tiny, 3 * tiny, tiny]
    tau = np.full((1, 2), np.nan, a.dtype)
    factor(a, tau, kernels)
    v = np.append(1, a[0, 2:, 1].astype(complex))
    reflector = np.eye(4) - complex(tau[0, 1]) * np.outer(v, v.conj())
    np.testing.assert_allclose(reflector.conj().T @ reflector, np.eye(4), atol=1e-6)


@KERNELS
@pytest.mark.parametrize("letter", DTYPES)
def test_negligible_rests(letter, kernels):
    negligible(letter, kernels)
