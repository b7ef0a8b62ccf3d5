"""Operators on plain tensors of a device, by one launch list each that is kept for tensors of these layouts.

A repeated call allocates its outputs and enqueues the launches; nothing is checked but addresses. What it
needs is in a row: how its launch list is made, and the order of the operands in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import Parameter

from ..dispatch.choose import generation
from ..frontend.arrays.layouts import Layout, batches
from ..frontend.arrays.pytorch import TORCH, comparer, tensor_maker
from ..frontend.calls.call_cache import CachedCall, find, keep
from ..frontend.calls.lazy_routines import after_copy, launch_list_of, routine_module
from ..frontend.engine_options import ambient_options
from ..operators.row import CORE
from ..types import DTYPES, INT32
from .served import LETTERS

__all__ = ["Gradients", "Places", "enqueue", "launched", "listed", "of_gradients", "of_level3"]

#: Launches of a call, for ``(alpha, beta)`` and operands; see `CachedCall`.
Prepare = Callable[[tuple[Any, ...], Any], Any]
_NUMBERS, _FLAGS = (int, float), (bool, str, type(None))


class Places(NamedTuple):
    """The places of the arguments of a row's operator.

    Attributes
    ----------
    names : tuple of str
    tensors : tuple of int
    flags : tuple of int
        Arguments that are neither tensors nor numbers.
    numbers : tuple of int
        Alpha and beta, as far as it has them.
    """

    names: tuple[str, ...]
    tensors: tuple[int, ...]
    flags: tuple[int, ...]
    numbers: tuple[int, ...]

    @classmethod
    def of(cls, arguments: Any) -> Places:
        """Return the places of a schema's arguments."""
        kinds = [str(argument.type) for argument in arguments]
        tensors = tuple(i for i, kind in enumerate(kinds) if "Tensor" in kind)
        numbers = tuple(i for i, kind in enumerate(kinds) if kind == "number")
        flags = tuple(i for i in range(len(kinds)) if i not in tensors and i not in numbers)
        return cls(tuple(argument.name for argument in arguments), tensors, flags, numbers)


class _Kept(NamedTuple):
    """A call that is kept.

    Attributes
    ----------
    call : CachedCall
    new : tuple
        Shape, strides and dtype of each output.
    order : callable
        Gives the addresses of the operands, of those of inputs and outputs.
    comparers : dict
        By a key of fewer facts: what is true of inputs like the last that were read.
    """

    call: CachedCall
    new: tuple[tuple[tuple[int, ...], tuple[int, ...], torch.dtype], ...]
    order: Callable[[list[int]], tuple[int, ...]]
    comparers: dict[tuple[Any, ...], Callable[..., bool]]


class Gradients:
    """Gradients of matrices at once, as a row that is no operator."""

    places: ClassVar[Places]
    returns: ClassVar[tuple[str, ...]] = ("ga", "gb")
    operands: ClassVar[tuple[str, ...]] = ()
    given: ClassVar[Callable[..., Any] | None] = None
    finish = written = None


def launched(row: Any, args: tuple[Any, ...]) -> Any:
    """Return the outputs of an operator by its row, see `operators.Operator`, of tensors on a device; None,
    nothing done, where no list serves.
    """
    if getattr(row, "launches", None) is None or ambient_options() is not None:
        return None
    given, places = args if row.given is None else row.given(*args), row.places
    inputs = [given[i] for i in places.tensors if given[i] is not None]
    alpha, beta = 1, 0
    if places.numbers:
        alpha = given[places.numbers[0]]
        beta = given[places.numbers[1]] if len(places.numbers) > 1 else 0
        if type(alpha) not in _NUMBERS or type(beta) not in _NUMBERS or alpha == 0:
            return None
    # PyTorch compares all that a call depends on at once, in less time than it takes to read it
    first, distinct = inputs[0], inputs
    key = (row, first.requires_grad, *map(given.__getitem__, places.flags))
    if len(inputs) > 1:
        repeats = [x is first for x in inputs]
        key = (*key, *repeats)
        if sum(repeats) > 1:
            distinct = [first, *[x for x in inputs if x is not first]]
    latest = find(key)
    if latest is not None and latest[0](*distinct):
        kept, addresses = latest[1], list(map(Tensor.data_ptr, inputs))
        if 0 in addresses:
            return None
    else:
        found = _checked(row, given, inputs, key, distinct)
        if found is None:
            return None
        kept, addresses = found
    call, new, outputs = kept.call, tensor_maker(), []
    for shape, strides, dtype in kept.new:
        out = new(shape, strides, dtype, call.device)
        outputs.append(out)
        addresses.append(out.data_ptr())
    if not call.run_apart(kept.order(addresses), alpha, beta, TORCH.current_stream(call.device)):
        return None
    result = tuple(outputs) if len(outputs) > 1 else outputs[0]
    finished = None if row.finish is None else row.finish(result, *given)
    return result if finished is None else finished


