"""The kind of array that came in comes out, without a copy, ordered with what its library computes."""

from __future__ import annotations

import sys

import fake_device
import fake_libraries
import numpy as np
import pytest
import scipy.linalg
from fake_libraries import Array, CompactArray, DeviceArray, InterfaceArray, OldArray, RowsArray

import pyblasgpu
from pyblasgpu import blas, lapack, linalg
from pyblasgpu.api.lapack.determinants import determinants, signs_and_logarithms
from pyblasgpu.errors import BackendUnavailable
from pyblasgpu.frontend.arrays import keep_alive, libraries, protocols
from pyblasgpu.types import DTYPES

A, B = np.arange(9.0).reshape(3, 3) + 9 * np.eye(3), np.arange(6.0).reshape(3, 2)
CALLS = {
    "gemm": (lambda put, **options: pyblasgpu.gemm(put(A), put(B), **options), A @ B),
    "trmm": (lambda put, **options: pyblasgpu.trmm(put(A), put(B), **options), np.triu(A) @ B),
    "symm": (
        lambda put, **options: pyblasgpu.symm(put(A), put(B), **options),
        (np.triu(A) + np.triu(A, 1).T) @ B,
    ),
    "matmul": (lambda put: linalg.matmul(put(A), put(B)), A @ B),
    "matmul of vectors": (lambda put: linalg.matmul(put(A), put(B[:, 0])), A @ B[:, 0]),
    "matmul of integers": (lambda put: linalg.matmul(put(A), put(B)), A @ B),
    "dgemm": (lambda put: blas.dgemm(1, put(A), put(B)), A @ B),
    "dgemm of a vector": (lambda put: blas.dgemm(1, put(A), put(B[:, 0])), (A @ B)[:, :1]),
    "dpotrf": (lambda put: lapack.dpotrf(put(A @ A.T), lower=1)[0], np.linalg.cholesky(A @ A.T)),
    "ztrmm": (lambda put: blas.ztrmm(1, put(A), put(B)), np.triu(A) @ B),
}
EACH_CALL = pytest.mark.parametrize(("call", "expected"), CALLS.values(), ids=CALLS)


@pytest.fixture
def events(fake, monkeypatch):
    """The fake device, and the events that calls of fake libraries record."""
    imported = libraries.module
    yield fake_libraries.install(monkeypatch)
    keep_alive.release()
    imported.cache_clear()


# ------------------------------------------------------------------------------------------------ the host


@EACH_CALL
@pytest.mark.parametrize("kind", [Array, OldArray])
@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_host_libraries(fake, monkeypatch, kind, backend, call, expected):
    monkeypatch.setenv("PYBLASGPU_BACKEND", backend)
    result = call(lambda values: kind(values.copy()))
    assert type(result) is kind
    np.testing.assert_array_equal(result.host, expected)


def test_a_library_that_copies_is_given_the_result_and_not_what_was_there_before(monkeypatch):
    """JAX does so where memory is not aligned to 64 bytes."""
    copying = fake_libraries.namespace_of(Array)
    copying.from_dlpack = lambda exporter: Array(np.from_dlpack(exporter).copy())
    monkeypatch.setitem(fake_libraries.NAMESPACES, Array, copying)
    result = pyblasgpu.gemm(Array(A), Array(B), backend="cpu")
    np.testing.assert_array_equal(result.host, A @ B)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (0, 4), (2, 3, 4)])
def test_results_on_the_host_are_aligned_and_no_copies(monkeypatch, shape):
    seen = []
    spied = fake_libraries.namespace_of(Array)
    spied.from_dlpack = lambda exporter: seen.append(exporter) or Array(np.from_dlpack(exporter))
    monkeypatch.setitem(fake_libraries.NAMESPACES, Array, spied)
    left = np.ones(shape)
    result = pyblasgpu.gemm(Array(left), Array(np.ones((*shape[:-2], shape[-1], 3))), backend="cpu")
    (exported,) = seen
    assert result.host.ctypes.data == exported.ctypes.data and (
        exported.ctypes.data % 64 == 0 or not exported.size
    )
    np.testing.assert_array_equal(result.host, np.full((*shape[:-1], 3), shape[-1]))


