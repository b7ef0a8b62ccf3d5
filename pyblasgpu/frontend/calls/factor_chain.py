"""Chains of factorizations on device arrays, recorded while a function runs and repeated at other addresses.

Routines that a function calls may read nothing but the arrays that were passed and what routines before them
have left. Then only addresses differ when it is called again. What is no result is in one allocation, and
numbers that should be 0 are read in one transfer.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ...types import INT32
from ..arrays.any_array import dtype_name, numpy_dtype, quick_library, stored_dtype
from ..arrays.device_integers import begin_read, end_read, place_to_write, read_integers
from ..arrays.layouts import Layout, are_clear, strides_by_rows
from ..arrays.streams import contexts
from ..engine_options import ambient_options
from .call_cache import CONSTANT, CachedCall, NewOutput, find, keep
from .factor_replay import Step, steps

if TYPE_CHECKING:
    from ..arrays.libraries import Library, NewArray

__all__ = ["Recording", "Repeated", "keep_chain", "repeat_chain"]

#: The begin of keys.
_CHAIN = "chain"
#: Bytes at whose multiples arrays begin in memory that they share, as those that a device allocates.
_ALIGN = 512
#: Numbers that a device leaves in memory of the host, at most; of more a copy takes less time.
MOST_AT_HOST = 256


class Repeated(NamedTuple):
    """The results of a chain, and what `Recording.keep` was given with them."""

    results: list[Any]
    with_them: Any


def repeat_chain(flags: tuple[Any, ...], arrays: tuple[Any, ...]) -> Repeated | None:
    """Repeat a function that is kept; None, nothing done, where it is not, or where it needs checks.

    Parameters
    ----------
    flags : tuple
        Name and flags of the function.
    arrays : tuple of array
        The arrays that it reads.

    Raises
    ------
    numpy.linalg.LinAlgError
        What the function raises that was recorded.
    """
    library = quick_library(arrays[0])
    description = None if library is None else library.read(arrays)
    if library is None or description is None or ambient_options() is not None:
        return None
    facts, addresses = description
    chain: Any = find((_CHAIN, flags, *map(type, flags), *facts))
    if chain is None or not chain.fits(addresses):
        return None
    repeated: Repeated = chain.run(library, arrays, addresses)
    return repeated


class Recording:
    """Context manager: routines that are called in the block are steps of a chain, on the arrays' device.

    Parameters
    ----------
    flags, arrays : tuple
        See `repeat_chain`.
    device : int
    """

    __slots__ = ("_arrays", "_before", "_checks", "_context", "_flags", "_steps")

    def __init__(self, flags: tuple[Any, ...], arrays: tuple[Any, ...], device: int) -> None:
        self._flags, self._arrays = flags, arrays
        self._context = contexts().current_context(device)
        self._checks: list[tuple[Any, Callable[[Any], None]]] = []
        self._steps: list[Step | None] = []

    def __enter__(self) -> None:
        self._context.__enter__()
        self._before = steps.set(self._steps)

    def __exit__(self, *error: object) -> None:
        steps.reset(self._before)
        self._context.__exit__(*error)

    def check(self, info: Any, raises: Callable[[Any], None]) -> None:
        """Note that ``raises(info)`` was called, which raises for numbers that are not 0."""
        self._checks.append((info, raises))

    def keep(self, *results: Any, with_them: Any = None) -> None:
        """Keep the chain, if it can be, with its `results`: arrays, and integers that it leaves."""
        library = quick_library(self._arrays[0])
        made = [step for step in self._steps if step is not None]
        if library is None or not made or len(made) < len(self._steps) or ambient_options() is not None:
            return
        description = library.read(self._arrays)
        if description is None or len(self._checks) > 1:
            return
        chain = _chain(library, self._arrays, description[1], made, results, self._checks)
        if chain is not None:
            keep_chain(self._flags, self._arrays, chain._replace(with_them=with_them))


def keep_chain(flags: tuple[Any, ...], arrays: tuple[Any, ...], chain: Any) -> None:
    """Keep what `repeat_chain` runs for arrays like these, with methods as those of `_Chain`."""
    library = quick_library(arrays[0])
    description = None if library is None else library.read(arrays)
    if description is not None and all(isinstance(part, CONSTANT) for part in flags):
        keep((_CHAIN, flags, *map(type, flags), *description[0]), chain)


class _Info(NamedTuple):
    """Numbers that should be 0, and what is called with them where they are not.

    Attributes
    ----------
    left_by : int
        The number of the call that leaves them: those after it run while the host waits.
    place : int
        Their place among the addresses.
    numbers : int
    raises : callable
    goes_to_host : bool
        Whether the device may leave them in memory of the host.
    """

    left_by: int
    place: int
    numbers: int
    raises: Callable[[Any], None]
    goes_to_host: bool


class _Chain(NamedTuple):
    """Calls to enqueue, at addresses of arrays that are passed, in memory of the call, and of new results.

    Attributes
    ----------
    calls : tuple of (CachedCall, tuple of int)
        Each with the places of its matrices among the addresses.
    memory : (tuple of int, Dtype) or None
        Shape and dtype of the memory of the call, if it has any.
    distances : tuple of int
        The begins of arrays in it, in bytes.
    outputs : tuple of NewOutput
    results : tuple of int
        The places of results among the addresses.
    written : tuple of int
        The places of arrays that are passed and overwritten.
    reaches : tuple of (int, int)
        See `layouts.reach`, of the arrays that are passed.
    misaligned : int
        Bits that no address has.
    device : int
    info : _Info or None
    with_them : object
        See `Recording.keep`.
    """

    calls: tuple[tuple[CachedCall, tuple[int, ...]], ...]
    memory: NewArray | None
    distances: tuple[int, ...]
    outputs: tuple[NewOutput, ...]
    results: tuple[int, ...]
    written: tuple[int, ...]
    reaches: tuple[tuple[int, int], ...]
    misaligned: int
    device: int
    info: _Info | None
    with_them: Any = None

    def fits(self, addresses: list[int]) -> bool:
        """Whether the arrays may be there: aligned, and those that are overwritten clear of all others."""
        bits = 0
        for address in addresses:
            bits |= address
        if bits & self.misaligned:
            return False
        for place in self.written if len(addresses) > 1 else ():
            order = [*(i for i in range(len(addresses)) if i != place), place]
            if not are_clear([addresses[i] for i in order], [self.reaches[i] for i in order]):
                return False
        return True

    def run(self, library: Library, arrays: tuple[Any, ...], addresses: list[int]) -> Repeated:
        """Enqueue all calls and return the results; numbers that should be 0 are waited for."""
        device, held = self.device, [*arrays]
        stream = library.current_stream(device)
        if self.memory is not None:
            memory = library.empty_here(*self.memory, device, None)
            start = library.pointer(memory)
            for distance in self.distances:
                addresses.append(start + distance)
                held.append(memory)
        for shape, dtype, swapped in self.outputs:
            out = library.empty_here(shape, dtype, device, None, swapped)
            addresses.append(library.pointer(out))
            held.append(out)
        if library.counts_writes:
            for place in self.written:
                library.written(arrays[place])
        if self.info is None:
            for call, places in self.calls:
                call.run_fitting([addresses[place] for place in places], stream)
        else:
            self._run_checked(self.info, addresses, stream)
        results = []
        for place in self.results:  # sooner than a function for a list
            results.append(held[place])
        return Repeated(results, self.with_them)

    def _run_checked(self, info: _Info, addresses: list[int], stream: int) -> None:
        """Enqueue all calls; read the numbers as soon as they are left."""
        left_by, place, count, raises, goes_to_host = info
        device, before, after = self.device, self.calls[: left_by + 1], self.calls[left_by + 1 :]
        written = place_to_write(count, device) if goes_to_host else None
        if written is not None:
            addresses[place] = written.address
        for call, places in before:
            call.run_fitting([addresses[place] for place in places], stream)
        if after:
            pending = begin_read(addresses[place], count, device, stream, written)
            try:
                for call, places in after:
                    call.run_fitting([addresses[place] for place in places], stream)
            finally:
                infos = end_read(pending)
        else:
            infos = read_integers(addresses[place], count, device, stream, written)
        if infos.tobytes() != bytes(infos.nbytes):  # sooner than by NumPy's `any`
            raises(infos)


def _chain(
    library: Library,
    arrays: tuple[Any, ...],
    pointers: list[int],
    made_by: list[Step],
    results: tuple[Any, ...],
    checks: list[tuple[Any, Callable[[Any], None]]],
) -> _Chain | None:
    """Return the chain of these steps; None where something is read, or returned, that no step has left."""
    dtype = made_by[0].kept.new.dtype
    layouts = [_layout(library, each) for each in results]
    delivered = {each.pointer: each for each in layouts if each is not None}
    made = [each for step in made_by for each in _made(step)]
    apart = [each for each in made if each[0] not in delivered]
    new = [pointer for pointer, _ in made if pointer in delivered]
    order = [*pointers, *(pointer for pointer, _ in apart), *new]
    places = {pointer: place for place, pointer in enumerate(order)}  # an address says which array it is
    if len(places) < len(order) or any(step.kept.new.dtype is not dtype for step in made_by):
        return None
    reaches = tuple(_reach(pointer, made_by) for pointer in pointers)
    ends = sorted(
        (pointer + low, pointer + high) for pointer, (low, high) in zip(pointers, reaches, strict=True)
    )
    if any(first[1] > second[0] for first, second in pairwise(ends)):
        return None  # what may be overwritten depends on that
    written = {address for step in made_by for address in _results_of(step)}
    outputs = [_new_output(delivered[pointer], dict(made)[pointer]) for pointer in new]
    calls = [_call(step, places) for step in made_by]
    found = [_result(library, arrays, each, places, written) for each in results]
    infos = [_info(library, *each, places, made_by, delivered) for each in checks]
    if None in outputs or None in calls or None in found or None in infos:
        return None
    units = [-(-max(nbytes, 1) // _ALIGN) * _ALIGN for _, nbytes in apart]
    memory = ((sum(units) // dtype.itemsize, 1), dtype) if units else None
    return _Chain(
        tuple(each for each in calls if each is not None),
        memory,
        tuple(sum(units[:i]) for i in range(len(units))),
        tuple(each for each in outputs if each is not None),
        tuple(each for each in found if each is not None),
        tuple(place for place, pointer in enumerate(pointers) if pointer in written),
        reaches,
        dtype.real_size - 1,
        made_by[0].kept.call.device,
        infos[0] if infos else None,
    )


def _made(step: Step) -> list[tuple[int, int]]:
    """The addresses of what a step makes, and how many bytes each has."""
    kept = step.kept
    dtype, made = kept.new.dtype, [*zip(step.addresses, kept.numbers.sizes, strict=False)]
    return [*made, (step.addresses[-1], prod(kept.new.shape) * dtype.itemsize)] if kept.copies else made


def _results_of(step: Step) -> list[int]:
    """The addresses of the arrays that a step leaves."""
    return [*step.addresses[: len(step.kept.numbers.shapes)], step.addresses[-1]]


def _call(step: Step, places: dict[int, int]) -> tuple[CachedCall, tuple[int, ...]] | None:
    """The call of a step, with the places of its matrices; None where an address is unknown."""
    if not all(address in places for address in step.addresses):
        return None
    return step.kept.call, tuple(places[address] for address in step.addresses)


def _layout(library: Library, array: Any) -> Layout | None:
    """The layout of an array of the library's; None where it is another one, or has none."""
    name = dtype_name(array)
    dtype = stored_dtype(name) or (INT32 if numpy_dtype(name).name == INT32.name else None)
    if dtype is None or quick_library(array) is not library:
        return None
    return library.layout(array, dtype, None)


