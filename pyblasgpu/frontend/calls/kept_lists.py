"""Checked calls on lists of matrices that are kept, to be repeated on arrays of the same layouts.

A repeated call checks addresses alone, see `call_cache`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ...ragged.matrices import Matrices
from ...ragged.spans import are_apart, spans
from ...types import Trans
from ..arrays.streams import contexts, stream_of
from .ragged import Described, Facts, new_outputs, note_writes

__all__ = ["KeptLists", "forget", "keep", "repeated"]


class KeptLists:
    """A checked call on lists of device arrays, but for their addresses.

    Parameters
    ----------
    prepared : object
        ``prepared.run(pointers, stream)`` enqueues the call with its arrays at `pointers`.
    matrices : Matrices
        Arrays of the call, the outputs last.
    found : Described
        Facts of the arrays that were passed.
    count : int
        Number of outputs.
    new : numpy.ndarray, optional
        Whether each output, where they are new, is by columns.
    in_place : bool
        Whether outputs may be the inputs before them.
    """

    def __init__(
        self,
        prepared: Any,
        matrices: Matrices,
        found: Described,
        count: int,
        new: np.ndarray | None = None,
        in_place: bool = False,
    ):
        self._prepared, self._new = prepared, new
        self._found = found._replace(matrices=matrices.take(slice(0)))  # nothing of the caller's
        self._count, self._shapes = count, matrices.shapes[-count:]
        itemsize, has_elements = found.dtype.itemsize, np.asarray((matrices.shapes > 0).all(axis=1))
        self.places = np.flatnonzero(has_elements)
        low, high = spans(matrices._replace(pointers=0 * matrices.pointers), itemsize)
        self._low, self._high = low, high
        self._first_output = int(has_elements[:-count].sum())
        self._may_be_same = np.zeros(len(matrices.rows) - count, bool)
        if in_place:
            before, outputs = matrices.take(slice(-2 * count, -count)), matrices.take(slice(-count, None))
            same = (before.shapes == outputs.shapes) & (before.strides == outputs.strides)
            self._may_be_same[-count:] = same.all(axis=1)

    def run(
        self, name: str, addresses: Sequence[int], out: Sequence[Any] | None, stream: Any
    ) -> tuple[list[Any], Any] | None:
        """Enqueue the call; return outputs and what it returns. None, nothing done, for new checks."""
        _, dtype, device, library = self._found
        pointers = np.array(addresses, np.int64)
        if (pointers % dtype.itemsize).any() or (out is not None and not self._are_apart(pointers)):
            return None
        stream = library.current_stream(device) if stream is None else stream_of(device, stream, name)
        if self._new is not None:
            out, target = new_outputs(self._found, self._shapes, self._new, stream)
            pointers = np.concatenate((pointers, target.pointers))
        else:
            note_writes(library, out or ())
        with contexts().current_context(device):
            returned = self._prepared.run(pointers, stream)
        return list(out or ()), returned

    def _are_apart(self, pointers: np.ndarray) -> bool:
        at, first = pointers[self.places], self._first_output
        low, high = at + self._low, at + self._high
        inputs = self.places[:first]
        read = ~(self._may_be_same[inputs] & (pointers[inputs + self._count] == at[:first]))
        return are_apart((low[first:], high[first:]), (low[:first][read], high[:first][read]))


#: Calls that are kept, by all that they depend on but addresses, and the number of their matrices.
_kept: dict[Any, KeptLists] = {}
MOST_KEPT = 1 << 15  # matrices
_PLAIN = (str, int, float, complex, bool, Trans)


def repeated(
    name: str,
    facts: Facts | None,
    values: Sequence[Sequence[Any]],
    out: Sequence[Any] | None,
    stream: Any,
) -> tuple[tuple[Any, ...] | None, tuple[list[Any], Any] | None]:
    """Return the key of a call on arrays of these facts, and what `KeptLists.run` returns if it is kept.

    The key is None where an argument may change, or nothing is known of the arrays.
    """
    key = None if facts is None else _key_of(name, facts, values, out is None)
    call = None if key is None else _kept.get(key)
    if facts is None or call is None:
        return key, None
    return key, call.run(name, facts.pointers, out, stream)


def _key_of(name: str, found: Facts, values: Sequence[Sequence[Any]], *others: Any) -> tuple[Any, ...] | None:
    parts = []
    for entries in values:
        first = entries[0]
        whole = [first] if all(value is first for value in entries) else entries
        if any(type(value) not in _PLAIN for value in whole):
            return None
        parts.append(tuple([(type(value), value) for value in whole]))
    generation = import_module("...dispatch.choose", __package__).generation()
    return (name, generation, *others, *parts, *found.facts)


def keep(key: tuple[Any, ...] | None, call: KeptLists, count: int) -> None:
    """Keep a call on `count` matrices, unless they are many."""
    if key is None or count > MOST_KEPT // 8:
        return
    if sum(len(kept.places) for kept in _kept.values()) + count > MOST_KEPT:
        _kept.clear()
    _kept[key] = call


def forget() -> None:
    """Keep none of the calls any longer."""
    _kept.clear()
