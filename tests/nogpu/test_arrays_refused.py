"""What is no array that can be read: a TypeError that names routine and argument, and says what to pass."""

from __future__ import annotations

import itertools
import re
from types import SimpleNamespace

import fake_device
import fake_libraries
import numpy as np
import pytest
import scipy.sparse
from fake_libraries import InterfaceArray

import pyblasgpu
from pyblasgpu import blas, lapack, linalg
from pyblasgpu.frontend.arrays import libraries

ONE = np.eye(3)


class Typed:
    """A list of Numba's."""


Typed.__module__ = "numba.typed.typedlist"


class Frame:
    """A table, as pandas and polars have them."""

    shape, values = (3, 3), ONE

    def to_numpy(self):
        return self.values

    def __array__(self, dtype=None, copy=None):
        return self.values


class Convertible:
    """What NumPy makes an array of."""

    def __array__(self, dtype=None, copy=None):
        return ONE


class Tracer:
    """An array without values, as JAX has under jit."""

    shape, dtype = (3, 3), np.dtype("f8")

    def __dlpack__(self, **options):
        raise RuntimeError("no values yet")

    def __dlpack_device__(self):
        raise ValueError("no values yet")


class Sharded(Tracer):
    def __dlpack_device__(self):
        raise BufferError("on two devices")


class Unsupported(Tracer):
    """An array whose dtype the protocol has no name for, or no one reads."""

    def __dlpack_device__(self):
        return 1, 0

    error: type[Exception]

    def __dlpack__(self, **options):
        raise self.error("no such dtype")


WRONG = {
    "nothing": (None, "a NoneType is not an array"),
    "text": ("abc", "a str is not an array.*pass an array"),
    "a dict": ({}, "a dict is not an array"),
    "an object": (object(), "a object is not an array"),
    "a generator": ((i for i in ()), "a generator is not an array"),
    "a set": ({1.0}, "a set is not"),
    "a table": (Frame(), r"a Frame is not an array.*pass its to_numpy\(\)"),
    "what converts": (Convertible(), r"a Convertible is not an array.*pass numpy.asarray"),
    "sparse": (scipy.sparse.csr_array(ONE), r"a csr_array is not an array.*pass its toarray\(\)"),
    "masked": (np.ma.array(ONE), "masked array.*filled"),
    "objects": (ONE.astype(object), "dtype object"),
    "text in an array": (np.array([["a"]]), "dtype <U1"),
    "times": (ONE.astype("M8[s]"), "dtype datetime64"),
    "fields": (np.zeros((3, 3), [("x", "f8")]), r"dtype \[\('x', '<f8'\)\]"),
    "long double": (ONE.astype(np.longdouble), "dtype float128|dtype float96"),
    "a list of Numba's": (Typed(), "is a Typed of Numba's, not an array on a device"),
    "a tracer": (Tracer(), "no values yet.*jit"),
    "two devices": (Sharded(), "on two devices"),
}
CALLS = {
    "gemm: a": lambda x: pyblasgpu.gemm(x, ONE),
    "gemm: b": lambda x: pyblasgpu.gemm(ONE, x),
    "trsm: b": lambda x: pyblasgpu.trsm(ONE, x),
    "symm: a": lambda x: pyblasgpu.symm(x, ONE),
    "syrk: a": pyblasgpu.syrk,
    "syr2k: b": lambda x: pyblasgpu.syr2k(ONE, x),
    "dgemm: a": lambda x: blas.dgemm(1, x, ONE),
    "gemm: c": lambda x: blas.gemm(1, ONE, ONE, 1, x),
    "dtrsm: b": lambda x: blas.dtrsm(1, ONE, x, overwrite_b=1),
    "zherk: a": lambda x: blas.zherk(1, x),
    "matmul: x1": lambda x: linalg.matmul(x, ONE),
    "matmul: x2": lambda x: linalg.matmul(ONE, x),
    "solve_triangular: a": lambda x: linalg.solve_triangular(x, ONE),
    "solve_triangular: b": lambda x: linalg.solve_triangular(ONE, x, overwrite_b=True),
}


OPTIONAL = ("gemm: c", "nothing")


@pytest.mark.parametrize(
    ("call", "wrong"), [pair for pair in itertools.product(CALLS, WRONG) if pair != OPTIONAL]
)
def test_inputs(call, wrong):
    value, message = WRONG[wrong]
    routine, argument = call.split(": ")
    with pytest.raises(TypeError, match=f"^{routine}: .*({message})") as raised:
        CALLS[call](value)
    assert re.search(rf"\b{argument}\b", str(raised.value))


OUTPUTS = {
    "gemm: out": lambda x: pyblasgpu.gemm(ONE, ONE, out=x),
    "trmm: out": lambda x: pyblasgpu.trmm(ONE, ONE, out=x),
    "herk: out": lambda x: pyblasgpu.herk(ONE, out=x),
    "matmul: out": lambda x: linalg.matmul(ONE, ONE, out=x),
}


