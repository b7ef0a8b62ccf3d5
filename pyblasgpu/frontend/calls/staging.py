"""Host arrays computed on a device: copied there, run, copied back."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from ...types import INT32, Dtype, dtype_of
from ..arrays.layouts import Layout, batches
from .lazy_routines import copy_launches, enqueue

__all__ = ["run_staged", "run_staged_in_place"]

#: Bytes from which on threads copy an array: of less, the driver has copied much when they have begun.
BY_THREADS_FROM = 32 << 20


def run_staged(
    cuda: Callable[..., Any],
    inputs: tuple[Any, ...],
    scalars: tuple[Any, ...],
    out: np.ndarray,
    source: Any,
    dtypes: tuple[Dtype, Dtype],
    device: int,
    stream: int,
    integers: tuple[np.ndarray, ...] = (),
    input_integers: tuple[np.ndarray, ...] = (),
    by_columns: bool = False,
) -> None:
    """Copy host arrays to the device, whose context is current, run there, copy the output back, wait.

    `dtypes` are those of the inputs and of the output; `integers` are arrays that are copied back as well,
    and go before the inputs; `input_integers`, of int32, go between. With `by_columns` the output is computed
    by columns, whatever its own order; it begins as `source`.
    """
    dtype, out_dtype = dtypes
    with _Staging(dtype, device, stream) as staging:
        layouts = [staging.upload(array).op(trans) for array, trans in inputs]
        dense = out if _is_dense(out) else np.empty_like(out, order="K", subok=False)
        # `out` is untouched if the run fails, as it is written by the copy that ends it
        if source is None:
            target = staging.reserve(dense)._replace(dtype=out_dtype)
        elif source is out:
            if dense is not out:
                np.copyto(dense, source)
            target = staging.upload(dense)
        else:
            target = staging.upload_like(source, _columns_like(dense) if by_columns else dense)
        extra = [staging.reserve(array)._replace(dtype=_dtype_of(array)) for array in integers]
        read = [staging.upload(array)._replace(dtype=INT32) for array in input_integers]
        for operands in batches((*extra, *read, *layouts, target)):
            cuda(scalars, operands, stream)
        for array, layout in zip(integers, extra, strict=True):
            staging.download(array, layout)
        if by_columns and not dense.swapaxes(-1, -2).flags.c_contiguous:
            target = staging.copied_like(target, dense)
        staging.download(dense, target)
        if dense is not out:
            np.copyto(out, dense)


def run_staged_in_place(
    cuda: Callable[..., Any],
    arrays: tuple[np.ndarray, ...],
    scalars: tuple[Any, ...],
    dtype: Dtype,
    device: int,
    stream: int,
) -> None:
    """Run as `run_staged` where all `arrays` are read and written."""
    with _Staging(dtype, device, stream) as staging:
        dense = [array if _is_dense(array) else array.copy("K") for array in arrays]
        layouts = tuple([staging.upload(array) for array in dense])
        for operands in batches(layouts):
            cuda(scalars, operands, stream)
        for array, copy, layout in zip(arrays, dense, layouts, strict=True):
            staging.download(copy, layout)
            if copy is not array:
                np.copyto(array, copy)


def _dtype_of(numbers: np.ndarray) -> Dtype:
    return INT32 if numbers.dtype == np.int32 else dtype_of(numbers.dtype)


class _Staging:
    """Device memory for the time of one call."""

    def __init__(self, dtype: Dtype, device: int, stream: int) -> None:
        self.dtype, self.device, self.stream = dtype, device, stream
        self.addresses: list[int] = []
        self.memory = import_module("...gpu.memory", __package__)

    def __enter__(self) -> _Staging:
        return self

    def __exit__(self, *_: object) -> None:
        for address in self.addresses:
            self.memory.release(address, self.stream)

    def reserve(self, dense: np.ndarray) -> Layout:
        """Device memory for `dense`, with its strides."""
        # the driver has no empty allocations
        address = self.memory.allocate(max(dense.nbytes, 1), self.device, self.stream)
        self.addresses.append(address)
        steps = tuple(step // dense.itemsize for step in dense.strides)
        return Layout(address, dense.shape, steps, self.dtype, self.device)

    def upload(self, array: np.ndarray) -> Layout:
        """`array` on the device; padding is left out and broadcast elements go once."""
        once = array[tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)]
        dense = once if _is_dense(once) else once.copy("K")
        layout = self.reserve(dense)
        if dense.size:
            self._copying(dense).to_device(layout.pointer, _flat(dense), self.stream)
        steps = tuple(0 if step == 0 else to for step, to in zip(array.strides, layout.strides, strict=True))
        return layout._replace(shape=array.shape, strides=steps)

    def upload_like(self, source: np.ndarray, dense: np.ndarray) -> Layout:
        """`source`, which broadcasts to the shape of `dense`, on the device with the strides of `dense`."""
        if source.shape == dense.shape and _is_dense(source) and _lie_alike(source, dense):
            target = self.reserve(dense)
            if dense.size:
                self._copying(source).to_device(target.pointer, _flat(source), self.stream)
            return target
        # the device transposes much faster than the host
        return self.copied_like(self.upload(source), dense)

    def copied_like(self, layout: Layout, dense: np.ndarray) -> Layout:
        """A copy of what is on the device, with the strides of `dense`, to whose shape it broadcasts."""
        target = self.reserve(dense)
        for parts in zip(_real_parts(layout), _real_parts(target), strict=True):
            for operands in batches(parts):
                enqueue(copy_launches, (1,), operands, self.stream)
        return target

    def download(self, dense: np.ndarray, layout: Layout) -> None:
        if dense.size:
            self._copying(dense).to_host(_flat(dense), layout.pointer, self.stream)

    def _copying(self, array: np.ndarray) -> Any:
        """The module that copies an array: large ones by threads."""
        if array.nbytes < BY_THREADS_FROM:
            return self.memory
        return import_module("...engine.whole_arrays", __package__)


def _is_dense(array: np.ndarray) -> bool:
    """Whether the elements fill one piece of memory, and are aligned in it."""
    return array.flags.aligned and (array.flags.c_contiguous or array.flags.f_contiguous)


def _columns_like(dense: np.ndarray) -> np.ndarray:
    """An array of the shape of `dense`, its matrices by columns; its memory is never touched."""
    *batch, rows, cols = dense.shape
    return np.empty((*batch, cols, rows), dense.dtype).swapaxes(-1, -2)


def _real_parts(layout: Layout) -> list[Layout]:
    """Real and imaginary parts of a complex array; a real one itself.

    A complex product with 1 would carry NaN and Inf from one part to the other.
    """
    dtype = layout.dtype
    if not dtype.is_complex:
        return [layout]
    parts = layout._replace(strides=tuple([2 * step for step in layout.strides]), dtype=dtype_of(dtype.real))
    return [parts, parts._replace(pointer=layout.pointer + dtype.real_size)]


def _lie_alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether the elements of dense arrays of one shape are in one order."""
    both_c = one.flags.c_contiguous and other.flags.c_contiguous
    return both_c or (one.flags.f_contiguous and other.flags.f_contiguous)


def _flat(dense: np.ndarray) -> np.ndarray:
    """The elements in the order of memory, as a view."""
    return dense.ravel(order="K")
