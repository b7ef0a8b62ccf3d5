"""A dtype in every spelling that NumPy and other libraries have, wherever one is taken."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import fake_device
import fake_libraries
import numpy as np
import pytest

import pyblasgpu
from pyblasgpu import blas, linalg, options
from pyblasgpu.frontend.arrays.any_array import common_dtype, numpy_dtype, stored_dtype
from pyblasgpu.types import DTYPES, dtype_of


class Foreign:
    """A dtype of a library that tells its name by its str alone, as PyTorch's and NDArrays' do."""

    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text


SPELLINGS = {
    "s": ["s", "f", "f4", "<f4", "=f4", "float32", "single", np.float32, np.dtype("f4"),
          Foreign("torch.float32"), Foreign("mlx.core.float32"), SimpleNamespace(name="float32"),
          type("Float32", (), {}), fake_libraries.Dtype("f4"), DTYPES["s"]],
    "d": ["d", "f8", "<f8", "float64", "double", "float", float, np.float64, np.double, np.dtype("f8"),
          Foreign("torch.float64"), fake_libraries.Dtype("f8"), DTYPES["d"], "torch.float64"],
    "c": ["c", "F", "c8", "<c8", "complex64", "csingle", np.complex64, np.csingle, np.dtype("c8"),
          Foreign("torch.complex64"), fake_libraries.Dtype("c8"), DTYPES["c"]],
    "z": ["z", "D", "c16", "<c16", "complex128", "cdouble", "complex", complex, np.complex128,
          np.dtype("c16"), Foreign("torch.complex128"), fake_libraries.Dtype("c16"), DTYPES["z"]],
}  # fmt: skip
EACH = pytest.mark.parametrize(
    ("letter", "spelling"),
    [(letter, each) for letter, spellings in SPELLINGS.items() for each in spellings],
    ids=str,
)
WRONG = [
    None, int, bool, object, str, "int64", "float16", "bfloat16", "longdouble", np.longdouble, np.int32, "i4",
    "e", "S", "V8", np.dtype([("x", "f8")]), np.dtype("O"), Foreign("torch.bfloat16"), np.floating, 8, [],
    "f16x", "",
]  # fmt: skip


@EACH
def test_every_spelling(letter, spelling):
    expected = DTYPES[letter]
    assert dtype_of(spelling) is expected
    assert numpy_dtype(spelling) == np.dtype(expected.name)


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_no_other_dtype(wrong):
    with pytest.raises(TypeError, match=r"dtype .* is none of float32, float64, complex64, complex128"):
        dtype_of(wrong)


@EACH
def test_where_a_dtype_is_taken(letter, spelling):
    a, name = np.arange(4).reshape(2, 2), DTYPES[letter].name
    product = linalg.matmul(a, a, dtype=spelling)
    assert product.dtype == name and (product == a @ a).all()
    assert blas.find_best_blas_type(dtype=spelling) == (letter, np.dtype(name), False)
    assert blas.get_blas_funcs("gemm", dtype=spelling) is getattr(blas, f"{letter}gemm")


@pytest.mark.parametrize("wrong", [each for each in WRONG if each is not None], ids=str)
def test_matmul_refuses_other_dtypes(wrong):
    a = np.ones((2, 2))
    with pytest.raises(TypeError, match="dtype"):
        linalg.matmul(a, a, dtype=wrong, casting="unsafe")


@EACH
def test_explain(letter, spelling, monkeypatch):
    from pyblasgpu.api import explain

    requested = []
    monkeypatch.setattr(
        explain,
        "launches_of",
        lambda routine, dtype, *rest: requested.append(dtype) or SimpleNamespace(choices=[], decisive={}),
    )
    assert pyblasgpu.explain("gemm", spelling, 8, 8, device="h200") == []
    assert requested == [DTYPES[letter]]


@pytest.mark.parametrize(
    ("text", "letters"),
    [("s,d", "sd"), ("float32", "s"), ("f8,complex64", "dc"), ("S,F", "sc"), ("complex, float,d", "zd")],
)
def test_the_command_line(text, letters):
    assert options.parse_dtypes(text) == tuple(letters)


@pytest.mark.parametrize("text", ["", "x", "s,", "float16", "int", "d,i8"])
def test_the_command_line_refuses_others(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is none of s, d, c, z"):
        options.parse_dtypes(text)


@pytest.mark.parametrize("dtype", ["i4", "?", "i8", "f2", "f4", "D"])
def test_the_best_type_of_arrays_on_a_device(fake, dtype):
    array = fake_device.Array(np.zeros((3, 4), dtype, order="F"))
    letter, _, prefers_fortran = blas.find_best_blas_type([array])
    assert letter == {"f2": "s", "f4": "s", "D": "z"}.get(dtype, "d")
    assert prefers_fortran == (dtype in ("f4", "D"))
    assert blas.get_blas_funcs("gemm", [array]) is getattr(blas, f"{letter}gemm")
    uneven = fake_device.Array(np.ndarray((2, 2), "f8", bytearray(99), 0, (9, 20)))
    assert blas.find_best_blas_type([uneven]) == ("d", np.dtype("f8"), False)


# ---------------------------------------------------------------------------------------- dtypes of arrays


@pytest.mark.parametrize("name", ["float32", "float64", "complex64", "complex128"])
def test_stored_dtypes_of_any_library(name):
    expected = dtype_of(name)
    for dtype in (np.dtype(name), Foreign(f"torch.{name}"), fake_libraries.Dtype(name), getattr(np, name)):
        assert stored_dtype(dtype) is stored_dtype(dtype) is expected
    assert stored_dtype(np.dtype(name).newbyteorder()) is None


def test_dtypes_of_one_hash_are_not_compared():
    """Some libraries' dtypes warn when they are compared, which would become an error."""
    own = fake_libraries.Dtype("f8")
    assert hash(own) == hash(np.dtype("f8"))
    assert stored_dtype(np.dtype("f8")) is stored_dtype(own) is DTYPES["d"]
    assert common_dtype("gemm", [own, np.dtype("f8")]) is DTYPES["d"]


def test_dtypes_are_not_kept_for_ever():
    from pyblasgpu.frontend.arrays import any_array

    known = Foreign("torch.float64")
    assert stored_dtype(known) is DTYPES["d"] and any_array.CACHED[id(known)] == (DTYPES["d"], known)
    for number in range(3 * any_array.MAX_CACHED):
        assert stored_dtype(Foreign(f"library{number}.float32")) is DTYPES["s"]
    assert len(any_array.CACHED) <= any_array.MAX_CACHED


def test_dtypes_that_numpy_lacks():
    lacking = Foreign("torch.bfloat16")
    assert numpy_dtype(lacking) == np.dtype(object) and stored_dtype(lacking) is None
    with pytest.raises(TypeError, match=r"^gemm: dtype torch\.bfloat16 of b is none of float32"):
        common_dtype("gemm", [np.dtype("f8"), lacking], ["a", "b"])


def test_the_array_whose_dtype_is_wrong_is_named():
    good, wrong = np.ones((2, 2)), np.ones((2, 2), object)
    for call, name in (
        (lambda: pyblasgpu.gemm(good, wrong), "gemm: dtype object of b"),
        (lambda: pyblasgpu.syrk(wrong), "syrk: dtype object of a"),
        (lambda: blas.dgemm(1, wrong, good), "dgemm: dtype object of a"),
        (lambda: linalg.matmul(good, wrong), "matmul: dtype object of x2"),
    ):
        with pytest.raises(TypeError, match=name):
            call()
