"""Which arrays a result may go into; and that "may overwrite" copies where it may not, and never raises."""

from __future__ import annotations

import fake_device
import fake_libraries
import numpy as np
import pytest
from fake_level1 import LEVEL1
from fake_libraries import Array, DeviceArray, InterfaceArray, OldArray

import pyblasgpu
from pyblasgpu import blas, linalg
from pyblasgpu.api.keyword import vector_calls, vector_pairs
from pyblasgpu.errors import OverlapError
from pyblasgpu.frontend.arrays.any_array import can_be_output, may_share_memory, output_view
from pyblasgpu.types import DTYPES

D, Z = DTYPES["d"], DTYPES["z"]
A, B = np.triu(np.arange(9.0).reshape(3, 3)) + 9 * np.eye(3), np.arange(6.0).reshape(3, 2)


def read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def misaligned(array: np.ndarray) -> np.ndarray:
    memory = np.empty(array.nbytes + 1, np.uint8)
    view = memory[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


class Immutable(OldArray):
    """An array of a library that never writes arrays, which its exports do not say."""


fake_libraries.NAMESPACES[Immutable] = fake_libraries.namespace_of(Immutable)


@pytest.fixture(autouse=True)
def known_as_immutable(monkeypatch):
    fake_libraries.know_as_immutable(monkeypatch, Immutable)


#: What libraries raise where they export nothing.
FAILURES = (AttributeError, BufferError, RuntimeError, TypeError, ValueError)


class Failing:
    """An array that a library does not export, of which nothing is known but where it is."""

    def __init__(self, error):
        self.error = error

    def __dlpack__(self, **options):
        raise self.error("not now")

    def __dlpack_device__(self):
        return 1, 0


def refused() -> dict:
    """What can be no output in double precision, of values B."""
    return {
        "another dtype": B.astype("f4"),
        "another byte order": B.astype(">f8"),
        "read-only": read_only(B),
        "repeated": np.broadcast_to(B, (4, 3, 2)),
        "windows": np.lib.stride_tricks.sliding_window_view(B[:, 0], 2),
        "misaligned": misaligned(B),
        "a list": B.tolist(),
        "a number": 1.0,
        "NumPy's number": np.float64(1),
        "nothing": None,
        "text": "B",
        "masked": np.ma.array(B),
        "a read-only export": Array(read_only(B)),
        **{f"an export that raises {error.__name__}": Failing(error) for error in FAILURES},
        "an immutable library's": Immutable(B.copy()),
        "repeated on the device": fake_device.Array(np.broadcast_to(B, (4, 3, 2))),
        "uneven on the device": fake_device.Array(np.ndarray((3, 2), "f8", bytearray(99), 0, (20, 8))),
        "misaligned on the device": fake_device.Array(misaligned(B)),
        "read-only on the device": DeviceArray(B.copy(), read_only=True),
        "a read-only interface": InterfaceArray(B.copy(), read_only=True),
        "another dtype on the device": DeviceArray(B.astype("f4")),
    }


@pytest.mark.parametrize("name", refused())
def test_what_can_be_no_output(device, name):
    assert not can_be_output(refused()[name], D)
    assert output_view(refused()[name], D) is None


@pytest.mark.parametrize(
    "put",
    [np.copy, np.asfortranarray, fake_device.Array, Array, OldArray, DeviceArray, InterfaceArray],
)
@pytest.mark.parametrize("view", [np.s_[:], np.s_[::2], np.s_[::-1, ::-1], np.s_[:0]])
def test_what_can_be_one(device, put, view):
    array = put(np.arange(12.0).reshape(4, 3)[view])
    assert can_be_output(array, D) and not can_be_output(array, Z)
    assert output_view(array, D).shape == array.shape if hasattr(array, "shape") else True


def test_outputs_of_libraries_that_are_older_than_version_1_of_dlpack():
    """What they export may be written, though NumPy makes it read-only."""
    out, b = OldArray(np.zeros((3, 2))), OldArray(B.copy())
    assert not np.from_dlpack(out).flags.writeable
    assert pyblasgpu.gemm(OldArray(A), b, out=out, backend="cpu") is out
    np.testing.assert_array_equal(out.host, A @ B)
    assert pyblasgpu.trmm(OldArray(A), b, out=b, backend="cpu") is b
    np.testing.assert_array_equal(b.host, A @ B)
    with pytest.raises(OverlapError):
        pyblasgpu.gemm(OldArray(A), b, out=b, backend="cpu")


@pytest.mark.parametrize("kind", [Array, OldArray])
def test_the_same_object_twice(kind):
    a, b = kind(A.copy()), kind(B.copy())
    np.testing.assert_array_equal(pyblasgpu.gemm(a, a, backend="cpu").host, A @ A)
    assert pyblasgpu.trsm(a, b, out=b, backend="cpu") is b
    np.testing.assert_allclose(A @ b.host, B)
    square = kind(A.copy())
    assert linalg.matmul(square, square, out=square) is square
    np.testing.assert_array_equal(square.host, A @ A)
    with pytest.raises(OverlapError, match="trmm: out shares memory with a"):
        pyblasgpu.trmm(a, a, out=a, backend="cpu")


@pytest.mark.parametrize("kind", [Array, OldArray])
def test_what_shares_memory(kind):
    memory = np.zeros((4, 4))
    x, y, z = (kind(memory[rows]) for rows in (np.s_[:3], np.s_[2:], np.s_[:2]))
    assert may_share_memory(x, y) and may_share_memory(x, x) and not may_share_memory(y, z)
    assert not may_share_memory(x, memory)  # no call takes both


@pytest.mark.parametrize("undecided", [misaligned(B), B.astype("i4")], ids=["misaligned", "integers"])
def test_what_cannot_be_decided_may_share_memory(device, undecided):
    array, other = fake_device.Array(undecided), fake_device.Array(B.copy())
    assert may_share_memory(array, other) and may_share_memory(other, array)


OVERWRITES = {
    "solve_triangular": (
        lambda put, b: linalg.solve_triangular(put(A), b, overwrite_b=True),
        lambda: np.linalg.solve(A, B),
    ),
    "dtrsm": (lambda put, b: blas.dtrsm(1.0, put(A), b, overwrite_b=1), lambda: np.linalg.solve(A, B)),
    "dtrmm": (lambda put, b: blas.dtrmm(1.0, put(A), b, overwrite_b=1), lambda: A @ B),
    "dgemm": (lambda put, b: blas.dgemm(1.0, put(A), put(B), 2.0, b, overwrite_c=1), lambda: A @ B + 2 * B),
    "dsymm": (
        lambda put, b: blas.dsymm(1.0, put(A), put(B), 2.0, b, overwrite_c=1),
        lambda: (A + np.triu(A, 1).T) @ B + 2 * B,
    ),
}
#: What makes of B an array that must not be overwritten, and of other values such as go with it.
KEPT = {
    "read-only": (read_only, np.copy),
    "misaligned": (misaligned, np.copy),
    "Fortran and read-only": (lambda b: read_only(np.asfortranarray(b)), np.copy),
    "a read-only export": (lambda b: Array(read_only(b)), Array),
    "an immutable library's": (lambda b: Immutable(np.asfortranarray(b)), Immutable),
    "read-only on the device": (lambda b: DeviceArray(np.asfortranarray(b), read_only=True), DeviceArray),
    "a read-only interface": (lambda b: InterfaceArray(np.asfortranarray(b), read_only=True), InterfaceArray),
}


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("call", OVERWRITES)
def test_may_overwrite_copies_what_must_not_be(device, call, kept):
    make, put = KEPT[kept]
    b = make(B.copy())
    (run, expected), memory = OVERWRITES[call], getattr(b, "host", b)
    result = run(put, b)
    np.testing.assert_allclose(getattr(result, "host", result), expected())
    np.testing.assert_array_equal(memory, B)
    assert result is not b


@pytest.mark.parametrize(
    ("make", "put"),
    [pair for name, pair in KEPT.items() if "misaligned" not in name],
    ids=[name for name in KEPT if "misaligned" not in name],
)
def test_outputs_that_must_not_be_written_are_refused(device, make, put):
    out = make(B.copy())
    error = ValueError if isinstance(out, np.ndarray) else TypeError
    for call in (
        lambda: pyblasgpu.gemm(put(A), put(B), out=out),
        lambda: pyblasgpu.trmm(put(A), put(B), out=out),
        lambda: pyblasgpu.trsm(put(A), out, out=out),
    ):
        with pytest.raises(error, match=r"^\w+: out is read-only$"):
            call()
    np.testing.assert_array_equal(getattr(out, "host", out), B)


def test_may_overwrite_what_is_repeated():
    row = np.arange(2.0)
    b = np.broadcast_to(row, (3, 2))
    for result in (blas.dtrmm(1, A, b, overwrite_b=1), blas.dgemm(1, A, b, 0, b, overwrite_c=1)):
        np.testing.assert_array_equal(result, A @ b)
    np.testing.assert_array_equal(row, np.arange(2.0))


@pytest.mark.parametrize("put", [np.asarray, fake_device.Array, Array, DeviceArray])
def test_may_overwrite_does_where_it_can(device, put):
    b = put(np.asfortranarray(B))
    result = blas.dtrmm(1.0, put(A), b, overwrite_b=1)
    assert result is b
    np.testing.assert_array_equal(getattr(b, "host", b), A @ B)


#: Calls by operands of a shape and an output, whose shape follows.
INTO = {
    "gemm": (lambda a, x, out: pyblasgpu.gemm(a, a, out=out), (2, 2)),
    "gemv": (lambda a, x, out: pyblasgpu.gemv(a, x, out=out), (2,)),
    "axpy": (lambda a, x, out: pyblasgpu.axpy(x, x, out=out), (2,)),
    "dot": (lambda a, x, out: pyblasgpu.dot(x, x, out=out), ()),
    "matmul": (lambda a, x, out: linalg.matmul(a, a, out=out), (2, 2)),
    "matmul of vectors": (lambda a, x, out: linalg.matmul(x, x, out=out), ()),
    "matvec": (lambda a, x, out: linalg.matvec(a, x, out=out), (2,)),
    "vecmat": (lambda a, x, out: linalg.vecmat(x, a, out=out), (2,)),
    "vecdot": (lambda a, x, out: linalg.vecdot(x, x, out=out), ()),
    "linalg.dot": (lambda a, x, out: linalg.dot(a, a, out=out), (2, 2)),
    "linalg.dot of vectors": (lambda a, x, out: linalg.dot(x, x, out=out), ()),
    "outer": (lambda a, x, out: linalg.outer(x, x, out=out), (2, 2)),
    "einsum": (lambda a, x, out: linalg.einsum("ij,jk->ik", a, a, out=out), (2, 2)),
    "einsum of vectors": (lambda a, x, out: linalg.einsum("i,i->", x, x, out=out), ()),
    "multi_dot": (lambda a, x, out: linalg.multi_dot([a, a, a], out=out), (2, 2)),
}
#: What makes operands, what makes an output that does not go with them, and the error.
ELSEWHERE = {
    "another library": (np.array, fake_device.Array, TypeError, "one library"),
    "another library on the host": (np.array, Array, TypeError, "one library"),
    "the host": (fake_device.Array, np.array, TypeError, "one library"),
    "another device": (fake_device.Array, lambda host: fake_device.Array(host, 1), ValueError, "on device 1"),
    "a list": (fake_device.Array, np.ndarray.tolist, TypeError, ""),
}


@pytest.mark.parametrize("where", ELSEWHERE)
@pytest.mark.parametrize("call", INTO)
def test_outputs_elsewhere_are_refused(device, monkeypatch, call, where):
    for module in (vector_calls, vector_pairs):
        monkeypatch.setattr(module, "routine_module", lambda name: LEVEL1)
    (run, shape), (put, put_out, error, message) = INTO[call], ELSEWHERE[where]
    host = np.full(shape, 9.0)
    out = put_out(host)
    with pytest.raises(error, match=rf"^{call.split()[0].removeprefix('linalg.')}: .*{message}"):
        run(put(np.ones((2, 2))), put(np.ones(2)), out)
    assert (np.asarray(getattr(out, "host", out)) == 9).all()
