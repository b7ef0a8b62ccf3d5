"""A device that is none: `Operand` addresses are host addresses, and routines compute there with NumPy.

With it the whole path of device arrays and of staged host arrays runs, but for the kernels.
"""

from __future__ import annotations

import ctypes
import importlib
from collections import deque
from contextlib import nullcontext
from math import prod
from types import ModuleType, SimpleNamespace

import numpy as np
from fake_routines import FACTORS, STAND_INS, Routines, factor_launch_list, joined

from pyblasgpu.frontend import backend_status as host_backend
from pyblasgpu.gpu import backend, context, device
from pyblasgpu.gpu.device import Device, known, stand_ins
from pyblasgpu.routine import Routine


class HostMemory:
    """Stand-in of `pyblasgpu.gpu.memory` on the host: fresh memory is NaN."""

    def __init__(self):
        self.held = {}

    def current_context(self, device):
        return nullcontext()

    def allocate(self, nbytes, device, stream):
        assert nbytes > 0
        buffer = aligned((nbytes,), np.uint8, 0xFF)
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
        return Array(_placed(self.host.copy()), self.device_id)

    def view(self, dtype):
        return Array(self.host.view(dtype), self.device_id)

    def __array__(self, *_, **__):
        """Refuse, as CuPy does: `get` makes NumPy's arrays."""
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __dlpack__(self, *, stream=None, **options):
        """What CuPy exports; `stream` is to wait for CuPy's current one."""
        cupy.exports.append((cupy.current[-1], stream))
        return self.host.__dlpack__(**options)

    def __dlpack_device__(self):
        return 2, self.device_id

    def conj(self):
        return Array(_placed(self.host.conj(), self.host), self.device_id)

    def astype(self, dtype):
        return Array(_placed(self.host.astype(dtype)), self.device_id)

    def swapaxes(self, one, other):
        return Array(self.host.swapaxes(one, other), self.device_id)

    def transpose(self, axes):
        return Array(self.host.transpose(axes), self.device_id)

    def reshape(self, shape):
        return Array(self.host.reshape(shape), self.device_id)

    def __getitem__(self, index):
        return Array(self.host[index], self.device_id)

    def __eq__(self, other):
        return Array(self.host == getattr(other, "host", other), self.device_id)

    __hash__ = object.__hash__

    def __setitem__(self, index, value):
        self.host[index] = value.host


def _of_host(name):
    """NumPy's operator on the host's memory."""
    function = getattr(np.ndarray, name)
    return lambda self, *others: Array(_placed(function(self.host, *_hosts(others))), self.device_id)


_OPERATORS = (
    "add radd sub rsub mul rmul truediv rtruediv floordiv mod pow neg lt le gt ge ne matmul and or invert"
)
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
            arguments, options = _hosts(arguments), {key: _hosts(value) for key, value in options.items()}
            with np.errstate(all="ignore"):  # a device warns of nothing
                result = attribute(*arguments, **options)
            return _put(result, [*_arrays(arguments), *_arrays(options.values())])

        return on_host


def _hosts(value):
    if isinstance(value, (list, tuple)):
        return type(value)(_hosts(each) for each in value)
    return getattr(value, "host", value)


def _arrays(values):
    """The NumPy arrays among values, and in lists and tuples of them."""
    for each in values:
        if isinstance(each, np.ndarray):
            yield each
        elif isinstance(each, (list, tuple)):
            yield from _arrays(each)


def _put(result, operands):
    if isinstance(result, tuple):
        return tuple(_put(each, operands) for each in result)
    return Array(_placed(result, *operands)) if isinstance(result, (np.ndarray, np.generic)) else result


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


#: The memory that was given last; while it is here, nothing else has its addresses.
_given: deque[np.ndarray] = deque(maxlen=512)
_LARGE = 1 << 16  # bytes of memory that is not kept there


def aligned(shape, dtype, value=None, order="C") -> np.ndarray:
    """A new array, by default of NaN or -1, at a multiple of 512, as a device's allocations are.

    Small memory has an address that none had lately: what a call enters depends on the alignment of its
    arrays, and on whether they are where those of the call before were.
    """
    dtype = np.dtype(dtype)
    nbytes = prod(shape) * dtype.itemsize
    raw = np.full(nbytes + 512, 0xFF, np.uint8)
    if nbytes < _LARGE:
        _given.append(raw)
    start = -raw.ctypes.data % 512
    array = raw[start : start + nbytes].view(dtype).reshape(shape, order=order)
    if value is not None:
        array[...] = value
    return array


def _placed(result, *operands) -> np.ndarray:
    """A result where a device would have it, unless it is a view of an operand."""
    result = np.asarray(result)
    if any(np.may_share_memory(result, each) for each in operands):
        return result
    axes = sorted(range(result.ndim), key=lambda axis: -abs(result.strides[axis]))  # neighbours remain so
    placed = aligned([result.shape[axis] for axis in axes], result.dtype).transpose(np.argsort(axes))
    placed[...] = result
    return placed


def _empty(shape, dtype, order="C"):
    extents = shape if isinstance(shape, tuple) else (shape,)
    return Array(aligned(extents, dtype, order=order))


class _NewArray:
    """What CuPy's type is called for."""

    def __new__(cls, *described):
        return _array_at(*described)


def _imported(array):
    array.__dlpack__(stream=cupy.current[-1], max_version=(1, 0))
    return Array(array.host)


def _viewed(array):
    """View what else exports its memory, by an attribute `host` or by the CUDA array interface alone."""
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
    memory = SimpleNamespace(free=64 << 30, total=141 << 30)
    monkeypatch.setattr("pyblasgpu.dispatch.tensor.memory_bytes", lambda device: memory)


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
    monkeypatch.setattr("pyblasgpu.routines.joined_lists.joined", joined)
    for name, launch_list in STAND_INS.items():
        monkeypatch.setattr(name, launch_list)
    without_contexts(monkeypatch)
    monkeypatch.setattr(backend, "require", lambda: None)
    monkeypatch.setattr(backend, "SIMULATED", False)
    host_backend.why_no_device.cache_clear()
    return routines, memory


def regular(*shape, seed=0, dtype="d", order="F"):
    """A matrix, or a stack, of random numbers with a strong diagonal."""
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1, 1, shape).astype(dtype) + 3 * np.eye(*shape[-2:], dtype=dtype)
    return Array(np.array(a, order=order))
