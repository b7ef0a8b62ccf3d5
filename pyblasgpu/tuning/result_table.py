"""What a search knows so far: the scores of its candidates, and the times of those that were asked for."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .search_problem import Measurement, Place, Search, SearchProblem, tile_key

__all__ = ["MeasurementTable"]

TINY = 1e-12  # for the logarithm of a score of nothing


class MeasurementTable:
    """Scores and times, each an array over the candidates a place."""

    def __init__(self, search: SearchProblem):
        self.search = search
        self._number = {config: i for i, config in enumerate(search.candidates)}
        self._asked = {place: np.zeros(len(search.candidates), dtype=bool) for place in search.places}
        self._times = {place: np.full(len(search.candidates), math.nan) for place in search.places}
        self._points: dict[Place, np.ndarray] = {}
        self._ranked: dict[Place, list[Any]] = {}
        self._lucky: np.ndarray | None = None

    def ask(self, measurements: list[Measurement]) -> Search:
        """Yield those of `measurements` that were not asked for before, and keep the answers."""
        fresh = []
        for measurement in measurements:
            asked, number = self._asked[measurement.place], self._number[measurement.config]
            if not asked[number]:
                asked[number] = True
                fresh.append(measurement)
        if fresh:
            answers = yield fresh
            for measurement, seconds in answers.items():
                self._times[measurement.place][self._number[measurement.config]] = seconds
            self._lucky = None

    def ranked(self, place: Place) -> list[Any]:
        """All candidates, the best score first."""
        if place not in self._ranked:
            self._ranked[place] = self._named(np.argsort(-self._score(place), kind="stable"))
        return self._ranked[place]

    def by_time(self, place: Place) -> list[Any]:
        """The candidates that have a time, the fastest first."""
        times = self._times[place]
        order = np.argsort(times, kind="stable")  # NaN comes last
        return self._named(order[: np.count_nonzero(~np.isnan(times))])

    def best(self, place: Place) -> float:
        """The shortest time."""
        return float(np.fmin.reduce(self._times[place], initial=math.inf))

    def expected(self, place: Place) -> list[Any]:
        """All candidates, the fastest first by their time here, else by the score and what is known of them.

        What is known: how much better than its score a candidate, or another variant of its tile, was.
        """
        return self._named(self._expected(place))

    def fresh(self, place: Place, one_of_each: bool = False, like: Sequence[Any] | None = None) -> list[Any]:
        """As `expected`, without those that were asked for: of each tile the first alone, or of the tiles of
        certain candidates all.
        """
        order = self._expected(place)
        if one_of_each:
            order = order[np.sort(np.unique(self._tiles[order], return_index=True)[1])]
        if like is not None:
            order = order[np.isin(self._tiles[order], [self._tiles[self._number[c]] for c in like])]
        return self._named(order[~self._asked[place][order]])

    def _expected(self, place: Place) -> np.ndarray:
        surprise = self._surprise(place)
        luck = np.where(np.isnan(surprise), self._luck[self._tiles], surprise)
        return np.argsort(-(self._score(place) + luck), kind="stable")

    def _score(self, place: Place) -> np.ndarray:
        """Its logarithm, of every candidate."""
        if place not in self._points:
            points = [self.search.score(config, *place) for config in self.search.candidates]
            self._points[place] = np.log(np.maximum(points, TINY))
        return self._points[place]

    def _surprise(self, place: Place) -> np.ndarray:
        """log(rate / score) of those that have a time, beyond its mean; else NaN."""
        found = -np.log(self._times[place]) - self._score(place)
        timed = ~np.isnan(found)
        return found - found[timed].mean() if timed.any() else found

    @cached_property
    def _tiles(self) -> np.ndarray:
        """The number of each candidate's tile."""
        numbers: dict[Hashable, int] = {}
        keys = (tile_key(config, self.search.axes) for config in self.search.candidates)
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=int)

    @property
    def _luck(self) -> np.ndarray:
        """By tile, how much better than its score it did on average, in logarithms; few times count less."""
        if self._lucky is None:
            surprises = np.array([self._surprise(place) for place in self.search.places])
            timed = ~np.isnan(surprises)
            tiles, count = np.broadcast_to(self._tiles, surprises.shape)[timed], len(self._tiles)
            sums = np.bincount(tiles, surprises[timed], minlength=count)
            self._lucky = sums / (np.bincount(tiles, minlength=count) + 1)
        return self._lucky

    def _named(self, numbers: np.ndarray) -> list[Any]:
        return [self.search.candidates[i] for i in numbers]

    def fastest(self, place: Place, otherwise: Any) -> Any:
        return next(iter(self.by_time(place)), otherwise)

    def line(self, start: Any, group: tuple[str, ...], place: Place) -> list[Any]:
        """For every value of `group` the candidate that is otherwise most like `start`."""
        others = [n for g in (*self.search.axes.tile, *self.search.axes.variant) if g != group for n in g]
        found: dict[tuple, tuple[int, Any]] = {}
        for config in self.ranked(place):
            value = tuple(getattr(config, name, None) for name in group) if group else config
            differs = sum(getattr(config, name, None) != getattr(start, name, None) for name in others)
            if value not in found or differs < found[value][0]:
                found[value] = differs, config
        return [config for _, config in found.values()]
