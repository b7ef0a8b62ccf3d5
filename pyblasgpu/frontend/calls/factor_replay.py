"""Checked calls of factorizations that are kept, to be repeated on device arrays of one layout.

Only addresses are checked anew, as by `call_cache` for products. The numbers that a routine leaves, as info
and pivots, are new arrays of the caller's library each time. A new output is a copy of the array that is
passed. What a function calls one after the other, `factor_chain` keeps as one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...types import INDEX, INT32, Dtype
from ..arrays.any_array import dtype_name, numpy_dtype, quick_library
from ..arrays.layouts import Layout, batches, strides_by_rows
from ..engine_options import ambient_options
from .call_cache import CachedCall, NewOutput, find, keep
from .lazy_routines import after_copy

if TYPE_CHECKING:
    from ..arrays.libraries import Library, NewArray

__all__ = [
    "ONE",
    "Factors",
    "KeptFactor",
    "NumbersPlan",
    "Step",
    "call_key",
    "integers_layout",
    "keep_factor",
    "plan_numbers",
    "replay_factor",
    "steps",
]

#: The count of integers of `FactorCall.run_factor` that means one number a matrix, not an array of one.
ONE = -1
_INTEGERS = {np.dtype(np.int32): INT32, np.dtype(np.int64): INDEX}


class Factors(int):
    """A count of numbers, or `ONE`, that a routine leaves, which are no integers.

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


class NumbersPlan(NamedTuple):
    """The arrays of the numbers that a call leaves, of one kind each, contiguous.

    Attributes
    ----------
    shapes : tuple of tuple of int
        Shapes of operands, (..., count, 1).
    dtypes : tuple of Dtype
    arrays : tuple of (tuple of int, Dtype)
        Shapes of the arrays, (..., count), or that of the batch where a matrix has one number; and dtypes.
    """

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[Dtype, ...]
    arrays: tuple[NewArray, ...]

    @property
    def sizes(self) -> list[int]:
        """The bytes of each kind."""
        return [prod(shape) * dtype.itemsize for shape, dtype in zip(self.shapes, self.dtypes, strict=True)]

    def new(self, library: Library, device: int, stream: int) -> list[Any]:
        """Return new arrays."""
        return [library.empty(shape, dtype, device, stream) for shape, dtype in self.arrays]

    def layouts(self, library: Library, arrays: list[Any], device: int, stream: int) -> tuple[Layout, ...]:
        """Return the layouts of such arrays, as operands."""
        return tuple(
            Layout(
                library.layout(array, dtype, stream).pointer,
                shape,
                strides_by_rows(shape),
                dtype,
                device,
                False,
                True,
                array,
            )
            for array, shape, dtype in zip(arrays, self.shapes, self.dtypes, strict=True)
        )


class KeptFactor(NamedTuple):
    """A checked call; where it `copies`, its output is `new`, and first a copy of the matrix before it."""

    call: CachedCall
    numbers: NumbersPlan
    copies: bool
    new: NewOutput


class Step(NamedTuple):
    """A call that was enqueued: it is kept, and these were its addresses.

    Attributes
    ----------
    kept : KeptFactor
    addresses : list of int
        Numbers that it leaves, integers that it reads, inputs, what is copied, and output.
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


def plan_numbers(batch_shape: tuple[int, ...], counts: tuple[int, ...], dtype: Dtype) -> NumbersPlan:
    """Plan the arrays of `counts` of numbers a matrix: int32, but for `Factors`, of a call of this dtype."""
    dtypes = tuple((count.dtype or dtype) if isinstance(count, Factors) else INT32 for count in counts)
    shapes = (batch_shape if count == ONE else (*batch_shape, abs(count)) for count in counts)
    operands = tuple((*batch_shape, abs(count), 1) for count in counts)
    return NumbersPlan(operands, dtypes, tuple(zip(shapes, dtypes, strict=True)))


def keep_factor(
    key: tuple[Any, ...],
    arrays: tuple[Any, ...],
    input_integers: tuple[Layout, ...],
    layouts: tuple[Layout, ...],
    source: Layout,
    prepare: Callable[..., Any],
    plan: NumbersPlan,
    reads_source: bool = False,
) -> KeptFactor | None:
    """Keep a call on `arrays`, the last of them its output or what its output holds at first, under `key`.

    `layouts` and `prepare` are a `CachedCall`'s, the last layout the output's; it is `source`, or new, by
    rows or by columns. `reads_source`: see `FactorCall.run_on_arrays`. None, and nothing kept, where that
    cannot be.
    """
    library, out = quick_library(arrays[0]), layouts[-1]
    description = None if library is None else library.read(arrays)
    if library is None or description is None:
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
    facts = [*description[0]]
    for layout in input_integers:
        integers = _read_integers(library, layout.owner)
        if integers is None:
            return None
        facts += integers[0]
    kept = KeptFactor(call, plan, copies, NewOutput(new_shape, out.dtype, swapped))
    keep((key, not copies, *facts), kept)
    return kept


def _read_integers(library: Library, integers: Any) -> tuple[list[tuple[Any, ...]], list[int]] | None:
    """`Library.read` of integers; None where they are of another library, or a protocol's view of them."""
    return library.read((integers,)) if quick_library(integers) is library else None


def integers_layout(library: Library, integers: Any, stream: int | None = None) -> Layout | None:
    """Return the layout of an array, as the shape (..., count, 1); None where it is not of int32 or int64."""
    dtype = _INTEGERS.get(numpy_dtype(dtype_name(integers)))
    if dtype is None:
        return None
    layout = library.layout(integers, dtype, stream)
    return layout._replace(shape=(*layout.shape, 1), strides=(*layout.strides, 1))


def replay_factor(
    key: tuple[Any, ...], arrays: tuple[Any, ...], overwrite: Any, input_integers: tuple[Any, ...] = ()
) -> tuple[Any, ...] | None:
    """Repeat a call that is kept under `key`: its output, the last of `arrays` or new, and its numbers.

    None where there is none, where several cards may serve, or where `input_integers` are no arrays of the
    others' library; then nothing was done.
    """
    if ambient_options() is not None:
        return None
    library = quick_library(arrays[0])
    description = None if library is None or not isinstance(overwrite, int) else library.read(arrays)
    if library is None or description is None:
        return None
    facts, pointers = description
    given: list[int] = []
    for each in input_integers:
        integers = _read_integers(library, each)
        if integers is None:
            return None
        facts += integers[0]
        given += integers[1]
    kept: KeptFactor | None = find((key, overwrite == 1, *facts))
    if kept is None or overwrite not in (0, 1):
        return None
    call, plan, copies, (shape, dtype, swapped) = kept
    stream, out = library.current_stream(call.device), arrays[-1]
    numbers = library.empties(plan.arrays, call.device, stream) if plan.arrays else []
    if copies:
        out = library.empty_here(shape, dtype, call.device, None, swapped)
        pointers.append(library.pointer(out))
    addresses = [*map(library.pointer, numbers), *given, *pointers]
    if not call.run(addresses, 1, 0, stream, checks_numbers=False):
        return None
    if (recorded := steps.get()) is not None:
        recorded.append(Step(kept, addresses, (out, numbers)))
    if not copies and library.counts_writes:
        library.written(out)
    return out, *numbers
