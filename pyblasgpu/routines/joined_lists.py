"""Copies before other launches: in one list with them, or left out where one launch reads the source.

A list of one launch may name the pointer by which it reads (`LaunchList.source_pointer`). The output need not
be a copy of the source then. Elements of both have to be at the same places, or the launch takes the strides
of the source (`LaunchList.source_integers`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..operands import Operand
from .copies import is_readable
from .launch_list import BESIDE, WORKSPACE_SLOT, Launch, LaunchList

__all__ = ["emit_from", "joined"]


def joined(copy: LaunchList, rest: LaunchList | None, operands: Sequence[Operand]) -> LaunchList:
    """Return the launches of a copy, factor 1, and of what follows it, if anything does, as one list.

    The last operand is the output of both, and the one before it the source of the copy. What follows may
    read the source itself (`LaunchList.source_pointer`); then there is no copy.
    """
    count = len(operands)
    assert count <= WORKSPACE_SLOT, "the workspace would be in the place of an operand"
    source, out = count - 2, count - 1
    if rest is not None and len(rest.entries) == 1 and _may_read(rest, *operands[source:]):
        return _reading_source(rest, operands[source], source, out)
    both = LaunchList(copy.dtype, copy.device)
    both.entries = [
        _moved(entry, {0: source, 1: out})._replace(scalars=(1.0,) * len(entry.scalars))
        for entry in copy.entries
    ]
    both.choices = [*copy.choices]
    if rest is not None:
        shift, is_first_beside = len(both.entries), True
        for entry in rest.entries:
            after = tuple(number + shift for number in entry.after)
            if entry.lane == BESIDE and is_first_beside:
                after, is_first_beside = (shift - 1, *after), False  # no launch of its lane was before it
            both.entries.append(_moved(entry, {source: out})._replace(after=after))
        both._most, both.uses_flags, both.has_graphs = [*rest._most], rest.uses_flags, rest.has_graphs
        both.choices += rest.choices
    return both


def emit_from(
    launches: LaunchList, source: Operand, out: Operand, copy: Callable[[], None], emit: Callable[[], None]
) -> None:
    """Emit what ``copy()`` does, by which the output begins as the source, and what ``emit()`` does with it;
    without the copy where one launch may read the source.
    """
    first, launches.source_pointer, launches.source_integers = len(launches.entries), None, None
    copy()
    copied = len(launches.entries)
    emit()
    if len(launches.entries) == copied + 1 and _may_read(launches, source, out):
        entry, after = launches.entries.pop(), launches.entries[first].after
        read = _at(launches, entry, launches.address_of(source.pointer), source)
        del launches.entries[first:]
        launches.append(read._replace(after=(*after, *entry.after)))
    launches.source_pointer = launches.source_integers = None


def _may_read(launches: LaunchList, source: Operand, out: Operand) -> bool:
    """Whether a launch may read the source: it takes its strides, or elements are where those of the output
    are.
    """
    if launches.source_pointer is None or source.conj:
        return False
    if launches.source_integers is not None:
        return is_readable(source) and source.batch == out.batch
    places = (
        (x.row_stride, x.col_stride, x.batch_stride, x.pointer % x.dtype.itemsize) for x in (source, out)
    )
    return len({*places}) == 1


def _reading_source(launches: LaunchList, operand: Operand, source: int, out: int) -> LaunchList:
    """A list of one launch that reads the slot `source` and writes the slot `out`."""
    apart, (entry,) = LaunchList(launches.dtype, launches.device), launches.entries
    moved, (_, distance) = _moved(entry, {source: out}), entry.addresses[launches.source_pointer or 0]
    apart.entries, apart.choices = [_at(launches, moved, (source, distance), operand)], [*launches.choices]
    return apart


def _at(launches: LaunchList, entry: Launch, address: tuple[int, int], source: Operand) -> Launch:
    """A launch of a list that reads the source, at an address."""
    addresses, integers_of = [*entry.addresses], launches.source_integers
    addresses[launches.source_pointer or 0] = address
    integers = entry.integers if integers_of is None else integers_of(source)
    return entry._replace(addresses=tuple(addresses), integers=integers)


def _moved(entry: Launch, slots: dict[int, int]) -> Launch:
    """A launch with its operands in other slots."""
    addresses = tuple((slots.get(slot, slot), distance) for slot, distance in entry.addresses)
    return entry._replace(addresses=addresses)
