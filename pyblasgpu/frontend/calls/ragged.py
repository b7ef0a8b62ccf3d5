"""Calls on lists of matrices of unequal sizes: quick checks of all at once, and careful ones of each.

The quick ones are NumPy's arithmetic on what a library says of its arrays. Where these find anything unusual,
each entry of the lists is checked as a call of its own is, which raises what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import OverlapError
from ...operands import span
from ...ragged.matrices import Matrices
from ...types import Dtype
from ..arrays.any_array import Library, quick_library, stored_dtype
from ..arrays.layouts import Layout, shares_memory
from .call import Call

__all__ = [
    "Described",
    "are_clear",
    "are_injective",
    "check_calls",
    "check_matrices",
    "checked_lists",
    "columns",
    "described",
    "per_entry",
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


def described(arrays: Sequence[Any]) -> Described | None:
    """Return what is known of device arrays; None where a careful check is needed."""
    library = quick_library(arrays[0])
    description = None if library is None else library.read(tuple(arrays))
    if library is None or description is None:
        return None
    facts, pointers = description
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
    matrices = Matrices(addresses, np.array(shapes, np.int64), steps // unit, conj)
    return Described(matrices, dtype, devices[0], library)


def are_injective(matrices: Matrices) -> bool:
    """Whether no two elements of a matrix share an address, as far as strides show."""
    steps = np.abs(np.where(matrices.shapes > 1, matrices.strides, 1))
    reaches = steps * (matrices.shapes - 1)
    small = steps.argmin(axis=1)
    rows = np.arange(len(small))
    near, far, reach = steps[rows, small], steps[rows, 1 - small], reaches[rows, small]
    apart = (near > 0) & ((far > reach) | (matrices.shapes <= 1).any(axis=1))
    return bool((apart | (matrices.shapes == 0).any(axis=1)).all())


def are_clear(outputs: Matrices, others: Sequence[Matrices], itemsize: int) -> bool:
    """Whether the bytes between the first and the last of an output are in no other matrix."""
    low, high = _spans(outputs, itemsize)
    order = np.argsort(low)
    low, high = low[order], high[order]
    if (high[:-1] > low[1:]).any():
        return False
    for matrices in others:
        first, last = _spans(matrices, itemsize)
        before = np.searchsorted(low, last, "left") - 1  # the last output that begins before the end
        if len(low) and ((before >= 0) & (high[before] > first)).any():
            return False
    return True


def _spans(matrices: Matrices, itemsize: int) -> tuple[np.ndarray, np.ndarray]:
    """First byte of each matrix that has elements, and the one past the last."""
    some = matrices.take((matrices.shapes > 0).all(axis=1))
    ends = some.strides * (some.shapes - 1)
    low = some.pointers + np.minimum(ends, 0).sum(axis=1) * itemsize
    return low, some.pointers + (np.maximum(ends, 0).sum(axis=1) + 1) * itemsize


def check_calls(name: str, calls: Sequence[Call]) -> None:
    """Check calls, whose outputs are set, against each other.

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
                f"{call.library.name} array; all arrays of a call must come from one library"
            )
        if call.device != first.device:
            raise ValueError(
                f"{name}: {call.names[0]}[0] is on device {first.device} and {call.names[0]}[{i}] on device "
                f"{call.device}"
            )
    _check_overlaps(name, calls)


def _check_overlaps(name: str, calls: Sequence[Call]) -> None:
    """Raise where an output shares memory with another array; new outputs share none."""
    entries = []
    for i, call in enumerate(calls):
        views = [(False, argument, array) for argument, array in zip(call.names, call.inputs, strict=True)]
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
    return Matrices(
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
