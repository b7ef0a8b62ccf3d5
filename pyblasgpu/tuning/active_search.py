"""A search in progress: what its strategy wants next, and the times it was sent."""

from __future__ import annotations

from collections import deque
from typing import Any

from .search_problem import Measurement, SearchProblem, Strategy
from .sweep_log import SearchKey, SweepLog

__all__ = ["ActiveSearch"]


class ActiveSearch:
    """Turns the measurements of a strategy into candidates to try, and their times into its answers.

    What the log knows already is answered from there.

    Attributes
    ----------
    key : SearchKey
    wanted : deque
        Candidates that the strategy wants and that were not taken up yet.
    answered : int
        SearchKey of the strategy that were answered.
    ended : bool
        Whether the strategy wants nothing more.
    """

    def __init__(self, key: SearchKey, search: SearchProblem, strategy: Strategy, log: SweepLog):
        self.key, self.wanted, self.answered, self.ended = key, deque[Any](), 0, False
        self._log, self._steps = log, strategy(search)
        self._unasked = set(search.candidates)  # until the first batch is answered
        self._open: dict[Any, list[Measurement]] = {}
        self._times: dict[Measurement, float] = {}
        self._advance(first=True)

    def measurements(self, config: Any) -> list[Measurement]:
        """The measurements that are wanted of a candidate."""
        return self._open[config]

    def measured(self, measurement: Measurement, seconds: float) -> None:
        """Pass a time to the strategy."""
        self._times[measurement] = seconds

    def close(self, config: Any, failed: bool = False) -> None:
        """There will be no more times of this candidate; if it `failed`, those it had do not count."""
        for measurement in self._open.pop(config):
            if failed:
                self._times.pop(measurement, None)
        if not self._open:
            self._advance()

    def stop(self) -> int:
        """Time is up; how many candidates are left: wanted, or not requested since no batch was answered."""
        left = len(self.wanted) + len(self._unasked)
        self._steps.close()
        self.wanted.clear()
        self.ended = True
        return left

    def _advance(self, first: bool = False) -> None:
        """Advance the strategy, until it wants what is not measured yet or ends."""
        while not self._open and not self.ended:
            try:
                batch = next(self._steps) if first else self._steps.send(self._times)
            except StopIteration:
                self.ended = True
                return
            self.answered += not first
            self._times = {}
            self._take(batch)
            self._unasked = (
                self._unasked.difference(measurement.config for measurement in batch) if first else set()
            )
            first = False

    def _take(self, batch: list[Measurement]) -> None:
        for measurement in batch:
            if self._log.is_out(self.key, measurement.config):
                continue
            known = self._log.seconds(self.key, measurement.config, measurement.size, measurement.extents)
            if known is not None:
                self._times[measurement] = known
            else:
                self._open.setdefault(measurement.config, []).append(measurement)
        self.wanted.extend(self._open)
