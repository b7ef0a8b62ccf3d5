"""Ratios of LAPACK's testers of eigenvalues and singular values, with kernels that NumPy computes."""

from __future__ import annotations

import ctypes

import fake_device
import fake_kernels
import numpy as np
import pytest
from eigen_testers import ORDERS, SHAPES, THRESHOLD, singular_ratios, symmetric_ratios, worst

from tools.fortran_answers import answer, routines
from tools.fortran_spectra import Spectra
from tools.fortran_testers import parts


def put(array) -> fake_device.Array:
    return fake_device.Array(np.array(array, order="F"))


def fetched(array) -> np.ndarray:
    return array.host


@pytest.mark.parametrize("letter", "sz")
def test_ratios_of_eigenvalues(fake, monkeypatch, letter):
    fake_kernels.install_below(monkeypatch)
    for n in ORDERS[2::2]:
        ratios = worst(symmetric_ratios, letter, n, (put, fetched))
        assert max(ratios.values()) < THRESHOLD, (n, ratios)


@pytest.mark.parametrize("letter", "dc")
def test_ratios_of_singular_values(fake, monkeypatch, letter):
    fake_kernels.install_below(monkeypatch)
    for shape in SHAPES[2::2]:
        ratios = worst(singular_ratios, letter, shape, (put, fetched))
        assert max(ratios.values()) < THRESHOLD, (shape, ratios)


CALLS = {
    "heevd": {"JOBZ": "V", "UPLO": "L"},
    "heevr": {"JOBZ": "V", "RANGE": "I", "UPLO": "U", "IL": 2, "IU": 3},
    "hegvx": {"ITYPE": 1, "JOBZ": "V", "RANGE": "V", "UPLO": "L", "VL": 1.5, "VU": 3.5},
    "gesvd": {"JOBU": "S", "JOBVT": "O"},
    "gesdd": {"JOBZ": "A"},
}


@pytest.mark.parametrize("on", ["cpu", "device"])
@pytest.mark.parametrize("stem", CALLS)
def test_calls_of_fortran(request, monkeypatch, stem, on):
    """Of a diagonal matrix, whose leading dimension has a gap; what the routine does not write stays."""
    functions = Spectra("cpu")
    if on == "device":
        request.getfixturevalue("card")
        monkeypatch.setattr(functions, "is_host", False)
        monkeypatch.setattr(functions, "put", put)
        monkeypatch.setattr(functions, "get", fetched)
    method, names = routines()[f"z{stem}"]
    order = np.array([2.0, 4, 1, 3])
    a, b = (
        np.pad(np.diag(each).astype("D"), ((0, 2), (0, 0)), constant_values=7) for each in (order, order**0)
    )
    arrays = {"A": a, "B": b, "INFO": np.full(1, 9, "i4"), "M": np.full(1, 4, "i4")}
    arrays |= {each: np.full(4, 7.0) for each in ("W", "S")}
    arrays |= {each: np.full((6, 4), 7, "D", "F") for each in ("Z", "U", "VT")}
    arrays = {name: np.asfortranarray(each) for name, each in arrays.items()}
    given = {"N": 4, "LWORK": 1, "LRWORK": 1, "LIWORK": 1, "ABSTOL": 0.0} | CALLS[stem]
    given |= {name: 6 for name in names if name.startswith("LD")}
    values = {name: _value(given[name]) for name in given}
    pointers = [
        arrays[name].ctypes.data if name in arrays else ctypes.addressof(values.get(name, ctypes.c_int(1)))
        for name in names
    ]
    answer(f"z{stem}", names, getattr(functions, method), None)(*pointers)
    first, columns = (1, 2) if "RANGE" in CALLS[stem] else (0, 4)
    found = arrays["S" if stem.startswith("ge") else "W"][:columns]
    expected = np.sort(order)[::-1] if stem.startswith("ge") else np.sort(order)
    np.testing.assert_allclose(found, expected[first : first + columns], rtol=1e-14)
    assert arrays["INFO"] == 0 and (arrays["A"][4:] == 7).all() and arrays["M"] == columns
    vectors = arrays["U" if stem.startswith("ge") else "A" if stem == "heevd" else "Z"][:4, :columns]
    np.testing.assert_allclose(np.abs(np.diag(order) @ vectors), np.abs(vectors * found), atol=1e-14)
    if stem == "gesvd":  # right vectors are in A
        np.testing.assert_allclose((vectors * found) @ arrays["A"][:4], np.diag(order), atol=1e-14)


def _value(value):
    if isinstance(value, str):
        return ctypes.c_char(value.encode())
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int(value)


PRINTED = """
 Matrix order=    3, type= 8, seed=   1,   2,   3,   4, result   2 is    0.75
 Matrix order=    3, type= 8, seed=   1,   2,   3,   4, result   2 is 0.45036+16
 ZHEEVR(V,I,U) returned INFO=     3.
 ZST drivers:      2 out of      2 tests failed to pass the threshold
 N=    2, seed=   0,   0,   0,   1, type  1, test(12)= NaN
 All tests for DBD passed the threshold (   1 tests run)
 M=    2, N=    1, type 1, IWS=1, seed=1,2,3,4, test( 1)=  0.5
"""


def test_parts_of_what_a_tester_prints():
    first, second, last = parts(PRINTED)
    assert first == ("ZST drivers", {2: [0.75, 0.45036e16]}, ["ZHEEVR(V,I,U) returned INFO=     3."])
    assert second == ("DBD", {12: [np.inf]}, [])
    assert last == ("not ended", {1: [0.5]}, [])
