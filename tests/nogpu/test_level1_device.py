"""Level 1 of device arrays but for the kernels, for which NumPy computes."""

from __future__ import annotations

import fake_device
import fake_libraries
import numpy as np
import pytest
from fake_level1 import LEVEL1
from fake_libraries import DeviceArray, ImmutableArray, InterfaceArray

import pyblasgpu
from pyblasgpu import blas
from pyblasgpu.api.keyword import vector_calls, vector_pairs
from pyblasgpu.errors import OverlapError
from pyblasgpu.frontend.arrays import keep_alive, libraries

# fresh memory is full of NaN, also that of an index
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in cast")

X, Y = np.arange(1.0, 7.0), np.arange(6.0) ** 2


@pytest.fixture(autouse=True)
def device(fake, monkeypatch):
    """The fake device, and the stand-ins of the routines."""
    imported = libraries.module
    for module in (vector_calls, vector_pairs):
        monkeypatch.setattr(module, "routine_module", lambda name: LEVEL1)
    yield fake_libraries.install(monkeypatch)
    keep_alive.release()
    imported.cache_clear()


@pytest.fixture
def immutable(monkeypatch):
    fake_libraries.know_as_immutable(monkeypatch, ImmutableArray)


def test_results_are_of_the_library_and_its_numbers_have_no_dimensions():
    x, y = DeviceArray(X), DeviceArray(Y)
    actual = pyblasgpu.axpy(x, y, alpha=2)
    assert type(actual) is DeviceArray and (actual.host == 2 * X + Y).all()
    for result, expected in (
        (pyblasgpu.dot(x, y), X @ Y),
        (pyblasgpu.asum(x), X.sum()),
        (pyblasgpu.iamax(x), 5),
        (blas.ddot(x, y, n=2, offx=1, incx=2, incy=-1), X[1] * Y[1] + X[3] * Y[0]),
        (blas.idamax(x), 5),
    ):
        assert type(result) is DeviceArray and result.shape == () and result.host == expected
    assert pyblasgpu.iamax(x).host.dtype == np.int64
    assert pyblasgpu.nrm2(DeviceArray(X + 0j)).host.dtype == np.float64
    stack = DeviceArray(np.stack([X, Y, X]))
    assert (pyblasgpu.dot(stack, y).host == [X @ Y, Y @ Y, X @ Y]).all()


def test_outputs_are_written_in_place():
    x, y, out = DeviceArray(X.copy()), DeviceArray(Y.copy()), DeviceArray(np.zeros(6))
    assert pyblasgpu.axpy(x, y, alpha=2, out=out) is out and (out.host == 2 * X + Y).all()
    for _ in range(2):  # the second time from the cache
        y.host[...] = Y
        assert pyblasgpu.axpy(x, y, alpha=2, out=y) is y and (y.host == 2 * X + Y).all()
        assert pyblasgpu.scal(y, alpha=3, out=y) is y and (y.host == 3 * (2 * X + Y)).all()
    number = DeviceArray(np.zeros(()))
    assert pyblasgpu.dot(x, x, out=number) is number and number.host == X @ X
    assert pyblasgpu.swap(x, y) == (x, y) and (y.host == X).all()
    rotated = pyblasgpu.rot(y, y2 := DeviceArray(Y.copy()), 3, 4)
    assert (rotated[0].host == 3 * X + 4 * Y).all() and (rotated[1].host == 3 * Y - 4 * X).all()
    assert (y.host == X).all() and (y2.host == Y).all()


def test_scipys_names_write_where_scipy_does():
    x, y = DeviceArray(X), DeviceArray(Y.copy())
    assert blas.daxpy(x, y, n=3, a=2, offx=1, incx=-1, offy=0, incy=2) is y
    expected = Y.copy()
    expected[0:6:2] += 2 * X[3:0:-1]
    assert (y.host == expected).all()
    read_only = DeviceArray(Y.copy(), read_only=True)
    assert blas.dcopy(x, read_only) is not read_only and (read_only.host == Y).all()
    single = DeviceArray(X.astype(np.float32))
    assert (blas.dscal(2, single).host == 2 * X).all() and (single.host == X).all()


@pytest.mark.parametrize("made", [InterfaceArray, ImmutableArray])
def test_libraries_whose_new_arrays_are_no_outputs_get_copies(made, immutable):
    """Functions that import nothing get arrays of CuPy."""
    x, y = made(X), made(Y.repeat(2)[::2])
    kind = ImmutableArray if made is ImmutableArray else fake_device.Array
    for results, expected in (
        (blas.daxpy(x, y, a=2), (2 * X + Y,)),
        (blas.dcopy(x, y, n=2), ([*X[:2], *Y[2:]],)),
        (blas.dscal(2, y), (2 * Y,)),
        (blas.dswap(y, y2 := made(X.repeat(2)[::2])), (X, Y)),
        (blas.drot(y2, y, 3, 4), (3 * X + 4 * Y, 3 * Y - 4 * X)),
        (blas.drotm(y2, y, [-1, 3, 0, 0, 4]), (3 * X, 4 * Y)),
        (pyblasgpu.rot(x, y, 3, 4), (3 * X + 4 * Y, 3 * Y - 4 * X)),
        (pyblasgpu.axpy(x, y), (X + Y,)),
    ):
        for result, values in zip(
            results if isinstance(results, tuple) else (results,), expected, strict=True
        ):
            assert type(result) is kind
            np.testing.assert_array_equal(result.host, values)
    assert (x.host == X).all() and (y.host == Y).all() and (y2.host == X).all()
    pyblasgpu.rot(x, y, 3, 4, stream=5)
    if made is ImmutableArray:
        assert x.exported_to[-1] == 5 and fake_device.cupy.exports[-1][0] == 5
        with pytest.raises(TypeError, match="swap: x has dtype"):
            pyblasgpu.swap(x, y)


