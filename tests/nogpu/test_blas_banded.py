"""Banded and packed matrices by SciPy's names, and the numbers of rotations: results and refusals."""

from __future__ import annotations

import cmath
import math
import re
from decimal import Decimal
from itertools import product

import numpy as np
import pytest
import scipy.linalg.blas
from blas_calls import draw
from fake_libraries import Array, DeviceArray, InterfaceArray

from pyblasgpu import blas
from pyblasgpu.api.blas.host import FUNCTIONS
from pyblasgpu.types import DTYPES

MATRICES = sorted(name for name in FUNCTIONS if "rot" not in name)


def test_banded_and_packed_matrices_are_scipys():
    rng = np.random.default_rng(1)
    a, x = rng.standard_normal((3, 5)), rng.standard_normal(5)
    expected = scipy.linalg.blas.dgbmv(5, 5, 1, 1, 2.0, a, x, trans=1)
    assert (blas.dgbmv(5, 5, 1, 1, 2.0, a, x, trans=1) == expected).all()
    y = np.ones(5)
    assert blas.dsbmv(2, 1.0, a, x, beta=1.0, y=y, overwrite_y=1) is y
    packed = rng.standard_normal(15)
    assert (blas.dtpsv(5, packed, x) == scipy.linalg.blas.dtpsv(5, packed, x)).all()
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        blas.dgbmv(5, 5, 1, 1, 2.0, a)


@pytest.mark.parametrize("kind", [DeviceArray, InterfaceArray])
def test_banded_matrices_on_a_device_are_refused(kind):
    a, x = np.ones((3, 5)), np.ones(5)
    with pytest.raises(NotImplementedError, match="dgbmv: a is on a device"):
        blas.dgbmv(5, 5, 1, 1, 2.0, kind(a), kind(x))
    result = blas.dgbmv(5, 5, 1, 1, 2.0, Array(a), Array(x))
    assert type(result) is Array and (result.host == blas.dgbmv(5, 5, 1, 1, 2.0, a, x)).all()


