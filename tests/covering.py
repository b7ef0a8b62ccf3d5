"""Few combinations of parameters in which every two values meet, and cases shared by two precisions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import Any

__all__ = ["by_precision", "by_turns", "of_precision", "pairs"]


def by_turns(first: Iterable[Any], second: Iterable[Any], third: Iterable[Any]) -> list[tuple[Any, Any, Any]]:
    """All combinations of two parameters, and values of a third by turns: any two values meet.

    `first` and `second` have as many values as `third`, or more; made at once, where `pairs` searches.
    """
    others, kept = list(second), list(third)
    return [(x, y, kept[(i + j) % len(kept)]) for i, x in enumerate(first) for j, y in enumerate(others)]


def pairs(*parameters: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Combinations of one value of each parameter, such that any two values of two parameters meet.

    A defect that needs two values together is found, as by all combinations; `itertools.product` is for those
    that need three. The same list is made in every process.
    """
    values = [list(each) for each in parameters]
    left = dict.fromkeys(product(*(range(len(each)) for each in values)))
    unmet = {pair for indices in left for pair in _pairs_of(indices)}
    chosen = []
    while unmet:
        best = max(left, key=lambda indices: sum(pair in unmet for pair in _pairs_of(indices)))
        unmet.difference_update(_pairs_of(best))
        del left[best]
        chosen.append(best)
    return [tuple(each[i] for each, i in zip(values, indices, strict=True)) for indices in sorted(chosen)]


def of_precision(letter: str, cases: Sequence[Any]) -> list[Any]:
    """Half of the cases in single precision, and the others in double, whose kernels have the same text."""
    shuffled = random.Random(len(cases)).sample(range(len(cases)), len(cases))
    return [cases[i] for i in sorted(shuffled["dz".count(letter) :: 2])]


def by_precision(*parameters: Iterable[Any]) -> list[tuple[Any, ...]]:
    """All combinations, each with a letter of a real and one of a complex dtype: see `of_precision`."""
    cases = list(product(*parameters))
    return [(letter, *case) for letter in "sdcz" for case in of_precision(letter, cases)]


def _pairs_of(indices: tuple[int, ...]) -> list[tuple[tuple[int, int], ...]]:
    """The pairs of values, as numbers of a parameter and of its value, that meet in a combination."""
    return list(combinations(enumerate(indices), 2))
