"""State of a search: the scores of its candidates, and the times of the requested ones."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .search_problem import Batches, Measurement, Problem, SearchProblem, tile_key

__all__ = ["TINY", "MeasurementTable"]

TINY = 1e-12  # for the logarithm of a score of nothing


class MeasurementTable:
    """Scores and times, for each problem an array over the candidates."""

    def __init__(self, search: SearchProblem):
        self.search = search
        self._number = {config: i for i, config in enumerate(search.candidates)}
        self._asked = {problem: np.zeros(len(search.candidates), dtype=bool) for problem in search.problems}
        self._times = {problem: np.full(len(search.candidates), math.nan) for problem in search.problems}
        self._log_scores: dict[Problem, np.ndarray] = {}
        self._ranked: dict[Problem, list[Any]] = {}
        self._known_tile_effect: np.ndarray | None = None

    def ask(self, measurements: list[Measurement]) -> Batches:
        """Yield those of `measurements` that were not requested before, and keep the answers."""
        batch = []
        for measurement in measurements:
            asked, number = self._asked[measurement.problem], self._number[measurement.config]
            if not asked[number]:
                asked[number] = True
                batch.append(measurement)
        if batch:
            answers = yield batch
            for measurement, seconds in answers.items():
                self._times[measurement.problem][self._number[measurement.config]] = seconds
            self._known_tile_effect = None

    def ranked(self, problem: Problem) -> list[Any]:
        """All candidates, the best score first."""
        if problem not in self._ranked:
            self._ranked[problem] = self._configs(np.argsort(-self._log_score(problem), kind="stable"))
        return self._ranked[problem]

    def by_time(self, problem: Problem) -> list[Any]:
        """The candidates that have a time, the fastest first."""
        times = self._times[problem]
        order = np.argsort(times, kind="stable")  # NaN is last
        return self._configs(order[: np.count_nonzero(~np.isnan(times))])

    def best(self, problem: Problem) -> float:
        """The shortest time."""
        return float(np.fmin.reduce(self._times[problem], initial=math.inf))

    def expected(self, problem: Problem) -> list[Any]:
        """All candidates, the fastest first by the time or, where there is none, by the corrected score.

        The correction is the tile effect: how much better than their scores the variants of a tile were.
        """
        return self._configs(self._expected(problem))

    def not_asked(
        self, problem: Problem, one_of_each: bool = False, like: Sequence[Any] | None = None
    ) -> list[Any]:
        """Return the candidates of `expected` that were not requested yet.

        Parameters
        ----------
        problem : Problem
        one_of_each : bool
            Whether of each tile only the first is wanted.
        like : sequence of Config, optional
            Candidates whose tiles alone are wanted.
        """
        order = self._expected(problem)
        if one_of_each:
            order = order[np.sort(np.unique(self._tiles[order], return_index=True)[1])]
        if like is not None:
            order = order[np.isin(self._tiles[order], [self._tiles[self._number[c]] for c in like])]
        return self._configs(order[~self._asked[problem][order]])

    def _expected(self, problem: Problem) -> np.ndarray:
        residual = self._residual(problem)
        correction = np.where(np.isnan(residual), self._tile_effect[self._tiles], residual)
        return np.argsort(-(self._log_score(problem) + correction), kind="stable")

    def _log_score(self, problem: Problem) -> np.ndarray:
        """Return the logarithm of every candidate's score."""
        if problem not in self._log_scores:
            scores = self.search.scores(self.search.candidates, *problem)
            self._log_scores[problem] = np.log(np.maximum(scores, TINY))
        return self._log_scores[problem]

    def _residual(self, problem: Problem) -> np.ndarray:
        """log(rate / score) of the candidates that have a time, less its mean; else NaN."""
        log_ratio = -np.log(self._times[problem]) - self._log_score(problem)
        timed = ~np.isnan(log_ratio)
        return log_ratio - log_ratio[timed].mean() if timed.any() else log_ratio

    @cached_property
    def _tiles(self) -> np.ndarray:
        """The number of each candidate's tile."""
        numbers: dict[Hashable, int] = {}
        keys = (tile_key(config, self.search.axes) for config in self.search.candidates)
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=int)

    @property
    def _tile_effect(self) -> np.ndarray:
        """The mean residual of each tile, shrunk towards 0 where there are few times."""
        if self._known_tile_effect is None:
            residuals = np.array([self._residual(problem) for problem in self.search.problems])
            timed = ~np.isnan(residuals)
            tiles, count = np.broadcast_to(self._tiles, residuals.shape)[timed], len(self._tiles)
            sums = np.bincount(tiles, residuals[timed], minlength=count)
            self._known_tile_effect = sums / (np.bincount(tiles, minlength=count) + 1)
        return self._known_tile_effect

    def _configs(self, numbers: np.ndarray) -> list[Any]:
        return [self.search.candidates[i] for i in numbers]
