"""A device that is none: `Operand` addresses are host addresses, and routines compute there with NumPy.

With it the whole path of device arrays and of staged host arrays runs, but for the kernels.
"""

from __future__ import annotations

import ctypes
import importlib
from contextlib import nullcontext
from functools import partial
from math import prod
from types import ModuleType, SimpleNamespace

import numpy as np
from scipy.linalg.lapack import get_lapack_funcs

from pyblasgpu.frontend import backend_status as host_backend
from pyblasgpu.gpu import backend, context, device
from pyblasgpu.gpu.device import Device, known, stand_ins
from pyblasgpu.operands import Operand
from pyblasgpu.routine import Routine
from pyblasgpu.types import Trans

NO = Trans.NO


def elements(operand) -> np.ndarray:
    """The matrices of an operand, as a view of shape (batch, rows, cols)."""
    low, high = operand.span()
    if low == high:
        return np.empty((operand.batch, operand.rows, operand.cols), operand.dtype.name)
    memory = np.frombuffer((ctypes.c_char * (high - low)).from_address(low), operand.dtype.name)
    size = operand.dtype.itemsize
    view = np.ndarray(
        (operand.batch, operand.rows, operand.cols),
        operand.dtype.name,
        memory,
        operand.pointer - low,
        tuple(stride * size for stride in (operand.batch_stride, operand.row_stride, operand.col_stride)),
    )
    return view.conj() if operand.conj else view


def cpu(module: str = "level3") -> ModuleType:
    """What computes with NumPy arrays, imported at its first use."""
    return importlib.import_module(f"pyblasgpu.cpu.scipy.{module}")


class Routines:
    """Stand-ins of `pyblasgpu.routines`; each call is recorded."""

    def __init__(self):
        self.calls = []

    def launch_list(self, name):
        """What a row has as its launch list: what calls the stand-in with the addresses of the moment."""

        def prepare(alpha, *operands, **flags):
            scalars = [operand for operand in operands if not isinstance(operand, Operand)]
            fixed = [operand for operand in operands if isinstance(operand, Operand)]

            def run(bases, alpha, *beta, stream):
                placed = [operand._replace(pointer=base) for operand, base in zip(fixed, bases, strict=True)]
                # TRMM and TRSM have no beta
                arguments = (*placed[:-1], *beta, placed[-1]) if scalars else placed
                getattr(self, name)(alpha, *arguments, stream, **flags)

            def bound(*numbers):
                count = 1 + len(scalars)
                return lambda bases, stream: run(bases, *numbers[:count], stream=stream)

            return SimpleNamespace(run=run, bound=bound)

        return prepare

    def gemm(self, alpha, a, b, beta, c, stream, *, method=None):
        self.calls.append((f"gemm {method}" if method else "gemm", stream, c.batch))
        assert not c.conj
        cpu().gemm(alpha, elements(a), elements(b), beta, elements(c), NO, NO)

    def trmm(self, alpha, a, b, stream, *, side, uplo, diag):
        self.calls.append(("trmm", stream, b.batch))
        cpu().trmm(alpha, elements(a), elements(b), side, uplo, NO, diag)

    def trsm(self, alpha, a, b, stream, *, side, uplo, diag):
        self.calls.append(("trsm", stream, b.batch))
        cpu().trsm(alpha, elements(a), elements(b), side, uplo, NO, diag)

    def symm(self, alpha, a, b, beta, c, stream, *, side, uplo, hermitian):
        self.calls.append(("symm", stream, c.batch))
        cpu().symm(alpha, elements(a), elements(b), beta, elements(c), side, uplo, hermitian)

    def syrk(self, alpha, a, beta, c, stream, *, uplo, hermitian, is_new_output):
        self.calls.append(("syrk", stream, c.batch))
        cpu().syrk(alpha, elements(a), beta, elements(c), uplo, NO, hermitian, is_new_output)

    def syr2k(self, alpha, a, b, beta, c, stream, *, uplo, hermitian, is_new_output):
        self.calls.append(("syr2k", stream, c.batch))
        cpu().syr2k(alpha, elements(a), elements(b), beta, elements(c), uplo, NO, hermitian, is_new_output)

    def gemmtr(self, alpha, a, b, beta, c, stream, *, uplo, is_new_output):
        self.calls.append(("gemmtr", stream, c.batch))
        cpu().gemmtr(alpha, elements(a), elements(b), beta, elements(c), uplo, NO, NO, is_new_output)

    def copy(self, alpha, a, c, stream):
        self.calls.append(("copy", stream, c.batch))
        elements(c)[...] = alpha * elements(a)


