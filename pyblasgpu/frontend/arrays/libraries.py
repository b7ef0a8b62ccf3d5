"""The interface of an array library, NumPy and CuPy.

CuPy's attributes are read directly, and PyTorch's in `pytorch`, because a small product is over in the time
that a protocol's capsule takes; every other library goes through `protocols`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ...types import Dtype
from .layouts import Layout, element_strides
from .streams import contexts

__all__ = [
    "CUPY",
    "NUMPY",
    "Library",
    "NewArray",
    "NoArrayError",
    "count_write",
    "cupy_stream",
    "integers_of_library",
    "module",
    "numba_cuda",
    "reachable",
]

module = cache(import_module)
#: The shape and the dtype of an array that is made.
NewArray = tuple[tuple[int, ...], Dtype]


@cache
def numba_cuda() -> Any:
    """`numba.cuda`, imported by the file that knows what it needs for that."""
    import_module("...gpu.backend", __package__).require()
    return module("numba.cuda")


@cache
def count_write() -> Callable[[Any], None]:
    """The function by which PyTorch's tensors count a write that PyTorch does not see."""
    count: Callable[[Any], None] = module("torch").autograd.graph.increment_version
    return count


class NoArrayError(TypeError):
    """The argument is no array that can be read; the message goes on ``f"{routine}: {argument} "``."""


