"""`geqp3`, `geqp3_panel`: LAPACK's factors and pivots, special columns, batches, strides, several blocks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import lapack

from pyblasgpu.kernels.factor.qr import geqp3, geqp3_panel
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES

from .launching import run, strides

WIDE = {"s": "d", "d": "d", "c": "z", "z": "z"}


def factored(a, kernels=geqp3, blocks=1, info=None):
    """The pivots, from 1, and tau of a batch, which becomes its factors; with `info` there are no pivots."""
    if hasattr(kernels, "Geqp3Panel"):
        return by_panels(a, kernels, blocks)
    batch, m, n = a.shape
    letter = dict(zip("fdFD", "sdcz", strict=True))[a.dtype.char]
    config = kernels.Geqp3(letter, 64, blocks > 1)
    tau, tau_unharmed = fenced(np.full((batch, min(m, n)), np.nan, a.dtype), "C")
    jpvt, jpvt_unharmed = fenced(np.full((batch, n), -7, np.int32), "C")
    w = np.full((batch, n, m + 3), 7, a.dtype)
    w[..., :m] = a.swapaxes(1, 2)
    reals, order = kernels.STATE * n, np.full((batch, blocks, 2 * n), -1, np.int32)
    state, flags = (
        np.full((batch, -(-reals * a.real.itemsize // a.itemsize)), np.nan, a.dtype),
        np.zeros(2 * batch, np.int32),
    )
    a[...] = np.nan  # which is not read
    pivots, info = int(info is None), np.zeros((batch, 1), np.int32) if info is None else info
    arrays, batches = (tau, a, w, state, jpvt, order, info, flags), (tau, jpvt, a, w, state, order, info)
    steps = strides(tau)[1], strides(jpvt)[1], *strides(a)[1:], m + 3
    numbers = m, n, pivots, *steps, *(strides(each)[0] for each in batches)
    run(kernels.source(config), blocks, arrays, numbers, (), batch)
    assert not flags.any() and tau_unharmed() and jpvt_unharmed() and (w[..., m:] == 7).all()
    return jpvt, tau


def by_panels(a, kernels, blocks, steps=3):
    """The pivots and tau of a batch, which becomes its factors, by panels and products of V and G."""
    batch, m, n = a.shape
    letter, least = dict(zip("fdFD", "sdcz", strict=True))[a.dtype.char], min(m, n)
    config = kernels.Geqp3Panel(letter, 64, steps)
    tau, tau_unharmed = fenced(np.full((batch, least), np.nan, a.dtype), "C")
    jpvt, jpvt_unharmed = fenced(np.full((batch, n), -7, np.int32), "C")
    w = np.full((batch, n, m + 3), 7, a.dtype)
    w[..., :m] = a.swapaxes(1, 2)
    g = np.full((batch, n, 2 * steps), np.nan, a.dtype)
    state, flags = (
        np.full((batch, config.state(n, blocks)), np.nan, a.real.dtype),
        np.zeros(2 * batch, np.int32),
    )
    for first in (0, *range(0, least, steps), least):
        last = min(first + steps, least) if (state[0, 0] == state[0, 0]) else first
        numbers = m, n, first, last - first, strides(tau)[1], strides(jpvt)[1], m + 3
        batches = (strides(each)[0] for each in (tau, jpvt, w, g, state))
        run(kernels.source(config), blocks, (tau, w, g, state, jpvt, flags), (*numbers, *batches), (), batch)
        if last > first:
            w[:, last:, first:last] = g[:, last:, steps : steps + last - first]
            w[:, last:, last:m] -= g[:, last:, : last - first] @ w[:, first:last, last:m]
    assert not flags.any() and tau_unharmed() and jpvt_unharmed() and (w[..., m:] == 7).all()
    a[...] = w[..., :m].swapaxes(1, 2)
    return jpvt, tau


def matrices(letter, batch, m, n):
    rng, name = np.random.default_rng(m + 2 * n), DTYPES[letter].name
    a = rng.standard_normal((batch, m, n))
    return (a + (1j * rng.standard_normal(a.shape) if letter in "cz" else 0)).astype(name)


def check(letter="d", m=9, n=7, order="F", batch=1, blocks=1, scales=1.0, kernels=geqp3) -> None:
    """LAPACK's pivots and factors of a random batch, with columns of these scales."""
    start = (matrices(letter, batch, m, n) * scales).astype(DTYPES[letter].name)
    a, unharmed = fenced(start, order)
    jpvt, tau = factored(a, kernels, blocks)
    assert unharmed()
    atol = 60 * max(m, n) * DTYPES[letter].unit_roundoff
    for z in range(batch):
        wide = start[z].astype(DTYPES[WIDE[letter]].name)
        qr, pivots, factors, _, _ = getattr(lapack, f"{WIDE[letter]}geqp3")(wide)
        np.testing.assert_array_equal(jpvt[z], pivots)
        sizes = np.where(np.tri(m, n, -1, dtype=bool), 1, np.broadcast_to(scales, n)[pivots - 1])
        np.testing.assert_allclose(a[z] / sizes, qr / sizes, rtol=0, atol=10 * atol)
        np.testing.assert_allclose(tau[z], factors, rtol=0, atol=atol)
        assert not np.diagonal(a[z]).imag.any()


