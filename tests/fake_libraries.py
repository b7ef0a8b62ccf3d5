"""Array libraries that are none: what theirs export, over NumPy's memory."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import fake_device
import numpy as np

from pyblasgpu.frontend.arrays import libraries
from pyblasgpu.gpu import context

#: The stream on which the libraries of this file wait for what they import.
OWN_STREAM = 77


class Dtype:
    """A dtype that is no one's but its library's."""

    def __init__(self, name):
        self.numpy = np.dtype(name)

    def __repr__(self):
        return f"fakelib.{self.numpy.name}"

    def __hash__(self):
        return hash(self.numpy)

    def __eq__(self, other):
        assert isinstance(other, Dtype), "compared with another library's"
        return self.numpy == other.numpy


class Array:
    """An array on the host; what is exported is of DLPack's version 1."""

    versioned = True

    def __init__(self, host):
        self.host = np.asarray(host)

    dtype = property(lambda self: Dtype(self.host.dtype))
    shape = property(lambda self: self.host.shape)
    device = "fake"

    def __array_namespace__(self, api_version=None):
        return NAMESPACES[type(self)]

    def __getitem__(self, index):
        return type(self)(self.host[index])

    def __dlpack__(self, *, stream=None, **options):
        return self.host.__dlpack__(**(options if self.versioned else {}))

    def __dlpack_device__(self):
        return 1, 0


class OldArray(Array):
    """One whose library knows the versions of DLPack before the first alone."""

    versioned = False

    def __dlpack__(self, *, stream=None):
        return self.host.__dlpack__()


class DeviceArray(Array):
    """An array on device 0, whose library computes on a stream of its own."""

    def __init__(self, host, read_only=False):
        super().__init__(host)
        self.read_only, self.exported_to = read_only, []

    def __dlpack__(self, *, stream=None, **options):
        self.exported_to.append(stream)
        return self.host.__dlpack__(**options)

    def __dlpack_device__(self):
        return 2, 0


class ImmutableArray(DeviceArray):
    """One of a library that never writes into its arrays."""

    def __init__(self, host, read_only=True):
        super().__init__(host, read_only)


class CompactArray(DeviceArray):
    """One whose library imports no strides with gaps, as JAX."""


class RowsArray(DeviceArray):
    """One whose library imports row-major arrays alone."""


class InterfaceArray:
    """Memory of device 0 behind the CUDA array interface alone."""

    def __init__(self, host, read_only=False, **facts):
        self.host = np.asarray(host)
        self.__cuda_array_interface__ = {
            **facts,
            "shape": self.host.shape,
            "strides": self.host.strides,
            "typestr": self.host.dtype.str,
            "data": (self.host.ctypes.data, read_only),
            "version": 3,
        }


def check_strides(kind, host):
    """Raise where a library does not import memory of such strides."""
    by_step = host.transpose(np.argsort([-abs(step) for step in host.strides], kind="stable"))
    if issubclass(kind, CompactArray) and not by_step.flags.c_contiguous:
        raise RuntimeError("UNIMPLEMENTED: strides with gaps")
    if issubclass(kind, RowsArray) and not host.flags.c_contiguous:
        raise BufferError("strides are not row-major")


def refuse_interface(array, **placement):
    raise RuntimeError("UNIMPLEMENTED: strides of the CUDA array interface")


def namespace_of(kind):
    def from_dlpack(exporter):
        device = exporter.__dlpack_device__()
        if device[0] == 1:
            return kind(np.from_dlpack(exporter))
        capsule = exporter.__dlpack__(stream=OWN_STREAM)
        host = SimpleNamespace(__dlpack__=lambda **_: capsule, __dlpack_device__=lambda: (1, 0))
        imported = np.from_dlpack(host)
        check_strides(kind, imported)
        return kind(imported)

    names = {name: Dtype(name) for name in ("float32", "float64", "complex64", "complex128", "int64")}
    return SimpleNamespace(
        __name__="fakelib",
        from_dlpack=from_dlpack,
        permute_dims=lambda array, axes: type(array)(array.host.transpose(axes)),
        reshape=lambda array, shape: type(array)(array.host.reshape(shape)),
        asarray=refuse_interface,
        **names,
    )


NAMESPACES = {
    kind: namespace_of(kind)
    for kind in (Array, OldArray, DeviceArray, ImmutableArray, CompactArray, RowsArray)
}


class StridedMemoryView:
    """What `cuda.core.utils` makes of an exporter."""

    def __init__(self, array, stream_ptr):
        host, self.exporting_obj = array.host, array
        assert getattr(array, "__cuda_array_interface__", {}).get("stream") != 0, "as cuda.core has it"
        if hasattr(array, "__dlpack__"):
            array.__dlpack__(stream=stream_ptr, max_version=(1, 0))
        self.ptr, self.shape, self.dtype = host.ctypes.data, host.shape, host.dtype
        self.strides = tuple(step // host.itemsize for step in host.strides)
        self.device_id, self.readonly = 0, getattr(array, "read_only", False)

    def __dlpack__(self, **options):
        return self.exporting_obj.host.__dlpack__(**options)

    def __dlpack_device__(self):
        return 2, self.device_id

    from_any_interface = classmethod(lambda cls, array, stream_ptr: cls(array, stream_ptr))
    from_dlpack = from_any_interface


class Events:
    """Stand-in of `pyblasgpu.gpu.events`: an event is done when `done` says so."""

    LEGACY_STREAM = 1

    def __init__(self):
        self.recorded, self.held_back, self.done = [], [], False

    def is_captured(self, stream):
        return False

    def record(self, stream):
        self.recorded.append(stream)
        return SimpleNamespace(
            is_done=lambda: self.done,
            synchronize=lambda: None,
            hold_back=lambda later: self.held_back.append((stream, later)),
        )


def know_as_immutable(monkeypatch, *kinds) -> None:
    """Let array-api-compat know of libraries that never write into their arrays, as it knows of JAX."""
    from array_api_compat.common import _helpers

    known = _helpers._is_writeable_cls
    monkeypatch.setattr(
        _helpers, "_is_writeable_cls", lambda kind: False if issubclass(kind, kinds) else known(kind)
    )


def install(monkeypatch) -> Events:
    """Put the stand-ins where the library looks, besides those of `fake_device`."""
    events, core = Events(), ModuleType("cuda.core.utils")
    core.StridedMemoryView = StridedMemoryView
    monkeypatch.setitem(sys.modules, "cuda.core.utils", core)
    monkeypatch.setitem(sys.modules, "pyblasgpu.gpu.events", events)
    monkeypatch.setattr(context, "pointer_device", lambda pointer: 0)
    fake_device.cupy.exports.clear()
    libraries.module.cache_clear()
    return events
