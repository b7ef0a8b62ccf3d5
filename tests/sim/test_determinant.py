"""`determinant`: signs, logarithms and determinants of diagonals and interchanges, in the simulator."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from exact_determinants import check_slogdet, exact_determinant, systems, values

from pyblasgpu.errors import ConfigError
from pyblasgpu.kernels.factor.lu import determinant
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES

from .launching import run, strides

NAN, INF = float("nan"), float("inf")
LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}


def compute(lu, piv, order="F", wide=False, kernels=determinant, threads=64):
    """Signs and logarithms of a batch, or determinants if `wide`, from fenced memory."""
    (batch, n, _), code = lu.shape, lu.dtype.char
    a, unharmed = fenced(lu, order)
    config = kernels.Determinant(LETTERS[code], threads)
    sign = np.full(batch + 1, -7, np.result_type(lu, "d") if wide else code)
    logarithm = np.full(batch + 1, -7, lu.real.dtype)
    pivots = np.full((batch, 2 * n + 1), -7, np.int32)
    pivots[:, :-1:2] = piv
    stride, *steps = strides(a)
    lanes = config.lanes(n)
    integers = n, int(wide), lanes, batch, sum(steps), 2, stride, 2 * n + 1
    with np.errstate(all="ignore"):
        outputs = (sign.view(lu.real.dtype), logarithm)
        run(kernels.source(config), config.grid(n, batch), (pivots, a, *outputs), integers, ())
    assert unharmed() and sign[-1] == -7 and logarithm[-1] == -7
    return sign[:-1] if wide else (sign[:-1], logarithm[:-1])


def moved(n: int, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Pivots, and -1 where an odd number of rows were interchanged."""
    rng = np.random.default_rng(n)
    piv = np.arange(n) + rng.integers(0, 2, (batch, n))
    return piv, 1 - 2 * ((piv != np.arange(n)).sum(-1) % 2)


def check(dtype="d", n=7, batch=5, order="F", threads=64, kernels=determinant) -> None:
    """Random triangles and interchanges, compared with sums and products in extended precision."""
    rng = np.random.default_rng(n)
    lu = rng.standard_normal((batch, n, n)).astype(dtype)
    if dtype in "FD":
        lu += 1j * rng.standard_normal((batch, n, n)).astype(lu.real.dtype)
    piv, parity = moved(n, batch)
    sign, logarithm = compute(lu, piv, order, False, kernels, threads)
    diagonal = np.diagonal(lu, axis1=1, axis2=2).astype("G")
    eps = np.finfo(dtype).eps
    units = np.prod(diagonal / abs(diagonal), -1) * parity
    units = units if dtype in "FD" else units.real
    sizes = np.log(abs(diagonal)).sum(-1)
    np.testing.assert_allclose(sign, units.astype(sign.dtype), rtol=0, atol=8 * eps)
    np.testing.assert_allclose(logarithm, sizes.astype("d"), rtol=4 * eps, atol=8 * n * 2.0**-52)
    actual = compute(lu, piv, order, True, kernels, threads)
    expected = np.exp(sizes) * units
    assert (abs(actual - expected) <= 8 * n * 2.0**-52 * abs(expected)).all()


@pytest.mark.parametrize("dtype, order", list(product("fdFD", "CF")))
def test_random_factors(dtype, order):
    for n in (1, 2, 4, 5, 33):
        check(dtype, n, order=order)


@pytest.mark.parametrize("n, batch", [(4, 130), (5, 70), (17, 9), (300, 2)])
def test_groups_of_threads(n, batch):
    check("d", n, batch)


def diagonals(rows, dtype) -> np.ndarray:
    return np.array([np.diag(row) for row in rows], dtype)


def ends(dtype="d", kernels=determinant) -> None:
    """Numbers from one end of the range to the other, compared with exact ones."""
    a = diagonals([(x, y, 1) for x, y in product(values(dtype), values(dtype)[::3])], dtype)
    piv, parity = moved(3, len(a))
    sign, logarithm = compute(a, piv, kernels=kernels)
    check_slogdet((sign * parity.astype(sign.dtype), logarithm), a)


@pytest.mark.parametrize("dtype", "fdFD")
def test_the_ends_of_the_range(dtype):
    ends(dtype)


def products(dtype="d", kernels=determinant) -> None:
    """Determinants whose partial products leave the range: what float64 holds is right, to subnormal ones."""
    a = np.array([np.diag(np.diagonal(each)) for each in systems(dtype, 40, 4)])
    limits = np.finfo("d")
    if dtype in "dD":
        pairs = [
            (limits.max, limits.max, limits.tiny, limits.tiny),
            (1e-300, 1e-20, 1, -3),
            (1e200, 1e200, 1, 1),
        ]
        a = np.concatenate([a, diagonals(pairs, dtype)])
    piv, parity = moved(4, len(a))
    actual = compute(a, piv, wide=True, kernels=kernels)
    for each, found in zip(a, np.where(parity < 0, -actual, actual), strict=True):
        parts = exact_determinant(each)
        size = max(map(abs, parts))
        if size >= 2**1024:
            assert not np.isfinite(found)
            continue
        error = max(abs(Fraction(float(x)) - y) for x, y in zip((found.real, found.imag), parts, strict=True))
        assert error <= max(size * Fraction(1, 2**50), Fraction(float(limits.smallest_subnormal)))


@pytest.mark.parametrize("dtype", "fdFD")
def test_products_that_leave_the_range(dtype):
    products(dtype)


#: A diagonal; its sign and logarithm, and its determinant, as those of real numbers.
SPECIAL = [
    ([0, 2, NAN], 0, -INF, 0),
    ([INF, 0, 1], 0, -INF, 0),
    ([-2, NAN, INF], -1, NAN, NAN),
    ([-INF, 3, 5], -1, INF, -INF),
    ([INF, -INF, 1e-30], -1, INF, -INF),
    ([-1, 1, 1], -1, 0, -1),
]


def special(dtype="d", kernels=determinant) -> None:
    """Zeros, infinities and NaN; the sign of complex ones that are not finite is NaN."""
    a = diagonals([row for row, *_ in SPECIAL], dtype)
    with np.errstate(all="ignore"):
        signs, logarithms, determinants = (np.array(each, dtype) for each in list(zip(*SPECIAL))[1:])
    piv = np.broadcast_to(np.arange(3), (len(a), 3))
    sign, logarithm = compute(a, piv, kernels=kernels)
    actual = compute(a, piv, wide=True, kernels=kernels)
    np.testing.assert_array_equal(logarithm, logarithms.real)
    if dtype in "FD":
        is_odd = ~np.isfinite(logarithms) & (signs != 0)
        assert np.isnan(sign[is_odd]).all() and np.isnan(actual[is_odd]).all()
        sign, actual, signs, determinants = (each[~is_odd] for each in (sign, actual, signs, determinants))
    np.testing.assert_array_equal(sign, signs)
    np.testing.assert_array_equal(actual, determinants)


@pytest.mark.parametrize("dtype", "fdFD")
def test_special_values(dtype):
    special(dtype)


def test_configs():
    config = determinant.Determinant("z", 256)
    assert [config.lanes(n) for n in (1, 4, 5, 9, 1024, 10**6)] == [1, 1, 2, 4, 256, 256]
    assert config.grid(4, 20_000) == 79 and config.grid(4096, 3) == 3
    assert {config.shared_bytes for config in map(determinant.Determinant, DTYPES)} == {4096, 6144}
    for threads in (0, 48, 2048):
        with pytest.raises(ConfigError, match="DIM"):
            determinant.Determinant("d", threads)
