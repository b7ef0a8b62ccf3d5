"""Any array -> what the routines need of it; and new arrays in the caller's library.

A `Library` answers for one array library. Arrays in host memory become NumPy arrays (`Library.to_numpy`),
arrays in device memory become a `Layout`, without a copy. CuPy's and PyTorch's attributes are read directly,
because a small product is over in the time that a protocol's capsule takes; every other library goes
through `cuda.core.utils.StridedMemoryView`.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from .layouts import Layout, is_injective
from .types import DTYPES, Dtype, dtype_of

__all__ = [
    "Library", "can_be_output", "common_dtype", "common_library", "dtype_name", "library_of", "numpy_dtype",
    "output_view", "quick_library", "stored_dtype",
]  # fmt: skip


# ---------------------------------------------------------------------------------------------- libraries


class Library:
    """What is asked of an array library; this base class serves NumPy.

    Attributes
    ----------
    name : str
        For messages.
    host : bool
        Whether its arrays lie in host memory.
    """

    name = "NumPy"
    host = True

    def locate(self, array) -> Library:
        """The library to use for `array`: some have arrays both in host and in device memory."""
        return self

    # host memory
    def to_numpy(self, array) -> np.ndarray:
        """`array` as a NumPy array, without a copy."""
        return np.asarray(array)

    def output_to_numpy(self, array) -> np.ndarray:
        """`array` as a NumPy array whose elements are those of `array`, to be written."""
        if not isinstance(array, np.ndarray):
            raise TypeError(f"out must be an array, not a {type(array).__name__}")
        return np.asarray(array)

    def from_numpy(self, array: np.ndarray, like):
        """A new result as an array of this library."""
        return array

    # device memory
    def layout(self, array, dtype: Dtype, stream: int | None) -> Layout:
        """The layout of `array`, whose dtype is `dtype`."""
        raise NotImplementedError

    def read(self, arrays: tuple) -> tuple[list[tuple], list[int]] | None:
        """All that `layout` reads of each array but its address, hashable, and the addresses.

        Of each array the shape, strides and dtype come first, then what else there is. None where reading it
        costs as much as describing the arrays anew, or where they are not all of one type of device arrays.
        """
        return None

    def state(self, a, b, out) -> tuple:
        """What may change of three arrays that `read` reads while they remain the same objects."""
        raise NotImplementedError

    def empty(self, shape: tuple[int, ...], dtype: Dtype, device: int, stream: int):
        """A new C-contiguous array whose memory is safe to use on `stream`."""
        raise NotImplementedError

    def swap(self, array):
        """The view of `array` with the last two dimensions swapped."""
        return array.swapaxes(-1, -2)

    def cast(self, array, dtype: Dtype, stream: int | None):
        """A copy of `array` with another dtype, made on `stream`."""
        raise TypeError(
            f"a {self.name} array of dtype {array.dtype} meets {dtype.name}; cast it first, since "
            "pyblasgpu has no casts for this library"
        )

    def current_stream(self, device: int) -> int:
        """The stream on which the library queues its work now."""
        return 0


class _CuPy(Library):
    name = "CuPy"
    host = False

    def layout(self, array, dtype, stream):
        data, size = array.data, dtype.itemsize
        return Layout(
            data.ptr, array.shape, tuple([step // size for step in array.strides]), dtype,
            data.device_id, False, True, array,
        )  # fmt: skip

    def read(self, arrays):
        kind, facts, pointers = type(arrays[0]), [], []
        for array in arrays:
            if type(array) is not kind:
                return None
            data = array.data
            facts.append((array.shape, array.strides, array.dtype, data.device_id))
            pointers.append(data.ptr)
        return facts, pointers

    def state(self, a, b, out):
        return a.shape, b.shape, out.shape

    @contextmanager
    def _on(self, device, stream):
        cupy = _module("cupy")
        with cupy.cuda.Device(device), cupy.cuda.ExternalStream(stream, device):
            yield cupy

    def empty(self, shape, dtype, device, stream):
        # memory of the pool is ordered by stream: a block of another stream may still be in use there
        with self._on(device, stream) as cupy:
            return cupy.empty(shape, dtype.name)

    def cast(self, array, dtype, stream):
        device = array.data.device_id
        with self._on(device, self.current_stream(device) if stream is None else stream):
            return array.astype(dtype.name)

    def current_stream(self, device):
        return _module("cupy").cuda.get_current_stream(device).ptr


class _Torch(Library):
    name = "PyTorch"
    host = False

    def locate(self, array):
        if array.requires_grad:
            raise TypeError("a tensor that requires a gradient would lose it here: pass tensor.detach()")
        if array.is_cuda:
            return self
        if array.device.type != "cpu":
            raise TypeError(f"a PyTorch tensor on device {array.device} lies neither on CUDA nor on the CPU")
        return _TORCH_HOST

    def layout(self, array, dtype, stream):
        negative = array.is_neg()
        if negative:
            array = array.resolve_neg()
        return Layout(
            array.data_ptr(), tuple(array.shape), array.stride(), dtype, array.get_device(),
            array.is_conj(), not negative, array,
        )  # fmt: skip

    def read(self, arrays):
        kind, facts, pointers = type(arrays[0]), [], []
        for array in arrays:
            if type(array) is not kind or array.is_neg() or array.requires_grad or not array.is_cuda:
                return None
            facts.append((array.shape, array.stride(), array.dtype, array.get_device(), array.is_conj()))
            pointers.append(array.data_ptr())
        return facts, pointers

    def state(self, a, b, out):
        return (
            a.data_ptr(), a.shape, a.stride(), b.data_ptr(), b.shape, b.stride(),
            out.data_ptr(), out.shape, out.stride(),
        )  # fmt: skip

    @contextmanager
    def _on(self, device, stream):
        torch = _module("torch")
        with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=device)):
            yield torch

    def empty(self, shape, dtype, device, stream):
        with self._on(device, stream) as torch:
            return torch.empty(shape, dtype=getattr(torch, dtype.name), device=torch.device("cuda", device))

    def cast(self, array, dtype, stream):
        device = array.get_device()
        with self._on(device, self.current_stream(device) if stream is None else stream) as torch:
            return array.to(getattr(torch, dtype.name))

    def current_stream(self, device):
        return _torch_stream()(device)


@cache
def _torch_stream():
    """What gives the address of PyTorch's current stream on a device.

    The public way makes an object that asks for its own device, at 1.5 µs and more; PyTorch's compilers use
    the other, 20 times as fast, in the code that they write.
    """
    torch = _module("torch")
    try:
        return torch._C._cuda_getCurrentRawStream
    except AttributeError:
        return lambda device: torch.cuda.current_stream(device).cuda_stream


class _TorchHost(Library):
    name = "PyTorch (host)"

    def to_numpy(self, array):
        return array.resolve_conj().resolve_neg().numpy()

    def output_to_numpy(self, array):
        return array.numpy()

    def from_numpy(self, array, like):
        return _module("torch").from_numpy(array)


class _Numba(Library):
    name = "Numba"
    host = False

    def layout(self, array, dtype, stream):
        # 1 is the legacy default stream; the protocols leave 0 undefined
        view = _module("cuda.core.utils").StridedMemoryView.from_any_interface(array, stream_ptr=stream or 1)
        strides = view.strides
        if strides is None:
            strides = tuple(prod(view.shape[axis + 1 :]) for axis in range(len(view.shape)))
        return Layout(
            view.ptr, tuple(view.shape), tuple(strides), dtype, view.device_id, False, not view.readonly, view
        )

    def empty(self, shape, dtype, device, stream):
        cuda = _numba_cuda()
        with cuda.gpus[device]:
            return cuda.device_array(shape, dtype.name)

    def swap(self, array):
        cuda = _numba_cuda()
        *lead, rows, cols = range(array.ndim)
        shape, strides = ([of[axis] for axis in (*lead, cols, rows)] for of in (array.shape, array.strides))
        return cuda.cudadrv.devicearray.DeviceNDArray(
            tuple(shape), tuple(strides), array.dtype, array.stream, array.gpu_data
        )


class _Protocol(_Numba):
    """Any exporter of DLPack or the CUDA array interface; new arrays are CuPy's, else Numba's."""

    def __init__(self, name):
        self.name = name

    def locate(self, array):
        if hasattr(array, "__cuda_array_interface__"):
            return self
        on_host = int(array.__dlpack_device__()[0]) in _DLPACK_HOST
        return _DLPackHost(self.name) if on_host else self

    def empty(self, shape, dtype, device, stream):
        try:
            return _CUPY.empty(shape, dtype, device, stream)
        except ImportError:
            return super().empty(shape, dtype, device, stream)

    def swap(self, array):
        return Library.swap(self, array) if hasattr(array, "swapaxes") else super().swap(array)


class _DLPackHost(Library):
    def __init__(self, name):
        self.name = f"{name} (host)"

    def to_numpy(self, array):
        return np.from_dlpack(array)

    output_to_numpy = to_numpy

    def from_numpy(self, array, like):
        if hasattr(like, "__array_namespace__"):
            return like.__array_namespace__().from_dlpack(array)
        return array


_DLPACK_HOST = (1, 3)  # kDLCPU, kDLCUDAHost
_NUMPY, _CUPY, _TORCH, _TORCH_HOST, _NUMBA = Library(), _CuPy(), _Torch(), _TorchHost(), _Numba()
_BY_PACKAGE = {"numpy": _NUMPY, "builtins": _NUMPY, "cupy": _CUPY, "torch": _TORCH, "numba": _NUMBA}
_BY_TYPE: dict[type, Library] = {}
_module = cache(import_module)


@cache
def _numba_cuda():
    """`numba.cuda`, imported by the file that knows what it needs for that."""
    import_module(".gpu.backend", __package__).require()
    return _module("numba.cuda")


def library_of(array) -> Library:
    """The library that `array` belongs to.

    Raises
    ------
    TypeError
        For what is no array, and for a masked array.
    """
    kind = type(array)
    library = _BY_TYPE.get(kind)
    if library is None:
        library = _BY_TYPE[kind] = _library_of_type(kind)
    return library if library is _CUPY or library is _NUMPY else library.locate(array)


def quick_library(array) -> Library | None:
    """The library of arrays of this type, if one has been met before; whether on the host is not asked."""
    return _BY_TYPE.get(type(array))


def _library_of_type(kind: type) -> Library:
    if issubclass(kind, np.ma.MaskedArray):
        raise TypeError("a masked array has no place for its mask in the BLAS: pass array.filled(...)")
    for base in kind.__mro__[:-1]:
        package = base.__module__.partition(".")[0]
        # lists, tuples and numbers are NumPy's to convert
        if package in _BY_PACKAGE and (package != "builtins" or kind in (list, tuple, int, float, complex)):
            return _BY_PACKAGE[package]
    if hasattr(kind, "__dlpack__") or hasattr(kind, "__cuda_array_interface__"):
        return _Protocol(f"{kind.__module__}.{kind.__qualname__}")
    raise TypeError(
        f"a {kind.__name__} is not an array: it has neither __dlpack__ nor __cuda_array_interface__"
    )


def common_library(routine: str, names: tuple[str, ...], arrays: tuple) -> Library:
    """The one library of all `arrays` (those that are None left out).

    Raises
    ------
    TypeError
        When they belong to different libraries.
    """
    library = library_of(arrays[0])
    for name, array in zip(names[1:], arrays[1:], strict=True):
        if array is None or (library is _CUPY and type(array) is type(arrays[0])):
            continue
        other = library_of(array)
        if other.name != library.name:
            raise TypeError(
                f"{routine}: {names[0]} is a {library.name} array and {name} a {other.name} array; "
                "all arrays of a call must come from one library"
            )
    return library


def output_view(array, dtype: Dtype) -> Layout | np.ndarray | None:
    """Where a result of this dtype would be written in `array`; None where none may be.

    An array is no output if it is of another dtype, immutable, read-only, lazily conjugated or negated,
    misaligned, has elements that lie at the same place, or is no array. Nothing is raised.
    """
    try:
        if stored_dtype(dtype_name(array)) is not dtype:
            return None
        library = library_of(array)
        view = library.output_to_numpy(array) if library.host else library.layout(array, dtype, None)
    except (TypeError, ValueError, AttributeError, RuntimeError, BufferError):
        return None
    return view if _is_writable(view) and is_injective(view) else None


def can_be_output(array, dtype: Dtype) -> bool:
    """Whether a result of this dtype may be written to `array`; see `output_view`."""
    return output_view(array, dtype) is not None


def _is_writable(view: Layout | np.ndarray) -> bool:
    if isinstance(view, np.ndarray):
        return view.flags.writeable and view.flags.aligned
    return view.writable and not view.conj and view.pointer % view.dtype.real_size == 0


# ------------------------------------------------------------------------------------------------- dtypes

_INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_PROMOTION = (
    dict.fromkeys(_INTEGERS, DTYPES["d"])
    | {"float16": DTYPES["s"]}
    | {dtype.name: dtype for dtype in DTYPES.values()}
)
_NAMES = {dtype.name for dtype in DTYPES.values()}
#: What `stored_dtype` found for the dtype objects met so far.
_STORED: dict[Any, Dtype | None] = {}


def dtype_name(array):
    """The dtype of `array`, as its library has it."""
    try:
        return array.dtype
    except AttributeError:
        return np.dtype(array.__cuda_array_interface__["typestr"])


def numpy_dtype(dtype) -> np.dtype:
    """NumPy's dtype for a library's; `object` where NumPy has none (bfloat16)."""
    try:
        return np.dtype(dtype if isinstance(dtype, np.dtype) else str(dtype).removeprefix("torch."))
    except TypeError:
        return np.dtype(object)


def stored_dtype(dtype) -> Dtype | None:
    """The `Dtype` of arrays that store one of the four in native byte order, None of all others."""
    try:
        return _STORED[dtype]
    except KeyError:
        known = numpy_dtype(dtype)
        _STORED[dtype] = dtype_of(known.name) if known.isnative and known.name in _NAMES else None
        return _STORED[dtype]


def common_dtype(routine: str, dtypes) -> Dtype:
    """The `Dtype` in which arrays of these dtypes are computed.

    Integers and booleans count as float64, float16 as float32, mixed ones as `numpy.result_type` has them.

    Raises
    ------
    TypeError
        For a dtype that none of the four can hold (long double, objects, strings, bfloat16).
    """
    found = {stored_dtype(dtype) or _promoted(routine, dtype) for dtype in dtypes}
    return found.pop() if len(found) == 1 else dtype_of(np.result_type(*[dtype.name for dtype in found]))


def _promoted(routine: str, dtype) -> Dtype:
    promoted = _PROMOTION.get(numpy_dtype(dtype).name)
    if promoted is None:
        raise TypeError(
            f"{routine}: dtype {dtype} is none of float32, float64, complex64, complex128, "
            "and no integer, bool or float16 that would be cast to one of them"
        )
    return promoted
