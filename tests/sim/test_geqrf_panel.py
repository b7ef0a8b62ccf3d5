"""`geqrf_small`, `geqrf_panel`, `geqrf_tall`: LAPACK's reflectors, special columns, batches, any strides."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from covering import by_precision
from numpy.lib.stride_tricks import as_strided
from scipy.linalg import lapack

from pyblasgpu.kernels.factor.qr import geqrf_panel, geqrf_small, geqrf_tall
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES

from .launching import run, strides


class Panel(NamedTuple):
    """How `geqrf_panel` factors: a panel, or a panel of several blocks."""

    kind: int
    kernels: ModuleType = geqrf_panel
    is_cluster: bool = False

    def factor(self, a, tau) -> None:
        """Factor a batch in place; what a panel leaves of its reflectors is right as well."""
        (batch, m, n), steps, above = a.shape, strides(a), 3
        config = self.kernels.GeqrfPanel(letter_of(a), 64, 1, 8, self.kind, self.is_cluster)
        blocks = config.grid(m) if self.kind == self.kernels.SPREAD else 1
        if self.kind != self.kernels.SPREAD and m > config.block_rows:
            config = replace(config, ROWS=-(-m // 32))
        v, t = np.full((batch, n, m + above), 7, a.dtype), np.full((batch, n, n), 7, a.dtype)
        state, flags = np.full((batch, config.state(blocks)), np.nan, a.dtype), np.zeros(2 * batch, np.int32)
        batches = (strides(array)[0] for array in (tau, a, v, t, state))
        numbers = m, n, above, strides(tau)[1], *steps[1:], m + above, n, *batches
        run(
            self.kernels.source(config), blocks, (tau, a, v[..., above:], t, state, flags), numbers, (), batch
        )
        assert not flags.any()
        for z in range(batch):
            assert_block_reflector(a[z], tau[z], v[z].T, t[z].T, above)


class Small(NamedTuple):
    """How `geqrf_small` factors: two columns of four threads, more than 16 rows in two groups; panels."""

    kernels: ModuleType = geqrf_small
    is_panel: bool = False

    def factor(self, a, tau) -> None:
        (batch, m, n), steps, above = a.shape, strides(a), 3
        rows = next(each for each in ((64, 128) if self.is_panel else (16, 32)) if m <= each)
        columns, threads, wide = (16, 64, 4) if self.is_panel else (rows, 2 * rows, 2)
        config = self.kernels.GeqrfSmall(letter_of(a), threads, rows, columns, wide, self.is_panel)
        v, t = np.full((batch, n, m + above), 7, a.dtype), np.full((batch, n, n), 7, a.dtype)
        other = v[..., above:]
        if not self.is_panel:  # what is read is another matrix of the same strides
            size = 1 + sum((extent - 1) * step for extent, step in zip(a.shape, steps, strict=True))
            other = as_strided(np.full(size, np.nan, a.dtype), a.shape, a.strides)
            other[...], a[...] = a, np.nan
        batches = (strides(array)[0] for array in (tau, a, v if self.is_panel else other, t))
        numbers = m, n, above, strides(tau)[1], *steps[1:], m + above, n, *batches
        run(self.kernels.source(config), 1, (tau, a, other, t), numbers, (), batch)
        for z in range(batch if self.is_panel else 0):
            assert_block_reflector(a[z], tau[z], v[z].T, t[z].T, above)


class Tall(NamedTuple):
    """How `geqrf_tall` factors: a matrix after the other, several blocks each."""

    kernels: ModuleType = geqrf_tall
    info: int | None = None

    def factor(self, a, tau) -> None:
        (batch, m, n), steps = a.shape, strides(a)
        config = self.kernels.GeqrfTall(letter_of(a), 32, 8)
        blocks, flags = config.grid(m, 3), np.zeros(2, np.int32)
        for z in range(batch):
            state, numbers = np.full(config.state(blocks), np.nan, a.dtype), (strides(tau)[1], *steps[1:])
            info, always = np.full(1, self.info or 0, np.int32), int(self.info is None)
            arrays = tau[z], state, a[z], info, flags
            run(self.kernels.source(config), blocks, arrays, (m, n, always, *numbers), ())
            assert not flags.any()


def letter_of(a) -> str:
    return dict(zip("fdFD", "sdcz", strict=True))[a.dtype.char]


def assert_block_reflector(a, tau, v, t, above) -> None:
    """V has its ones and zeros, and I - V T V^H is the product of the reflectors."""
    m, n = a.shape
    np.testing.assert_array_equal(v[:above], 0)
    np.testing.assert_array_equal(v[above:], np.tril(a, -1) + np.eye(m, n))
    np.testing.assert_array_equal(np.tril(t, -1), 0)
    if np.isfinite(tau).all() and np.isfinite(a).all():
        v = v[above:].astype("D")
        q = reduce(np.matmul, (np.eye(m) - tau[i] * np.outer(v[:, i], v[:, i].conj()) for i in range(n)))
        np.testing.assert_allclose(np.eye(m) - v @ t @ v.conj().T, q, atol=200 * np.finfo(a.dtype).eps)


KINDS = {
    "small": Small(),
    "small panel": Small(is_panel=True),
    "panel": Panel(geqrf_panel.PANEL),
    "spread": Panel(geqrf_panel.SPREAD),
    "tall": Tall(),
}
CLUSTER = Panel(geqrf_panel.SPREAD, is_cluster=True)


def lapacks(a, letter):
    """LAPACK's factors of a batch, in double precision, without blocks."""
    wide = "dz"[letter in "cz"]
    return [getattr(lapack, f"{wide}geqrf")(matrix)[:2] for matrix in a.astype(DTYPES[wide].name)]


