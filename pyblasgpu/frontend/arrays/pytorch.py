"""PyTorch's tensors, on devices and in host memory; their attributes are read directly."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ...types import Dtype
from .layouts import Layout, MisalignedError, check_alignment, strides_by_rows
from .libraries import Library, NewArray, NoArrayError, count_write, module, reachable
from .streams import contexts

__all__ = ["TORCH", "comparer", "tensor_maker", "torch_stream"]


class _Torch(Library):
    name = "PyTorch"
    host = False
    counts_writes = True

    def locate(self, array: Any) -> Library:
        if array.requires_grad and _records_gradients():
            raise NoArrayError(
                "requires a gradient, which would be lost: call a function of pyblasgpu.torch, "
                "or pass its detach(), or call under torch.no_grad()"
            )
        if array.is_cuda:
            return self
        if array.device.type != "cpu":
            raise NoArrayError(f"is a tensor on device {array.device}, neither on CUDA nor on the CPU")
        return _TORCH_HOST

    def device(self, array: Any) -> int:
        return array.get_device()

    def layout(self, array: Any, dtype: Dtype, stream: int | None) -> Layout:
        negative = array.is_neg()
        if negative:
            array = array.resolve_neg()
        # sparse ones have neither, and under torch.func and torch.compile there is no memory
        pointer, strides = reachable(array, lambda: (array.data_ptr(), array.stride()))
        shape = tuple(array.shape)
        if not pointer and 0 not in shape:
            raise NoArrayError("is a tensor that has no memory: pass one from outside of torch.compile")
        check_alignment(pointer, shape, dtype)
        return Layout(
            pointer, shape, strides, dtype, array.get_device(), array.is_conj(), not negative, array
        )

    def read(self, arrays: tuple[Any, ...]) -> tuple[list[tuple[Any, ...]], list[int]] | None:
        facts, pointers = [], []
        kind, is_recording = type(arrays[0]), None
        try:
            for array in arrays:
                if type(array) is not kind or array.is_neg() or not array.is_cuda:
                    return None
                if array.requires_grad:
                    if is_recording is None:
                        is_recording = _records_gradients()
                    if is_recording:
                        return None
                facts.append((array.shape, array.stride(), array.dtype, array.get_device(), array.is_conj()))
                pointers.append(array.data_ptr())
        except RuntimeError:  # no strides, or no memory
            return None
        return None if 0 in pointers else (facts, pointers)

    def pointer(self, array: Any) -> int:
        return array.data_ptr()

    def state(self, a: Any, b: Any, out: Any) -> tuple[Any, ...]:
        return (
            a.data_ptr(),
            a.shape,
            a.stride(),
            b.data_ptr(),
            b.shape,
            b.stride(),
            out.data_ptr(),
            out.shape,
            out.stride(),
        )

    @contextmanager
    def _on(self, device: int, stream: int) -> Iterator[Any]:
        torch = module("torch")
        cuda = torch.cuda
        # `ExternalStream(0)` is not the default stream but another one, which does not wait for it
        named = cuda.ExternalStream(stream, device=device) if stream else cuda.default_stream(device)
        with cuda.stream(named):
            yield torch

    def empty(self, shape: tuple[int, ...], dtype: Dtype, device: int, stream: int) -> Any:
        with self._on(device, stream) as torch:
            return torch.empty(shape, dtype=getattr(torch, dtype.name), device=torch.device("cuda", device))

    def empty_here(
        self, shape: tuple[int, ...], dtype: Dtype, device: int, stream: int | None, swapped: bool = False
    ) -> Any:
        if stream is not None and self.current_stream(device) != stream:
            return super().empty_here(shape, dtype, device, stream, swapped)
        return tensor_maker()(*_place(shape, swapped), _dtype_of(dtype), device)

    def empties(self, shapes: Sequence[NewArray], device: int, stream: int) -> list[Any]:
        new = tensor_maker()
        return [new(*_place(shape, False), _dtype_of(dtype), device) for shape, dtype in shapes]

    def copied(self, array: Any, dtype: Dtype, stream: int | None) -> Layout:
        if array.data_ptr() % array.element_size():
            raise MisalignedError(f"is not aligned to its {array.dtype}")
        device = array.get_device()
        with self._on(device, self.current_stream(device) if stream is None else stream) as torch:
            return self.layout(array.to(getattr(torch, dtype.name)), dtype, stream)

    def current_stream(self, device: int) -> int:
        return torch_stream()(device)

    def written(self, array: Any) -> None:
        count_write()(array)


@cache
def torch_stream() -> Callable[[int], int]:
    """Return the function that returns the address of PyTorch's current stream on a device.

    The public way makes an object that looks up its own device, at 1.5 µs and more; PyTorch's compilers use
    the other, 20 times as fast, in the code that they write.
    """
    torch = module("torch")
    try:
        return torch._C._cuda_getCurrentRawStream
    except AttributeError:
        return lambda device: torch.cuda.current_stream(device).cuda_stream


@cache
def tensor_maker() -> Callable[..., Any]:
    """Return ``new(shape, strides, dtype, device)``, a tensor on a device's current stream, without values.

    Shape and strides are tuples. The public function parses its arguments for longer than PyTorch's allocator
    takes; PyTorch's compilers use the other one, of the current device, in the code that they write.
    """
    torch = module("torch")
    try:
        current_device, new_here = torch._C._cuda_getDevice, torch._C._dynamo.guards._empty_strided_cuda
    except AttributeError:
        current_device, new_here = (lambda: None), None

    def new(shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any, device: int) -> Any:
        if current_device() == device:
            return new_here(shape, strides, dtype)
        with contexts().current_context(device):  # as `Library.empty_here`
            return torch.empty_strided(shape, strides, dtype=dtype, device=torch.device("cuda", device))

    return new


def comparer(arrays: Sequence[Any]) -> Callable[..., bool]:
    """Return a function of as many tensors: whether they are like these in all but addresses and values.

    That are types, shapes, strides, dtypes, devices, conjugations and whether they require a gradient, under
    the same modes of PyTorch. Its compiler guards what it has compiled by this comparison.
    """
    shapes, strides = [list(array.shape) for array in arrays], [list(array.stride()) for array in arrays]
    try:
        guards = module("torch")._C._dynamo.guards.TensorGuards
        compare: Callable[..., bool] = guards(
            *arrays, dynamic_dims_sizes=shapes, dynamic_dims_strides=strides
        ).check
    except (AttributeError, TypeError):  # another version of PyTorch
        return lambda *_: False
    return compare


@lru_cache(1024)
def _place(shape: tuple[int, ...], swapped: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return shape and strides of a new tensor, row-major before its last two dimensions are swapped."""
    strides = strides_by_rows(shape)
    if swapped:
        return (*shape[:-2], *shape[:-3:-1]), (*strides[:-2], *strides[:-3:-1])
    return shape, strides


@cache
def _dtype_of(dtype: Dtype) -> Any:
    """Return PyTorch's name of a dtype."""
    return getattr(module("torch"), dtype.name)


def _records_gradients() -> bool:
    """Whether PyTorch now records what is done with tensors that require a gradient."""
    torch = sys.modules.get("torch")  # there is no tensor without it
    return torch is None or torch.is_grad_enabled()


class _TorchHost(Library):
    name = "PyTorch (host)"

    def to_numpy(self, array: Any) -> np.ndarray:
        return reachable(array, lambda: array.detach().resolve_conj().resolve_neg().numpy())

    def output_to_numpy(self, array: Any) -> np.ndarray:
        return reachable(array, lambda: array.detach().numpy())

    def deliver(self, result: Any, like: Any, stream: int | None) -> Any:
        return module("torch").from_numpy(result)


TORCH, _TORCH_HOST = _Torch(), _TorchHost()
