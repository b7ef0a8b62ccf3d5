from __future__ import annotations

import numpy as np
import pytest

from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo, dtype_of


@pytest.mark.parametrize(
    ("flag", "spellings"),
    [
        (Side, {Side.LEFT: ["L", "l", 0], Side.RIGHT: ["R", "r", 1]}),
        (Uplo, {Uplo.UPPER: ["U", "u", 0, False], Uplo.LOWER: ["L", "l", 1, True]}),
        (Trans, {Trans.NO: ["N", "n", 0], Trans.TRANS: ["T", "t", 1], Trans.CONJ: ["C", "c", "H", "h", 2]}),
        (Diag, {Diag.NON_UNIT: ["N", "n", 0, False], Diag.UNIT: ["U", "u", 1, True]}),
    ],
)
def test_every_spelling_of_a_flag(flag, spellings):
    for member, names in spellings.items():
        for name in [*names, member, *(np.int64(name) for name in names if isinstance(name, int))]:
            assert flag.parse(name, "gemm", "x") is member


@pytest.mark.parametrize("flag", [Side, Uplo, Trans, Diag])
@pytest.mark.parametrize("value", ["X", "", "NN", 3, -1, None, 1.0, [1], np.zeros(2)])
def test_no_other_value_is_a_flag(flag, value):
    with pytest.raises(ValueError, match="dgemm: trans_a="):
        flag.parse(value, "dgemm", "trans_a")


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_facts_of_the_dtypes(dtype):
    numpy_dtype = np.dtype(dtype.name)
    assert numpy_dtype.itemsize == dtype.itemsize and np.dtype(dtype.real).itemsize == dtype.real_size
    assert dtype.is_complex == (numpy_dtype.kind == "c") and numpy_dtype.char.lower() in "fd"
    assert dtype.unit_roundoff == np.finfo(numpy_dtype).eps / 2


@pytest.mark.parametrize("letter", "sdcz")
def test_dtype_of_any_name(letter):
    dtype = DTYPES[letter]
    names = [letter, dtype.name, np.dtype(dtype.name), f"torch.{dtype.name}", dtype]
    assert all(dtype_of(name) is dtype for name in names)


@pytest.mark.parametrize("name", ["float16", "int64", np.dtype("longdouble"), "torch.bfloat16", "x", None])
def test_no_other_dtype(name):
    with pytest.raises(TypeError, match="is none of float32"):
        dtype_of(name)


def test_flipped():
    assert Uplo.UPPER.flipped is Uplo.LOWER and Uplo.LOWER.flipped is Uplo.UPPER
