"""Checked calls that are kept, to be repeated on arrays of one layout.

A small product is over in the few microseconds that the checks of its arrays take. They depend, but for the
addresses, on the arrays' library, shapes, strides, dtypes and devices. Where all are as they were, only the
addresses are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from ...operands import SECTOR, Operand
from ...types import Dtype
from ..arrays.any_array import quick_library
from ..arrays.layouts import Layout, are_clear, reach
from ..arrays.streams import stream_of
from ..engine_options import ambient_options

__all__ = [
    "CONSTANT",
    "MOST_CALLS",
    "MOST_VARIANTS",
    "ON_DEVICE",
    "CachedCall",
    "KeptCall",
    "NewOutput",
    "clear",
    "count",
    "find",
    "keep",
    "repeat",
    "mode_of",
    "replay",
]

#: Types of what a key may be made of: flags that stay what they are, and `type` of the flags' types.
CONSTANT = (str, int, Enum, np.generic, type, type(None))
#: Backends that a call may name for device arrays.
ON_DEVICE = (None, "auto", "cuda")

#: How many calls are kept.
MOST_CALLS = 4096
#: How many launch lists are kept for one of them.
MOST_VARIANTS = 1024
#: Modes of a call that writes no input: its output is new, or an array apart.
NEW, APART = -1, -2
_LEAST, _MOST = 2.0**-126, 2.0**127  # normal numbers of every dtype


class _Run(NamedTuple):
    """The values that a run depended on, and the function that enqueued it (None for no work).

    Where all its addresses begin sectors (`is_aligned`), the function serves all such addresses.
    """

    pointers: Sequence[int]
    alpha: Any
    beta: Any
    generation: Any
    enqueue: Callable[[Sequence[int], int], None] | None
    is_aligned: bool


class CachedCall:
    """A checked call on matrices, or on one batch of them, but for their addresses; the output is the last.

    Parameters
    ----------
    layouts : tuple of Layout
        The layouts of the matrices or stacks.
    operands : tuple of Operand
        The operands that `batches` makes of them.
    prepare : callable
        ``prepare((alpha, beta), operands)`` returns the launch list for operands of these layouts, None for
        no work. It may depend on whether a scalar is 0 or 1, on no other value of it.
    generation : callable
        Its value changes with the tuned values.

    Attributes
    ----------
    device : int
    reaches : tuple of (int, int)
        See `layouts.reach`, of each matrix or stack.
    variants : dict
        The prepared launches, by all that they depend on: tuned values, special scalars, alignments.
    """

    __slots__ = (
        "_generation",
        "_last",
        "_misaligned",
        "_prepare",
        "_tails",
        "device",
        "reaches",
        "variants",
    )

    def __init__(
        self,
        layouts: tuple[Layout, ...],
        operands: tuple[Operand, ...],
        prepare: Callable[..., Any],
        generation: Callable[[], Any],
    ):
        # without the owners, which the cache must not keep alive
        self._tails = tuple(operand._replace(owner=None)[1:] for operand in operands)
        self.reaches = tuple(map(reach, layouts))
        self._misaligned = layouts[-1].dtype.real_size - 1
        self._prepare, self._generation = prepare, generation
        self.variants: dict[tuple[Any, ...], Any] = {}
        self._last = _Run([], None, None, None, None, False)
        self.device = layouts[-1].device

    def run(
        self, pointers: list[int], alpha: Any, beta: Any, stream: int, checks_numbers: bool = True
    ) -> bool:
        """Enqueue the call with matrices at `pointers`; False, nothing done, where it needs new checks.

        Without `checks_numbers` those are what the routine takes.
        """
        last = self._last
        if (
            pointers != last.pointers
            or alpha is not last.alpha
            or beta is not last.beta
            or self._generation() != last.generation
        ):
            fits = not checks_numbers or _fits_every_dtype(alpha, beta)
            if not (fits and self._fits(pointers)):
                return False
            last = self._last = self._rebind(pointers, alpha, beta)
        if last.enqueue is not None:
            last.enqueue(pointers, stream)
        return True

    def prepare(self, pointers: list[int], alpha: Any, beta: Any) -> None:
        """Compile and load the kernels of the call with matrices at addresses aligned as `pointers`."""
        self._last = self._bind(pointers, alpha, beta)

    def uses_of(self, place: int) -> int:
        """The most launches that are given the matrix at a place, of all that were prepared."""
        lists = [each for each in self.variants.values() if each is not None]
        return max((each.uses_of(place) for each in lists), default=0)

    def run_fitting(self, pointers: list[int], stream: int) -> None:
        """Enqueue the call, alpha 1 and beta 0, with matrices at `pointers` that are known to fit there."""
        last = self._last
        if pointers != last.pointers or self._generation() != last.generation:
            last = self._last = self._rebind(pointers, 1, 0)
        if last.enqueue is not None:
            last.enqueue(pointers, stream)

    def run_apart(self, pointers: Sequence[int], alpha: Any, beta: Any, stream: int) -> bool:
        """Enqueue the call with outputs that are new; False, nothing done, where it needs new checks."""
        last, bits = self._last, 0
        for pointer in pointers:
            bits |= pointer
        if (
            bits % SECTOR
            or not last.is_aligned
            or alpha is not last.alpha
            or beta is not last.beta
            or self._generation() != last.generation
        ):
            are_known = alpha is last.alpha and beta is last.beta
            if bits & self._misaligned or not (are_known or _fits_every_dtype(alpha, beta)):
                return False
            last = self._last = self._rebind(pointers, alpha, beta)
        if last.enqueue is not None:
            last.enqueue(pointers, stream)
        return True

    def run_checked(self, pointers: list[int], alpha: Any, beta: Any, stream: int) -> None:
        """Enqueue the call with matrices and numbers that were checked just now."""
        last = self._last = self._bind(pointers, alpha, beta)
        if last.enqueue is not None:
            last.enqueue(pointers, stream)

    def _fits(self, pointers: list[int]) -> bool:
        """Whether the matrices may be at `pointers`: aligned, the output clear of all others."""
        bits = 0
        for pointer in pointers:
            bits |= pointer
        return not bits & self._misaligned and are_clear(pointers, self.reaches)

    def _rebind(self, pointers: Sequence[int], alpha: Any, beta: Any) -> _Run:
        """Return the run at other addresses: what enqueued the last one, where nothing else differs."""
        last = self._last
        if alpha is last.alpha and beta is last.beta and self._generation() == last.generation:
            bits = 0
            for pointer in pointers:
                bits |= pointer
            if last.is_aligned and not bits % SECTOR:
                return last
            differ = 0
            for pointer, before in zip(pointers, last.pointers, strict=True):
                differ |= pointer ^ before
            if not differ % SECTOR:  # sooner than `_replace`
                return _Run(pointers, alpha, beta, last.generation, last.enqueue, last.is_aligned)
        return self._bind(pointers, alpha, beta)

    def _bind(self, pointers: Sequence[int], alpha: Any, beta: Any) -> _Run:
        """The run, its launch list prepared once for all that it depends on."""
        generation = self._generation()
        alignments = [pointer % SECTOR for pointer in pointers]
        variant = (generation, _special_value(alpha), _special_value(beta), *alignments)
        if variant not in self.variants:
            if len(self.variants) >= MOST_VARIANTS:  # tuned values have changed again and again
                self.variants.clear()
            operands = [Operand(pointer, *tail) for pointer, tail in zip(pointers, self._tails, strict=True)]
            self.variants[variant] = self._prepare((alpha, beta), operands)
        launches = self.variants[variant]
        enqueue = None if launches is None else launches.bound(alpha, beta)
        return _Run(pointers, alpha, beta, generation, enqueue, not any(alignments))


class NewOutput(NamedTuple):
    """An output that a call makes: its shape before its last two dimensions are swapped, if they are."""

    shape: tuple[int, ...]
    dtype: Dtype
    swapped: bool


class KeptCall(NamedTuple):
    """A checked call, and what its output needs before.

    Attributes
    ----------
    call : CachedCall
    called_at : tuple of int or None
        Which of the call's arrays, inputs and then the output, its matrices are; None for all, in order.
    copies : bool
        Whether the output is first a copy of the matrix before it.
    new : NewOutput or None
        The output where the call makes it.
    scales : bool
        Whether what the output holds at first is scaled by a beta other than 0.
    """

    call: CachedCall
    called_at: tuple[int, ...] | None
    copies: bool = False
    new: NewOutput | None = None
    scales: bool = False


def _fits_every_dtype(*numbers: Any) -> bool:
    """Whether each number is itself in every dtype: in float32 too it is finite, and 0 only if it is 0."""
    for number in numbers:
        if type(number) is not int and type(number) is not float:
            return False
        if number != 0 and not _LEAST <= abs(number) <= _MOST:
            return False
    return True


def _special_value(number: Any) -> Any:
    """Return a scalar that a launch list may depend on, 0 or 1, which hide operands; None for others."""
    return number if number == 0 or number == 1 else None


_calls: dict[tuple[Any, ...], Any] = {}


def keep(key: tuple[Any, ...], call: Any) -> None:
    """Keep `call`, or what holds one, under `key`."""
    if len(_calls) >= MOST_CALLS:
        _calls.clear()
    _calls[key] = call


def find(key: tuple[Any, ...]) -> Any:
    """The call kept under `key`; None also where something in `key` is not hashable, and so no flag."""
    try:
        return _calls.get(key)
    except TypeError:
        return None


def count() -> int:
    """How many calls are kept."""
    return len(_calls)


def clear() -> None:
    """Keep none of the calls any longer."""
    _calls.clear()


def mode_of(inputs: tuple[Any, ...], out: Any) -> int:
    """Return which of the inputs is the output; `NEW` where there is none yet, `APART` for another array."""
    if out is None:
        return NEW
    for i, array in enumerate(inputs):
        if array is out:
            return i
    return APART


def repeat(
    key: tuple[Any, ...], inputs: tuple[Any, ...], out: Any = None, alpha: Any = 1, beta: Any = 0
) -> Any:
    """Repeat a call of a function without `stream`, `backend` and `devices`; see `replay`."""
    return replay(key, inputs, out, alpha, beta, None, None) if ambient_options() is None else None


def replay(
    key: tuple[Any, ...],
    inputs: tuple[Any, ...],
    out: Any,
    alpha: Any,
    beta: Any,
    stream: Any,
    backend: str | None,
    checks_numbers: bool = True,
) -> Any:
    """Repeat a call on device arrays that is kept under `key`.

    Parameters
    ----------
    key : tuple
        Routine, flags and their types.
    inputs : tuple of array
        Operands of the call, in the order of `Call.arrays`.
    out : array or None
        The output, which may be one of the inputs; None for a new one.
    alpha, beta : number
    stream, backend
        See `Call`.
    checks_numbers : bool
        See `CachedCall.run`.

    Returns
    -------
    array or None
        The output; None, nothing done, where no such call is kept or where it needs new checks.
    """
    if backend not in ON_DEVICE:
        return None
    library, mode = quick_library(inputs[0]), mode_of(inputs, out)
    description = None
    if library is not None:
        description = library.read((*inputs, out) if mode == APART else inputs)
    if library is None or description is None:
        return None
    facts, pointers = description
    kept: KeptCall | None = find((key, mode, *facts))
    if kept is None or (kept.copies and alpha == 0):
        return None
    call, new, own = kept.call, kept.new, None
    if stream is None:
        stream = library.current_stream(call.device)
    else:
        stream = own = stream_of(call.device, stream, key[0])
    if new is not None:
        if checks_numbers and not _fits_every_dtype(alpha, beta):
            return None
        if (beta != 0) != kept.scales:
            return None
        out = library.empty_here(new.shape, new.dtype, call.device, own, new.swapped)
        pointers.append(library.pointer(out))
    called = pointers if kept.called_at is None else [pointers[i] for i in kept.called_at]
    if not call.run(called, alpha, beta, stream, checks_numbers):
        return None
    if new is None and library.counts_writes:
        library.written(out)
    return out
