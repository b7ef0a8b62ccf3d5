"""The Level 2 of `pyblasgpu.blas` beside SciPy's: signatures, offsets, increments, outputs, errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import blas as scipy_blas

from pyblasgpu import blas


@pytest.mark.parametrize(
    ("name", "arguments", "options", "message"),
    [
        ("dgemv", (1, np.ones((3, 2)), np.ones(3)), {"trans": 0, "offx": 2}, "dgemv: x has 3 elements"),
        ("dgemv", (1, np.ones((3, 2)), np.ones(1)), {}, "dgemv: x has 1 elements"),
        ("dgemv", (1, np.ones((3, 2)), np.ones(2)), {"incx": 0}, "dgemv: incx is 0"),
        ("dgemv", (1, np.ones((3, 2)), np.ones(2)), {"incy": 0}, "incy is 0"),
        ("dgemv", (1, np.ones((3, 2)), np.ones(2)), {"y": np.ones(2)}, "dgemv: y has 2 elements"),
        ("dgemv", (1, np.ones((3, 2)), np.ones(2)), {"trans": 3}, "trans=3"),
        ("dsymv", (1, np.ones((3, 2)), np.ones(2)), {}, "dsymv: a has shape (3, 2)"),
        ("dtrmv", (np.ones((3, 3)), np.ones(2)), {}, "dtrmv: x has 2 elements"),
        ("dger", (1, np.ones(3), np.ones(2)), {"incx": 2}, "dger: incx=2"),
        ("dger", (1, np.ones(3), np.ones(2)), {"a": np.ones((2, 3))}, "dger: a has shape (2, 3)"),
        ("dsyr", (1, np.ones(3)), {"n": 5}, "dsyr: x has 3 elements"),
        ("dsyr", (1, np.ones(3)), {"n": -1}, "dsyr: n=-1 is negative"),
        ("dsyr2", (1, np.ones(3), np.ones(3)), {"a": np.ones((2, 2))}, "dsyr2: a has shape (2, 2)"),
    ],
)
def test_bad_arguments_are_named(name, arguments, options, message):
    kept = {key: np.array(value) for key, value in options.items()}
    with pytest.raises(ValueError) as error:
        getattr(blas, name)(*arguments, **options)
    assert message in str(error.value)
    assert all(np.array_equal(value, options[key]) for key, value in kept.items())


def test_complex_arguments_of_real_routines():
    with pytest.raises(TypeError, match="dgemv: x is complex"):
        blas.dgemv(1, np.ones((2, 2)), np.ones(2) * 1j)
    with pytest.raises(TypeError, match="dgemv: alpha=1j is complex"):
        blas.dgemv(1j, np.ones((2, 2)), np.ones(2))
    with pytest.raises(TypeError, match="zher: alpha=1j is complex"):
        blas.zher(1j, np.ones(2))


def test_a_result_in_y_that_x_shares():
    """x is copied where it shares memory with what is written."""
    y = np.arange(4.0)
    expected = scipy_blas.dgemv(2, np.ones((4, 4)), y.copy(), 1, y.copy())
    np.testing.assert_allclose(blas.dgemv(2, np.ones((4, 4), order="F"), y, 1, y, overwrite_y=1), expected)


def test_functions_by_name():
    gemv, ger = blas.get_blas_funcs(("gemv", "ger"), dtype="complex128")
    assert (gemv, ger) == (blas.zgemv, blas.zgerc)
    with pytest.raises(ValueError, match="zsymv could not be found"):
        blas.get_blas_funcs("symv", dtype="complex128")
