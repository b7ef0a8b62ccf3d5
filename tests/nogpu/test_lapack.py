"""`pyblasgpu.lapack` beside scipy.linalg.lapack: flags, layouts, dtypes, info, what is overwritten."""

from __future__ import annotations

import fake_device
import lapack_calls
import numpy as np
import pytest
import special_pivots

from pyblasgpu import lapack

ROUTINES = ("potrf", "potrs", "potri", "posv", "trtri", "trtrs", "lauum")
LETTERS = {"s": "float32", "d": "float64", "c": "complex64", "z": "complex128"}


@pytest.fixture(autouse=True)
def backend(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


def definite(rng, n: int, letter: str) -> np.ndarray:
    """A well-conditioned Hermitian matrix."""
    x = rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if letter in "cz" else 0)
    return (x @ x.conj().T + n * np.eye(n)).astype(LETTERS[letter])


def right_hand_sides(rng, n: int, columns: int | None, letter: str) -> np.ndarray:
    shape = (n,) if columns is None else (n, columns)
    b = rng.normal(size=shape) + (1j * rng.normal(size=shape) if letter in "cz" else 0)
    return b.astype(LETTERS[letter])


@pytest.mark.parametrize("letter", LETTERS)
def test_stacks(letter):
    rng = np.random.default_rng(2)
    a = np.stack([definite(rng, 5, letter) for _ in range(3)])
    a[1] = -a[1]
    c, info = lapack.potrf(a, lower=1)
    assert info.tolist() == [0, 1, 0] and info.dtype == np.int32
    for actual, matrix in zip(c[::2], a[::2], strict=True):
        np.testing.assert_allclose(actual, np.linalg.cholesky(matrix), rtol=1e-4)
    b = right_hand_sides(rng, 5, 2, letter)
    x, info = lapack.potrs(c[::2], np.broadcast_to(b, (2, 5, 2)), lower=1)
    np.testing.assert_allclose(a[::2] @ x, np.stack([b] * 2), atol=1e-4)
    inverse, info = lapack.trtri(c[::2], lower=1)
    assert info.shape == (2,) and not info.any()
    np.testing.assert_allclose(np.tril(inverse) @ np.tril(c[::2]), np.stack([np.eye(5)] * 2), atol=1e-4)


def test_info_counts_from_one():
    a = np.diag([1.0, 2.0, -3.0, 4.0])
    assert lapack.dpotrf(a)[1] == 3 and lapack.dposv(a, np.ones(4))[2] == 3
    singular = np.diag([1.0, 0.0, 3.0])
    assert lapack.dtrtri(singular)[1] == 2 and lapack.dtrtrs(singular, np.ones(3))[1] == 2
    assert lapack.dtrtri(singular, unitdiag=1)[1] == 0


@pytest.mark.parametrize("name", lapack_calls.NAMES)
def test_systems_without_right_hand_sides(name):
    """What LAPACK finds before it looks for right-hand sides: factors, and zeros on the diagonal."""
    lapack_calls.check_without_columns(name, np.copy)


@pytest.mark.parametrize("overwrite", [0, 1])
def test_what_may_be_overwritten(overwrite):
    a = np.asfortranarray(definite(np.random.default_rng(3), 4, "d"))
    before = a.copy()
    c, _ = lapack.dpotrf(a, overwrite_a=overwrite)
    assert (c is a) == bool(overwrite)
    assert overwrite or (a == before).all()
    by_rows = before.copy("C")
    c, _ = lapack.dpotrf(by_rows, overwrite_a=1)
    assert c is not by_rows and c.flags.f_contiguous