class Library:
    """The interface of an array library; this base class is NumPy's.

    Attributes
    ----------
    name : str
        The name in messages.
    host : bool
        Whether its arrays are in host memory.
    counts_writes : bool
        Whether its arrays on devices count how often they were written; see `written`.
    orders_streams : bool
        Whether `layout` lets its stream wait for what the library computes, wherever that is.
    strides_in_bytes : bool
        Whether strides that `read` returns are in bytes, else in elements.
    """

    name = "NumPy"
    host = True
    counts_writes = False
    orders_streams = False
    strides_in_bytes = False

    def locate(self, array: Any) -> Library:
        """The library to use for `array`: some have arrays both in host and in device memory.

        Raises
        ------
        NoArrayError
            When its memory cannot be reached.
        """
        return self

    def dtype(self, array: Any) -> Any:
        """The dtype of `array`, which has no attribute for it."""
        return np.asarray(array).dtype

    def is_read_only(self, array: Any) -> bool:
        """Whether nothing may be written into `array`, even by its library; of host arrays, as NumPy's."""
        return self.host and not array.flags.writeable

    def place(self, array: Any) -> Any:
        """The library's name of a host array's device, where arrays of one call must agree; else None."""
        return None

    def has_writable_copies(self, array: Any) -> bool:
        """Whether a new array may be the output of a call on it and `array`."""
        return True

    def view(self, array: Any) -> Any:
        """An array like `array`, which has a shape and is indexed; without a copy."""
        return self.to_numpy(array)

    # host memory
    def to_numpy(self, array: Any) -> np.ndarray:
        """`array` as a NumPy array, without a copy."""
        return np.asarray(array)

    def output_to_numpy(self, array: Any) -> np.ndarray:
        """`array` as a NumPy array whose elements are those of `array`, to be written."""
        if not isinstance(array, np.ndarray):
            raise NoArrayError(f"must be an array, not a {type(array).__name__}: numpy.empty makes one")
        return np.asarray(array)

    def written(self, array: Any) -> None:
        """Have a tensor, or that of which the caller's `array` is NumPy's view, count a write.

        PyTorch computes gradients by the values that an operation had, and refuses where they were written.
        """
        torch = sys.modules.get("torch")
        if torch is None:
            return
        while isinstance(array, np.ndarray):
            array = array.base
        if isinstance(array, getattr(torch, "Tensor", ())):
            count_write()(array)

    def new_numpy(self, shape: tuple[int, ...], dtype: Dtype) -> np.ndarray:
        """A new NumPy array that `deliver` can make one of this library without a copy."""
        return np.empty(shape, dtype.name)

    # device memory
    def device(self, array: Any) -> int:
        """Return the device of `array`."""
        raise NotImplementedError

    def layout(self, array: Any, dtype: Dtype, stream: int | None) -> Layout:
        """The layout of `array`, whose dtype is `dtype`; what it still computes is waited for on `stream`.

        Raises
        ------
        MisalignedError
            When its elements are where no kernel reads them.
        """
        raise NotImplementedError

    def read(self, arrays: tuple[Any, ...]) -> tuple[list[tuple[Any, ...]], list[int]] | None:
        """All that `layout` reads of each array but its address, hashable, and the addresses.

        The shape, strides and dtype of each array are first, then all else. None where the read costs as much
        as a new description of the arrays. None, too, where they are not all of one type of device arrays.
        """
        return None

    def pointer(self, array: Any) -> int:
        """The address of an array that `read` reads."""
        description = self.read((array,))
        assert description is not None
        return description[1][0]

    def state(self, a: Any, b: Any, out: Any) -> tuple[Any, ...]:
        """Return the values of three arrays that may change while they remain the same objects."""
        raise NotImplementedError

    def empty(self, shape: tuple[int, ...], dtype: Dtype, device: int, stream: int) -> Any:
        """A new C-contiguous array whose memory is safe to use on `stream`."""
        raise NotImplementedError

    def empty_here(
        self, shape: tuple[int, ...], dtype: Dtype, device: int, stream: int | None, swapped: bool = False
    ) -> Any:
        """Return `empty`, where `stream` may be the library's own current one, as None is; with the last two
        dimensions `swapped` on request.
        """
        # a library that switches devices leaves a context current on a thread that had none
        with contexts().current_context(device):
            made = self.empty(shape, dtype, device, self.current_stream(device) if stream is None else stream)
        return self.swap(made) if swapped else made

    def empties(self, shapes: Sequence[NewArray], device: int, stream: int) -> list[Any]:
        """Return new C-contiguous arrays of shapes and dtypes; `stream` is the library's current one."""
        return [self.empty(shape, dtype, device, stream) for shape, dtype in shapes]

    def swap(self, array: Any) -> Any:
        """The view of `array` with the last two dimensions swapped."""
        return array.swapaxes(-1, -2)

    def copied(self, array: Any, dtype: Dtype, stream: int | None) -> Layout:
        """A copy of `array` made on `stream`: of this dtype, its elements where kernels read them."""
        raise NotImplementedError

    def current_stream(self, device: int) -> int:
        """The stream on which the library queues its work now."""
        return 0

    def assign(self, target: Any, values: Any) -> None:
        """Write `values`, which broadcast to its shape, into the array `target`."""
        target[...] = values

    def hold(self, owners: list[Any], stream: int) -> None:
        """Keep alive what a call on `stream` reads, where the library would use its memory again too soon."""

    # both
    def deliver(self, result: Any, like: Any, stream: int | None) -> Any:
        """The new `result`, computed on `stream`, as an array of the library of `like`.

        A stream of None is CuPy's current one, of results that are CuPy's.
        """
        return result


