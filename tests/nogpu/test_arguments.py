"""Flags and numbers in every spelling that SciPy takes, and refused in words where they are none."""

from __future__ import annotations

import inspect
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg.blas as scipy_blas

import pyblasgpu
from pyblasgpu import blas
from pyblasgpu.arguments import enabled, shown
from pyblasgpu.frontend.arrays.any_array import number
from pyblasgpu.linalg import solve_triangular
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo

EYE = np.eye(2)


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


# ---------------------------------------------------------------------------------------------- numbers

REALS = [
    2, True, np.True_, np.int8(2), np.uint64(2), np.float16(2), np.float32(2), np.longdouble(2),
    Fraction(1, 2), Decimal("0.5"), np.array(2), np.array([2.0]), np.array([[[2.0]]]), [2], (2.0,), [[2.0]],
    [np.array([2])], np.array([2], object), np.array([Fraction(1, 2)]), float("inf"), 1e300, -0.0, 2**70,
    5e-324,
]  # fmt: skip
COMPLEX = [
    2j,
    np.complex64(1j),
    np.clongdouble(1 - 2j),
    np.array([1j]),
    [1j],
    [[np.array(1j)]],
    np.array(1j, object),
]
NO_NUMBERS = [
    "2", b"2", "x", None, [], [1.0, 2.0], np.array([1.0, 2.0]), np.array([]), np.ones((2, 1)), {1: 2}, {2},
    object(), np.timedelta64(2, "s"), np.datetime64("2020"), np.ma.masked, np.ma.array([2.0]), ["2"], [None],
    np.array("2"), np.array(b"2"), Decimal("sNaN"),
]  # fmt: skip
TOO_LARGE = [10**400, -(10**400), Fraction(10**400), [10**400], np.array([10**400], object), 10**5000]


@pytest.mark.parametrize("value", REALS, ids=repr)
@pytest.mark.parametrize("letter", "sdcz")
def test_a_real_number_is_what_scipy_makes_of_it(letter, value):
    actual = getattr(blas, letter + "gemm")(value, EYE[:1], EYE[:, :1], value, [[1]])
    plain = float(np.array(value).item())  # SciPy takes no fractions for complex routines
    with np.errstate(all="ignore"):
        expected = getattr(scipy_blas, letter + "gemm")(plain, EYE[:1], EYE[:, :1], plain, [[1]])
    np.testing.assert_array_equal(actual, expected, strict=True)


@pytest.mark.parametrize("value", COMPLEX, ids=repr)
def test_a_complex_number_is_one_in_complex_routines_alone(value):
    expected = complex(np.array(value).item())
    for letter in "cz":
        assert getattr(blas, letter + "gemm")(value, EYE[:1], EYE[:, :1])[0, 0] == expected
    for letter in "sd":
        with pytest.raises(TypeError, match=f"{letter}gemm: alpha=.* is complex"):
            getattr(blas, letter + "gemm")(value, EYE, EYE)
        with pytest.raises(TypeError, match=f"{letter}gemm: beta=.* is complex"):
            getattr(blas, letter + "gemm")(1, EYE, EYE, value)


ROUTINES = ["gemm", "trmm", "trsm", "symm", "hemm", "syrk", "herk", "syr2k", "her2k", "gemmtr"]


def call(name, **options):
    routine = getattr(pyblasgpu, name)
    matrices = [EYE] * (2 if "b" in inspect.signature(routine).parameters else 1)
    return routine(*matrices, **options)


@pytest.mark.parametrize("name", ROUTINES)
@pytest.mark.parametrize("argument", ["alpha", "beta"])
def test_what_is_no_number_is_refused_in_every_routine(name, argument):
    if argument not in inspect.signature(getattr(pyblasgpu, name)).parameters:
        argument = "alpha"
    out = np.full((2, 2), 7.0)
    for values, error in (NO_NUMBERS, TypeError), (TOO_LARGE, ValueError):
        for value in values:
            with pytest.raises(error, match=f"^{name}: {argument}[ =]"):
                call(name, out=out, **{argument: value})
    assert (out == 7).all()


def test_beta_is_looked_at_without_c():
    with pytest.raises(TypeError, match="dgemm: beta must be a number, not 'x'"):
        blas.dgemm(1, EYE, EYE, "x")
    with pytest.raises(TypeError, match="zherk: beta"):
        blas.zherk(1, EYE, [1, 2])