def _new_output(layout: Layout, nbytes: int) -> NewOutput | None:
    """The output that has this layout once it is made; None where there is none."""
    shape, strides, swapped = layout.shape, layout.strides, strides_by_rows(layout.shape) != layout.strides
    if swapped and len(shape) > 1:
        shape, strides = ((*each[:-2], each[-1], each[-2]) for each in (shape, strides))
    if prod(shape) * layout.dtype.itemsize != nbytes or strides_by_rows(shape) != strides:
        return None
    return NewOutput(shape, layout.dtype, swapped)


def _result(
    library: Library, arrays: tuple[Any, ...], result: Any, places: dict[int, int], written: set[int]
) -> int | None:
    """The place of a result; None where no step has left it as it is."""
    found = _layout(library, result)
    if found is None or found.pointer not in written or found.pointer not in places:
        return None  # as what the library made in between
    place = places[found.pointer]
    if place < len(arrays):  # the array itself, not a view of another shape
        described = [library.read((each,)) for each in (result, arrays[place])]
        if described[0] != described[1]:
            return None
    return place


def _info(
    library: Library,
    info: Any,
    raises: Callable[[Any], None],
    places: dict[int, int],
    made_by: list[Step],
    delivered: Container[int],
) -> _Info | None:
    """Numbers to be read; None where they are no integers that a step has left, `delivered` those that are
    results.
    """
    layout = None if isinstance(info, int) else _layout(library, info)
    if layout is None or layout.dtype is not INT32:
        return None
    left_by = [
        number
        for number, step in enumerate(made_by)
        if layout.pointer in step.addresses[: len(step.kept.numbers.shapes)]
    ]
    if not left_by:
        return None
    count, step = prod(layout.shape), made_by[left_by[-1]]
    goes_to_host = (
        count <= MOST_AT_HOST
        and layout.pointer not in delivered
        and step.kept.call.uses_of(step.addresses.index(layout.pointer)) == 1
    )
    return _Info(left_by[-1], places[layout.pointer], count, raises, goes_to_host)


def _reach(pointer: int, made_by: list[Step]) -> tuple[int, int]:
    """First byte of what is read and written at `pointer`, and the one past the last, from there on."""
    found = [
        reach
        for step in made_by
        for address, reach in zip(step.addresses, step.kept.call.reaches, strict=True)
        if address == pointer
    ]
    return min((low for low, _ in found), default=0), max((high for _, high in found), default=0)
