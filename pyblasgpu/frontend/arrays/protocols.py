"""Arrays of any library that exports DLPack or the CUDA array interface, and Numba's.

A call waits for pending work of the library as the protocol says. DLPack's exporter gets the stream of the
call, and the CUDA array interface names its own. A new result becomes an array of the library through its
`from_dlpack`, which has the library's stream wait for the call's.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...types import Dtype
from .keep_alive import hold
from .layouts import Layout, check_alignment, element_strides, strides_by_rows
from .libraries import CUPY, Library, NoArrayError, module, numba_cuda, reachable

__all__ = ["NUMBA", "Protocol"]

_HOST = (1, 3)  # kDLCPU, kDLCUDAHost
_ALIGNMENT = 64  # bytes: from less aligned memory JAX copies


class _Numba(Library):
    name = "Numba"
    host = False
    orders_streams = True

    def locate(self, array: Any) -> Library:
        if not hasattr(array, "__cuda_array_interface__"):
            raise NoArrayError(f"is a {type(array).__name__} of Numba's, not an array on a device")
        return self

    def device(self, array: Any) -> int:
        if hasattr(array, "__dlpack_device__"):
            return int(array.__dlpack_device__()[1])
        contexts = module("pyblasgpu.gpu.context")
        device = contexts.pointer_device(array.__cuda_array_interface__["data"][0])
        return contexts.current_device() if device is None else device  # the driver knows no empty arrays

    def layout(self, array: Any, dtype: Dtype, stream: int | None) -> Layout:
        interface = _cuda_interface(array)
        if interface is not None and interface.get("strides") is not None:
            # DLPack counts strides in elements, so that here alone the remainders are seen
            element_strides(interface["data"][0], interface["shape"], interface["strides"], dtype)
        device = self.device(array)
        with module("pyblasgpu.gpu.context").current_context(device):
            view = _memory_view(array, stream or 1)  # its legacy default stream; the protocols have no 0
        shape, strides = tuple(view.shape), view.strides
        if strides is None:
            strides = strides_by_rows(shape)
        check_alignment(view.ptr, shape, dtype)
        read_only = view.readonly or _is_immutable(array) or (interface is not None and interface["data"][1])
        return Layout(view.ptr, shape, tuple(strides), dtype, device, False, not read_only, view)

    def empty(self, shape: tuple[int, ...], dtype: Dtype, device: int, stream: int) -> Any:
        cuda = numba_cuda()
        with cuda.gpus[device]:
            return cuda.device_array(shape, dtype.name)

    def swap(self, array: Any) -> Any:
        *leading, rows, cols = range(array.ndim)
        return self.permuted(array, (*leading, cols, rows))

    def permuted(self, array: Any, axes: tuple[int, ...]) -> Any:
        """The view of one of Numba's arrays with its dimensions in this order; Numba's own is a copy."""
        return _numba_view(array, *(tuple(of[axis] for axis in axes) for of in (array.shape, array.strides)))

    def reshaped(self, array: Any, shape: tuple[int, ...]) -> Any:
        """The view of one of Numba's arrays with another shape.

        Where it is not contiguous, the shape has extents of 1 more or less. Numba's own refuses that, and
        forgets the stream.
        """
        if [extent for extent in array.shape if extent != 1] != [extent for extent in shape if extent != 1]:
            return array.reshape(shape).bind(array.stream)
        steps = (step for extent, step in zip(array.shape, array.strides, strict=True) if extent != 1)
        size = array.dtype.itemsize
        return _numba_view(array, shape, tuple(size if extent == 1 else next(steps) for extent in shape))

    def assign(self, target: Any, values: Any) -> None:
        self.view(target)[...] = self.view(values)

    def deliver(self, result: Any, like: Any, stream: int | None) -> Any:
        if not _is_cupys(result):
            return result
        cuda, device = numba_cuda(), result.data.device_id
        with CUPY.on(device, _stream_of_cupy(device, stream)), cuda.gpus[device]:
            return cuda.as_cuda_array(result, sync=False)

    def is_read_only(self, array: Any) -> bool:
        return _is_read_only(array)

    def view(self, array: Any) -> Any:
        device = self.device(array)
        try:
            stream = CUPY.current_stream(device)
            view = self._cupy_view(array, stream)
        except ImportError:
            raise NoArrayError(f"is a {self.name}, which has no shape; to look at it takes CuPy") from None
        if not _is_read_only(array):
            return view
        with CUPY.on(device, stream):  # CuPy's arrays are never read-only
            return view.copy()

    def copied(self, array: Any, dtype: Dtype, stream: int | None) -> Layout:
        stream = self.current_stream(self.device(array)) if stream is None else stream
        try:
            view = self._cupy_view(array, stream)
        except ImportError:
            self.layout(array, dtype, stream)  # may know that no kernel reads its elements
            raise NoArrayError(
                f"is a {self.name} array that has to be cast to {dtype.name} first, which takes CuPy"
            ) from None
        return CUPY.copied(view, dtype, stream)

    def _cupy_view(self, array: Any, stream: int) -> Any:
        """`array` as CuPy sees it, from `stream` on."""
        if not hasattr(array, "__dlpack__") or _cuda_interface(array) is not None:
            return module("cupy").asarray(array)
        with CUPY.on(self.device(array), stream) as cupy:
            return cupy.from_dlpack(array)


class Protocol(_Numba):
    """Any exporter of DLPack or the CUDA array interface.

    New arrays are of its library where that has a `from_dlpack`; else they are CuPy's, or Numba's.
    """

    def __init__(self, kind: type) -> None:
        self.name = f"{kind.__module__}.{kind.__qualname__}"
        self._on_host = DLPackHost(self.name)

    def locate(self, array: Any) -> Library:
        if hasattr(array, "__dlpack_device__") or not hasattr(array, "__cuda_array_interface__"):
            on_host = int(reachable(array, lambda: array.__dlpack_device__())[0]) in _HOST
            if on_host:
                return self._on_host
        interface = reachable(array, lambda: _cuda_interface(array))
        if interface is not None:
            _check_interface(interface)
        return self

    def dtype(self, array: Any) -> Any:
        return _dtype(array)

    def empty(self, shape: tuple[int, ...], dtype: Dtype, device: int, stream: int) -> Any:
        try:
            return CUPY.empty(shape, dtype, device, stream)
        except ImportError:
            return super().empty(shape, dtype, device, stream)

    def swap(self, array: Any) -> Any:
        return Library.swap(self, array) if hasattr(array, "swapaxes") else super().swap(array)

    def assign(self, target: Any, values: Any) -> None:
        assign = Library.assign if hasattr(target, "__setitem__") else _Numba.assign
        assign(self, target, values)

    def has_writable_copies(self, array: Any) -> bool:
        return _has_writable_copies(array)

    def deliver(self, result: Any, like: Any, stream: int | None) -> Any:
        namespace = _namespace(like)
        if namespace is None:
            return result
        if not _is_cupys(result):
            assert stream is not None
            return namespace.from_dlpack(_Exported(result, stream))
        device = result.data.device_id
        with CUPY.on(device, _stream_of_cupy(device, stream)):  # by which CuPy's export orders streams
            return _imported(namespace, result, like)

    def hold(self, owners: list[Any], stream: int) -> None:
        hold(owners, stream)


class DLPackHost(Library):
    """Arrays of a DLPack library whose memory is the host's."""

    def __init__(self, name: str) -> None:
        self.name = f"{name} (host)"

    def dtype(self, array: Any) -> Any:
        return _dtype(array)

    def to_numpy(self, array: Any) -> np.ndarray:
        return reachable(array, lambda: np.from_dlpack(array))

    def output_to_numpy(self, array: Any) -> np.ndarray:
        view = self.to_numpy(array)
        if view.flags.writeable or not _may_be_written(array):
            return view
        described = {**view.__array_interface__, "data": (view.ctypes.data, False)}
        return np.asarray(SimpleNamespace(__array_interface__=described, owner=view))

    def new_numpy(self, shape: tuple[int, ...], dtype: Dtype) -> np.ndarray:
        count = prod(shape) * dtype.itemsize
        memory = np.empty(count + _ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % _ALIGNMENT
        return memory[start : start + count].view(dtype.name).reshape(shape)

    def has_writable_copies(self, array: Any) -> bool:
        return _has_writable_copies(array)

    def deliver(self, result: Any, like: Any, stream: int | None) -> Any:
        namespace = _namespace(like)
        return result if namespace is None else _imported(namespace, result, like)

    def place(self, array: Any) -> Any:
        # JAX moves arrays that are on a device by default alone
        return None if _is_immutable(array) else getattr(array, "device", None)


def _imported(namespace: Any, result: Any, like: Any) -> Any:
    """A new array of NumPy's or CuPy's as one of another library, on the device of `like` where it can be."""
    try:
        imported = namespace.from_dlpack(result)
    except Exception:  # of a class of the library's own, as JAX's for strides with gaps
        result = result.copy()
        imported = namespace.from_dlpack(result)
    device = getattr(like, "device", None)
    if getattr(imported, "device", None) != device:
        with suppress(Exception):  # the library moves nothing there
            return namespace.from_dlpack(result, device=device)
    return imported


def _stream_of_cupy(device: int, stream: int | None) -> int:
    return CUPY.current_stream(device) if stream is None else stream


def _has_writable_copies(array: Any) -> bool:
    """Whether new arrays of the library of `array` are its own, and not immutable."""
    return _namespace(array) is not None and not _is_immutable(array)


def _is_cupys(array: Any) -> bool:
    return type(array).__module__.startswith("cupy")


def _memory_view(array: Any, stream: int) -> Any:
    """Describe `array` by the protocols; its elements are complete on `stream`."""
    view = module("cuda.core.utils").StridedMemoryView
    return reachable(array, lambda: view.from_any_interface(array, stream_ptr=stream))


def _cuda_interface(array: Any) -> dict[str, Any] | None:
    """The CUDA array interface of `array`; immutable ones, which have no strides, have none."""
    return None if _is_immutable(array) else getattr(array, "__cuda_array_interface__", None)


def _check_interface(interface: dict[str, Any]) -> None:
    """Raise NoArrayError for what version 3 of the CUDA array interface forbids, and for masks."""
    for key in ("shape", "typestr", "data", "version"):
        if key not in interface:
            raise NoArrayError(f"has a CUDA array interface without {key!r}")
    if interface.get("mask") is not None:
        raise NoArrayError("has a mask in its CUDA array interface, and the BLAS takes none")
    stream = interface.get("stream")
    if stream is not None and (not isinstance(stream, int) or stream <= 0):
        raise NoArrayError(
            f"names stream {stream!r} in its CUDA array interface, which is none: 1 is the legacy default "
            "stream, 2 the thread's, and others are handles"
        )


def _is_read_only(array: Any) -> bool:
    """Whether an array on a device must not be written, as far as its library says."""
    interface = _cuda_interface(array)
    if interface is not None:
        return interface["data"][1]
    return _is_immutable(array) or _memory_view(array, -1).readonly


def _is_immutable(array: Any) -> bool:
    """Whether its library never writes into `array`, which DLPack does not say before version 1."""
    if not hasattr(type(array), "__array_namespace__"):
        return False
    return not module("array_api_compat").is_writeable_array(array)


def _may_be_written(array: Any) -> bool:
    """Whether NumPy's view of `array` is read-only only because DLPack cannot say otherwise. The exporter is
    older than its version 1 then, and exports writable arrays alone.
    """
    if _is_immutable(array):
        return False
    try:
        capsule = array.__dlpack__(max_version=(1, 0))
    except TypeError:
        return True
    return bool(ctypes.pythonapi.PyCapsule_IsValid(ctypes.py_object(capsule), b"dltensor"))


def _numba_view(array: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    devicearray = numba_cuda().cudadrv.devicearray
    return devicearray.DeviceNDArray(shape, strides, array.dtype, array.stream, array.gpu_data)


def _dtype(array: Any) -> Any:
    """The dtype of `array` as the protocols have it."""
    if hasattr(array, "__cuda_array_interface__"):
        return np.dtype(array.__cuda_array_interface__["typestr"])
    if int(array.__dlpack_device__()[0]) in _HOST:
        return np.from_dlpack(array).dtype
    return module("cuda.core.utils").StridedMemoryView.from_dlpack(array, stream_ptr=-1).dtype


def _namespace(array: Any) -> Any:
    """Return the module whose `from_dlpack` makes arrays like `array`; None where there is none."""
    if hasattr(array, "__array_namespace__"):
        namespace = array.__array_namespace__()
    else:
        namespace = sys.modules.get(type(array).__module__.partition(".")[0])
    return namespace if hasattr(namespace, "from_dlpack") else None


class _Exported:
    """A new array of Numba's, which computes on `stream`, as DLPack wants it."""

    def __init__(self, array: Any, stream: int) -> None:
        self._stream = stream
        self._view = module("cuda.core.utils").StridedMemoryView.from_any_interface(array, stream_ptr=-1)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._view.__dlpack_device__()

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Any:
        if stream != -1:  # by which the importer says that it sees to the order
            events = module("pyblasgpu.gpu.events")
            events.record(self._stream).hold_back(events.LEGACY_STREAM if stream is None else stream)
        return self._view.__dlpack__(**options)


NUMBA = _Numba()
