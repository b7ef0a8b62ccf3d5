"""Checked calls of factorizations that are kept, to be repeated on device arrays of one layout.

Only addresses are checked anew, as by `call_cache` for products. The integers that a routine leaves are new
each time, and share one allocation. A new output is a copy of the array that is passed. What a function
calls one after the other, `factor_chain` keeps as one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...operands import SECTOR
from ...types import INDEX, INT32, Dtype
from ..arrays.any_array import dtype_name, numpy_dtype, quick_library
from ..arrays.device_integers import DeviceIntegers
from ..arrays.layouts import Layout, batches, strides_by_rows
from ..engine_options import ambient_options
from .call_cache import CachedCall, NewOutput, find, keep
from .lazy_routines import after_copy

if TYPE_CHECKING:
    from ..arrays.libraries import Library

__all__ = [
    "ONE",
    "Factors",
    "IntegersPlan",
    "KeptFactor",
    "Step",
    "call_key",
    "integers_layout",
    "keep_factor",
    "left_behind",
    "new_integers",
    "plan_integers",
    "replay_factor",
    "steps",
]

#: The count of integers of `FactorCall.run_factor` that means one number a matrix, not an array of one.
ONE = -1
_INTEGERS = {np.dtype(np.int32): INT32, np.dtype(np.int64): INDEX}


class Factors(int):
    """A count of numbers, or `ONE`, that a routine leaves, an array of its own for all matrices.

    Parameters
    ----------
    count : int
    dtype : Dtype, optional
        By default that of the call.
    """

    dtype: Dtype | None

    def __new__(cls, count: int, dtype: Dtype | None = None) -> Factors:
        found = super().__new__(cls, count)
        found.dtype = dtype
        return found


class IntegersPlan(NamedTuple):
    """The places of a call's integers in one allocation: shapes, strides and distances in elements.

    Attributes
    ----------
    shapes, strides : tuple of tuple of int
    distances : tuple of int
        From the start of the allocation; of `Factors`, which have their own, 0.
    elements : int
        The size of the allocation.
    single : tuple of bool
        Whether a matrix has one number.
    factors : tuple of (Dtype or None)
        The dtypes of `Factors`; None of integers.
    """

    shapes: tuple[tuple[int, ...], ...]
    strides: tuple[tuple[int, ...], ...]
    distances: tuple[int, ...]
    elements: int
    single: tuple[bool, ...]
    factors: tuple[Dtype | None, ...]

    def sizes(self, dtype: Dtype) -> list[int]:
        """The bytes of each kind, of a call of this dtype."""
        return [
            prod(shape) * (own or dtype).itemsize
            for shape, own in zip(self.shapes, self.factors, strict=True)
        ]


class KeptFactor(NamedTuple):
    """A checked call; where it `copies`, its output is `new`, and first a copy of the matrix before it."""

    call: CachedCall
    integers: IntegersPlan
    copies: bool
    new: NewOutput


class Step(NamedTuple):
    """A call that was enqueued: it is kept, and these were its addresses.

    Attributes
    ----------
    kept : KeptFactor
    addresses : list of int
        Integers that it leaves, those that it reads, inputs, what is copied, and output.
    owners : tuple
        The owners of its memory.
    """

    kept: KeptFactor
    addresses: list[int]
    owners: tuple[Any, ...]


#: The steps of a function that records them, None for a call that is not kept; None where no function does.
steps: ContextVar[list[Step | None] | None] = ContextVar("steps", default=None)


def call_key(name: str, *flags: Any) -> tuple[Any, ...]:
    """Return the key of a routine with these flags, and their types: 1.0 is no flag, but equals one."""
    return (name, *flags, *map(type, flags))


def plan_integers(batch_shape: tuple[int, ...], counts: tuple[int, ...], dtype: Dtype) -> IntegersPlan:
    """Plan memory for the `counts` of integers a matrix, an element each; each kind begins at a sector."""
    unit = max(SECTOR // dtype.itemsize, 1)
    shapes = tuple((*batch_shape, abs(count), 1) for count in counts)
    strides = tuple(map(strides_by_rows, shapes))
    factors = tuple((count.dtype or dtype) if isinstance(count, Factors) else None for count in counts)
    sizes = [
        0 if own else -(-max(prod(shape), 1) // unit) * unit
        for shape, own in zip(shapes, factors, strict=True)
    ]
    distances = tuple(sum(sizes[:i]) for i in range(len(sizes)))
    single = tuple(count == ONE for count in counts)
    return IntegersPlan(shapes, strides, distances, sum(sizes), single, factors)


def new_integers(
    library: Library,
    plan: IntegersPlan,
    dtype: Dtype,
    device: int,
    stream: int,
    address_of: Callable[[Any], int] | None = None,
) -> tuple[Layout, ...]:
    """New device memory as planned; `address_of` returns the address of an array, where that is known."""
    if not plan.shapes:
        return ()

    def address(array: Any, kind: Dtype) -> int:
        return library.layout(array, kind, stream).pointer if address_of is None else address_of(array)

    layouts, memory, start = [], None, 0
    if plan.elements:
        memory = library.empty_here((plan.elements, 1), dtype, device, stream)
        start = address(memory, dtype)
    for shape, strides, distance, single, own in zip(*plan[:3], plan.single, plan.factors, strict=True):
        if own is not None:
            owner = library.empty_here(shape[: -2 if single else -1], own, device, stream)
            pointer = address(owner, own)
        else:
            owner, pointer = memory, start + distance * dtype.itemsize
        layouts.append(Layout(pointer, shape, strides, own or dtype, device, False, True, owner))
    return tuple(layouts)


def left_behind(layouts: tuple[Layout, ...], plan: IntegersPlan, stream: int) -> list[Any]:
    """Return integers, and arrays of factors, as callers get them."""
    return [
        DeviceIntegers(layout, single, stream) if own is None else layout.owner
        for layout, single, own in zip(layouts, plan.single, plan.factors, strict=True)
    ]


def keep_factor(
    key: tuple[Any, ...],
    arrays: tuple[Any, ...],
    input_integers: tuple[Layout, ...],
    layouts: tuple[Layout, ...],
    source: Layout,
    prepare: Callable[..., Any],
    plan: IntegersPlan,
    reads_source: bool = False,
) -> KeptFactor | None:
    """Keep a call on `arrays`, the last of them its output or what its output holds at first, under `key`.

    `layouts` and `prepare` are a `CachedCall`'s, the last layout the output's; it is `source`, or new, by
    rows or by columns. `reads_source`: see `FactorCall.run_on_arrays`. None, and nothing kept, where that
    cannot be.
    """
    library, out = quick_library(arrays[0]), layouts[-1]
    description = None if library is None else library.read(arrays)
    if description is None:
        return None
    read = (*layouts[len(plan.shapes) + len(input_integers) : -1], source)
    if description[1] != [layout.pointer for layout in read]:
        return None  # arrays that were copied, in another dtype as a rule
    copies = source is not out
    whole = (*layouts[:-1], source, out) if copies else layouts
    called = list(batches(whole))
    if len(called) != 1 or source.shape != out.shape:
        return None
    generation = import_module("...dispatch.choose", __package__).generation
    launches = after_copy(prepare) if copies and not reads_source else prepare
    call = CachedCall(whole, called[0], launches, generation)
    *batch_shape, rows, cols = out.shape
    swapped = out.strides != strides_by_rows(out.shape)
    new_shape = (*batch_shape, cols, rows) if swapped else out.shape
    facts = (*description[0], *map(_facts, input_integers))
    kept = KeptFactor(call, plan, copies, NewOutput(new_shape, out.dtype, swapped))
    keep((key, not copies, *facts), kept)
    return kept


def _facts(layout: Layout) -> tuple[Any, ...]:
    return layout.shape, layout.strides, layout.dtype, layout.device


def integers_layout(library: Library, integers: Any, stream: int | None = None) -> Layout | None:
    """Return the layout of an array, as the shape (..., count, 1); None where it is not of int32 or int64."""
    dtype = _INTEGERS.get(numpy_dtype(dtype_name(integers)))
    if dtype is None:
        return None
    layout = library.layout(integers, dtype, stream)
    return layout._replace(shape=(*layout.shape, 1), strides=(*layout.strides, 1))


def _layout_beside(integers: Any, library: Library) -> Layout | None:
    """Return the layout of an array of integers of this library, shape (..., count, 1); else None."""
    if quick_library(integers) is not library or library.read((integers,)) is None:
        return None
    return integers_layout(library, integers)


def replay_factor(
    key: tuple[Any, ...], arrays: tuple[Any, ...], overwrite: Any, input_integers: tuple[Any, ...] = ()
) -> tuple[Any, ...] | None:
    """Repeat a call that is kept under `key`: its output, the last of `arrays` or new, and its integers.

    None where there is none, where several cards may serve, or where `input_integers` are neither left by a
    routine nor an array of the others' library; then nothing was done.
    """
    if ambient_options() is not None:
        return None
    library = quick_library(arrays[0])
    description = None if library is None or not isinstance(overwrite, int) else library.read(arrays)
    if library is None or description is None:
        return None
    facts, pointers = description
    layouts: list[Layout] = []
    for each in input_integers:
        layout = each.layout if isinstance(each, DeviceIntegers) else _layout_beside(each, library)
        if layout is not None:
            layouts.append(layout)
            facts.append(_facts(layout))
    kept: KeptFactor | None = find((key, overwrite == 1, *facts))
    if kept is None or overwrite not in (0, 1):
        return None
    call, plan, copies, (new_shape, dtype, swapped) = kept
    stream, out = library.current_stream(call.device), arrays[-1]
    if copies:
        out = library.empty_here(new_shape, dtype, call.device, stream)
        pointers.append(library.pointer(out))
        out = library.swap(out) if swapped else out
    integers = new_integers(library, plan, dtype, call.device, stream, library.pointer)
    addresses = [layout.pointer for layout in (*integers, *layouts)] + pointers
    if not call.run(addresses, 1, 0, stream, checks_numbers=False):
        return None
    if layouts:
        library.hold([layout.owner for layout in layouts], stream)
    if (recorded := steps.get()) is not None:
        recorded.append(Step(kept, addresses, (out, integers)))
    if not copies and library.counts_writes:
        library.written(out)
    return (out, *left_behind(integers, plan, stream)) if integers else (out,)