@pytest.mark.parametrize(
    "wrong", ["text", "a dict", "a table", "a list of Numba's", "sparse", "masked", "a tracer", "two devices"]
)
@pytest.mark.parametrize("call", OUTPUTS)
def test_outputs(call, wrong):
    value, message = WRONG[wrong]
    with pytest.raises(TypeError, match=f"^{call} .*({message})"):
        OUTPUTS[call](value)


@pytest.mark.parametrize(
    "value", [ONE.tolist(), tuple(map(tuple, ONE)), 1.0, np.float64(1)], ids=lambda x: type(x).__name__
)
@pytest.mark.parametrize("call", OUTPUTS)
def test_lists_and_numbers_are_no_outputs(call, value):
    if call == "matmul: out" and isinstance(value, tuple):
        value = (list(value),)  # NumPy takes one output in a tuple
        with pytest.raises(TypeError, match=f"^{call} must be an array, not a list"):
            OUTPUTS[call](value)
        return
    with pytest.raises(
        TypeError, match=f"^{call} must be an array, not a {type(value).__name__}: numpy.empty"
    ):
        OUTPUTS[call](value)


@pytest.mark.parametrize("rows", [[[1.0, 2.0], [3.0]], [[1.0], []]])
def test_lists_of_no_shape(rows):
    with pytest.raises(ValueError, match=r"^gemm: b "):
        pyblasgpu.gemm(ONE, rows)
    with pytest.raises(ValueError, match=r"^matmul: x2"):
        linalg.matmul(ONE, rows)


def test_lists_are_numpys_to_convert():
    for rows in (ONE.tolist(), tuple(map(tuple, ONE)), [*ONE]):
        result = pyblasgpu.gemm(rows, rows, backend="cpu")
        assert type(result) is np.ndarray
        np.testing.assert_array_equal(result, ONE)


@pytest.mark.parametrize("error", [AttributeError, BufferError, RuntimeError, TypeError, ValueError])
@pytest.mark.parametrize("call", ["gemm: a", "syrk: a", "dgemm: a", "matmul: x1", "solve_triangular: a"])
def test_what_no_one_can_read(call, error, monkeypatch):
    """Once all arrays are of one library."""
    value = Unsupported()
    value.error = error
    calls = {
        "gemm: a": lambda: pyblasgpu.gemm(value, value),
        "syrk: a": lambda: pyblasgpu.syrk(value),
        "dgemm: a": lambda: blas.dgemm(1, value, value),
        "matmul: x1": lambda: linalg.matmul(value, value),
        "solve_triangular: a": lambda: linalg.solve_triangular(value, value, check_finite=False),
    }
    with pytest.raises(TypeError, match=f"{call} cannot be read, a .*Unsupported: no such dtype"):
        calls[call]()


# ------------------------------------------------------------------------------------------------- tensors


class Tensor:
    """What is asked of PyTorch's, in device memory."""

    requires_grad, is_cuda, device = False, True, SimpleNamespace(type="cuda")
    dtype, shape = "torch.float64", (3, 3)

    def __init__(self, **attributes):
        self.__dict__.update(attributes)
        self.host = np.eye(3)

    def is_conj(self):
        return False

    is_neg = is_conj

    def data_ptr(self):
        return self.host.ctypes.data

    def stride(self):
        return (3, 1)

    def get_device(self):
        return 0


Tensor.__module__ = "torch"


@pytest.fixture
def torch(fake, pytorch):
    """A module of which tensors are; it records gradients unless it is told otherwise."""
    module = SimpleNamespace(grad=True, written=[])
    module.autograd = SimpleNamespace(graph=SimpleNamespace(increment_version=module.written.append))
    module.is_grad_enabled = lambda: module.grad
    module._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 3)
    pytorch(module)
    return module


def test_gradients_are_lost_where_they_are_not_wanted_alone(torch, fake):
    leaf, plain, out = Tensor(requires_grad=True), Tensor(), Tensor(requires_grad=True)
    for call in (
        lambda: pyblasgpu.gemm(leaf, plain, out=plain),
        lambda: pyblasgpu.gemm(plain, plain, out=leaf),
    ):
        with pytest.raises(TypeError, match=r"gemm: (a|out) requires a gradient.*detach\(\).*no_grad"):
            call()
    torch.grad = False
    for _ in range(3):  # checked, then repeated
        out.host[...] = 0
        assert pyblasgpu.gemm(leaf, plain, out=out, stream=3) is out
        np.testing.assert_array_equal(out.host, np.eye(3))
    assert torch.written == [out] * 3
    torch.grad = True
    with pytest.raises(TypeError, match="gemm: a requires a gradient"):
        pyblasgpu.gemm(leaf, plain, out=out, stream=3)


@pytest.mark.parametrize(
    ("lazily", "message"),
    [("is_conj", "is a lazily conjugated view, which cannot be written"), ("is_neg", "is read-only")],
)
def test_tensors_that_are_another_ones_view_are_no_outputs(torch, lazily, message):
    out = Tensor(**{lazily: lambda: True}, resolve_neg=Tensor)
    before = out.host.copy()
    with pytest.raises(TypeError, match=f"^gemm: out {message}$"):
        pyblasgpu.gemm(Tensor(), Tensor(), out=out)
    np.testing.assert_array_equal(out.host, before)