#: Of routines of LAPACK: who computes them, and how many of their first operands are integers.
FACTORS = {
    "potrf": ("cholesky", 1),
    "potri": ("cholesky", 1),
    "trtri": ("cholesky", 1),
    "potrs": ("cholesky", 0),
    "getrf": ("lu", 2),
    "getri": ("lu", 2),
    "getrs": ("lu", 1),
    "geqrf": ("qr", 0),
    "orgqr": ("qr", 0),
    "ormqr": ("qr", 0),
    "laswp": ("lu", 1),
    "syevd": ("eigen", 1),
    "gesdd": ("eigen", 1),
}


def factor_launch_list(name):
    """The launch list of a routine of LAPACK: what computes at the addresses of the moment."""
    module, count = FACTORS[name]

    def prepare(*operands, **flags):
        def run(bases, *_, stream):
            placed = [operand._replace(pointer=base) for operand, base in zip(operands, bases, strict=True)]
            held = [elements(operand) for operand in placed]
            # an integer has the first four bytes of an element
            integers = [np.ascontiguousarray(each).view(np.int32) for each in held[:count]]
            first = [each[..., :1].copy() for each in integers]
            getattr(cpu(module), name)(*first, *held[count:], **flags)
            for each, whole, values in zip(held, integers, first, strict=False):
                whole[..., :1] = values
                each[...] = whole.view(each.dtype)

        return SimpleNamespace(run=run, bound=lambda *_: lambda bases, stream: run(bases, stream=stream))

    return prepare


def stand_in(compute):
    """The launch list of ``compute(*matrices)``, which computes in the memory of its operands."""

    def prepare(*operands):
        def run(bases, stream):
            compute(
                *(elements(each._replace(pointer=base)) for each, base in zip(operands, bases, strict=True))
            )

        return SimpleNamespace(bound=lambda *_: run, run=lambda bases, *_, stream: run(bases, stream))

    return prepare