class _CuPy(Library):
    name = "CuPy"
    host = False
    strides_in_bytes = True

    def device(self, array: Any) -> int:
        return array.data.device_id

    def layout(self, array: Any, dtype: Dtype, stream: int | None) -> Layout:
        data, shape = array.data, array.shape
        pointer = data.ptr
        strides = element_strides(pointer, shape, array.strides, dtype)
        return Layout(pointer, shape, strides, dtype, data.device_id, False, True, array)

    def read(self, arrays: tuple[Any, ...]) -> tuple[list[tuple[Any, ...]], list[int]] | None:
        kind, facts, pointers = type(arrays[0]), [], []
        for array in arrays:
            if type(array) is not kind:
                return None
            data = array.data
            facts.append((array.shape, array.strides, array.dtype, data.device_id))
            pointers.append(data.ptr)
        return facts, pointers

    def pointer(self, array: Any) -> int:
        return array.data.ptr

    def state(self, a: Any, b: Any, out: Any) -> tuple[Any, ...]:
        return a.shape, b.shape, out.shape

    @contextmanager
    def on(self, device: int, stream: int) -> Iterator[Any]:
        """Make this CuPy's current device and stream."""
        cupy = module("cupy")
        with cupy.cuda.Device(device), cupy_stream(cupy.cuda, device, stream):
            yield cupy

    def empty(self, shape: tuple[int, ...], dtype: Dtype, device: int, stream: int) -> Any:
        # memory of the pool is ordered by stream: a block of another stream may still be in use there
        with self.on(device, stream) as cupy:
            return cupy.empty(shape, dtype.name)

    def empty_here(
        self, shape: tuple[int, ...], dtype: Dtype, device: int, stream: int | None, swapped: bool = False
    ) -> Any:
        cupy = module("cupy")
        is_current = stream is None or self.current_stream(device) == stream
        if not is_current or cupy.cuda.runtime.getDevice() != device:
            return super().empty_here(shape, dtype, device, stream, swapped)
        if swapped and len(shape) == 2:
            return cupy.empty(shape[::-1], dtype.name, "F")
        made = cupy.empty(shape, dtype.name)
        return self.swap(made) if swapped else made

    def empties(self, shapes: Sequence[NewArray], device: int, stream: int) -> list[Any]:
        cupy = module("cupy")
        if cupy.cuda.runtime.getDevice() != device:
            return super().empties(shapes, device, stream)
        return [cupy.empty(shape, dtype.name) for shape, dtype in shapes]

    def copied(self, array: Any, dtype: Dtype, stream: int | None) -> Layout:
        device = array.data.device_id
        with self.on(device, self.current_stream(device) if stream is None else stream) as cupy:
            return self.layout(_aligned(cupy, array).astype(dtype.name), dtype, stream)

    def current_stream(self, device: int) -> int:
        return module("cupy").cuda.get_current_stream(device).ptr


class _StreamHandle(NamedTuple):
    """A stream by CUDA's stream protocol."""

    handle: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


def cupy_stream(cuda: Any, device: int, stream: int) -> Any:
    """A stream on `device`, not CuPy's own, as an object of CuPy's module `cuda`."""
    if hasattr(cuda.Stream, "from_external"):
        return cuda.Stream.from_external(_StreamHandle(stream))
    return cuda.ExternalStream(stream, device)  # deprecated in CuPy 14


def _aligned(cupy: Any, array: Any) -> Any:
    """`array`, or a copy of it where CuPy's kernels would read between elements, at addresses that fault."""
    size, pointer = array.dtype.itemsize, array.data.ptr
    if not any(number % size for number in (pointer, *array.strides)):
        return array
    shape, strides = array.shape, array.strides
    swapped = len(shape) > 1 and 0 < abs(strides[-2]) < abs(strides[-1])
    if swapped:
        shape, strides = ((*of[:-2], of[-1], of[-2]) for of in (shape, strides))
    memory = cupy.cuda.UnownedMemory(pointer, size * array.size, array, array.data.device_id)
    raw = cupy.ndarray((*shape, size), "u1", cupy.cuda.MemoryPointer(memory, 0), (*strides, 1))
    dense = raw.copy().view(array.dtype)[..., 0]
    return dense.swapaxes(-1, -2) if swapped else dense


def reachable(array: Any, read: Callable[[], Any]) -> Any:
    """Return the result of `read`; NoArrayError where the library says that it cannot.

    It says so by errors of any of these types.
    """
    try:
        return read()
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        kind = type(array)
        name = f"{kind.__module__}.{kind.__qualname__}"
        advice = "pass a dense array, outside of jit and the like"
        if "jax" in name and "Tracer" in name:
            advice = "call a function of pyblasgpu.jax within jit, grad and vmap"
        raise NoArrayError(f"cannot be read, a {name}: {error}; {advice}") from error


NUMPY, CUPY = Library(), _CuPy()


def integers_of_library(library: Library, numbers: Any, like: Any) -> Any:
    """Return what a routine left in host memory as an array of the library of `like`, integers as int32.

    NumPy's info of one matrix is an int.
    """
    if isinstance(numbers, int):
        return numbers if library is NUMPY else library.deliver(np.array(numbers, np.int32), like, None)
    integers = numbers.dtype.kind == "i" and numbers.dtype != np.int32
    return library.deliver(numbers.astype(np.int32) if integers else numbers, like, None)
