"""Calls: the choice of the backend, and the run of a routine on arrays.

Device arrays run on their device, on the caller's stream, without waiting. NumPy arrays (and other arrays
in host memory) run on SciPy's BLAS, or are copied to the device, computed there and copied back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from ...errors import OverlapError
from ...types import Dtype
from ..arrays.any_array import (
    Library,
    NoArrayError,
    common_dtype,
    common_library,
    dtype_name,
    number,
    numpy_dtype,
    quick_library,
    stored_dtype,
)
from ..arrays.layouts import (
    Layout,
    MisalignedError,
    UnevenStridesError,
    batches,
    broadcasts_to,
    is_column_major,
    is_injective,
    is_same,
    shares_memory,
)
from ..arrays.streams import device_for, on_device, stream_of, stream_pointer
from ..arrays.vectors import NUMBER, Vector, column, shape_of
from ..backend_status import ON_PROCESSOR, is_auto, status_in
from .call_cache import (
    APART,
    CONSTANT,
    NEW,
    ON_DEVICE,
    CachedCall,
    KeptCall,
    NewOutput,
    find,
    keep,
    mode_of,
)
from .lazy_routines import after_copy, copy_launches, enqueue, launch_list_of, routine

__all__ = ["Call", "on_device", "routine", "launch_list_of"]

#: Bytes of a new host array from which on its memory is kept: what is smaller the allocator of C keeps.
KEPT_FROM = 1 << 20

_log = logging.getLogger("pyblasgpu")
_log.addHandler(logging.NullHandler())


class Call:
    """One call of a routine: its arrays described and checked, then run.

    Parameters
    ----------
    name : str
        The routine, for messages.
    arrays : dict[str, Any]
        The inputs by argument name, in order.
    out : array or None
        The output.
    stream : int, stream object or None
        The stream, of the device of device arrays; None is the library's current one.
    backend : str or None
        See `backend_status`; for host arrays.
    dtype : Dtype, optional
        The dtype to compute in; by default what `common_dtype` makes of the inputs.
    vectors : mapping of str to Vector or None, optional
        The arguments, 'out' among them, that are vectors, of shape (..., length). Values are the elements
        that are meant, None: all; see `vectors`. They become matrices of one column. A copy of host arrays
        would take longer than the computation with vectors: unless the call names 'cuda', it runs on the CPU.

    Attributes
    ----------
    arrays : tuple[Any, ...]
        The inputs as they were passed.
    device : int or None
        The device that it runs on; None on the CPU.
    inputs : list[Any] of Layout or numpy.ndarray
        The inputs, in the dtype of the computation.
    out : Layout or numpy.ndarray
        The output, once `set_output` has been called.
    out_dtype : Dtype
        Its dtype: that of the computation, unless it is set before `set_output`.
    out_name : str
        The argument that it is, for messages.
    result : array
        The caller's result; if `is_new`, once its library has been given it.
    """

    __slots__ = (
        "arrays",
        "backend",
        "device",
        "dtype",
        "inputs",
        "is_auto",
        "is_new",
        "library",
        "name",
        "names",
        "new",
        "out",
        "out_dtype",
        "out_name",
        "passed",
        "passed_out",
        "result",
        "result_shape",
        "stream",
        "vectors",
    )

    device: int | None
    inputs: list[Any]
    new: NewOutput
    out: Any
    passed_out: Any
    result_shape: tuple[int, ...] | None
    stream: Any

    def __init__(
        self,
        name: str,
        arrays: dict[str, Any],
        out: Any,
        stream: Any,
        backend: str | None,
        dtype: Dtype | None = None,
        vectors: Mapping[str, Vector | None] | None = None,
    ) -> None:
        self.name, self.names = name, tuple(arrays)
        self.vectors = vectors or {}
        self.arrays = self.passed = tuple(arrays.values())
        self.passed_out, self.result_shape = None, None
        self.library: Library = common_library(name, (*arrays, "out"), (*self.arrays, out))
        self.is_auto = self.library.host and is_auto(backend)
        if self.library.host:
            requested = "cpu" if self.vectors and self.is_auto else backend
            self.backend = status_in(requested, name).backend
            self.device = None if self.backend in ON_PROCESSOR else device_for(stream)
            self.stream = stream_pointer(stream) or 0
            self.inputs = [self._to_numpy(*each) for each in zip(self.names, self.arrays, strict=True)]
            dtypes = [array.dtype for array in self.inputs]
            self.dtype = dtype or common_dtype(name, dtypes, self.names)
            self.inputs = [array.astype(self.dtype.name, copy=False) for array in self.inputs]
        else:
            self.device = self.library.device(self.arrays[0])
            self.stream = stream_of(self.device, stream, name)
            self._describe(backend, dtype)
        self.out_dtype, self.out_name = self.dtype, "out"
        self.inputs = [self._shaped(*each) for each in zip(self.names, self.inputs, strict=True)]

    @on_device
    def _describe(self, backend: str | None, dtype: Dtype | None) -> None:
        """The inputs as layouts on one device."""
        if backend not in ON_DEVICE:
            raise ValueError(f"{self.name}: backend={backend!r} is for host arrays; these are on a device")
        self.backend = "cuda"
        dtypes = [dtype_name(array) for array in self.arrays]
        self.dtype = dtype or common_dtype(self.name, dtypes, self.names)
        self.inputs = inputs = []
        for argument, array, stored in zip(self.names, self.arrays, dtypes, strict=True):
            inputs.append(self._layout(argument, array, stored))
            self._check_device(argument, inputs[-1])
        if self.stream is None:
            self.stream = self.library.current_stream(inputs[0].device)

    def _shaped(self, argument: str, array: Any) -> Any:
        """An array with the dimensions of a matrix, or of a stack of them."""
        if argument not in self.vectors:
            if len(array.shape) >= 2:
                return array
            kind = "matrix"
        else:
            if len(array.shape) >= 1 or self.vectors[argument] is NUMBER:
                return column(array, self.vectors[argument])
            kind = "vector"
        raise ValueError(
            f"{self.name}: {argument} has shape {array.shape}; a {kind}, or a stack of them, is needed"
        )

    def _to_numpy(self, argument: str, array: Any) -> np.ndarray:
        try:
            return self.library.to_numpy(array)
        except (NoArrayError, ValueError) as error:
            raise self._refusal(argument, error) from error

    def _layout(self, argument: str, array: Any, stored: Any) -> Layout:
        """The layout of an input whose dtype is `stored`, or of a copy of it where kernels need one."""
        library = self.library
        try:
            if stored_dtype(stored) is self.dtype:
                try:
                    return library.layout(array, self.dtype, self.stream)
                except UnevenStridesError:
                    pass
            return library.copied(array, self.dtype, self.stream)
        except (NoArrayError, MisalignedError) as error:
            raise self._refusal(argument, error) from error

    def _refusal(self, argument: str, error: Exception) -> Exception:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        return kind(f"{self.name}: {argument} {error}")

    def _check_device(self, argument: str, layout: Layout) -> None:
        device = self.inputs[0].device
        if layout.device != device:
            raise ValueError(
                f"{self.name}: {self.names[0]} is on device {device} and {argument} on device {layout.device}"
            )

    def views(
        self, arrays: tuple[Any, ...], out: Any = None, result_shape: tuple[int, ...] | None = None
    ) -> None:
        """Have the call be kept for `arrays` and `out`, which were passed, in place of its views of them.

        The views depend on layouts alone. A new result that is by rows is returned with `result_shape`.
        """
        self.passed, self.passed_out, self.result_shape = arrays, out, result_shape

    def scalar(self, argument: str, value: Any) -> Any:
        """`value` as a Python number that fits the dtype; see `any_array.number`."""
        return number(value, self.dtype, self.name, argument)

    @on_device
    def set_output(
        self, out: Any, batch_shape: tuple[int, ...], rows: int, cols: int, column_major: bool | None = None
    ) -> None:
        """Describe `out`, or make a new output of shape (*batch_shape, rows, cols).

        A new one is column-major if `column_major` says so; by default if all inputs are.

        Raises
        ------
        TypeError
            When `out` has another dtype or is immutable.
        ValueError
            When `out` has another shape, is read-only or has elements that share an address.
        """
        if out is None and "out" in self.vectors:
            self._new_output((*batch_shape, *shape_of(self.vectors["out"], rows)), swapped=False)
            self.out = column(self.out, self.vectors["out"] and NUMBER)
            return
        if out is None:
            if column_major is None:
                column_major = all(is_column_major(array) for array in self.inputs)
            extents = (cols, rows) if column_major else (rows, cols)
            self._new_output((*batch_shape, *extents), column_major)
            return
        self.result, self.is_new = out, False
        try:
            described = self._host_output(out) if self.library.host else self._device_output(out)
        except (NoArrayError, MisalignedError) as error:
            raise self._refusal("out", error) from error
        is_vector = "out" in self.vectors
        self.out = self._shaped("out", described) if is_vector else described
        shape = self.out.shape
        # as in NumPy, a stack may be written from fewer matrices
        if shape[-2:] != (rows, cols) or not broadcasts_to(batch_shape, shape[:-2]):
            last = shape_of(self.vectors["out"], rows) if is_vector else (rows, cols)
            needed = (*batch_shape, *last)
            raise ValueError(f"{self.name}: {self.out_name} has shape {described.shape}; {needed} is needed")
        if not is_injective(self.out):
            raise ValueError(f"{self.name}: out has strides {self.out.strides}, so that elements coincide")

    def _host_output(self, out: Any) -> np.ndarray:
        view = self.library.output_to_numpy(out)
        self._check_output(out, view.dtype)
        if not view.flags.writeable:
            raise (ValueError if isinstance(out, np.ndarray) else TypeError)(f"{self.name}: out is read-only")
        return view

    def _device_output(self, out: Any) -> Layout:
        self._check_output(out, dtype_name(out))
        layout = self.library.layout(out, self.out_dtype, self.stream)
        self._check_device("out", layout)
        if layout.conj:
            raise TypeError(f"{self.name}: out is a lazily conjugated view, which cannot be written")
        if not layout.writable:
            raise TypeError(f"{self.name}: out is read-only")
        return layout

    def _check_output(self, out: Any, dtype: Any) -> None:
        wanted = self.out_dtype
        if stored_dtype(dtype) is not wanted and numpy_dtype(dtype) != wanted.name:
            raise TypeError(f"{self.name}: out has dtype {dtype_name(out)} and the computation {wanted.name}")

    def _new_output(self, shape: tuple[int, ...], swapped: bool) -> None:
        library, self.is_new = self.library, True
        self.new = NewOutput(shape, self.out_dtype, swapped)
        if library.host:
            out = self._from_kept_memory(shape)
            out = library.new_numpy(shape, self.out_dtype) if out is None else out
            self.result = self.out = out.swapaxes(-1, -2) if swapped else out
        else:
            self.result = library.empty(shape, self.out_dtype, self.inputs[0].device, self.stream)
            self.result = library.swap(self.result) if swapped else self.result
            self.out = library.layout(self.result, self.out_dtype, self.stream)

    def _from_kept_memory(self, shape: tuple[int, ...]) -> np.ndarray | None:
        """A large host array that a card computes, in memory that results keep; None for others."""
        nbytes = prod(shape) * self.out_dtype.itemsize
        if self.backend != "cuda" or nbytes < KEPT_FROM:
            return None
        kept = import_module("...gpu.kept_results", __package__).kept_results()
        found: np.ndarray = kept.empty(shape, self.out_dtype.name)
        return found

    def note_write(self) -> None:
        """Have the library of a caller's output count that it is written; before it is, as a run may fail."""
        if not self.is_new:
            self.library.written(self.result)

    def delivered(self) -> Any:
        """Return the caller's array, once all is computed or enqueued."""
        library = self.library
        if not library.host:
            library.hold([layout.owner for layout in (*self.inputs, self.out)], self.stream)
        return library.deliver(self.result, self.arrays[0], self.stream) if self.is_new else self.result

    def check_overlap(self, in_place: int | None = None) -> bool:
        """Raise `OverlapError` where the output shares memory with an input.

        The input with index `in_place` may be the output itself, the same memory with the same strides;
        whether it is, is returned.
        """
        out, same = self.out, False
        for index, (argument, array) in enumerate(zip(self.names, self.inputs, strict=True)):
            if index == in_place and is_same(array, out):
                same = True
            elif shares_memory(array, out):
                raise OverlapError(f"{self.name}: out shares memory with {argument}")
        return same

    @on_device
    def run(
        self,
        cpu: Callable[..., Any],
        prepare: Callable[..., Any],
        inputs: tuple[Any, ...],
        scalars: tuple[Any, ...],
        source: Any = None,
        key: Any = None,
        reads_source: bool = False,
    ) -> Any:
        """Run the routine and return the caller's array.

        Parameters
        ----------
        cpu : callable
            ``cpu(scalars, *arrays, out)`` computes with NumPy arrays.
        prepare : callable
            ``prepare(scalars, operands)`` gives the launch list for `Operand` views: the inputs,
            transpositions applied, and the output. It refers to nothing of this call but its flags.
        inputs : tuple[Any, ...] of (array, Trans)
            Inputs that are read, of `Call.inputs`.
        scalars : tuple[Any, ...]
            alpha, or alpha and beta.
        source : array, optional
            The start of the output; the output itself if it is updated in place.
        key : hashable, optional
            Under which `call_cache.replay` may find the call, as it depends on nothing but the arrays
            `inputs` and out.
        reads_source : bool, default False
            Whether `prepare` takes a `source` that is another array, too, before the output.
        """
        out = self.out
        if 0 in out.shape:
            return self.delivered()
        self.note_write()
        if not self.library.host:
            layouts = (*[layout.op(trans) for layout, trans in inputs], out)
            read = tuple([layout for layout, _ in inputs])
            self._enqueue(prepare, scalars, read, layouts, source, key, reads_source)
        elif self.backend in ON_PROCESSOR:
            self.start_from(source)
            cpu(scalars, *[array for array, _ in inputs], out)
        else:
            from .staging import run_staged  # device arrays do without

            assert self.device is not None
            cuda, dtypes = partial(enqueue, prepare), (self.dtype, self.out_dtype)
            run_staged(cuda, inputs, scalars, out, source, dtypes, self.device, self.stream)
        return self.delivered()

    def start_from(self, source: Any) -> None:
        """Have the output hold `source`, which broadcasts to it; nothing where that is None or the output."""
        if source is None or source is self.out:
            return
        if isinstance(source, Layout):
            for operands in batches((source, self.out)):
                enqueue(copy_launches, (1,), operands, self.stream)
        else:
            np.copyto(self.out, source)

    def _enqueue(
        self,
        prepare: Callable[..., Any],
        scalars: tuple[Any, ...],
        read: tuple[Layout, ...],
        layouts: tuple[Layout, ...],
        source: Any,
        key: Any,
        reads_source: bool = False,
    ) -> None:
        """Run on device arrays; a call on matrices, or on one batch of them, is kept for `replay`."""
        copies = source is not None and source is not self.out
        whole = (*layouts[:-1], source, self.out) if copies else layouts
        calls = list(batches(whole))
        described = self._description(key, read, source, scalars[0]) if len(calls) == 1 else None
        copies_first = copies and not reads_source
        if described is None:
            if copies_first:
                self.start_from(source)
                calls = list(batches(layouts))
            for operands in calls:
                enqueue(prepare, scalars, operands, self.stream)
            return
        key, called_at = described
        kept = find(key)
        if kept is None or kept.copies != copies:  # beta decides whether the output starts from another array
            generation = import_module("...dispatch.choose", __package__).generation
            call = CachedCall(whole, calls[0], after_copy(prepare) if copies_first else prepare, generation)
            new = self._kept_output() if self.is_new else None
            kept = KeptCall(call, called_at, copies, new, scalars[1:] not in ((), (0,)))
        alpha, beta = (*scalars, 0)[:2]  # TRMM and TRSM have no beta
        kept.call.run_checked([layout.pointer for layout in whole], alpha, beta, self.stream)
        keep(key, kept)

    def _description(
        self, key: Any, read: tuple[Layout, ...], source: Any, alpha: Any
    ) -> tuple[tuple[Any, ...], tuple[int, ...] | None] | None:
        """Return the key of `replay`, and where the matrices of the call are among the arrays; None where
        flags may change or arrays were converted before.
        """
        if key is None or any(part and part is not NUMBER for part in self.vectors.values()):
            return None  # parts of an array begin elsewhere than it does
        for part in key:
            if not isinstance(part, CONSTANT):
                return None  # a flag that is an array may change
        out = self.result if self.passed_out is None else self.passed_out
        mode = mode_of(self.passed, None if self.is_new else out)
        if mode in (NEW, APART) and alpha == 0:
            return None  # whether the output starts from another array may depend on it
        arrays = (*self.passed, out) if mode == APART else self.passed
        description = self.library.read(arrays) if quick_library(arrays[0]) is self.library else None
        if description is None:
            return None
        copied = () if source is None or source is self.out else (source,)
        places = [self._place(each, mode, description[1]) for each in (*read, *copied, self.out)]
        if None in places:
            return None
        called_at: Any = tuple(places)
        if called_at == tuple(range(len(arrays) + (mode == NEW))):
            called_at = None
        return (key, mode, *description[0]), called_at

    def _place(self, layout: Any, mode: int, pointers: list[int]) -> int | None:
        """Return which array at `pointers` a layout describes, an output apart behind the inputs; None for a
        copy, or a view that begins elsewhere.

        The layout decides, as an array may be passed twice.
        """
        if layout is self.out:
            place = mode if mode >= 0 else len(self.passed)
            return place if self.is_new or layout.pointer == pointers[place] else None
        found = [i for i, each in enumerate(self.inputs) if each is layout]
        return found[0] if found and layout.pointer == pointers[found[0]] else None

    def _kept_output(self) -> NewOutput:
        """The new output as a repeated call makes it, of `result_shape` at once."""
        return self.new if self.result_shape is None else NewOutput(self.result_shape, self.out_dtype, False)
