"""What a cycle of the model takes at extents at which nothing was measured.

The score is wrong by a factor that differs between Configs and between kinds of products. Where a Config was
timed, in the class that it won or in another, the factor is known, its *pace*; elsewhere it goes by what it
was nearby and by what is usual there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import exp, log, log2
from typing import Any, NamedTuple

from .splits import CYCLE

__all__ = ["Measured", "Reading", "paced"]

DOUBT = 0.02  # of an estimate, for each factor of two between an extent and that of the nearest measurement
SAME = 0.3  # of such a factor, within which a measurement of a Config stands for itself
REACH = 2.0  # such factors, over which a measurement says less of what is usual
NEAR = 8.0  # such factors, over which a Config's own pace gives way to the usual one

Extents = tuple[int, ...]


class Reading(NamedTuple):
    """The seconds that a cycle of the model took at some extents."""

    extents: Extents
    pace: float

    def octaves(self, extents: Extents) -> float:
        """How many factors of two lie between `extents` and those that were measured."""
        return _octaves(self.extents, extents)


@dataclass(frozen=True, slots=True)
class Measured:
    """A Config, where it comes from, and its readings; there are none where nothing was measured.

    Attributes
    ----------
    config : GemmConfig
    origins : tuple of (extents, str)
        Of the classes that it won.
    readings : tuple of Reading
    """

    config: Any
    origins: tuple[tuple[Extents, str], ...]
    readings: tuple[Reading, ...] = ()

    def origin(self, extents: Extents = ()) -> str:
        """That of the class nearest to `extents`, or of the first."""
        _, origin = min(self.origins, key=lambda won: _octaves(won[0], extents) if extents else 0)
        return origin

    def at(self, extents: Extents, usual: float) -> tuple[float, float]:
        """The pace at `extents`, and by what factor it is in doubt.

        What sets a Config's pace apart from the `usual` one there is partly luck with the extents at which it
        was measured, so it counts the less the farther the nearest of these are.
        """
        if not self.readings:
            return CYCLE, 1.0
        octaves = [reading.octaves(extents) for reading in self.readings]
        nearest = min(octaves)
        weights = [((nearest + SAME) / (each + SAME)) ** 2 for each in octaves]  # Shepard (1968)
        paces = (weight * log(reading.pace) for weight, reading in zip(weights, self.readings, strict=True))
        own = exp(-nearest / NEAR)
        return exp(sum(paces) / sum(weights) * own) * usual ** (1 - own), 1 + DOUBT * nearest


def paced(tuned: Sequence[Measured], extents: Extents) -> Iterator[tuple[Measured, float, float]]:
    """Each with its pace at `extents`, and by what factor this is in doubt."""
    usual = _usual(tuned, extents)
    for known in tuned:
        yield known, *known.at(extents, usual.get(known.config.STEM, CYCLE))


def _usual(tuned: Iterable[Measured], extents: Extents) -> dict[str, float]:
    """Of each family the pace near `extents`: the mean of its Configs', the nearer the weightier."""
    sums: dict[str, tuple[float, float]] = {}
    for known in tuned:
        for reading in known.readings:
            weight = exp(-reading.octaves(extents) / REACH)
            total, weights = sums.get(known.config.STEM, (0.0, 0.0))
            sums[known.config.STEM] = total + weight * log(reading.pace), weights + weight
    return {stem: exp(total / weights) for stem, (total, weights) in sums.items()}


def _octaves(first: Extents, second: Extents) -> float:
    return sum(abs(log2(one / other)) for one, other in zip_longest(first, second, fillvalue=1))