def absent(*_):
    raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


@pytest.mark.parametrize("missing", ["data_ptr", "stride"])
def test_tensors_without_memory(torch, missing):
    wrong = Tensor(**{missing: absent})
    for _ in range(2):
        with pytest.raises(TypeError, match=r"gemm: b cannot be read.*doesn't have storage"):
            pyblasgpu.gemm(Tensor(), wrong, out=Tensor())
        with pytest.raises(TypeError, match=r"gemm: out cannot be read.*doesn't have storage"):
            pyblasgpu.gemm(Tensor(), Tensor(), out=wrong)


def test_tensors_to_be_cast_that_are_misaligned(torch):
    wrong = Tensor(dtype="torch.float32", data_ptr=lambda: 4098, element_size=lambda: 4)
    out = Tensor()
    with pytest.raises(ValueError, match=r"^gemm: b is not aligned to its torch\.float32$"):
        pyblasgpu.gemm(Tensor(), wrong, out=out)
    np.testing.assert_array_equal(out.host, np.eye(3))


def test_tensors_whose_memory_is_feigned(torch):
    """They occur under torch.compile; the repeated call must not take them for others of their shape."""
    arrays = [Tensor() for _ in range(3)]
    for _ in range(2):
        pyblasgpu.gemm(arrays[0], arrays[1], out=arrays[2])
    feigned = Tensor(data_ptr=lambda: 0)
    for operands in ((feigned, arrays[1], arrays[2]), (arrays[0], arrays[1], feigned)):
        with pytest.raises(TypeError, match=r"gemm: (a|out) is a tensor that has no memory"):
            pyblasgpu.gemm(*operands[:2], out=operands[2])


@pytest.fixture
def interfaces(fake, monkeypatch):
    """The fake device, which sees memory behind the CUDA array interface."""
    imported = libraries.module
    yield fake_libraries.install(monkeypatch)
    imported.cache_clear()


#: What an array tells by the CUDA array interface, and what is wrong with it.
FACTS = {
    "a mask": ({"mask": InterfaceArray(ONE > 0)}, "has a mask"),
    "stream 0": ({"stream": 0}, "names stream 0"),
    "a negative stream": ({"stream": -1}, "names stream -1"),
    "a stream that is no number": ({"stream": "default"}, "names stream 'default'"),
}


@pytest.mark.parametrize("facts", FACTS)
@pytest.mark.parametrize(
    ("subject", "call"),
    [
        ("gemm: a", lambda good, x: pyblasgpu.gemm(x, good)),
        ("gemm: b", lambda good, x: pyblasgpu.gemm(good, x)),
        ("gemm: out", lambda good, x: pyblasgpu.gemm(good, good, out=x)),
        ("axpy: x", lambda good, x: pyblasgpu.axpy(x, good)),
        ("swap: y", lambda good, x: pyblasgpu.swap(good, x)),
        ("dgemm: b", lambda good, x: blas.dgemm(1, good, x)),
        ("daxpy: y", lambda good, x: blas.daxpy(good, x)),
        ("potrf: a", lambda good, x: lapack.potrf(x, overwrite_a=1)),
        ("matmul: x2", lambda good, x: linalg.matmul(good, x)),
        ("matmul: out", lambda good, x: linalg.matmul(good, good, out=x)),
        ("dot: a", lambda good, x: linalg.dot(x, good)),
        ("solve: b", lambda good, x: linalg.solve(good, x)),
        ("cholesky: a", lambda good, x: linalg.cholesky(x)),
    ],
)
def test_interfaces_with_a_mask_or_without_a_stream(interfaces, facts, subject, call):
    said, message = FACTS[facts]
    wrong = InterfaceArray(ONE.copy(), **said)
    with pytest.raises(TypeError, match=rf"^{subject} .*{message}"):
        call(InterfaceArray(ONE), wrong)
    np.testing.assert_array_equal(wrong.host, ONE)


@pytest.mark.parametrize("stream", [None, 1, 2, 4096])
def test_interfaces_with_a_stream(interfaces, stream):
    a, out = InterfaceArray(ONE * 2, stream=stream), InterfaceArray(ONE.copy(), stream=stream, mask=None)
    assert pyblasgpu.gemm(a, a, out=out) is out
    np.testing.assert_array_equal(out.host, ONE * 4)


@pytest.mark.parametrize("key", ["shape", "typestr", "data", "version"])
def test_interfaces_that_lack_something(interfaces, key):
    wrong = InterfaceArray(ONE)
    del wrong.__cuda_array_interface__[key]
    with pytest.raises(TypeError, match=f"^gemm: b has a CUDA array interface without '{key}'"):
        pyblasgpu.gemm(InterfaceArray(ONE), wrong)


def test_device_arrays_of_other_dtypes_are_named(fake):
    good, wrong = fake_device.Array(ONE), fake_device.Array(ONE.astype(object))
    with pytest.raises(TypeError, match="gemm: dtype object of b"):
        pyblasgpu.gemm(good, wrong)
    with pytest.raises(TypeError, match="gemm: out has dtype object"):
        pyblasgpu.gemm(good, good, out=wrong)
