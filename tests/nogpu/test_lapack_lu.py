"""`pyblasgpu.lapack` on LU factors beside scipy.linalg.lapack: flags, layouts, dtypes, info, pivots."""

from __future__ import annotations

import fake_device
import numpy as np
import pytest
import scipy.linalg.lapack as scipys
from matrices import uniform

from pyblasgpu import lapack
from pyblasgpu.types import DTYPES


@pytest.fixture(autouse=True)
def backend(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


def same(ours, theirs, letter) -> None:
    """Results of one routine: numbers are equal, arrays nearly."""
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        if np.asarray(other).dtype.kind == "i":
            np.testing.assert_array_equal(one, other)
            assert np.asarray(one).dtype.itemsize == np.asarray(other).dtype.itemsize
        else:
            assert one.dtype == other.dtype and one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-3 if letter in "sc" else 1e-10)


def test_singular_matrices():
    a = np.array([[1.0, 2], [2, 4]])
    same(lapack.dgetrf(a), scipys.dgetrf(a), "d")
    same(lapack.dgesv(a, np.ones((2, 2))), scipys.dgesv(a, np.ones((2, 2))), "d")
    lu, piv, info = lapack.dgetrf(a)
    assert info == 2 and lapack.dgetri(lu, piv)[1] == 2


def test_stacks():
    a, b = uniform("d", 2, 3, 4, 4), uniform("d", 3, 4, 2, seed=2)
    lu, piv, info = lapack.getrf(a)
    assert piv.shape == (2, 3, 4) and info.shape == (2, 3)
    x, _ = lapack.getrs(lu, piv, np.broadcast_to(b, (2, 3, 4, 2)))
    np.testing.assert_allclose(a @ x, np.broadcast_to(b, x.shape), atol=1e-12)
    inverse, _ = lapack.getri(lu, piv)
    np.testing.assert_allclose(a @ inverse, np.broadcast_to(np.eye(4), a.shape), atol=1e-12)
    np.testing.assert_allclose(lapack.gesv(a, np.broadcast_to(b, (2, 3, 4, 2)))[2], x, atol=1e-12)
    assert lapack.laswp(a, piv).shape == a.shape


def test_empty_ones():
    lu, piv, info = lapack.dgetrf(np.ones((0, 3)))
    assert lu.shape == (0, 3) and piv.shape == (0,) and info == 0
    assert lapack.getrf(np.ones((0, 2, 2)))[1].shape == (0, 2)