def _checked(
    row: Any, given: Any, inputs: list[Tensor], latest: tuple[Any, ...], distinct: list[Tensor]
) -> tuple[_Kept, list[int]] | None:
    """Return the call that is kept for inputs, and their addresses; None where none serves.

    It is kept as the latest one, too, with the comparison of its inputs that are distinct.
    """
    plain = tuple([_plain(each) for each in inputs])
    description = TORCH.read(plain)
    if description is None:
        return None
    facts, addresses = description
    flags = [given[i] for i in row.places.flags]
    key = (row, *flags, *facts)
    kept = find(key)
    if kept is None:
        if not all(isinstance(flag, _FLAGS) for flag in flags):
            return None  # the dispatcher refuses it
        kept = _kept(row, given, plain)
        keep(key, kept)
    if not kept:
        return None
    compare, before = kept.comparers.get(latest), find(latest)
    if compare is None or (before is not None and before[1] is kept):
        compare = kept.comparers[latest] = comparer(distinct)
    keep(latest, (compare, kept))
    return kept, addresses


def _plain(x: Tensor) -> Tensor:
    """Return a parameter as a tensor."""
    return x.detach() if type(x) is Parameter else x


def enqueue(name: str, names: tuple[str, ...], *arrays: Tensor) -> bool:
    """Enqueue `new_results`' list of this name, of tensors with names that share no memory; False where there
    is none.
    """
    description = TORCH.read(arrays)
    if description is None or ambient_options() is not None:
        return False
    facts, addresses = description
    key = ("enqueued", name, *facts)
    call = find(key)
    if call is None:
        layouts = _layouts(names, arrays)
        call = layouts and _call(tuple(layouts), listed(name))
        keep(key, call or False)
    return bool(call) and call.run_apart(addresses, 1, 0, TORCH.current_stream(call.device))


def listed(name: str = "launch_list", module: str = "new_results", **flags: Any) -> Prepare:
    """Return what makes a launch list of a routine of LAPACK's, for operands in its order."""
    return lambda _, operands: getattr(routine_module(f"lapack.{module}"), name)(*operands, **flags)


def of_gradients(name: str, *flags: Any) -> Prepare:
    """Return the same for two gradients at once."""
    return lambda _, operands: getattr(routine_module("gradients"), name)(*operands, *flags)


def of_level3(stem: str, factors: int, c: Any = None, **flags: Any) -> Prepare:
    """Return the same for a routine of Level 3 with this many factors; where there is a `c`, it is copied."""

    def prepare(scalars: tuple[Any, ...], operands: Any) -> Any:
        alpha, beta = scalars
        *read, out = operands
        return launch_list_of(stem)(alpha, *read[:factors], *((beta,) if scales else ()), out, **flags)

    scales = stem not in ("trmm", "trsm")
    return prepare if c is None else after_copy(prepare)


def _kept(row: Any, args: tuple[Any, ...], inputs: Any) -> _Kept | bool:
    """Return the call of a row, False where its operands are no single batch of matrices of one dtype."""
    dtype, places = LETTERS.get(args[0].dtype), row.places
    result = (row.written or row.empty)(*args)
    outputs = list(result) if isinstance(result, tuple) else [result]
    if dtype is None or not all(each.numel() for each in (*inputs, *outputs)):
        return False
    prepare = row.launches(*args) if row.launches else None
    if prepare is None:
        return False
    present = [places.names[i] for i in places.tensors if args[i] is not None]
    names = [*present, *row.returns]
    layouts = _layouts(names, (*inputs, *outputs))
    if layouts is None:
        return False
    order = [names.index(name) for name in row.operands or names if name in names]
    whole = tuple(layouts[i] for i in order)
    written = [layouts[i].shape[:-2] for i in order if i >= len(present)]
    call = None if any(shape != whole[-1].shape[:-2] for shape in written) else _call(whole, prepare)
    if call is None:
        return False
    new = tuple((tuple(each.shape), each.stride(), each.dtype) for each in outputs)
    return _Kept(call, new, itemgetter(*order), {})


def _call(layouts: tuple[Layout, ...], prepare: Prepare) -> CachedCall | None:
    """Return the call on operands of these layouts; None where they are no single batch."""
    calls = list(batches(layouts))
    return CachedCall(layouts, calls[0], prepare, generation) if len(calls) == 1 else None


def _layouts(names: Sequence[str], tensors: Sequence[Tensor]) -> list[Layout] | None:
    """Return the layouts of operands, with rows and columns; None where no routine has a dtype."""
    found = []
    for name, x in zip(names, tensors, strict=True):
        letter = LETTERS.get(x.dtype)
        dtype = INT32 if x.dtype == torch.int32 else DTYPES[letter] if letter else None
        if dtype is None:
            return None
        ones = (1,) * (2 - CORE.get(name, 2))
        shape, strides = (*x.shape, *ones), (*x.stride(), *ones)
        found.append(Layout(x.data_ptr(), shape, strides, dtype, x.get_device(), x.is_conj()))
    return found
