"""Level 2 in keyword style on host arrays: shapes, batches, layouts, overlaps and errors beside NumPy."""

from __future__ import annotations

import empty_sums
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

import pyblasgpu
from pyblasgpu.errors import OverlapError

SEEDS, QUICK = st.integers(0, 999), settings(max_examples=40, deadline=None)
NAN = float("nan")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: pyblasgpu.gemv(np.ones((3, 2)), np.ones(3)), ValueError, r"gemv: x has length 3; 2 is"),
        (lambda x: pyblasgpu.gemv(np.ones(3), np.ones(3)), ValueError, r"gemv: a has shape \(3,\)"),
        (lambda x: pyblasgpu.gemv(np.ones((3, 3)), np.float64(1)), ValueError, r"gemv: x has shape \(\)"),
        (lambda x: pyblasgpu.gemv(np.ones((3, 3)), x, beta=1), ValueError, "gemv: beta=1 needs out"),
        (lambda x: pyblasgpu.gemv(np.ones((3, 3)), x, out=x), OverlapError, "gemv: out shares memory with x"),
        (lambda x: pyblasgpu.gemv(np.ones((2, 3)), x, out=x[:1]), ValueError, r"gemv: out has shape \(1,\)"),
        (lambda x: pyblasgpu.gemv(np.ones((3, 3)), x, alpha=1j), TypeError, "gemv: alpha=1j is complex"),
        (lambda x: pyblasgpu.symv(np.ones((3, 2)), x), ValueError, r"symv: a has shape \(3, 2\)"),
        (lambda x: pyblasgpu.trmv(np.ones((3, 3)), x, lower="x"), ValueError, "trmv: lower='x'"),
        (lambda x: pyblasgpu.ger(x, x, out=np.ones((3, 2))), ValueError, r"ger: out has shape \(3, 2\)"),
        (lambda x: pyblasgpu.syr2(x, x[:2]), ValueError, "syr2: x has length 3 and y 2"),
        (lambda x: pyblasgpu.her(x * 1j, alpha=1j), TypeError, "her: alpha=1j is complex"),
        (
            lambda x: pyblasgpu.gemv(np.ones((2, 3, 3)), np.ones((3, 3))),
            ValueError,
            r"gemv: the leading dimensions of a, of shape \(2, 3, 3\), and x, of \(3, 3, 1\)",
        ),
    ],
)
def test_bad_arguments_are_named(call, error, message):
    x = np.ones(3)
    with pytest.raises(error, match=message):
        call(x)
    assert (x == 1).all()


@pytest.mark.parametrize(("alpha", "beta"), empty_sums.FACTORS)
def test_sums_without_terms_scale_what_is_there(alpha, beta):
    empty_sums.check(alpha, beta, np.asarray, np.asarray)