def first_words(numbers):
    """The first int32 of each number, of matrices of one column."""
    return np.ascontiguousarray(numbers[..., 0]).view(np.int32)[..., :: numbers.itemsize // 4]


def determinants_of_factors(products, *matrices):
    *results, piv, lu = matrices
    diagonal = lu.diagonal(axis1=1, axis2=2)
    moved = first_words(piv) != np.arange(diagonal.shape[-1])
    for result, values in zip(results, determinants(diagonal, moved, products), strict=True):
        result[:, 0, 0] = values


def determinants(diagonal, moved, products):
    """Signs and logarithms of products along the last axis, or the products, in extended precision."""
    wide = diagonal.astype(np.clongdouble if np.iscomplexobj(diagonal) else np.longdouble)
    with np.errstate(all="ignore"):
        sign = np.prod(wide / abs(wide), -1) * (1 - 2 * (moved.sum(-1) % 2))
        logarithm = np.log(abs(wide)).sum(-1)
        singular = (wide == 0).any(-1)
        sign, logarithm = np.where(singular, 0, sign), np.where(singular, -np.inf, logarithm)
        return [sign * np.exp(logarithm)] if products else [sign, logarithm]


def solve_at_once(info, a, b, x):
    """Solutions of stacks by LAPACK, and the numbers of its info."""
    for number, (matrix, right) in enumerate(zip(a, np.broadcast_to(b, x.shape), strict=True)):
        (gesv,) = get_lapack_funcs(("gesv",), (a,))
        _, _, x[number], info[number] = gesv(matrix, right)


def systems_at_once(info, a, *others):
    """`solve_at_once`, with the inverse where there is no right-hand side; each info in an element."""
    (b, x) = others if len(others) > 1 else (np.eye(a.shape[-1]), *others)
    found = np.zeros(len(a), np.int32)
    solve_at_once(found, a, b, x)
    numbers = np.zeros((len(a), info.itemsize // 4), np.int32)
    numbers[:, 0] = found
    info[:, 0, 0] = numbers.view(info.dtype)[:, 0]


def upper_triangles(a, r):
    r[...] = np.triu(a)


#: Launch lists that no row names, and their stand-ins.
STAND_INS = {
    f"pyblasgpu.routines.{name}_launch_list": stand_in(compute)
    for name, compute in {
        "lapack.determinants.signs": partial(determinants_of_factors, False),
        "lapack.determinants.determinants": partial(determinants_of_factors, True),
        "lapack.gesv.solution": systems_at_once,
        "lapack.gesv.inverse": systems_at_once,
        "copies.upper": upper_triangles,
    }.items()
}


def joined(copy, rest, count):
    """The launches of a copy and of what follows it, of stand-ins."""

    def bound(*numbers):
        first, second = copy.bound(1), rest.bound(*numbers) if rest else None

        def run(bases, stream):
            first(bases[-2:], stream)
            if second is not None:
                second([*bases[:-2], bases[-1]], stream)

        return run

    return SimpleNamespace(bound=bound)


class HostMemory:
    """Stand-in of `pyblasgpu.gpu.memory` on the host: fresh memory is NaN."""

    def __init__(self):
        self.held = {}

    def current_context(self, device):
        return nullcontext()

    def allocate(self, nbytes, device, stream):
        assert nbytes > 0
        buffer = np.full(nbytes, 0xFF, np.uint8)
        self.held[buffer.ctypes.data] = buffer
        return buffer.ctypes.data

    def release(self, address, stream):
        del self.held[address]

    def to_device(self, address, array, stream):
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def to_host(self, array, address, stream):
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def begin_to_host(self, array, address, stream):
        self.to_host(array, address, stream)
        return SimpleNamespace(join=lambda: None)

    def clear(self, address, nbytes, stream):
        ctypes.memset(address, 0, nbytes)

    def copy(self, target, source, nbytes, stream):
        ctypes.memmove(target, source, nbytes)

    def synchronize(self, stream):
        pass


class Memory(HostMemory):
    """Memory of which whole buffers alone are copied, and of which everything must be released."""

    def __init__(self):
        super().__init__()
        self.copied = 0

    def to_device(self, address, array, stream):
        assert array.flags.c_contiguous and self._may_be(address)
        self.copied += array.size
        super().to_device(address, array, stream)

    def to_host(self, array, address, stream):
        assert array.flags.c_contiguous and self._may_be(address)
        super().to_host(array, address, stream)

    def _may_be(self, address):
        # without staged arrays it is memory of the library's
        return address in self.held or not self.held


class Array:
    """A device array: NumPy's memory behind CuPy's attributes."""

    def __init__(self, host, device=0):
        self.host, self.device_id = np.asarray(host), device

    data = property(lambda self: SimpleNamespace(ptr=self.host.ctypes.data, device_id=self.device_id))
    shape = property(lambda self: self.host.shape)
    strides = property(lambda self: self.host.strides)
    dtype = property(lambda self: self.host.dtype)

    size = property(lambda self: self.host.size)
    device = None  # NumPy's functions take it

    def get(self):
        return self.host.copy()

    def copy(self):
        return Array(self.host.copy(), self.device_id)

    def view(self, dtype):
        return Array(self.host.view(dtype), self.device_id)

    def __dlpack__(self, *, stream=None, **options):
        """What CuPy exports; `stream` is to wait for CuPy's current one."""
        cupy.exports.append((cupy.current[-1], stream))
        return self.host.__dlpack__(**options)

    def __dlpack_device__(self):
        return 2, self.device_id

    def conj(self):
        return Array(self.host.conj(), self.device_id)

    def astype(self, dtype):
        return Array(self.host.astype(dtype), self.device_id)

    def swapaxes(self, one, other):
        return Array(self.host.swapaxes(one, other), self.device_id)

    def transpose(self, axes):
        return Array(self.host.transpose(axes), self.device_id)

    def reshape(self, shape):
        return Array(self.host.reshape(shape), self.device_id)

    def __getitem__(self, index):
        return Array(self.host[index], self.device_id)

    def __eq__(self, other):
        return Array(self.host == other, self.device_id)

    __hash__ = object.__hash__

    def __setitem__(self, index, value):
        self.host[index] = value.host


def _of_host(name):
    """NumPy's operator on the host's memory."""
    function = getattr(np.ndarray, name)
    return lambda self, *others: Array(
        function(self.host, *(getattr(each, "host", each) for each in others)), self.device_id
    )


_OPERATORS = """add radd sub rsub mul rmul truediv rtruediv mod pow neg lt le gt ge ne matmul and or invert"""
for _name in _OPERATORS.split():
    setattr(Array, f"__{_name}__", _of_host(f"__{_name}__"))
Array.__bool__ = lambda self: bool(self.host)
Array.__int__ = lambda self: int(self.host)
Array.__module__ = "cupy"


class Namespace:
    """The array API of `Array`s: NumPy's functions on the host's memory."""

    def __init__(self, functions=None):
        self._functions = functions or importlib.import_module("array_api_compat.numpy")

    def __getattr__(self, name):
        attribute = getattr(self._functions, name)
        if isinstance(attribute, ModuleType):
            return Namespace(attribute)
        if isinstance(attribute, type) or not callable(attribute):
            return attribute

        def on_host(*arguments, **options):
            if name == "asarray" and hasattr(arguments[0], "__cuda_array_interface__"):
                return _viewed(arguments[0])  # without a copy
            with np.errstate(all="ignore"):  # a device warns of nothing
                result = attribute(
                    *_hosts(arguments), **{key: _hosts(value) for key, value in options.items()}
                )
            return _put(result)

        return on_host


def _hosts(value):
    if isinstance(value, (list, tuple)):
        return type(value)(_hosts(each) for each in value)
    return getattr(value, "host", value)


def _put(result):
    if isinstance(result, tuple):
        return tuple(_put(each) for each in result)
    return Array(result) if isinstance(result, (np.ndarray, np.generic)) else result


Array.__array_namespace__ = lambda self, api_version=None: Namespace()


class _Scope:
    """A context manager that counts for nothing."""

    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class _Stream(_Scope):
    """A context manager that makes a stream CuPy's current one."""

    def __init__(self, pointer, *_):
        self.pointer = pointer

    def __enter__(self):
        cupy.current.append(self.pointer)

    def __exit__(self, *_):
        cupy.current.pop()


def _array_at(shape, dtype, memory, strides):
    """The array that begins at `memory`, with strides in bytes."""
    steps = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    low, high = (sum(pick(step, 0) for step in steps) for pick in (min, max))
    size = np.dtype(dtype).itemsize
    buffer = (ctypes.c_char * (high - low + size)).from_address(memory.pointer + low)
    return Array(np.ndarray(shape, dtype, buffer, -low, strides), memory.device)


def aligned(shape, dtype) -> np.ndarray:
    """NaN at an address that is a multiple of 512, as a device's allocations are."""
    size = prod(shape) * np.dtype(dtype).itemsize
    raw = np.empty(size + 512, np.uint8)
    start = -raw.ctypes.data % 512
    array = raw[start : start + size].view(dtype).reshape(shape)
    array[...] = np.nan if array.dtype.kind in "fc" else -1
    return array


def _empty(shape, dtype):
    return Array(aligned(shape if isinstance(shape, tuple) else (shape,), dtype))


class _NewArray:
    """What CuPy's type is called for."""

    def __new__(cls, *described):
        return _array_at(*described)


def _imported(array):
    array.__dlpack__(stream=cupy.current[-1], max_version=(1, 0))
    return Array(array.host)


def _viewed(array):
    """Of what else exports its memory, by an attribute `host` or by the CUDA array interface alone."""
    if hasattr(array, "host"):
        return Array(array.host)
    described = {**array.__cuda_array_interface__, "stream": None}
    return Array(np.asarray(SimpleNamespace(__array_interface__=described, owner=array)))


def _unowned(pointer, size, owner, device):
    return SimpleNamespace(pointer=pointer, size=size, owner=owner, device=device)


#: What `import cupy` finds; its current stream is 7.
cupy = ModuleType("cupy")
cupy.current, cupy.exports = [7], []  # type: ignore[attr-defined]
cupy.cuda = SimpleNamespace(  # type: ignore[attr-defined]
    Device=_Scope,
    Stream=SimpleNamespace(from_external=lambda stream: _Stream(stream.__cuda_stream__()[1])),
    UnownedMemory=_unowned,
    MemoryPointer=lambda memory, offset: memory,
    get_current_stream=lambda device: SimpleNamespace(ptr=cupy.current[-1]),
    runtime=SimpleNamespace(getDevice=lambda: 0),
)
cupy.asarray = _viewed  # type: ignore[attr-defined]
cupy.from_dlpack = _imported  # type: ignore[attr-defined]
cupy.ndarray = _NewArray  # type: ignore[attr-defined]
cupy.empty = _empty  # type: ignore[attr-defined]


def without_contexts(monkeypatch) -> None:
    """Let the one device be current on every thread, and every stream be its own."""
    monkeypatch.setattr(context, "make_current", lambda device: None)
    monkeypatch.setattr(context, "current_device", lambda: 0)
    monkeypatch.setattr(context, "stream_device", lambda stream: None)


def described(monkeypatch, *devices: Device) -> None:
    """Let these be the devices of the machine, by their order."""
    monkeypatch.setattr(device, "count", lambda: len(devices))
    for ordinal, each in enumerate(devices):
        monkeypatch.setitem(stand_ins, ordinal, each)


def install(monkeypatch) -> tuple[Routines, Memory]:
    """Put the stand-ins where the library looks; 'cuda' is then there for host arrays too."""
    routines, memory = Routines(), Memory()
    modules = {
        "cupy": cupy,
        "pyblasgpu.gpu.memory": memory,
    }
    for name, module in modules.items():
        monkeypatch.setitem(__import__("sys").modules, name, module)
    monkeypatch.setitem(stand_ins, 0, known("h200"))  # for modules that have `current` already
    whole = vars(Routine)["launch_list"].func

    def launch_list(row):
        name = row.launches.rpartition(".")[2]
        if row.stem in FACTORS:
            return factor_launch_list(row.stem)
        return routines.launch_list(name) if hasattr(routines, name) else whole(row)

    monkeypatch.setattr(Routine, "launch_list", property(launch_list))
    monkeypatch.setattr(
        "pyblasgpu.frontend.calls.lazy_routines.launch_list_of", lambda name: routines.launch_list("copy")
    )
    monkeypatch.setattr("pyblasgpu.api.linalg.host.launch_list_of", factor_launch_list)
    monkeypatch.setattr("pyblasgpu.routines.launch_list.joined", joined)
    for name, launch_list in STAND_INS.items():
        monkeypatch.setattr(name, launch_list)
    without_contexts(monkeypatch)
    monkeypatch.setattr(backend, "require", lambda: None)
    monkeypatch.setattr(backend, "SIMULATED", False)
    host_backend.why_no_device.cache_clear()
    return routines, memory
