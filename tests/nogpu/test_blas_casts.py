"""pyblasgpu.blas beside SciPy's where arguments are lists, numbers, vectors, or of another dtype."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg.blas as scipy_blas
from hypothesis import given
from hypothesis import strategies as st

from pyblasgpu import blas
from pyblasgpu.types import DTYPES

SQUARE = np.array([[2.0, 3.0], [1.0, 4.0]])


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


def compare(name, *args, **options):
    """Both must give the same, or both must refuse."""
    try:
        expected = getattr(scipy_blas, name)(*args, **options)
    except Exception:  # of a class that SciPy does not publish
        with pytest.raises(ValueError, match=f"^{name}: "):
            getattr(blas, name)(*args, **options)
        return
    actual = getattr(blas, name)(*args, **options)
    np.testing.assert_array_equal(actual, expected, strict=True)
    assert type(actual) is type(expected)


NUMBERS = [
    5,
    5.0,
    [5.0],
    [[5.0]],
    [5.0, 6.0],
    [[5.0], [6.0]],
    [[5.0, 6.0]],
    (5, 6),
    np.array(5.0),
    np.float32(5),
]


@pytest.mark.parametrize("given_", NUMBERS, ids=repr)
@pytest.mark.parametrize("letter", "sdcz")
def test_what_replaces_a_list_or_a_number_has_its_shape(letter, given_):
    for a, b in [
        (2, 3),
        ([2, 3], 4),
        ([[2, 3]], [[4], [5]]),
        (SQUARE, [1, 2]),
        (SQUARE, SQUARE),
        (2, [[3, 4]]),
    ]:
        compare(letter + "gemm", 1, a, b)
        compare(letter + "gemm", 1, a, b, 1, given_)
        compare(letter + "syrk", 1, a, 1, given_)
    compare(letter + "symm", 1, SQUARE, [[1], [2]], 1, given_)
    compare(letter + "symm", 1, 2, 3, 1, given_)
    for a in (SQUARE, 3, [3], [[3]]):
        for side in (0, 1):
            compare(letter + "trmm", 1, a, given_, side=side)
            compare(letter + "trsm", 1, a, given_, side=side)


@given(st.sampled_from("?bBhHiIlLefdFD"), st.sampled_from("?bhilefdFD"), st.sampled_from("sdcz"))
def test_arrays_are_cast_as_by_scipy(one, other, letter):
    a, b = np.array([[1, 0], [3, 1]], one), np.array([[2], [1]], other)
    name = DTYPES[letter].name
    if letter in "sd" and {one, other} & set("FD"):
        for routine in ("gemm", "trsm"):
            with pytest.raises(TypeError, match=f"{letter}{routine}: [ab] is complex"):
                getattr(blas, letter + routine)(1, a, b)
        return
    for routine in ("gemm", "trmm", "trsm"):
        compare(letter + routine, 1, a, b)
        # what is of another dtype, or row-major, is not overwritten
        ours = np.asfortranarray(b)
        result = getattr(blas, letter + routine)(
            1, a, ours, **{} if routine == "gemm" else {"overwrite_b": 1}
        )
        assert np.shares_memory(result, ours) == (routine != "gemm" and ours.dtype == name)


@pytest.mark.parametrize(
    "a",
    [
        [np.array([1 + 2j])],
        [[1 + 2j]],
        [[np.complex64(1j)]],
        [(1j,)],
        1j,
        [1j],
        np.array(1j),
        np.complex64(1),
        [[np.array(1j)]],
        np.array([[1 + 0j]]),
        np.array([[1j]], object),
        [[Fraction(1), 2j]],
        (np.array(2j),),
        [[np.clongdouble(1j)]],
    ],
    ids=repr,
)
@pytest.mark.parametrize("which", ["a", "b", "c"])
def test_no_imaginary_part_is_dropped(which, a):
    arguments = {"alpha": 1, "a": [[1.0]], "b": [[1.0]], "beta": 1, "c": [[1.0]], which: a}
    for name in ("sgemm", "dgemm"):
        with pytest.raises(TypeError, match=f"^{name}: .*{which}\\b"):
            getattr(blas, name)(**arguments)


@pytest.mark.parametrize(
    ("a", "error"),
    [
        ([[10**400]], ValueError),
        ([[1, 2], [3]], ValueError),
        ([["1"]], TypeError),
        ([[None]], TypeError),
        ([[object()]], TypeError),
        (np.array([[1]], object), TypeError),
        (None, TypeError),
        ("1", TypeError),
        ({1: 2}, TypeError),
        (np.ones((1, 1), "longdouble"), TypeError),
        (np.ones((1, 1), "M8[s]"), TypeError),
        (np.ones((1, 1, 1)), ValueError),
        ([[[1.0]]], ValueError),
        (10**400, ValueError),
    ],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)),  # the same in every process
)
def test_what_is_no_matrix_is_refused(a, error):
    with pytest.raises(error, match=r"^dgemm: (dtype .* of )?a\b"):
        blas.dgemm(1, a, [[1.0]])


def test_lists_of_exact_numbers():
    compare("dgemm", 1, [[Fraction(1, 2), 3]], [[4], [2**70]])
    assert blas.zgemm(1, [[Fraction(1, 2), 1j]], [[1], [2]])[0, 0] == 0.5 + 2j


def test_an_array_that_is_read_too_is_not_overwritten():
    a = np.asfortranarray(SQUARE)
    before = a.copy()
    for actual, expected in [
        (blas.dtrsm(1, a, a, overwrite_b=1), blas.dtrsm(1, a, before)),
        (blas.dgemm(1, a, a, 1, a, overwrite_c=1), 1 * before @ before + before),
        (blas.dtrmm(1, a, a[:, :1], overwrite_b=1), np.triu(before) @ before[:, :1]),
    ]:
        np.testing.assert_array_equal(actual, expected)
        np.testing.assert_array_equal(a, before)


@pytest.mark.parametrize(
    "b", [np.broadcast_to(np.ones((2, 1)), (2, 3)), np.ones((2, 3)), np.ones((4, 3), order="F")[::2]]
)
def test_what_cannot_be_overwritten_is_copied(b):
    before = b.copy()
    np.testing.assert_array_equal(blas.dtrsm(1, 2 * np.eye(2), b, overwrite_b=1), before / 2)
    b.flags.writeable = False
    np.testing.assert_array_equal(blas.dtrmm(1, 2 * np.eye(2), b, overwrite_b=1), 2 * before)
    np.testing.assert_array_equal(b, before)


def test_lazy_and_immutable_arrays_of_other_libraries_are_copied():
    torch = pytest.importorskip("torch")
    a, b = torch.eye(2, dtype=torch.complex128) * 2, torch.tensor([[2 + 4j], [6.0]], dtype=torch.complex128)
    for lazy in (b.conj(), b.expand(2, 3), b[:, 0].conj()):
        before = lazy.clone().resolve_conj()
        for actual in (
            blas.ztrsm(1.0, a, lazy, overwrite_b=1),
            blas.zgemm(-0.5, a, lazy, 1.5, lazy, overwrite_c=1),
        ):
            assert actual.shape == lazy.shape and torch.equal(actual, before / 2)
        assert torch.equal(lazy.resolve_conj(), before)


def test_arrays_of_jax_are_copied():
    numpy = pytest.importorskip("jax.numpy")
    b = numpy.asarray([[2.0], [6.0]], "float32")
    actual = blas.strsm(1, 2 * numpy.eye(2), b, overwrite_b=1)
    assert type(actual) is type(b)
    np.testing.assert_array_equal(np.asarray(actual), [[1], [3]])
    np.testing.assert_array_equal(np.asarray(b), [[2], [6]])