def test_refusals():
    a, b = np.eye(3), np.ones((3, 2))
    for wrong, message in (
        (lambda: lapack.dgetrs(a, [0, 1, 3], b), "piv holds 0 ... 3"),
        (lambda: lapack.dgetrs(a, [0, 1], b), "order 3"),
        (lambda: lapack.dgetrs(a, [0, 1, 2], np.ones((2, 2))), "order 3"),
        (lambda: lapack.dgetrs(np.ones((2, 3)), [0, 1], b), "square"),
        (lambda: lapack.dgetrs(a, [0, 1, 2], b, trans=3), "trans"),
        (lambda: lapack.dgetri(a, [0, 1, 2], lwork=2), "lwork"),
        (lambda: lapack.dlaswp(a, [0, 1, 2], k2=3), "k2=3"),
        (lambda: lapack.dlaswp(a, [0, 1, 2], inc=0), "inc=0"),
        (lambda: lapack.dlaswp(a, [0, 1, 2], off="x"), "dlaswp: off='x' is no integer"),
        (lambda: lapack.dgetri(a, [0, 1, 2], lwork=1j), "dgetri: lwork=1j is no integer"),
        (lambda: lapack.dgetri(a, 2), "order 3"),
        (lambda: lapack.dgetrs(a, [[0], [1, 2]], b), "dgetrs: piv=.* is no array of numbers"),
        (lambda: lapack.getrs(np.ones((4, 3, 3)), np.zeros((2, 3), int), np.ones((4, 3, 2))), "stack"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    with pytest.raises(TypeError, match="integers"):
        lapack.dgetrs(a, [0.0, 1.0, 2.0], b)
    with pytest.raises(TypeError, match="complex"):
        lapack.dgetrf(a * 1j)


@pytest.mark.parametrize(
    ("routine", "piv", "error", "message"),
    [
        (routine, *row)
        for routine in ("dgetrs", "dgetri", "dlaswp")
        for row in (
            (fake_device.Array(np.arange(3.0)), TypeError, "piv is of dtype float64; int32 or int64"),
            (fake_device.Array(np.arange(3, dtype="i2")), TypeError, "piv is of dtype int16; int32 or int64"),
            (fake_device.Array(np.arange(3), 1), ValueError, "piv is on device 1, and the arrays on"),
            (fake_device.Array(np.zeros((2, 3), "i4")), ValueError, r"piv has shape \(2, 3\), and a stack"),
        )
    ],
)
def test_pivots_on_a_device_are_refused(fake, routine, piv, error, message):
    a, b = fake_device.Array(np.eye(3, order="F")), fake_device.Array(np.ones((3, 2), order="F"))
    calls = {
        "dgetrs": lambda: lapack.dgetrs(a, piv, b, overwrite_b=1),
        "dgetri": lambda: lapack.dgetri(a, piv, overwrite_lu=1),
        "dlaswp": lambda: lapack.dlaswp(a, piv, overwrite_a=1),
    }
    with pytest.raises(error, match=f"^{routine}: {message}"):
        calls[routine]()
    np.testing.assert_array_equal(a.host, np.eye(3))
    np.testing.assert_array_equal(b.host, 1)


def test_pivots_that_a_routine_left_on_another_device(fake):
    _, here, _ = lapack.dgetrf(fake_device.Array(np.eye(3, order="F")))
    piv = fake_device.Array(here.host, device=1)
    b = fake_device.Array(np.ones((3, 2), order="F"))
    with pytest.raises(ValueError, match=r"^dgetrs: piv is on device 1, and the arrays on device 0$"):
        lapack.dgetrs(fake_device.Array(np.eye(3, order="F")), piv, b, overwrite_b=1)
    np.testing.assert_array_equal(b.host, 1)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("passed", [list, np.array, lambda piv: np.array([piv, piv]), lambda piv: [piv] * 2])
def test_pivots_of_the_host_for_arrays_on_a_device(fake, letter, passed):
    a, b = uniform(letter, 5, 5), uniform(letter, 5, 2, seed=1)
    lu, piv, _ = getattr(scipys, f"{letter}getrf")(a)
    given = passed(piv)
    if np.ndim(given) > 1:
        lu, b = np.stack([lu] * 2), np.stack([b] * 2)
    x, _ = getattr(lapack, f"{letter}getrs")(fake_device.Array(lu), given, fake_device.Array(b))
    np.testing.assert_allclose(x.host, np.linalg.solve(a, b), rtol=1e-3 if letter in "sc" else 1e-10)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (2, 3, 0), (0, 2, 2)])
def test_factors_without_elements_on_a_device(fake, shape):
    lu, piv, info = lapack.getrf(fake_device.Array(np.ones(shape)))
    assert lu.shape == shape and piv.shape == (*shape[:-2], min(shape[-2:]))
    assert info.shape == shape[:-2] and not info.host.any()


def test_pivots_on_a_device_for_host_arrays(fake):
    b = np.ones((3, 2), order="F")
    piv = fake_device.Array(np.arange(3))
    with pytest.raises(TypeError, match=r"^dgetrs: piv is on a device; int32 or int64"):
        lapack.dgetrs(np.eye(3), piv, b, overwrite_b=1)
    np.testing.assert_array_equal(b, 1)


@pytest.mark.parametrize("overwrite", [0, 1])
def test_right_hand_sides_of_singular_systems_stay(overwrite):
    """Alone and in a stack, as LAPACK leaves them."""
    a, b = uniform("d", 3, 4, 4), uniform("d", 3, 4, 2)
    a[1, :, 2] = 0
    start = b.copy()
    _, _, x, info = lapack.gesv(a, b, overwrite_b=overwrite)
    assert list(info) == [0, 3, 0]
    np.testing.assert_array_equal(x[1], start[1])
    np.testing.assert_allclose(a[::2] @ x[::2], start[::2], atol=1e-10)
    theirs = scipys.dgesv(a[1], start[1])
    np.testing.assert_array_equal(lapack.dgesv(a[1], start[1])[2], theirs[2])
    definite = a @ a.swapaxes(1, 2) + np.eye(4)
    definite[2, 1, 1] = -5
    _, x, info = lapack.dposv(definite, start, 1)
    assert info[2] == 2 and not info[:2].any()
    np.testing.assert_array_equal(x[2], start[2])
    np.testing.assert_array_equal(lapack.dposv(definite[2], start[2], 1)[1], start[2])