@pytest.mark.parametrize("routine", ROUTINES)
def test_empty_matrices(routine):
    a, b = np.zeros((0, 0)), np.zeros((0, 2))
    arrays = (a, b) if routine in ("potrs", "posv", "trtrs") else (a,)
    *results, info = getattr(lapack, routine)(*arrays)
    assert info == 0 and all(result.size == 0 for result in results)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lapack.dpotrf(np.ones((2, 3))), r"dpotrf: a has shape \(2, 3\); a square matrix"),
        (lambda: lapack.dpotrs(np.eye(3), np.ones(2)), r"dpotrs: c is of order 3 and b has shape \(2, 1\)"),
        (lambda: lapack.dtrtrs(np.eye(3), np.ones(3), lda=4), "dtrtrs: lda=4 is not the number of rows"),
        (lambda: lapack.potrf(np.eye(2), lower=3), "potrf: lower=3 is none of"),
        (lambda: lapack.potrf(np.eye(2), clean="x"), "potrf: clean='x' is neither a bool nor an int"),
        (lambda: lapack.dtrtrs(np.eye(2), np.ones(2), lda=2.0), "dtrtrs: lda=2.0 is no integer"),
        (lambda: lapack.dposv(np.eye(2), np.ones(2), lower=2), "dposv: lower=2 is none of"),
        (lambda: lapack.dposv(np.eye(2), np.ones(2), overwrite_a="x"), "dposv: overwrite_a='x'"),
        (lambda: lapack.potrf([[1, 2], [3]]), "potrf: a=.* is no array of numbers"),
        (lambda: lapack.dgeqrf(np.eye(2), np.eye(2)), "dgeqrf: lwork=.* is no integer"),
        (lambda: lapack.dsygvx(np.eye(2), np.eye(2), np.eye(2)), "dsygvx: itype=.* is none of"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("routine", ["posv", "gesv"])
@pytest.mark.parametrize(
    ("b", "options", "message"),
    [
        (np.ones((3, 4, 1)), {}, "the leading dimensions of a"),
        (np.ones((2, 4, 1)), {"overwrite_b": 1.5}, "overwrite_b=1.5"),
        (np.ones((2, 3, 1)), {}, "a is of order 4"),
    ],
)
def test_what_is_refused_leaves_the_matrix(routine, b, options, message):
    """Its factors are written over it once all is checked."""
    a = np.stack([np.eye(4, order="F") * 4] * 2)
    start = a.copy()
    with pytest.raises(ValueError, match=f"{routine}: {message}"):
        getattr(lapack, routine)(a, b, overwrite_a=1, **options)
    np.testing.assert_array_equal(a, start)


@pytest.mark.parametrize("routine", ["posv", "gesv"])
def test_right_hand_sides_on_another_device_leave_the_matrix(fake, routine):
    start = np.eye(4, order="F") * 4
    a, b = fake_device.Array(start.copy("F")), fake_device.Array(np.ones((4, 2), order="F"), device=1)
    with pytest.raises(ValueError, match=f"^{routine}: a is on device 0 and b on device 1$"):
        getattr(lapack, routine)(a, b, overwrite_a=1, overwrite_b=1)
    np.testing.assert_array_equal(a.host, start)
    np.testing.assert_array_equal(b.host, 1)


@pytest.mark.parametrize("routine", ["posv", "dposv", "gesv", "dgesv"])
def test_factors_are_not_written_over_the_right_hand_sides(routine):
    start = np.asfortranarray(np.eye(4) * 4 + 1)
    a = start.copy("F")
    *_, x, _ = getattr(lapack, routine)(a, a[:, 1:3], overwrite_a=1)
    np.testing.assert_allclose(x, np.eye(4)[:, 1:3], atol=1e-15)
    np.testing.assert_array_equal(a, start)


@pytest.mark.parametrize("name", ["gels", "orgqr", "ormqr", "gesv", "potrs", "getrs", "sygv", "gemqrt"])
def test_arguments_that_are_missing(name):
    for routine in (getattr(lapack, name), getattr(lapack, f"d{name}")):
        with pytest.raises(TypeError, match="missing"):
            routine(np.eye(3))


def test_complex_arrays_in_real_routines():
    with pytest.raises(TypeError, match="dpotrf: a is complex"):
        lapack.dpotrf(np.eye(2) * 1j)


def test_get_lapack_funcs():
    potrf, trtrs = lapack.get_lapack_funcs(("potrf", "trtrs"), (np.ones(2, np.complex64),))
    assert (potrf, trtrs) == (lapack.cpotrf, lapack.ctrtrs)
    assert lapack.get_lapack_funcs("potri", dtype="f4") is lapack.spotri
    with pytest.raises(ValueError, match="LAPACK function dpstrf could not be found"):
        lapack.get_lapack_funcs("pstrf")


@pytest.mark.parametrize("place", special_pivots.PLACES)
@pytest.mark.parametrize("letter", LETTERS)
def test_pivots_that_are_not_finite(letter, place):
    """A pivot of NaN is not positive; below an infinite one the factor is zero."""
    for n in (8, 14, 40, 150):
        a = special_pivots.matrix(place, letter, n)
        special_pivots.check(*lapack.potrf(a, lower=1), a)
        special_pivots.check(*lapack.posv(a, np.ones(n), lower=1)[::2], a)
        c, info = lapack.potrf(a.T, lower=0)
        special_pivots.check(c.T, info, a)


def test_infos_of_a_stack_with_special_values():
    stack = np.stack([special_pivots.matrix(place, "d", 9) for place in special_pivots.PLACES])
    c, info = lapack.potrf(stack, lower=1)
    for factor, number, a in zip(c, info, stack, strict=True):
        special_pivots.check(factor, number, a)
