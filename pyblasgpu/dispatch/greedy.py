"""The order in which candidates that were timed at several problems are worth having.

First the one that serves all of them best, then again and again the one that gains most beside those before:
the greedy choice for a submodular gain (Nemhauser, Wolsey and Fisher 1978), as for portfolios of algorithms
(Leyton-Brown et al. 2003).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["GreedyOrder"]

UNTIMED = 0.3  # of the best rate at a problem, what a candidate is taken to reach where it was not timed


class GreedyOrder:
    """Iterates over candidates in that order, those that gain nothing last.

    Parameters
    ----------
    rates : mapping
        Candidate -> problem -> rate.
    weight : callable
        ``weight(problem)``: what the logarithm of a rate counts for.

    Attributes
    ----------
    gain : float
        Of the next candidate: how much larger the mean logarithm of the rates becomes.
    """

    def __init__(self, rates: Mapping[Any, Mapping[Any, float]], weight: Callable[[Any], float]):
        self._candidates = list(rates)
        if not self._candidates:
            self.gain, self._left = 0.0, np.zeros(0, bool)
            return
        problems = list(dict.fromkeys(problem for at in rates.values() for problem in at))
        table = np.array([[at.get(problem, 0.0) for problem in problems] for at in rates.values()])
        weights = np.array([weight(problem) for problem in problems])
        self._weights = weights / max(weights.sum(), 1e-9)
        best = np.maximum(table.max(axis=0), 1e-30)
        self._logs = np.log(np.maximum(table / best, UNTIMED))
        self._covered = np.full(len(problems), np.log(UNTIMED))
        self._left = np.ones(len(self._candidates), bool)
        self._find()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        """The next one."""
        if not self._left.any():
            raise StopIteration
        candidate = self._candidates[self._next]
        self.take(candidate)
        return candidate

    def take(self, candidate: Any) -> None:
        """Count `candidate` as one of those before, whatever it gains."""
        number = self._candidates.index(candidate)
        self._left[number] = False
        self._covered = np.maximum(self._covered, self._logs[number])
        self._find()

    def _find(self) -> None:
        gains = (np.maximum(self._logs, self._covered) - self._covered) @ self._weights
        gains = np.where(self._left, gains, -1.0)
        self._next = int(gains.argmax())
        self.gain = float(gains[self._next])