class Exporter:
    """Host memory through DLPack alone, of a module that imports nothing."""

    def __init__(self, host):
        self.host = host

    def __dlpack__(self, **options):
        return self.host.__dlpack__(**options)

    def __dlpack_device__(self):
        return 1, 0


def test_what_imports_nothing_gets_numpys_arrays():
    result = pyblasgpu.gemm(Exporter(A), Exporter(B), backend="cpu")
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, A @ B)


def test_the_module_of_a_type_may_import(monkeypatch):
    """`torch.from_dlpack` does so, for libraries that have no `__array_namespace__`."""
    module = type(sys)("fakepackage")
    module.from_dlpack = lambda exporter: made.append(exporter) or "imported"
    made: list = []
    kind = type("Exporter", (Exporter,), {"__module__": "fakepackage.deep.inside"})
    monkeypatch.setitem(sys.modules, "fakepackage", module)
    assert pyblasgpu.gemm(kind(A), kind(B), backend="cpu") == "imported"
    np.testing.assert_array_equal(made[0], A @ B)


# ------------------------------------------------------------------------------------------------- devices


@EACH_CALL
def test_device_libraries(events, call, expected):
    result = call(DeviceArray)
    assert type(result) is DeviceArray
    np.testing.assert_array_equal(result.host, expected)


def test_what_routines_of_linalg_leave_besides(events):
    """Signs, logarithms, determinants and pivots are of the library as well."""
    a, dtype = np.array([[1.0, 3], [2, 4]]), DTYPES["d"]
    lu, piv, info = lapack.getrf(DeviceArray(a))
    results = *signs_and_logarithms("slogdet", lu, piv, dtype), determinants("det", lu, piv, dtype)
    assert {type(each) for each in (*results, lu, piv, info)} == {DeviceArray}
    found = [each.host for each in (*results, piv, info)]
    np.testing.assert_allclose(found[:3], [-1, np.log(2), -2], 1e-12)
    np.testing.assert_array_equal(found[3], np.array([1, 1], np.int32), strict=True)
    np.testing.assert_array_equal(found[4], np.array(0, np.int32), strict=True)


@pytest.mark.parametrize("put", [fake_device.Array, DeviceArray], ids=["CuPy", "protocol"])
@pytest.mark.parametrize(
    "of",
    [fake_device.Array, DeviceArray, InterfaceArray, np.asarray],
    ids=["CuPy", "DLPack", "CUDA", "NumPy"],
)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_pivots_of_any_library(events, put, of, dtype):
    """Read where they are, on the streams of both libraries, as often as the call is repeated."""
    definite = A @ A.T
    lu, piv, _ = scipy.linalg.lapack.dgetrf(A)
    ldu, ipiv, _ = scipy.linalg.lapack.dsytrf(definite, 1)
    for _ in range(3):
        pivots = of(piv.astype(dtype))
        swaps = of(ipiv.astype(dtype))
        solutions = lapack.dgetrs(put(lu), pivots, put(B))[0], linalg.lu_solve((put(lu), pivots), put(B))
        for x in solutions:
            np.testing.assert_allclose(A @ x.host, B, atol=1e-12)
        np.testing.assert_allclose(A @ lapack.dgetri(put(lu), pivots)[0].host, np.eye(3), atol=1e-12)
        x = lapack.dsytrs(put(ldu), swaps, put(B), 1)[0]
        np.testing.assert_allclose(definite @ x.host, B, atol=1e-9)
        inverse = np.tril(lapack.dsytri(put(ldu), swaps, 1)[0].host)
        np.testing.assert_allclose(inverse, np.tril(np.linalg.inv(definite)), atol=1e-9)
        moved = lapack.dlaswp(put(B), pivots).host
        np.testing.assert_array_equal(moved, scipy.linalg.lapack.dlaswp(B, piv))
    kept = [getattr(each, "exporting_obj", each) for owners in keep_alive.held() for each in owners]
    if of is not np.asarray and of is not put:
        assert any(each is pivots for each in kept)  # whose library may use the memory again
    if (put, of) == (DeviceArray, fake_device.Array):
        assert (7, 0) in events.held_back  # CuPy computes on another stream