def check(letter="d", m=13, n=5, order="F", batch=1, way=KINDS["small"], scale=1.0) -> None:
    """LAPACK's reflectors, R and tau of a random batch, between fences."""
    rng, dtype = np.random.default_rng(m + n), DTYPES[letter]
    a = rng.standard_normal((batch, m, n))
    if dtype.is_complex:
        a = a + 1j * rng.standard_normal((batch, m, n))
    a, unharmed = fenced((a * scale).astype(dtype.name), order)
    tau, tau_unharmed = fenced(np.full((batch, n), np.nan, dtype.name), "C")
    expected = lapacks(a, letter)
    way.factor(a, tau)
    for z, (qr, scalars) in enumerate(expected):
        tolerance = 60 * dtype.unit_roundoff
        np.testing.assert_allclose(tau[z], scalars, rtol=0, atol=tolerance)
        sizes = np.where(np.tri(m, n, -1, dtype=bool), 1, scale)
        np.testing.assert_allclose(a[z] / sizes, qr / sizes, rtol=0, atol=10 * tolerance)
        assert (np.diagonal(a[z]).imag == 0).all()
    assert unharmed() and tau_unharmed()


KERNELS = pytest.mark.parametrize("way", KINDS.values(), ids=KINDS)


@pytest.mark.parametrize("letter, kind", by_precision(KINDS))
def test_reflectors_are_lapacks(letter, kind):
    way, order = KINDS[kind], "CF"[letter in "sz"]
    largest = {"small": (32, 30), "small panel": (70, 14)}.get(kind, (70, 6))
    for m, n in ((1, 1), (7, 7), largest):
        check(letter, m, n, order, way=way)


@pytest.mark.parametrize("letter, kind", by_precision(KINDS))
def test_batches(letter, kind):
    check(letter, 23, 3, batch=3, way=KINDS[kind])


@pytest.mark.parametrize("letter", "dc")
def test_blocks_of_a_cluster(letter):
    check(letter, 70, 3, batch=2, way=CLUSTER)


@KERNELS
@pytest.mark.parametrize(
    "letter, scale", [("s", 1e37), ("s", 1e-37), ("d", 1e307), ("d", 1e-307), ("z", 1e307)]
)
def test_large_and_small_numbers(letter, scale, way):
    check(letter, 12, 4, scale=scale, way=way)


