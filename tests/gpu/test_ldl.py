"""L D L^H factors on a device: bounds, pivots, layouts, batches, special matrices, solutions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.linalg.lapack as scipys
from ldl_cases import KINDS, check_factors, special, symmetric

from pyblasgpu import lapack, linalg
from pyblasgpu.types import DTYPES

from .running import Placed

cupy = pytest.importorskip("cupy")

#: One matrix, and batches that have a block each, several blocks each, and more matrices than blocks.
SHAPES = [(1,), (2,), (31,), (32,), (33,), (64,), (65,), (127,), (200,), (513,), (1025,),
          (300, 7), (200, 33), (40, 64), (5, 150), (200, 130)]  # fmt: skip


def named(letter: str, stem: str, hermitian: bool, module=lapack):
    return getattr(module, letter + (stem.replace("sy", "he") if hermitian else stem))


@pytest.mark.parametrize("letter, hermitian", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("lower", [0, 1])
def test_factors(letter, hermitian, shape, lower):
    """Also of calls that are repeated; the other triangle is not read."""
    a = symmetric(letter, *shape, hermitian=hermitian)
    n = shape[-1]
    kept = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
    for order in "CF":
        given = np.where(kept, a, np.nan).astype(a.dtype)
        on_device = cupy.asarray(given if order == "C" else np.ascontiguousarray(given.swapaxes(-1, -2)))
        on_device = on_device if order == "C" else on_device.swapaxes(-1, -2)
        first = named(letter, "sytrf", hermitian)(on_device, lower)
        check_factors(a, first[0].get(), cupy.asnumpy(first[1]), bool(lower), hermitian)
        assert not cupy.asnumpy(first[2]).any()
        np.testing.assert_array_equal(on_device.get(), given)
        for _ in range(2):
            for one, other in zip(named(letter, "sytrf", hermitian)(on_device, lower), first, strict=True):
                np.testing.assert_array_equal(cupy.asarray(one).get(), cupy.asarray(other).get())


@pytest.mark.parametrize("letter, hermitian", KINDS)
@pytest.mark.parametrize("shape", [(40,), (200,), (1025,), (300, 7), (200, 33), (5, 150)], ids=str)
@pytest.mark.parametrize("lower", [0, 1])
def test_rook_pivots(letter, hermitian, shape, lower):
    """Both rows of a pivot are interchanged; solutions from the factors, and the same bits again."""
    a = symmetric(letter, *shape, hermitian=hermitian)
    a[..., range(shape[-1]), range(shape[-1])] *= 0.01
    on_device = cupy.asarray(a)
    ldu, ipiv, info = named(letter, "sytrf", hermitian)(on_device, lower, rook=1)
    factors, pivots = ldu.get(), cupy.asnumpy(ipiv)
    check_factors(a, factors, pivots, bool(lower), hermitian, rook=True)
    assert not cupy.asnumpy(info).any()
    for one, other in zip(
        named(letter, "sytrf", hermitian)(on_device, lower, rook=1), (ldu, ipiv), strict=False
    ):
        np.testing.assert_array_equal(cupy.asnumpy(one), cupy.asnumpy(other))
    b = on_device[..., :3]
    x, _ = named(letter, "sytrs", hermitian)(ldu, ipiv, b, lower, rook=1)
    size = np.abs(a).sum(axis=-1).max(axis=-1) * np.abs(x.get()).max(axis=(-2, -1))
    left = np.abs(a @ x.get() - a[..., :3]).max(axis=(-2, -1))
    assert (left <= 100 * shape[-1] * np.finfo(a.dtype).eps * size).all()


@pytest.mark.parametrize("letter, hermitian", KINDS)
@pytest.mark.parametrize("n", [20, 64, 300])
@pytest.mark.parametrize("lower", [0, 1])
def test_pivots_are_lapacks(letter, hermitian, n, lower):
    """Elements of the matrices are far enough from one another."""
    a = symmetric(letter, n, hermitian=hermitian, seed=4)
    _, ipiv, _ = named(letter, "sytrf", hermitian)(cupy.asarray(a), lower)
    _, expected, _ = named(letter, "sytrf", hermitian, scipys)(a, lower)
    differing = np.flatnonzero(cupy.asnumpy(ipiv) != expected)
    assert not len(differing) or letter in "sc"  # rounding decides in single precision now and then


@pytest.mark.parametrize("letter, hermitian", KINDS)
@pytest.mark.parametrize("n, lower", product([9, 70, 400], [0, 1]))
def test_in_place_between_fences(letter, hermitian, n, lower):
    a = symmetric(letter, n, hermitian=hermitian)
    for order in "CF":
        placed = Placed(a.copy(), order, aligned=False)
        _, ipiv, info = named(letter, "sytrf", hermitian)(placed.array, lower, overwrite_a=1)
        assert placed.unharmed() and not int(info)
        check_factors(a, placed.fetch().copy(), cupy.asnumpy(ipiv), bool(lower), hermitian)


@pytest.mark.parametrize("letter, hermitian", KINDS)
@pytest.mark.parametrize("lower", [0, 1])
@pytest.mark.parametrize("copies", [1, 40])
def test_special_matrices(letter, hermitian, lower, copies):
    """Singular ones, badly scaled blocks, ties, NaN on the diagonal: LAPACK's pivots and info."""
    a = np.tile(special(letter), (copies, 1, 1))
    a[0, 2, 2] = np.nan
    ldu, ipiv, info = named(letter, "sytrf", hermitian)(cupy.asarray(a), lower)
    expected = [named(letter, "sytrf", hermitian, scipys)(each, lower) for each in a]
    np.testing.assert_array_equal(cupy.asnumpy(ipiv), [each[1] for each in expected])
    np.testing.assert_array_equal(cupy.asnumpy(info), [each[2] for each in expected])
    check_factors(a[1:], ldu.get()[1:], cupy.asnumpy(ipiv)[1:], bool(lower), hermitian)