@pytest.mark.parametrize("backend", ["", "cuda", "sim", "numba"])
def test_the_processor_computes_whatever_is_asked_for_elsewhere(backend, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", backend)
    x, ap = [1.0, 2.0], np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(blas.dspr(2, 1, x, ap), [2, 4, 7])
    np.testing.assert_array_equal(blas.dspmv(2, 1, ap, x, beta=2, y=np.ones(2)), [7, 10])


#: What each argument must not be, and what the message says of it; of what is not there nothing is tried.
BAD = [
    ("trans", 3, "trans=3 is none of"),
    ("trans", -1, "trans=-1 is none of"),
    ("trans", 1.5, r"trans=1\.5 is none of"),
    ("lower", 2, "lower=2 is none of"),
    ("diag", -1, "diag=-1 is none of"),
    ("overwrite_x", "x", "overwrite_x='x' is neither"),
    ("overwrite_y", 1.5, r"overwrite_y=1\.5 is neither"),
    ("overwrite_ap", None, "overwrite_ap=None is neither"),
    ("incx", 0, "incx is 0"),
    ("incy", 0, "incy is 0"),
    ("offx", -1, "offx=-1 is outside of x"),
    ("offx", 99, "offx=99 is outside of x"),
    ("offy", -1, "offy=-1 is"),
    ("n", -1, "n=-1 is negative"),
    ("n", 2.5, r"n=2\.5 is no integer"),
    ("n", 4, "n=4 needs"),
    ("m", -1, "m=-1 is negative"),
    ("k", -1, "k=-1 is negative"),
    ("k", 3, r"a has shape \(3, 3\); k=3 needs 4 rows"),
    ("kl", 9, r"a has shape \(\d, 3\); kl=9, ku=\d needs 1\d rows"),
    ("ku", -1, "ku=-1 is negative"),
    ("a", np.zeros((0, 3)), r"a has shape \(0, 3\); kl?=\d(, ku=\d)? needs \d rows"),
    ("a", np.zeros((0, 0)), r"a has shape \(0, 0\)"),
    ("a", np.zeros((3, 3, 3)), r"a has shape \(3, 3, 3\)"),
    ("ap", np.zeros(5), "ap has 5 elements; n=3 needs 6"),
    ("ap", [], "ap has 0 elements; n=3 needs 6"),
    ("x", np.zeros(2), "x has 2 elements, and n=3|offx=2 is outside of x"),
    ("x", [], "x has 0 elements, and n=|offx=. is outside of x"),
]


@pytest.mark.parametrize("name", MATRICES)
def test_what_is_refused(name):
    """All arrays stay as they were, those that may be overwritten too."""
    rng = np.random.default_rng(4)
    for argument, value, message in BAD:
        given = draw(rng, name, (3, 3, 2))
        if argument not in blas_parameters(name):
            continue
        arrays = {key: (each, each.copy()) for key, each in given.items() if isinstance(each, np.ndarray)}
        overwriting = {key: 1 for key in given if key.startswith("overwrite")}
        with pytest.raises(ValueError, match=f"^{name}: .*({message})"):
            getattr(blas, name)(**given | overwriting | {argument: value})
        for each, before in arrays.values():
            np.testing.assert_array_equal(each, before)


def blas_parameters(name: str) -> set[str]:
    return set(FUNCTIONS[name].__signature__.parameters)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings_have_scipys_signature(name):
    line = getattr(scipy.linalg.blas, name).__doc__.splitlines()[0]
    doc = FUNCTIONS[name].__doc__
    assert f"``{line}``" in re.sub(r"\b,\s", ",", doc).replace("], ", "],")
    for parameter in FUNCTIONS[name].__signature__.parameters.values():
        told = re.search(rf"^(\w+, )*{parameter.name}(, \w+)* : .*$", doc, re.MULTILINE)[0]
        assert (parameter.default is parameter.empty) != ("default" in told or "optional" in told)


@pytest.mark.parametrize("name", MATRICES)
def test_complex_arguments_of_real_routines(name):
    given = draw(np.random.default_rng(5), name, (3, 3, 2))
    for argument in ("a", "ap", "x", "y", "alpha", "beta") if name[0] in "sd" else ():
        if argument in given:
            with pytest.raises(TypeError, match=f"^{name}: {argument}(=| is|.*) ?.*complex"):
                getattr(blas, name)(**given | {argument: given[argument] * 1j})
    if name[1:] == "hpr":
        with pytest.raises(TypeError, match=f"{name}: alpha=1j is complex"):
            getattr(blas, name)(**given | {"alpha": 1j})


def test_a_matrix_that_shares_memory_with_the_result_is_read_first():
    memory = np.arange(1.0, 13)
    band = memory.reshape(3, 4, order="F")
    expected = blas.dtbmv(1, band.copy(), memory[:4].copy())
    result = blas.dtbmv(1, band, memory[:4], overwrite_x=1)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(memory, np.arange(1.0, 13))
    packed = memory.copy()
    expected = blas.dspr(4, 1, packed[:4].copy(), packed.copy())
    np.testing.assert_array_equal(blas.dspr(4, 1, packed[:4], packed, overwrite_ap=1), expected)
    np.testing.assert_array_equal(packed, memory)


def test_results_in_the_callers_arrays():
    x, ap, y = np.ones(3), np.ones(6), np.ones(3)
    assert blas.dspr(3, 1, x, ap, overwrite_ap=1) is ap and (ap == 2).all()
    assert blas.dtpmv(3, ap, x, overwrite_x=1) is x and (x == [6, 4, 2]).all()
    assert blas.dspmv(3, 1, ap, x, beta=1, y=y, overwrite_y=1) is y and (y == 25).all()


# ------------------------------------------------------------------------------------------- rotations

#: Powers of ten of the numbers: products of them, and ratios, are beyond the dtype.
SIZES = {"d": (0, -307, 307, 150), "z": (0, -307, 307, 150), "s": (0, -37, 37, 20), "c": (0, -37, 37, 20)}
PAIRS = [(3, 4), (-3, 4), (4, -3), (0, 0), (0, 2), (0, -2), (2, 0), (-2, 0), (1, 1), (-5, -5)]
COMPLEX = [*PAIRS, (3 + 1j, 4 - 2j), (0, 3 - 4j), (1j, -2j), (2 - 1j, 0), (-1 - 1j, 1 + 1j)]


def decimals(z: complex) -> tuple[Decimal, Decimal, Decimal]:
    """Real part, imaginary part and modulus."""
    real, imaginary = Decimal(z.real), Decimal(z.imag)
    return real, imaginary, (real**2 + imaginary**2).sqrt()


def rotation(a: complex, b: complex) -> tuple[float, complex]:
    """c and s of LAPACK's definition: c = |a| / r, s = a / |a| conj(b) / r."""
    (ar, ai, a_size), (br, bi, b_size) = decimals(a), decimals(b)
    r = (a_size**2 + b_size**2).sqrt()
    if not b_size:
        return 1.0, 0j
    if not a_size:
        ar, ai, a_size = Decimal(1), Decimal(0), Decimal(1)
        c = 0.0
    else:
        c = float(a_size / r)
    s = (ar * br + ai * bi) / a_size / r, (ai * br - ar * bi) / a_size / r
    return c, complex(*map(float, s))


@pytest.mark.parametrize("letter", "sdcz")
def test_rotations(letter):
    """r has the sign of the larger real number, of equal ones that of b; of complex ones that of a."""
    dtype = DTYPES[letter]
    tolerance = {"rtol": 8 * dtype.unit_roundoff, "atol": float(np.finfo(dtype.name).smallest_subnormal)}
    for (one, other), i, j in product(COMPLEX if dtype.is_complex else PAIRS, SIZES[letter], SIZES[letter]):
        # as the routine gets them: rounded to its dtype
        a, b = (np.array(x, dtype.name).item() for x in (one * 10.0**i, other * 10.0**j))
        c, s = getattr(blas, f"{letter}rotg")(a, b)
        assert type(c) is type(s) is (complex if dtype.is_complex else float)
        assert c.imag == 0
        expected = rotation(a, b)
        if not dtype.is_complex:
            leading = a if abs(a) > abs(b) or not b else b
            sign = math.copysign(1, leading) * (math.copysign(1, a) if a else 1)
            expected = tuple(sign * number.real if a and b else abs(number.real) for number in expected)
        np.testing.assert_allclose((c, s), expected, **tolerance, err_msg=f"{letter} {a} {b}")


@pytest.mark.parametrize("letter", "sdcz")
def test_rotations_of_what_is_not_finite(letter):
    for pair in product((math.nan, math.inf, -math.inf, 1.7e38), repeat=2):
        c, s = getattr(blas, f"{letter}rotg")(*pair)
        assert pair == (1.7e38, 1.7e38) or cmath.isnan(c) or cmath.isnan(s)


def test_modified_rotations_are_scipys():
    for arguments in ((1, 2, 3, 4), (0, 1, 2, 3), (-1, 1, 1, 1), (1, 0, 1, 1), (1, 1, 1, 0), (4, 1, 1, 3)):
        for name in ("srotmg", "drotmg"):
            expected = getattr(scipy.linalg.blas, name)(*arguments)
            np.testing.assert_array_equal(getattr(blas, name)(*arguments), expected)


def test_numbers_of_rotations_that_are_none():
    for name, arguments in (("drotg", ("x", 1)), ("srotmg", (1, 1, [1, 2], 1)), ("drotg", (1j, 1))):
        with pytest.raises(TypeError, match=f"{name}: [ax]"):
            getattr(blas, name)(*arguments)