def special(letter="d", way=KINDS["small"]) -> None:
    """Columns of zeros, of one element, of small ones beside it, and NaN or Inf, as LAPACK has them."""
    a = np.zeros((4, 9, 3), DTYPES[letter].name)
    a[:, :, 2] = np.arange(9) + 1
    a[0, 0, 0], a[0, 1, 1] = -2, 3
    a[1, :, 0] = [3, *[1e-18 if letter in "sc" else 1e-150] * 8]
    a[2, 4, 1] = np.nan
    a[3, 1, 1], a[3, 0, 0] = np.inf, 1
    tau, expected = np.full((4, 3), np.nan, a.dtype), lapacks(a, letter)
    way.factor(a, tau)
    for z, (qr, scalars) in enumerate(expected):
        np.testing.assert_array_equal(np.isfinite(tau[z]), np.isfinite(scalars))
        finite = np.isfinite(scalars)
        np.testing.assert_allclose(tau[z, finite], scalars[finite], rtol=0, atol=1e-5)
        np.testing.assert_allclose(a[z][:, finite], qr[:, finite], rtol=0, atol=1e-5)
        assert not np.isfinite(np.triu(a[z])[:, ~finite]).all(axis=0).any()


@pytest.mark.parametrize("letter, kind", by_precision(KINDS))
def test_special_columns(letter, kind):
    special(letter, KINDS[kind])


def infinite(letter="d", way=KINDS["small"]) -> None:
    """Infinity in a row of R, or one that a reflector meets, spoils no other row than with LAPACK."""
    a = np.zeros((2, 5, 3), DTYPES[letter].name)
    a[:, 0, 0], a[:, :, 1], a[:, :, 2] = 3, [1, 3, 4, 0, 0], [1, 2, 3, 4, 5]
    a[0, 0, 2], a[1, 3, 1] = np.inf, np.inf
    tau, expected = np.full((2, 3), np.nan, a.dtype), lapacks(a, letter)
    way.factor(a, tau)
    for z, (qr, _) in enumerate(expected):
        np.testing.assert_array_equal(np.isfinite(a[z, :2]), np.isfinite(qr[:2]))


@KERNELS
@pytest.mark.parametrize("letter", "sdz")
def test_infinity_stays_where_it_is(letter, way):
    infinite(letter, way)


def imaginary(letter="z", way=KINDS["small"]) -> None:
    """A complex element alone becomes a real one; tau is LAPACK's."""
    a = np.array([[[1 + 2j, 1], [0, 3j]]], DTYPES[letter].name)
    tau, ((qr, scalars),) = np.full((1, 2), np.nan, a.dtype), lapacks(a, letter)
    way.factor(a, tau)
    np.testing.assert_allclose(a[0], qr, rtol=0, atol=1e-6)
    np.testing.assert_allclose(tau[0], scalars, rtol=0, atol=1e-6)


@KERNELS
@pytest.mark.parametrize("letter", "cz")
def test_imaginary_parts(letter, way):
    imaginary(letter, way)


def negligible(letter="d", way=KINDS["small"]) -> None:
    """What an elimination leaves far below the size of its column counts as zero; Q stays unitary."""
    tiny = 1.3 * (2.0**-75 if letter in "sc" else 2.0**-537)
    a = np.zeros((1, 5, 2), DTYPES[letter].name)
    a[0, :, 0], a[0, 0, 1], a[0, 2:, 1] = [1, 0, 0, 0, 0], 1, [tiny, 3 * tiny, tiny]
    tau = np.full((1, 2), np.nan, a.dtype)
    way.factor(a, tau)
    v = np.append(1, a[0, 2:, 1].astype(complex))
    reflector = np.eye(4) - complex(tau[0, 1]) * np.outer(v, v.conj())
    np.testing.assert_allclose(reflector.conj().T @ reflector, np.eye(4), atol=1e-6)


@pytest.mark.parametrize("letter, kind", by_precision(KINDS))
def test_negligible_rests(letter, kind):
    negligible(letter, KINDS[kind])


def test_tall_panels_of_several_parts():
    check("c", 40, 19, way=Tall())


def skipped(kernels=geqrf_tall) -> None:
    """Nothing is done where info is 0; else the factors are LAPACK's."""
    a = np.random.default_rng(3).standard_normal((1, 40, 3))
    tau, before = np.full((1, 3), np.nan), a.copy()
    Tall(kernels, 0).factor(a, tau)
    assert (a == before).all() and np.isnan(tau).all()
    check("d", 40, 3, way=Tall(kernels, 2))


def test_tall_panels_that_are_skipped():
    skipped()
