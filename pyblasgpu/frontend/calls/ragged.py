"""Calls on lists of matrices of unequal sizes: quick checks of all at once, and careful ones of each.

The quick ones are NumPy's arithmetic on what a library says of its arrays. Where these find anything unusual,
each entry of the lists is checked as a call of its own is, which raises what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import OverlapError
from ...operands import span
from ...ragged.matrices import Matrices
from ...ragged.spans import are_clear, are_injective
from ...types import Dtype, Trans
from ..arrays.any_array import Library, number, quick_library, stored_dtype
from ..arrays.layouts import Layout, is_same, shares_memory
from ..arrays.streams import stream_of
from .call import Call

__all__ = [
    "Described",
    "Facts",
    "Outputs",
    "are",
    "are_by_columns",
    "check_calls",
    "check_matrices",
    "checked_lists",
    "columns",
    "described",
    "facts_of",
    "new_outputs",
    "note_writes",
    "note_writes_of",
    "numbers_of",
    "per_entry",
    "quick_outputs",
    "with_op",
]


class Described(NamedTuple):
    """Device arrays of one library, dtype and device: matrices one and all."""

    matrices: Matrices
    dtype: Dtype
    device: int
    library: Library


def checked_lists(name: str, **lists: Any) -> int:
    """Return the length that all lists have; those that are None are left out.

    Raises
    ------
    TypeError
        For what is no list and no tuple.
    ValueError
        Where lengths differ.
    """
    given = {argument: value for argument, value in lists.items() if value is not None}
    for argument, value in given.items():
        if not isinstance(value, (list, tuple)):
            raise TypeError(
                f"{name}: {argument} is of type {type(value).__name__}; a list of matrices is needed"
            )
    (first, entries), *others = given.items()
    for argument, value in others:
        if len(value) != len(entries):
            raise ValueError(f"{name}: {first} has {len(entries)} matrices and {argument} {len(value)}")
    return len(entries)


def per_entry(name: str, argument: str, value: Any, count: int) -> Sequence[Any]:
    """Return an argument of each entry: those of a list, or one for all.

    Raises
    ------
    ValueError
        Where a list has another length.
    """
    if not isinstance(value, (list, tuple)):
        return (value,) * count
    if len(value) != count:
        raise ValueError(f"{name}: {argument} has {len(value)} entries, and there are {count} of matrices")
    return value


class Facts(NamedTuple):
    """Facts of device arrays as their library has them, hashable, and their addresses."""

    library: Library
    facts: list[tuple[Any, ...]]
    pointers: list[int]


def facts_of(arrays: Sequence[Any]) -> Facts | None:
    """Return the facts of device arrays of one type; None where these are unknown or of others."""
    library = quick_library(arrays[0])
    found = None if library is None else library.read(tuple(arrays))
    return None if library is None or found is None else Facts(library, *found)


def described(found: Facts | None) -> Described | None:
    """Return what is known of device arrays; None where a careful check is needed."""
    if found is None:
        return None
    library, facts, pointers = found
    shapes, strides, dtypes, devices, *lazily = zip(*facts, strict=True)
    dtype, count = stored_dtype(dtypes[0]), len(pointers)
    if dtype is None or dtypes.count(dtypes[0]) < count or devices.count(devices[0]) < count:
        return None
    if [len(shape) for shape in shapes].count(2) < count:
        return None
    steps, addresses = np.array(strides, np.int64), np.array(pointers, np.int64)
    unit = dtype.itemsize if library.strides_in_bytes else 1
    if (steps % unit).any() or (addresses % dtype.real_size).any():
        return None
    conj = np.array(lazily[0], bool) if lazily else np.zeros(count, bool)
    matrices = Matrices.of(addresses, np.array(shapes, np.int64), steps // unit, conj)
    return Described(matrices, dtype, devices[0], library)


def check_calls(name: str, calls: Sequence[Call], in_place: str = "") -> None:
    """Check calls, whose outputs are set, against each other; the input `in_place` may be its output.

    Raises
    ------
    TypeError
        Where their arrays are of several libraries.
    ValueError
        Where they are on several devices.
    OverlapError
        Where an output shares memory with another array.
    """
    first = calls[0]
    for i, call in enumerate(calls):
        if call.library.name != first.library.name:
            raise TypeError(
                f"{name}: {call.names[0]}[0] is a {first.library.name} array and {call.names[0]}[{i}] a "
                f"{call.library.name} array; all arrays of a call must be of one library"
            )
        if call.device != first.device:
            raise ValueError(
                f"{name}: {call.names[0]}[0] is on device {first.device} and {call.names[0]}[{i}] on device "
                f"{call.device}"
            )
    _check_overlaps(name, calls, in_place)


def _check_overlaps(name: str, calls: Sequence[Call], in_place: str) -> None:
    """Raise where an output shares memory with another array; new outputs share none."""
    entries = []
    for i, call in enumerate(calls):
        views = [
            (False, argument, array)
            for argument, array in zip(call.names, call.inputs, strict=True)
            if argument != in_place or not is_same(array, call.out)
        ]
        views += [] if call.is_new else [(True, call.out_name, call.out)]
        entries += [
            _Entry(*_bounds(view), is_output, f"{argument}[{i}]", view)
            for is_output, argument, view in views
            if 0 not in view.shape
        ]
    reaching: dict[bool, list[_Entry]] = {True: [], False: []}
    for entry in sorted(entries, key=lambda entry: entry[:2]):
        for is_output in (True, False) if entry.is_output else (True,):
            reaching[is_output] = [other for other in reaching[is_output] if other.high > entry.low]
            for other in reaching[is_output]:
                if shares_memory(entry.view, other.view):
                    output, another = (entry, other) if entry.is_output else (other, entry)
                    raise OverlapError(f"{name}: {output.label} shares memory with {another.label}")
        reaching[entry.is_output].append(entry)


class _Entry(NamedTuple):
    """An array of a call, and the addresses that it is between."""

    low: int
    high: int
    is_output: bool
    label: str
    view: Any


def _bounds(view: Any) -> tuple[int, int]:
    """First address and the one past the last byte of a layout or a NumPy array."""
    if isinstance(view, Layout):
        return view.span()
    return span(view.ctypes.data, view.shape, view.strides, view.itemsize)


def columns(layouts: Sequence[Layout]) -> Matrices:
    """Return layouts of matrices as rows of numbers."""
    return Matrices.of(
        np.array([layout.pointer for layout in layouts], np.int64),
        np.array([layout.shape for layout in layouts], np.int64).reshape(-1, 2),
        np.array([layout.strides for layout in layouts], np.int64).reshape(-1, 2),
        np.array([layout.conj for layout in layouts], bool),
    )


def check_matrices(call: Call) -> None:
    """Raise ValueError where an input is a stack."""
    for argument, array in zip(call.names, call.inputs, strict=True):
        if len(array.shape) != 2:
            raise ValueError(
                f"{call.name}: {argument} has shape {tuple(array.shape)}; a matrix is needed, and a stack is "
                "as many entries"
            )


def are_by_columns(matrices: Matrices) -> np.ndarray:
    """Whether rows are closer together than columns, as `layouts.is_column_major` has it."""
    row_steps, col_steps = np.abs(matrices.strides).T
    return np.asarray((row_steps > 0) & (row_steps < col_steps) & (matrices.shapes.min(axis=1) > 1))


def numbers_of(values: Sequence[Any], dtype: Dtype, name: str) -> np.ndarray:
    """Return scalars of all entries."""
    return np.array(_each(values, lambda value: number(value, dtype, name, "")))


def with_op(matrices: Matrices, flags: Sequence[Any], name: str) -> Matrices:
    """Return the matrices with their flags applied."""
    turned, conjugated = (are(Trans, kind, flags, name) for kind in (Trans.NO, Trans.CONJ))
    matrices = matrices.transposed(~turned)
    return matrices._replace(conj=matrices.conj != conjugated)


def are(flag: Any, value: Any, flags: Sequence[Any], name: str) -> np.ndarray:
    """Whether the flags of all entries, of the type `flag`, are `value`."""
    return np.array([each is value for each in _each(flags, lambda each: flag.parse(each, name, ""))])


def _each(values: Sequence[Any], parse: Callable[[Any], Any]) -> list[Any]:
    """Return what `parse` returns for each value; of one value for all it is called once."""
    first = values[0]
    return [parse(first)] * len(values) if all(value is first for value in values) else [*map(parse, values)]


class Outputs(NamedTuple):
    """The outputs of a call that was checked, and its stream."""

    results: list[Any]
    matrices: Matrices
    stream: int


def quick_outputs(
    name: str,
    found: Described,
    inputs: Sequence[Matrices],
    out: Sequence[Any] | None,
    shapes: np.ndarray,
    stream: Any,
    in_place: bool = False,
) -> Outputs | None:
    """Return the outputs, which count a write, or new ones; None, nothing done, for careful checks.

    Those that were passed are the last of the matrices `found`. With `in_place` they may be the last inputs.
    """
    library, device, target = found.library, found.device, None
    if out is not None:
        target = found.matrices.take(slice(-len(out), None))
        if target.conj.any() or (target.shapes != shapes).any() or not are_injective(target):
            return None
        others = list(inputs)
        if in_place:
            others[-1] = others[-1].take(~others[-1].equals(target))
        if not are_clear(target, others, found.dtype.itemsize):
            return None
    stream = library.current_stream(device) if stream is None else stream_of(device, stream, name)
    if out is None or target is None:
        by_columns = np.logical_and.reduce([are_by_columns(matrices) for matrices in inputs])
        return Outputs(*new_outputs(found, shapes, by_columns, stream), stream)
    note_writes(library, out)
    return Outputs(list(out), target, stream)


def note_writes(library: Library, results: Sequence[Any]) -> None:
    """Have a library that counts writes count those of results that have elements."""
    if library.counts_writes:
        for result in results:
            if 0 not in result.shape:
                library.written(result)


def note_writes_of(calls: Sequence[Call]) -> None:
    """Count the writes of calls whose outputs have elements."""
    for call in calls:
        if 0 not in call.out.shape:
            call.note_write()


def new_outputs(
    found: Described, shapes: np.ndarray, by_columns: np.ndarray, stream: int
) -> tuple[list[Any], Matrices]:
    """Return new arrays of these shapes, and their columns of numbers."""
    library, results = found.library, []
    for shape, swapped in zip(shapes.tolist(), by_columns.tolist(), strict=True):
        extents = tuple(reversed(shape)) if swapped else tuple(shape)
        results.append(library.empty_here(extents, found.dtype, found.device, stream, swapped))
    ones = np.ones(len(shapes), np.int64)
    strides = np.where(
        by_columns[:, None], np.stack((ones, shapes[:, 0]), 1), np.stack((shapes[:, 1], ones), 1)
    )
    pointers = np.array([library.pointer(array) for array in results], np.int64)
    return results, Matrices.of(pointers, shapes, strides)