def test_memory_behind_an_interface_is_written_in_place_where_it_can_be():
    x, y = InterfaceArray(X.copy()), InterfaceArray(Y.copy())
    assert blas.daxpy(x, y, a=2) is y and (y.host == 2 * X + Y).all()
    y.host[...] = Y
    assert blas.dswap(x, y) == (x, y) and (x.host == Y).all() and (y.host == X).all()


def test_arrays_of_several_dimensions_are_vectors_by_columns():
    for order in "FC":
        grid = DeviceArray(np.arange(6.0).reshape(2, 3).copy(order))
        result = blas.dscal(10, grid, n=2)
        assert (result is grid) == (order == "F")
        assert (result.host == [[0, 1, 2], [30, 4, 5]]).all() and result.host.flags.f_contiguous


def test_a_negative_increment_has_no_largest_element_as_in_scipy():
    index = blas.idamax(DeviceArray(X), incx=-1)
    assert index.host == -1 and index.shape == () and index.host.dtype == np.int64


def test_host_arrays_on_a_device_are_written_back():
    x, y = X.copy(), Y.repeat(2)[::2]
    pyblasgpu.swap(x, y, backend="cuda")
    assert (x == Y).all() and (y == X).all()
    assert pyblasgpu.dot(x, y, backend="cuda") == X @ Y
    assert pyblasgpu.iamax(x, backend="cuda") == 5


def test_known_calls_are_not_checked_again(monkeypatch):
    """Neither with an output nor without; other flags and arrays that lie otherwise are other calls."""
    x, y, out = (fake_device.Array(values.copy()) for values in (X, Y, np.zeros(())))
    for _ in range(2):
        assert pyblasgpu.dot(x, y).host == pyblasgpu.dot(x, y, out=out).host == X @ Y
        assert pyblasgpu.iamax(x).host == 5 and blas.ddot(x, y).host == X @ Y
    with monkeypatch.context() as patch:
        patch.setattr(vector_calls, "Call", None)
        result = pyblasgpu.dot(y, y)
        assert result.host == Y @ Y and result.shape == ()
        assert pyblasgpu.dot(x, y, out=out) is out and blas.idamax(y).host == 5
    with pytest.raises(ValueError, match=r"dot: conj=1\.0"):
        pyblasgpu.dot(x, y, conj=1.0)
    with pytest.raises(ValueError, match="dot: x has 6 elements and y 3"):
        pyblasgpu.dot(x, y[:3])
    assert blas.ddot(x, y, n=2).host == X[:2] @ Y[:2]


def test_known_pairs_are_not_checked_again(monkeypatch):
    x, y = fake_device.Array(X.copy()), fake_device.Array(Y.copy())
    pyblasgpu.rot(x, y, 0, 1, out=(x, y))
    pyblasgpu.swap(x, y)
    monkeypatch.setattr(vector_pairs, "Call", None)
    x.host[...], y.host[...] = X, Y
    result = pyblasgpu.rot(x, y, 3, 4, out=(x, y))
    assert result == (x, y) and (x.host == 3 * X + 4 * Y).all() and (y.host == 3 * Y - 4 * X).all()
    x.host[...], y.host[...] = X, Y
    pyblasgpu.swap(x, y)
    assert (x.host == Y).all() and (y.host == X).all()
    with pytest.raises(TypeError, match="rot: c"):
        pyblasgpu.rot(x, y, 1j, 0, out=(x, y))
    with pytest.raises(OverlapError, match="swap: x shares memory with y"):
        pyblasgpu.swap(x, x)


def test_known_calls_by_scipys_names(monkeypatch):
    """Known calls wrote all of a vector in place; others are examined."""
    x, y = fake_device.Array(X.copy()), fake_device.Array(Y.copy())
    blas.daxpy(x, y, a=3)
    blas.dcopy(x, y)
    blas.dscal(2, y)
    with monkeypatch.context() as patch:
        patch.setattr(vector_calls, "Call", None)
        y.host[...] = Y
        assert blas.daxpy(x, y) is y and (y.host == X + Y).all()
        assert blas.dscal(-1, y) is y and (y.host == -X - Y).all()
        assert blas.dcopy(x, y) is y and (y.host == X).all()
    strided = fake_device.Array(Y.repeat(2)[::2])
    result = blas.daxpy(x, strided)
    assert result is not strided and (result.host == X + Y).all() and (strided.host == Y).all()
    assert blas.daxpy(x, y, n=2) is y and (y.host == [2, 4, 3, 4, 5, 6]).all()
    with pytest.raises(TypeError, match="daxpy: a"):
        blas.daxpy(x, y, a=1j)
    with pytest.raises(TypeError, match="missing"):
        blas.dscal(x=y)
    assert (blas.daxpy(x, x).host == 2 * X).all()