@pytest.mark.parametrize("n", [65, 200, 600])
@pytest.mark.parametrize("lower", [0, 1])
def test_equal_elements(n, lower):
    """The first one of the matrix is the pivot, in whichever block its row is."""
    a = 1 - np.eye(n)
    ldu, ipiv, info = lapack.dsytrf(cupy.asarray(a), lower)
    expected = scipys.dsytrf(a, lower)
    np.testing.assert_array_equal(cupy.asnumpy(ipiv), expected[1])
    assert int(info) == expected[2]
    check_factors(a, ldu.get(), cupy.asnumpy(ipiv), bool(lower), False)


@pytest.mark.parametrize("letter, hermitian", KINDS)
@pytest.mark.parametrize("shape", [(1,), (40,), (65,), (700,), (1100,), (50, 20), (7, 150)], ids=str)
@pytest.mark.parametrize("columns", [1, 5, 130])
def test_solutions(letter, hermitian, shape, columns):
    a, eps = symmetric(letter, *shape, hermitian=hermitian), np.finfo(DTYPES[letter].name).eps
    rng = np.random.default_rng(1)
    b = rng.standard_normal((*shape, columns)).astype(a.dtype)
    for lower in (0, 1):
        _, ipiv, x, info = named(letter, "sysv", hermitian)(cupy.asarray(a), cupy.asarray(b), lower=lower)
        assert not cupy.asnumpy(info).any()
        residual = np.abs(a @ x.get() - b).max(axis=(-1, -2))
        size = np.abs(a).sum(axis=-1).max(axis=-1) * np.abs(x.get()).max(axis=(-1, -2))
        assert (residual <= 20 * shape[-1] * eps * size).all()
        ldu, ipiv, _ = named(letter, "sytrf", hermitian)(cupy.asarray(a), lower)
        other = named(letter, "sytrs", hermitian)(ldu, ipiv, cupy.asarray(b), lower)[0]
        np.testing.assert_array_equal(other.get(), x.get())


def test_a_stack_with_singular_matrices():
    """b stays where D is singular."""
    a = np.stack([symmetric("d", 6), np.zeros((6, 6)), 2 * np.eye(6)])
    b = np.arange(18.0).reshape(3, 6, 1)
    _, _, x, info = lapack.dsysv(cupy.asarray(a), cupy.asarray(b), lower=1)
    assert cupy.asnumpy(info).tolist() == [0, 1, 0]
    np.testing.assert_array_equal(x.get()[1], b[1])


def test_a_large_matrix():
    a = symmetric("d", 5000)
    ldu, ipiv, info = lapack.dsytrf(cupy.asarray(a), 1)
    b = np.ones((5000, 2))
    x, _ = lapack.dsytrs(ldu, ipiv, cupy.asarray(b), 1)
    assert not int(info)
    size = np.abs(a).sum(axis=1).max() * np.abs(x.get()).max()
    assert np.abs(a @ x.get() - b).max() <= 20 * 5000 * 2.0**-53 * size


@pytest.mark.parametrize("letter, hermitian", KINDS)
@pytest.mark.parametrize("shape", [(9,), (150,), (20, 12)], ids=str)
def test_inverses_and_matrices(letter, hermitian, shape):
    """A triangle of the inverse; L D L^H, and the rows of L that make a triangle."""
    a, n = symmetric(letter, *shape, hermitian=hermitian), shape[-1]
    eps = np.finfo(a.dtype).eps
    for lower in (0, 1):
        kept = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
        ldu, ipiv, _ = named(letter, "sytrf", hermitian)(cupy.asarray(a), lower)
        inverse, info = named(letter, "sytri", hermitian)(ldu, ipiv, lower)
        assert not cupy.asnumpy(info).any()
        expected = np.linalg.inv(a)
        size = np.abs(expected).max() * np.linalg.cond(a).max()
        np.testing.assert_allclose(
            inverse.get()[..., kept], expected[..., kept], rtol=0, atol=20 * n * eps * size
        )
        np.testing.assert_array_equal(inverse.get()[..., ~kept], a[..., ~kept])
        lu, d, perm = (each.get() for each in linalg.ldl(cupy.asarray(a), bool(lower), hermitian))
        other = (lu.conj() if hermitian else lu).swapaxes(-1, -2)
        assert np.linalg.norm(lu @ d @ other - a) <= 10 * n * eps * np.linalg.norm(a)
        triangle = np.take_along_axis(lu, perm[..., None], axis=-2)
        np.testing.assert_array_equal(triangle, np.tril(triangle) if lower else np.triu(triangle))


@pytest.mark.parametrize("n", [3, 70, 300])
@pytest.mark.parametrize("lower", [0, 1])
def test_inverses_of_singular_matrices(n, lower):
    a = np.diag([*range(1, n), 0.0])
    a[0, 0] = 0
    ldu, ipiv, info = lapack.dsytrf(cupy.asarray(a), lower)
    inverse, number = lapack.dsytri(ldu, ipiv, lower)
    assert int(info) == int(number) == scipys.dsytrf(a, lower)[2]
    np.testing.assert_array_equal(inverse.get(), ldu.get())