def test_numbers_are_rounded_to_the_precision_of_the_arrays():
    assert number(1e300, DTYPES["s"], "gemm", "alpha") == float("inf")
    assert number(-1e300j, DTYPES["c"], "gemm", "alpha") == complex(0, float("-inf"))
    assert number(1e-300, DTYPES["s"], "gemm", "alpha") == 0
    assert number(0.1, DTYPES["s"], "gemm", "alpha") == np.float32(0.1)
    assert number(1e-300, DTYPES["d"], "gemm", "alpha") == 1e-300
    # so it hides what 0 hides
    nan = np.full((2, 2), np.nan, "f4")
    np.testing.assert_array_equal(pyblasgpu.gemm(nan, nan, alpha=1e-300), np.zeros((2, 2), "f4"))


def test_messages_are_short():
    assert shown(10**5000) == "<int>" and shown(np.ones(1000)).endswith("...") and len(shown("x" * 999)) == 60
    with pytest.raises(TypeError, match="not array") as error:
        pyblasgpu.gemm(EYE, EYE, alpha=np.ones((50, 50)))
    assert len(str(error.value)) < 120


# ------------------------------------------------------------------------------------------------ flags

#: Flags of the keyword routines by their kinds.
KINDS = {
    "side": Side,
    "lower": Uplo,
    "trans": Trans,
    "unit_diag": Diag,
    "trans_a": Trans,
    "trans_b": Trans,
}
FLAGS = [
    (name, flag)
    for name in ROUTINES
    for flag in inspect.signature(getattr(pyblasgpu, name)).parameters
    if flag in KINDS
]
NO_FLAGS = [
    "X", "", "NN", "True", "1", b"1", b"L", 1.0, 0.0, 0.5, np.float64(1), np.array(1.0), None, 3, 2**70,
    10**5000, -1, 1j, [1], (1,), [], np.array([1, 0]), np.array([]), np.timedelta64(1), object(), Fraction(1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "flag"), FLAGS)
def test_what_is_no_flag_is_refused_in_every_routine(name, flag):
    for value in NO_FLAGS if KINDS[flag] is Trans else [*NO_FLAGS, 2, np.int64(2)]:
        with pytest.raises(ValueError, match=f"^{name}: {flag}="):
            call(name, **{flag: value})


@pytest.mark.parametrize("kind", [Side, Uplo, Trans, Diag])
def test_scalars_of_numpy_are_flags(kind):
    for member in kind:
        for text in (member.value, member.value.lower()):
            for value in (np.str_(text), np.array(text), np.array([text], object)):
                assert kind.parse(value, "gemm", "x") is member
    for value in (np.True_, np.array(True), np.int8(1), np.array(1), np.array([[1]]), np.uint64(1)):
        assert kind.parse(value, "gemm", "x") is kind.parse(1, "gemm", "x")
    assert kind.parse(np.False_, "gemm", "x") is kind.parse(0, "gemm", "x")


def test_flags_of_scipy_serve_in_blas():
    a = np.array([[2.0, 7.0], [1.0, 4.0]])
    for flag in (0, 1, True, False, np.True_, np.int64(1), np.array(1), np.array([1]), np.array([[0]])):
        np.testing.assert_array_equal(
            blas.dtrmm(1, a, EYE, lower=flag), scipy_blas.dtrmm(1, a, EYE, lower=flag)
        )


# --------------------------------------------------------------------------------------------- switches


@pytest.mark.parametrize("value", ["N", "False", "", 0.0, 0.5, None, [], [1], np.array([1, 0]), 1j, b"", {}])
def test_what_is_no_switch_is_refused(value):
    for routine, option, arguments in [
        (blas.dgemm, "overwrite_c", (1, EYE, EYE)),
        (blas.dgemm, "overwrite_c", (1, EYE, EYE, 1, EYE)),
        (blas.dtrsm, "overwrite_b", (1, EYE, EYE)),
        (solve_triangular, "overwrite_b", (EYE, EYE)),
        (solve_triangular, "check_finite", (EYE, EYE)),
    ]:
        if option == "check_finite" and value is None:
            continue  # its default
        with pytest.raises(ValueError, match=f"{routine.__name__}: {option}="):
            routine(*arguments, **{option: value})


@pytest.mark.parametrize("value", [0, 1, 2, -1, True, False, np.array(1), np.int8(0)])
def test_switches_are_scipys(value):
    ours, theirs = np.ones((2, 2), order="F"), np.ones((2, 2), order="F")
    blas.dgemm(1, EYE, EYE, 1, ours, overwrite_c=value)
    scipy_blas.dgemm(1, EYE, EYE, 1, theirs, overwrite_c=value)
    np.testing.assert_array_equal(ours, theirs)
    assert enabled(np.bool_(value != 0), "gemm", "x") == (value != 0)
