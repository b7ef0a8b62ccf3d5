"""What a cycle of the model takes at extents at which nothing was measured.

The score is wrong by a factor that differs between Configs and between kinds of products. Where a Config was
timed the factor is known, its *pace*; elsewhere it goes by what is usual there, and the less by its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import exp, log, log2
from typing import Any

from .splits import CYCLE

__all__ = ["Measured", "paced"]

DOUBT = 0.02  # of an estimate, for each factor of two between an extent and that of the measurement
REACH = 2.0  # such factors, over which a measurement says less of what is usual
NEAR = 8.0  # such factors, over which a Config's own pace gives way to the usual one


@dataclass(frozen=True, slots=True)
class Measured:
    """A Config, where it comes from, and the seconds that a cycle of the model took where it was tuned.

    `extents` are where this was; there are none where nothing was measured.
    """

    config: Any
    origin: str
    pace: float
    extents: tuple[int, ...] = ()

    def octaves(self, extents: tuple[int, ...]) -> float:
        """How many factors of two lie between `extents` and those that were measured."""
        pairs = zip_longest(self.extents, extents, fillvalue=1)
        return sum(abs(log2(there / here)) for there, here in pairs)

    def at(self, extents: tuple[int, ...], usual: float) -> tuple[float, float]:
        """The pace at `extents`, and by what factor it is in doubt.

        What sets a Config's pace apart from the `usual` one there is partly luck with the extents at which it
        was measured, so it counts the less the farther these are.
        """
        if not self.extents:
            return self.pace, 1.0
        octaves = self.octaves(extents)
        own = exp(-octaves / NEAR)
        return self.pace**own * usual ** (1 - own), 1 + DOUBT * octaves


def paced(tuned: Sequence[Measured], extents: tuple[int, ...]) -> Iterator[tuple[Measured, float, float]]:
    """Each with its pace at `extents`, and by what factor this is in doubt."""
    usual = _usual(tuned, extents)
    for known in tuned:
        yield known, *known.at(extents, usual.get(known.config.STEM, CYCLE))


def _usual(known: Iterable[Measured], extents: tuple[int, ...]) -> dict[str, float]:
    """Of each family the pace near `extents`: the mean of its Configs', the nearer the weightier."""
    sums: dict[str, tuple[float, float]] = {}
    for each in known:
        if each.extents:
            weight = exp(-each.octaves(extents) / REACH)
            total, weights = sums.get(each.config.STEM, (0.0, 0.0))
            sums[each.config.STEM] = total + weight * log(each.pace), weights + weight
    return {stem: exp(total / weights) for stem, (total, weights) in sums.items()}
