"""Checked calls that are kept, to be repeated on arrays that lie alike.

A small product is over in the few microseconds that the checks of its arrays take. They depend, but for the
addresses, on the arrays' library, shapes, strides, dtypes and devices: where all are as they were, only the
addresses are checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..operands import SECTOR, Operand
from .layouts import Layout, are_clear, batches, reach

__all__ = ["Recipe", "find", "keep"]

_KEPT = 4096  # recipes
_VARIANTS = 1024  # tapes of one
_LEAST, _MOST = 2.0**-126, 2.0**127  # normal numbers of every dtype


class _Run(NamedTuple):
    """What a run depended on, and what enqueued it (None for no work)."""

    pointers: list[int]
    alpha: Any
    beta: Any
    generation: Any
    enqueue: Callable | None


class Recipe:
    """A checked call on matrices, or on one batch of them, but for their addresses; the output is the last.

    Parameters
    ----------
    layouts : tuple of Layout
        Of the matrices or stacks.
    prepare : callable
        ``prepare((alpha, beta), operands)`` gives the tape for operands that lie like these, None for no
        work. It may depend on whether a scalar is 0 or 1, on no other value of it.
    generation : callable
        Its value changes with the tuned values.

    Attributes
    ----------
    device : int
    """

    __slots__ = ("_generation", "_last", "_misaligned", "_prepare", "_reaches", "_tails", "_tapes", "device")

    def __init__(self, layouts: tuple[Layout, ...], prepare: Callable, generation: Callable):
        (operands,) = batches(tuple([layout._replace(owner=None) for layout in layouts]))
        self._tails = tuple(operand[1:] for operand in operands)
        self._reaches = tuple(map(reach, layouts))
        self._misaligned = layouts[-1].dtype.real_size - 1
        self._prepare, self._generation = prepare, generation
        self._tapes: dict[tuple, Any] = {}
        self._last = _Run([], None, None, None, None)
        self.device = layouts[-1].device

    def run(self, pointers: list[int], alpha, beta, stream: int) -> bool:
        """Enqueue the call with matrices at `pointers`; False, nothing done, where it needs new checks."""
        last = self._last
        if (
            pointers != last.pointers
            or alpha is not last.alpha
            or beta is not last.beta
            or self._generation() != last.generation
        ):
            if not (_plain(alpha) and _plain(beta) and self._fits(pointers)):
                return False
            last = self._last = self._recall(pointers, alpha, beta)
        if last.enqueue is not None:
            last.enqueue(pointers, stream)
        return True

    def _fits(self, pointers: list[int]) -> bool:
        """Whether the matrices may lie at `pointers`: aligned, the output apart from all others."""
        bits = 0
        for pointer in pointers:
            bits |= pointer
        return not bits & self._misaligned and are_clear(pointers, self._reaches)

    def _recall(self, pointers: list[int], alpha, beta) -> _Run:
        """The run, its tape prepared once for all that a tape depends on."""
        generation = self._generation()
        variant = (generation, _kind(alpha), _kind(beta), *[pointer % SECTOR for pointer in pointers])
        if variant not in self._tapes:
            if len(self._tapes) >= _VARIANTS:  # tuned values have changed again and again
                self._tapes.clear()
            operands = [Operand(pointer, *tail) for pointer, tail in zip(pointers, self._tails, strict=True)]
            self._tapes[variant] = self._prepare((alpha, beta), operands)
        tape = self._tapes[variant]
        return _Run(pointers, alpha, beta, generation, None if tape is None else tape.bound(alpha, beta))


def _plain(number) -> bool:
    """Whether `number` fits every dtype as it is: in float32 too it is finite, and 0 only if it is 0."""
    if type(number) is not int and type(number) is not float:
        return False
    return number == 0 or _LEAST <= abs(number) <= _MOST


def _kind(number):
    """What a tape may depend on: scalars that hide operands."""
    return number if number == 0 or number == 1 else None


_RECIPES: dict[tuple, Recipe] = {}


def keep(key: tuple, recipe: Recipe) -> None:
    """Keep `recipe` under `key`."""
    if len(_RECIPES) >= _KEPT:
        _RECIPES.clear()
    _RECIPES[key] = recipe


def find(key: tuple) -> Recipe | None:
    """The recipe kept under `key`; None also where something in `key` is not hashable, and so no flag."""
    try:
        return _RECIPES.get(key)
    except TypeError:
        return None
