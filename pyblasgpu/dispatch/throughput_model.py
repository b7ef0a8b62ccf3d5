"""What a cycle of the model takes at extents at which nothing was measured.

The score is wrong by a factor that differs between Configs and between kinds of products. Where a Config was
timed, in the class that it won or in another, the factor is known, its *pace*; elsewhere it goes by what it
was nearby and by what is usual there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import log2
from typing import Any, NamedTuple

import numpy as np

from .split_k import CYCLE

__all__ = ["Measured", "Paces", "Reading", "Unmeasured"]

DOUBT = 0.02  # of an estimate, for each factor of two between an extent and that of the nearest measurement
SAME = 0.3  # of such a factor, within which a measurement of a Config stands for itself
REACH = 2.0  # such factors, over which a measurement says less of what is usual
NEAR = 8.0  # such factors, over which a Config's own pace gives way to the usual one

Extents = tuple[int, ...]


class Reading(NamedTuple):
    """The seconds that a cycle of the model took at some extents."""

    extents: Extents
    pace: float


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


class Paces:
    """What a cycle takes with each of many Configs, each with one reading or more.

    Parameters
    ----------
    tuned : sequence of Measured
    """

    def __init__(self, tuned: Sequence[Measured]):
        self.tuned = tuple(tuned)
        places = list(dict.fromkeys(reading.extents for known in tuned for reading in known.readings))
        column = {extents: i for i, extents in enumerate(places)}
        self._places = np.log2([_padded(extents) for extents in places])
        # Configs by places: the logarithm of the pace, and whether there is a reading
        self._logs, self._read = np.zeros((2, len(tuned), len(places)))
        for row, known in enumerate(tuned):
            for reading in known.readings:
                self._logs[row, column[reading.extents]] = np.log(reading.pace)
                self._read[row, column[reading.extents]] = 1
        stems = [known.config.STEM for known in tuned]
        family = np.array([[stem == other for other in stems] for stem in dict.fromkeys(stems)], float)
        self._of = family.argmax(axis=0)
        self._sums, self._counts = family @ self._logs, family @ self._read  # families by places

    def at(self, extents: Extents) -> Iterator[tuple[Measured, float, float]]:
        """Each Config with its pace at `extents`, and by what factor this is in doubt.

        What sets a Config's pace apart from the usual one of its family there is partly luck with the extents
        at which it was measured, so it counts the less the farther the nearest of these are.
        """
        octaves = np.abs(self._places - np.log2(_padded(extents))).sum(axis=1)
        # the usual pace: the mean of a family's Configs, the nearer the weightier
        weights = np.exp(-octaves / REACH)
        usual = (self._sums @ weights) / (self._counts @ weights)
        nearest = np.where(self._read, octaves, np.inf).min(axis=1)
        shares = self._read * ((nearest[:, None] + SAME) / (octaves + SAME)) ** 2  # Shepard (1968)
        own = np.exp(-nearest / NEAR)
        logs = (shares * self._logs).sum(axis=1) / shares.sum(axis=1) * own + usual[self._of] * (1 - own)
        yield from zip(self.tuned, np.exp(logs).tolist(), (1 + DOUBT * nearest).tolist(), strict=True)


class Unmeasured(NamedTuple):
    """The same where nothing was measured."""

    tuned: Sequence[Measured]

    def at(self, extents: Extents) -> Iterator[tuple[Measured, float, float]]:
        """Each Config with a cycle's usual time."""
        return ((known, CYCLE, 1.0) for known in self.tuned)


def _padded(extents: Extents) -> list[int]:
    """m, n, k and batch."""
    return [*extents, *[1] * (4 - len(extents))]


def _octaves(first: Extents, second: Extents) -> float:
    """How many factors of two lie between them."""
    return sum(abs(log2(one / other)) for one, other in zip_longest(first, second, fillvalue=1))