@pytest.mark.parametrize(
    "letter, order, blocks, kernels",
    [
        *(("s", "C", 1, geqp3), ("d", "F", 3, geqp3), ("c", "F", 1, geqp3)),
        *(("z", "C", 3, geqp3), ("s", "F", 2, geqp3_panel), ("c", "F", 1, geqp3_panel)),
    ],
)
def test_factors_are_lapacks(letter, order, blocks, kernels):
    for m, n in ((1, 1), (5, 9), (70, 6)):
        check(letter, m, n, order, blocks=blocks, kernels=kernels)


@pytest.mark.parametrize("blocks, kernels", [(1, geqp3), (2, geqp3_panel)])
def test_batches(blocks, kernels):
    check("d", 11, 5, batch=3, blocks=blocks, kernels=kernels)


@pytest.mark.parametrize("letter, kernels", [("s", geqp3), ("d", geqp3), ("s", geqp3_panel)])
def test_columns_of_all_sizes(letter, kernels):
    """Norms whose squares, and whose ratios, are beyond the range of the dtype."""
    span = 37 if letter == "s" else 300
    check(letter, 9, 5, scales=10.0 ** np.array([-span, span, 0, -span + 1, span - 1]), kernels=kernels)


def cancelled(letter="z", kernels=geqp3_panel) -> None:
    """LAPACK's pivots of columns that differ by little: the first one leaves no digit of the other norms."""
    start = matrices(letter, 1, 40, 6)
    start[...] = start[..., :1] + 1e-9 * start * [0, 3, 1, 4, 2, 5]
    a = start.copy()
    jpvt, _ = factored(a, kernels)
    qr, pivots, *_ = getattr(lapack, f"{letter}geqp3")(start[0])
    np.testing.assert_array_equal(jpvt[0, 1:], pivots[1:])
    np.testing.assert_allclose(np.abs(np.diagonal(a[0])), np.abs(np.diagonal(qr)), rtol=1e-6)


def test_norms_that_cancel():
    cancelled()


def special(blocks=1, kernels=geqp3) -> None:
    """Equal columns in their order; zeros last; what depends on others; nothing of one matrix in others."""
    a = np.zeros((5, 5, 4))
    a[0, :4] = np.eye(4)
    a[1] = np.arange(20).reshape(5, 4)
    a[2, :, 2], a[2, :, 1] = 3, np.arange(5)
    a[3, :, 0] = np.nan
    a[4, 0, :2], a[4, 1, 2], a[4, 2, 3] = (1e300, 5e299), 1e-300, 1e-290
    start = a.copy()
    jpvt, tau = factored(a, kernels, blocks)
    assert jpvt[0].tolist() == [1, 2, 3, 4] and not tau[0].any()
    for z in range(3):
        assert sorted(jpvt[z]) == [1, 2, 3, 4]
        q = lapack.dorgqr(a[z], tau[z])[0]
        np.testing.assert_allclose(q @ np.triu(a[z, :4]), start[z][:, jpvt[z] - 1], atol=1e-14)
        np.testing.assert_allclose(q.T @ q, np.eye(4), atol=1e-14)  # of columns of rounding errors too
    assert (np.abs(np.diagonal(a[1])[2:]) < 1e-13).all() and jpvt[2].tolist() == [3, 2, 1, 4]
    assert sorted(jpvt[3]) == [1, 2, 3, 4] and jpvt[4].tolist() == [1, 4, 3, 2]


def unpivoted(letter="d", blocks=1, kernels=geqp3) -> None:
    """LAPACK's factors without pivots of matrices with an info; others, and their tau, stay."""
    start = matrices(letter, 3, 12, 5)
    start[0, :, 3] = 0
    a, info = start.copy(), np.array([[4], [0], [1]], np.int32)
    jpvt, tau = factored(a, kernels, blocks, info)
    assert (jpvt == -7).all() and np.isnan(tau[1]).all() and np.isnan(a[1]).all()
    for z in (0, 2):
        qr, factors, _, _ = getattr(lapack, f"{letter}geqrf")(start[z])
        np.testing.assert_allclose(a[z], qr, rtol=0, atol=1e-13)
        np.testing.assert_allclose(tau[z], factors, rtol=0, atol=1e-13)


@pytest.mark.parametrize("letter, blocks", [("d", 1), ("z", 2)])
def test_factors_without_pivots(letter, blocks):
    unpivoted(letter, blocks)


@pytest.mark.parametrize("blocks, kernels", [(1, geqp3), (2, geqp3), (2, geqp3_panel)])
def test_special_columns(blocks, kernels):
    special(blocks, kernels)
