"""Level 1 by SciPy's names: what SciPy's functions give, in place where they write, and every name."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg.blas

from pyblasgpu import blas
from pyblasgpu.errors import OverlapError
from pyblasgpu.types import DTYPES


def spread(x: np.ndarray) -> np.ndarray:
    """A copy of `x`, contiguous or not as it is."""
    return x.copy() if x.flags.c_contiguous else x.repeat(2)[::2]


def same(name: str, arrays: list[np.ndarray], *arguments, tolerance: float = 0, **options) -> None:
    """Ours and SciPy's give the same, and leave the same in the arrays."""
    ours, theirs = ([spread(x) for x in arrays] for _ in range(2))
    actual = getattr(blas, name)(*arguments, *ours, **options)
    expected = getattr(scipy.linalg.blas, name)(*arguments, *theirs, **options)
    pairs = zip(actual, expected, strict=True) if isinstance(expected, tuple) else [(actual, expected)]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=tolerance)
    for one, other in zip(ours, theirs, strict=True):
        assert (one == other).all()
    assert type(actual) is type(expected)


def test_defaults_are_scipys():
    x, y = np.arange(6.0), np.arange(7.0)
    for name in ("daxpy", "dcopy", "dswap", "ddot"):
        same(name, [x, y])
        same(name, [x[:5], y], incx=2)
    same("drot", [x[:5], y], c=3, s=4, incx=2, incy=2)
    same("dscal", [x], 3, incx=-1)
    same("dasum", [x], incx=-1)
    for more in ({}, {"n": 3}, {"offx": 2}):
        same("idamax", [x], incx=-2, **more)


def test_other_arrays_are_cast_and_copied():
    x = [1, 2, 3]
    assert blas.daxpy(x, [1, 1, 1]).tolist() == [2, 3, 4]
    y = np.ones(3, np.float32)
    assert blas.daxpy(x, y).dtype == np.float64 and (y == 1).all()
    read_only = np.ones(3)
    read_only.flags.writeable = False
    assert blas.daxpy(x, read_only).tolist() == [2, 3, 4] and (read_only == 1).all()
    assert blas.ddot(2.0, 3.0) == 6
    same_array = np.ones(3)
    assert blas.daxpy(same_array, same_array) is same_array and (same_array == 2).all()


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 2), (1, 3)])
def test_arrays_of_several_dimensions_are_vectors_by_columns(shape, order):
    """Arrays of that order are written in place, and others are copied, as SciPy does."""
    for call in (
        lambda module, x, y: module.dscal(2.0, x, n=2),
        lambda module, x, y: module.daxpy(x, y, n=3, incx=-1),
        lambda module, x, y: module.dcopy(y, x, n=2, incx=2, incy=-1) if x.size > 3 else y,
        lambda module, x, y: module.drot(x, y, 0.5, 0.25, n=2, overwrite_x=1),
        lambda module, x, y: module.ddot(x, y, n=2),
    ):
        results = []
        for module in (blas, scipy.linalg.blas):
            x = np.arange(np.prod(shape), dtype=float).reshape(shape, order="C").copy(order)
            y = np.array(1 - x, order="F")
            returned = call(module, x, y)
            results.append((*returned, x, y) if isinstance(returned, tuple) else (returned, x, y))
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(one, other)
            assert np.ndim(one) == 0 or one.flags.f_contiguous == other.flags.f_contiguous


def test_a_np_matrix_is_a_vector():
    x = np.matrix([[1.0], [2.0], [3.0]])
    assert blas.ddot(x, x.T) == 14.0
    np.testing.assert_array_equal(blas.dtrmv(2 * np.eye(3), x), 2 * np.asarray(x))


BAD = [
    (lambda x: blas.daxpy(x, x[:3]), ValueError, r"daxpy: y has 3 elements, and n=6, offy=0, incy=1"),
    (lambda x: blas.daxpy(x, x, incx=0), ValueError, "daxpy: incx is 0"),
    (lambda x: blas.daxpy(x, x, offx=6), ValueError, "daxpy: offx=6 is outside of x, of 6 elements"),
    (lambda x: blas.daxpy(x, x, n=2.5), ValueError, "daxpy: n=2.5 is no integer"),
    (lambda x: blas.daxpy(x, x, a=1j), TypeError, "daxpy: a"),
    (lambda x: blas.daxpy(x + 1j, x), TypeError, "daxpy: x is complex"),
    (lambda x: blas.dnrm2(x, incx=-1), ValueError, "dnrm2: incx=-1 is negative"),
    (lambda x: blas.ddot([], [], offx=1), ValueError, "ddot: offx=1 is outside of x, of 0 elements"),
    (lambda x: blas.ddot([], [], 1), ValueError, "ddot: x has 0 elements, and n=1, offx=0, incx=1"),
    (lambda x: blas.zdscal(1j, x), TypeError, "zdscal: a"),
    (lambda x: blas.dswap(x, x), OverlapError, "dswap: x shares memory with y"),
    (lambda x: blas.dcopy(object(), x), TypeError, "dcopy: x"),
    (lambda x: blas.drot(x, x[:3], 1, 0, offx="1"), ValueError, "drot: offx='1' is no integer"),
    (lambda x: blas.drot(x, x[:3], 1, 0, incx=0), ValueError, "drot: incx is 0"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_what_is_refused(call, error, message):
    x = np.arange(6.0)
    with pytest.raises(error, match=message):
        call(x)
    assert (x == np.arange(6)).all()


# --------------------------------------------------------------------------------------- all of the names

SCIPYS = {
    name for name in dir(scipy.linalg.blas) if callable(getattr(scipy.linalg.blas, name)) and name[0] != "_"
}
FUNCTIONS = sorted(SCIPYS - {"get_blas_funcs", "find_best_blas_type"})


def test_no_name_is_missing():
    assert set(blas.__all__) >= SCIPYS


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("name", ["dot", "dotu", "dotc", "nrm2", "axpy", "gbmv", "tpsv"])
def test_get_blas_funcs_knows_scipys_other_names(name, letter):
    dtype = DTYPES[letter].name
    try:
        expected = scipy.linalg.blas.get_blas_funcs(name, dtype=dtype)
    except ValueError:
        with pytest.raises(ValueError, match="could not be found"):
            blas.get_blas_funcs(name, dtype=dtype)
        return
    actual = blas.get_blas_funcs(name, dtype=dtype)
    assert actual.typecode == expected.typecode and actual.dtype == expected.dtype


def test_what_scipy_computes_itself_is_called_as_python_calls():
    """NumPy arrays of the dtype go to SciPy's function; wrong calls raise as for any function."""
    x, y = np.arange(3.0), np.ones(3)
    assert blas.daxpy(x, y) is y and blas.daxpy(y=y, x=x, a=2) is y and (y == 1 + 3 * x).all()
    for call in (
        lambda: blas.ddot(x),
        lambda: blas.ddot(x, y, 3, 0, 1, 0, 1, 9),
        lambda: blas.ddot(x, y, x=x),
        lambda: blas.ddot(x, y, wrong=1),
    ):
        with pytest.raises(TypeError):
            call()
