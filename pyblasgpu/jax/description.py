"""Descriptions of calls of routines: a text that a compiled program keeps, and what it says."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from ..routine import FLAGS, INTEGERS, Routine
from ..routine_table import ROUTINES
from ..types import DTYPES, Dtype, Trans

__all__ = ["Description", "left_numbers"]


def left_numbers(stem: str, dtype: Any, counts: tuple[int, ...]) -> list[tuple[int, Any]]:
    """Return count and dtype of the numbers of each kind that a routine leaves for a matrix of `dtype`."""
    kinds = [np.dtype(np.int32 if each.name in INTEGERS else dtype) for each in ROUTINES[stem].matrices]
    return list(zip(counts, kinds, strict=False))


class Description(NamedTuple):
    """A call of a routine on row-major buffers.

    The arguments are integers that are read, inputs, and what the output holds at first, if anything. The
    results are the output and the numbers that the routine leaves: integers of int32, or elements.

    Attributes
    ----------
    stem : str
        The routine, of `routine_table`.
    letter : str
        The dtype.
    flags : tuple of (str, object)
        Its flags, by their values, switches, and the method.
    scalars : tuple
        Numbers that it takes.
    integers : tuple of tuple of int
        Shapes of the integers that are read, (..., count, 1).
    inputs : tuple of tuple of int
        Shapes of the inputs.
    out : tuple of int
        The shape of the output.
    counts : tuple of int
        How many numbers of each kind a matrix leaves.
    is_updated : bool
        Whether the output holds the last argument at first.
    """

    stem: str
    letter: str
    flags: tuple[tuple[str, Any], ...]
    scalars: tuple[Any, ...]
    integers: tuple[tuple[int, ...], ...]
    inputs: tuple[tuple[int, ...], ...]
    out: tuple[int, ...]
    counts: tuple[int, ...]
    is_updated: bool

    @property
    def routine(self) -> Routine:
        """The row of the routine."""
        return ROUTINES[self.stem]

    @property
    def dtype(self) -> Dtype:
        """The dtype of the matrices."""
        return DTYPES[self.letter]

    @property
    def keywords(self) -> dict[str, Any]:
        """Flags of the BLAS and switches, as the routine takes them."""
        return {name: FLAGS[name](value) if name in FLAGS else value for name, value in self.flags}

    @property
    def options(self) -> dict[str, Any]:
        """Further arguments of its launch list."""
        return {name: value for name, value in self.flags if name == "method"}

    @property
    def ops(self) -> tuple[Trans, ...]:
        """The op of each input."""
        given = self.keywords
        return tuple(
            given.get(matrix.op, Trans.NO)
            for matrix, _ in zip(self.routine.inputs, self.inputs, strict=False)
        )

    def text(self) -> str:
        """Return the text of the call."""
        numbers = [[number.real, number.imag] for number in map(complex, self.scalars)]
        return json.dumps([*self._replace(scalars=tuple(numbers))], separators=(",", ":"))

    @classmethod
    def of(cls, text: bytes) -> Description:
        """Return the description that a text holds."""
        stem, letter, flags, scalars, integers, inputs, out, counts, is_updated = json.loads(text)
        numbers = tuple(complex(*pair) if pair[1] else pair[0] for pair in scalars)
        return cls(
            stem,
            letter,
            tuple((name, value) for name, value in flags),
            numbers,
            tuple(map(tuple, integers)),
            tuple(map(tuple, inputs)),
            tuple(out),
            tuple(counts),
            is_updated,
        )
