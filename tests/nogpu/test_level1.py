"""Level 1 in keyword style on the CPU: results, batches, outputs, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.errors import OverlapError


def test_results_are_numbers_and_arrays_of_the_library():
    x = np.arange(4, dtype=np.float32)
    for result, kind in ((pyblasgpu.dot(x, x), np.float32), (pyblasgpu.iamax(x), np.int64)):
        assert type(result) is kind
    z = np.ones((2, 3), np.complex64)
    assert pyblasgpu.nrm2(z).dtype == np.float32 and pyblasgpu.nrm2(z).shape == (2,)
    out = np.zeros((), np.complex64)
    assert pyblasgpu.dot(z[0], z[1], out=out) is out and out == 3
    index = np.zeros(2, np.int64)
    assert pyblasgpu.iamax(z, out=index) is index
    assert pyblasgpu.axpy([1, 2], [3, 4]).tolist() == [4, 6]


def test_batches_broadcast():
    x, y = np.arange(3.0), np.ones((4, 1, 3))
    assert pyblasgpu.axpy(x, y).shape == (4, 1, 3)
    assert pyblasgpu.dot(x, np.ones((5, 3))).tolist() == [3.0] * 5
    out = np.zeros((2, 3))
    assert (pyblasgpu.axpy(x, x, out=out) == 2 * x).all()


def test_alpha_zero_reads_no_x_and_scal_multiplies():
    nan = np.full(3, np.nan)
    assert (pyblasgpu.axpy(nan, np.ones(3), alpha=0) == 1).all()
    assert np.isnan(pyblasgpu.scal(nan, alpha=0)).all()
    assert pyblasgpu.scal(np.array([complex(np.inf, 1)]), alpha=2)[0] == complex(np.inf, 2)


def test_empty_vectors():
    none = np.zeros(0)
    assert pyblasgpu.axpy(none, none).shape == (0,)
    assert pyblasgpu.dot(none, none) == pyblasgpu.nrm2(none) == pyblasgpu.asum(none) == 0
    with pytest.raises(ValueError, match="iamax: x has no elements"):
        pyblasgpu.iamax(none)
    assert pyblasgpu.rot(none, none, 1, 0)[0].shape == (0,)


BAD = [
    (lambda x: pyblasgpu.axpy(x, x[:2]), ValueError, "axpy: x has 4 elements and y 2"),
    (lambda x: pyblasgpu.axpy(x, x, alpha=1j), TypeError, "axpy: alpha"),
    (lambda x: pyblasgpu.axpy(x, x, out=np.zeros(3)), ValueError, r"axpy: out has shape \(3,\); \(4,\)"),
    (lambda x: pyblasgpu.axpy(x, x, out=np.zeros(4, "f")), TypeError, "axpy: out has dtype float32"),
    (lambda x: pyblasgpu.axpy(x[:3], x[:3], out=x[1:]), OverlapError, "axpy: out shares memory with x"),
    (lambda x: pyblasgpu.axpy(x, x.reshape(2, 2)), ValueError, "axpy: x has 4 elements and y 2"),
    (lambda x: pyblasgpu.dot(x.reshape(2, 2), np.ones((3, 2))), ValueError, "do not broadcast"),
    (lambda x: pyblasgpu.nrm2(x.reshape(2, 2), out=np.zeros(())), ValueError, r"shape \(\); \(2,\)"),
    (lambda x: pyblasgpu.iamax(x, out=np.zeros(())), TypeError, "iamax: out has dtype float64"),
    (lambda x: pyblasgpu.nrm2(np.float64(3)), ValueError, r"nrm2: x has shape \(\); a vector"),
    (lambda x: pyblasgpu.swap(x, x), OverlapError, "swap: x shares memory with y"),
    (lambda x: pyblasgpu.swap(x, np.ones(4, "f")), TypeError, "swap: y has dtype float32"),
    (lambda x: pyblasgpu.swap(x, np.ones(3)), ValueError, "swap: out has shape"),
    (lambda x: pyblasgpu.rot(x, x, 1j, 0), TypeError, "rot: c"),
    (lambda x: pyblasgpu.rot(x, x, 1, 0, out=x), TypeError, "rot: out"),
    (
        lambda x: pyblasgpu.rot(x[:2], x[1:3], 1, 0, out=(x[2:], x[:2])),
        OverlapError,
        r"rot: out\[0\] shares .* y",
    ),
    (
        lambda x: pyblasgpu.rot(x[:2], x[1:3], 1, 0, out=(None, x[:2])),
        OverlapError,
        r"rot: out\[1\] shares .* x",
    ),
    (lambda x: pyblasgpu.rot(1 - x, -x, 1, 0, out=(x, x)), OverlapError, r"rot: out\[0\] shares .* out\[1\]"),
    (
        lambda x: pyblasgpu.rot(1 - x, -x[:3], 1, 0, out=(x, None)),
        ValueError,
        r"rot: x has shape \(4,\) and y",
    ),
    (
        lambda x: pyblasgpu.rot(1 - x, -x, 1, 0, out=(x, np.zeros(4, "f"))),
        TypeError,
        r"rot: out\[1\] has dtype",
    ),
    (lambda x: pyblasgpu.rotm(x, x, [1, 2]), ValueError, "rotm: param has shape"),
    (lambda x: pyblasgpu.rotm(x + 0j, x, [0] * 5), TypeError, "rotm: x and y are complex128"),
    (lambda x: pyblasgpu.copy("abcd"), TypeError, "copy: x"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_what_is_refused(call, error, message):
    x = np.arange(4.0)
    before = x.copy()
    with pytest.raises(error, match=message):
        call(x)
    assert (x == before).all()


def test_host_arrays_stay_on_the_host_unless_a_device_is_asked_for(monkeypatch):
    from pyblasgpu.errors import BackendUnavailable

    monkeypatch.delenv("PYBLASGPU_BACKEND", raising=False)
    monkeypatch.setattr("pyblasgpu.frontend.backend_status.why_no_device", lambda device: "")
    assert pyblasgpu.dot(np.ones(3), np.ones(3)) == 3
    monkeypatch.setattr("pyblasgpu.frontend.backend_status.why_no_device", lambda device: "none here")
    with pytest.raises(BackendUnavailable):
        pyblasgpu.dot(np.ones(3), np.ones(3), backend="cuda")