LEAVES = {
    "potrf": 2, "trtri": 2, "potri": 2, "getrf": 3, "sytrf": 3, "geqrf": 2, "gelqf": 2, "geqp3": 3,
    "syevd": 3,
}  # fmt: skip


@pytest.mark.parametrize("name", LEAVES)
@pytest.mark.parametrize("kind", [DeviceArray, fake_device.Array, Array])
def test_numbers_that_routines_leave(events, kind, name):
    """Info, pivots and factors of reflectors are dense arrays of the library, integers of int32."""
    a = A @ A.T
    for given in (a, a.astype(complex), np.stack([a, 2 * a]).astype(complex)):
        for _ in range(2):  # checked, then repeated
            results = getattr(lapack, name)(kind(given.copy()))[: LEAVES[name]]
            expected = getattr(lapack, name)(given.copy())[: LEAVES[name]]
            for one, other in zip(results, expected, strict=True):
                assert type(one) is kind and one.host.shape == np.shape(other)
                kind_of = np.dtype(getattr(other, "dtype", np.int32))
                assert one.host.dtype == kind_of or (kind_of.kind == "i" and one.host.dtype == np.int32)
                assert kind_of.kind != "i" or one.host.flags.c_contiguous


@pytest.mark.parametrize("stream", [None, 5])
def test_the_order_of_streams(events, fake, stream):
    """The library is told the call's stream, which then waits; and its own waits for the call's."""
    a, b = DeviceArray(A), DeviceArray(B)
    result = pyblasgpu.gemm(a, b, stream=stream)
    ran = 0 if stream is None else stream
    assert fake[0].calls == [("gemm", ran, 1)]
    assert set(a.exported_to) == set(b.exported_to) == {ran or 1}  # 1 stands for the default stream
    assert fake_device.cupy.exports[-1] == (ran, fake_libraries.OWN_STREAM)
    np.testing.assert_array_equal(result.host, A @ B)


def test_results_on_the_device_are_delivered_after_the_launch(events, fake, monkeypatch):
    order = []
    namespace = fake_libraries.namespace_of(DeviceArray)
    monkeypatch.setitem(fake_libraries.NAMESPACES, DeviceArray, namespace)
    deliver = namespace.from_dlpack
    namespace.from_dlpack = lambda exporter: order.append(list(fake[0].calls)) or deliver(exporter)
    made = []
    empty = fake_device.cupy.empty
    monkeypatch.setattr(fake_device.cupy, "empty", lambda *args: made.append(empty(*args)) or made[-1])
    result = pyblasgpu.gemm(DeviceArray(A), DeviceArray(B))
    assert order == [[("gemm", 0, 1)]]
    assert result.host.ctypes.data == made[0].host.ctypes.data


def test_what_a_call_reads_stays_alive_until_the_device_is_done(events):
    """A library with streams of its own would use the memory again as soon as nobody refers to it."""
    pyblasgpu.gemm(DeviceArray(A), DeviceArray(B))
    assert events.recorded == [0] and len(keep_alive.held()) == 1
    (held,) = keep_alive.held()
    assert {type(view.exporting_obj) for view in held[:2]} == {DeviceArray}
    pyblasgpu.gemm(DeviceArray(A), DeviceArray(B), stream=9)
    assert events.recorded == [0, 9] and len(keep_alive.held()) == 2
    events.done = True
    pyblasgpu.gemm(DeviceArray(A), DeviceArray(B))
    assert len(keep_alive.held()) == 1
    keep_alive.release()
    assert not keep_alive.held()


def test_a_forked_process_forgets_what_it_cannot_wait_for(events, monkeypatch):
    pyblasgpu.gemm(DeviceArray(A), DeviceArray(B))
    (event, _), *_ = keep_alive.alive

    def forked():
        raise BackendUnavailable("forked")

    monkeypatch.setattr(event, "synchronize", forked)
    keep_alive.release()  # as the interpreter calls it when it ends


