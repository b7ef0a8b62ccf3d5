"""Several cards of one host: host arrays, arrays on one card, and the same bits on one card and on all."""

from __future__ import annotations

import numpy as np
import pytest
from engine_on_device import CALLS, every, factor_error, fresh, matrices, pinned_like

import pyblasgpu
from pyblasgpu import lapack
from pyblasgpu.engine import run
from pyblasgpu.gpu import device
from pyblasgpu.gpu.transfers import can_access
from pyblasgpu.types import DTYPES

from .running import cupy

CARDS = device.count()
pytestmark = [
    pytest.mark.skipif(CARDS < 2, reason="there is one device"),
    pytest.mark.usefixtures("small_tiles"),
]


@pytest.mark.parametrize("name, letter", every("sdz"))
@pytest.mark.parametrize("kind", ["host", "pinned", "cupy"])
def test_results(name, letter, kind):
    x = matrices(letter, 1111, 1777, "F")
    operands = fresh(x)
    if kind == "pinned":
        operands = type(x)(*(pinned_like(cupy, each) for each in operands))
    elif kind == "cupy":
        operands = type(x)(*(cupy.asarray(each, order="F") for each in operands))
    result = CALLS[name].run(operands, devices="all")
    actual = result.get() if kind == "cupy" else result
    assert CALLS[name].error(x, actual) <= 1


def test_the_same_bits_on_any_number_of_cards():
    x = matrices("d", 2048, 2048, "F")
    for call in CALLS.values():
        one = call.run(fresh(x), devices=[0], max_device_memory=1 << 24).copy()
        for count in range(2, CARDS + 1):
            for _ in range(3):
                np.testing.assert_array_equal(call.run(fresh(x), devices=range(count)), one)
        np.testing.assert_array_equal(call.run(fresh(x), devices=[1], max_device_memory=1 << 24), one)


def test_arrays_on_a_card_follow_and_lead_its_stream():
    """What is on the caller's stream before is waited for, and what comes after waits."""
    n = 4096
    rng = cupy.random.RandomState(1)
    a, b = (cupy.asfortranarray(rng.uniform(-1, 1, (n, n))) for _ in range(2))
    expected = pyblasgpu.gemm(a, b, devices="all").copy()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        for _ in range(5):
            x = cupy.full_like(a, cupy.nan)
            for _ in range(20):
                x = x * 0.5  # takes a while
            x[...] = a
            actual = pyblasgpu.gemm(x, b, devices="all")
            x[...] = cupy.nan
            assert (actual == expected).all()


def test_a_factor():
    n, dtype = 2100, DTYPES["d"]
    g = matrices("d", n, n, "F").a
    a = np.asfortranarray(g @ g.T + n * np.eye(n))
    with pyblasgpu.use_devices("all"):
        factor, info = lapack.potrf(a, 1)
    assert info == 0 and factor_error(a, factor, dtype) <= 4


def test_lu_factors():
    """Pivots and factors are those of one card."""
    a = matrices("d", 3000, 2500, "F").a
    with pyblasgpu.use_devices([0], max_device_memory=30 << 20):
        one = lapack.getrf(a)
    with pyblasgpu.use_devices("all"):
        for _ in range(3):
            many = lapack.getrf(a)
            np.testing.assert_array_equal(many[1], one[1])
            np.testing.assert_allclose(many[0], one[0], atol=1e-9)
            assert many[2] == one[2] == 0


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("overwrite", [0, 1])
def test_factors_of_arrays_on_a_card(order, overwrite):
    n = 1500
    root = np.random.default_rng(7).normal(size=(n, n))
    spd = root @ root.T + n * np.eye(n)
    a, general = (cupy.asarray(x, order=order) for x in (spd, root))
    with pyblasgpu.use_devices("all"):
        factor, info = lapack.potrf(a, 1, overwrite_a=overwrite)
        x = lapack.potrs(factor, cupy.eye(n), 1)[0]
        lu, piv, singular = lapack.getrf(general, overwrite_a=overwrite)
    assert int(info) == 0 == int(singular)
    assert factor_error(spd, factor.get(), DTYPES["d"]) <= 4
    np.testing.assert_allclose(spd @ x.get(), np.eye(n), atol=1e-8)
    factors = np.tril(lu.get(), -1) + np.eye(n), np.triu(lu.get())
    rows = np.arange(n)
    for row, other in enumerate(cupy.asnumpy(piv)):
        rows[[row, other]] = rows[[other, row]]
    np.testing.assert_allclose(factors[0] @ factors[1], root[rows], atol=1e-9)
    if not overwrite:
        np.testing.assert_array_equal(a.get(), spd)


def test_peers_are_told():
    assert {can_access(0, other) for other in range(CARDS)} <= {True, False}
    assert run.memory_limit(range(CARDS), None) > 1 << 30