def test_outputs_of_the_library_are_themselves(events):
    a, b, out = DeviceArray(A), DeviceArray(B.copy()), DeviceArray(np.empty((3, 2)))
    assert pyblasgpu.gemm(a, b, out=out) is out
    np.testing.assert_array_equal(out.host, A @ B)
    assert pyblasgpu.trmm(a, b, out=b) is b
    np.testing.assert_array_equal(b.host, np.triu(A) @ B)


@pytest.mark.parametrize("kind", [CompactArray, RowsArray])
@pytest.mark.parametrize("letter", "dD")
def test_results_have_strides_that_the_library_imports(events, kind, letter):
    """SciPy's results are column-major."""
    a = (A + np.eye(3, k=1)).astype(letter)
    factors, pivots = linalg.lu_factor(kind(a))
    expected, expected_pivots = scipy.linalg.lu_factor(a)
    assert type(factors) is type(pivots) is kind and pivots.host.dtype == np.int32
    np.testing.assert_allclose(factors.host, expected)
    np.testing.assert_array_equal(pivots.host, expected_pivots)
    for result in (blas.zgemm(1, kind(a), kind(a)), lapack.zpotrf(kind(a @ a.conj().T))[0]):
        assert type(result) is kind
    stack = linalg.matmul(kind(np.stack([a, 2 * a])), kind(a), order="F")
    assert type(stack) is kind
    np.testing.assert_array_equal(stack.host, np.stack([a @ a, 2 * a @ a]))


def test_what_cannot_import_gets_cupys_arrays(events):
    result = pyblasgpu.gemm(InterfaceArray(A), InterfaceArray(B))
    assert type(result) is fake_device.Array
    np.testing.assert_array_equal(result.host, A @ B)


@pytest.mark.parametrize("put", [DeviceArray, InterfaceArray])
def test_other_dtypes_are_cast(events, put):
    integers = put(A.astype("i4"))
    result = pyblasgpu.gemm(integers, put(B), stream=5)
    np.testing.assert_array_equal(result.host, A @ B)
    if put is DeviceArray:
        assert integers.exported_to == [5]


def test_without_cupy_results_are_exported_by_pyblasgpu(events, fake, monkeypatch):
    """Numba's new arrays export no DLPack."""

    def absent(*_):
        raise ImportError

    def numbas(self, shape, dtype, device, stream):
        return InterfaceArray(np.full(shape, np.nan, dtype.name))

    monkeypatch.setattr(type(libraries.CUPY), "empty", absent)
    monkeypatch.setattr(type(protocols.NUMBA), "empty", numbas)
    result = pyblasgpu.gemm(DeviceArray(A), DeviceArray(B), stream=5)
    assert type(result) is DeviceArray and fake[0].calls == [("gemm", 5, 1)]
    assert events.held_back == [(5, fake_libraries.OWN_STREAM)]
    np.testing.assert_array_equal(result.host, A @ B)


@pytest.fixture
def without_cupy(monkeypatch):
    imported = libraries.module

    def found(name):
        if name == "cupy":
            raise ImportError(name)
        return imported(name)

    for each in (libraries, protocols):
        monkeypatch.setattr(each, "module", found)


def test_arrays_without_a_shape_are_refused_without_cupy(events, without_cupy):
    a, b = InterfaceArray(A), InterfaceArray(B.copy())
    message = "is a fake_libraries.InterfaceArray, which has no shape; to look at it takes CuPy"
    with pytest.raises(TypeError, match=f"^dgemm: a {message}"):
        blas.dgemm(1, a, b, 0, b, overwrite_c=1)
    with pytest.raises(TypeError, match=f"^matmul: x1 {message}"):
        linalg.matmul(a, b, out=b)
    np.testing.assert_array_equal(b.host, B)


def test_casts_without_cupy_are_refused(events, without_cupy):
    with pytest.raises(TypeError, match=r"gemm: a is a .*DeviceArray array that has to be cast to float64"):
        pyblasgpu.gemm(DeviceArray(A.astype("i4")), DeviceArray(B))
