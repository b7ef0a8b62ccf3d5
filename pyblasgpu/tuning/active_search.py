"""A strategy at work on one search: what it wants next, and what it has been told."""

from __future__ import annotations

from collections import deque
from typing import Any

from .search_problem import Strategy, Task, Trial
from .sweep_log import Journal, Search

__all__ = ["Hunt"]


class Hunt:
    """Turns the trials of a strategy into candidates to try, and their times into its answers.

    What the journal knows already is answered from there.

    Attributes
    ----------
    key : Search
    wanted : deque
        Candidates that the strategy wants tried and that nobody has taken up yet.
    answered : int
        Batches of the strategy that were answered.
    ended : bool
        Whether the strategy wants nothing more.
    """

    def __init__(self, key: Search, task: Task, strategy: Strategy, journal: Journal):
        self.key, self.wanted, self.answered, self.ended = key, deque[Any](), 0, False
        self._journal, self._steps = journal, strategy(task)
        self._unasked = set(task.candidates)  # until the first batch is answered
        self._open: dict[Any, list[Trial]] = {}
        self._times: dict[Trial, float] = {}
        self._advance(first=True)

    def trials(self, config: Any) -> list[Trial]:
        """The measurements that are wanted of a candidate."""
        return self._open[config]

    def measured(self, trial: Trial, seconds: float) -> None:
        """Tell the strategy a time."""
        self._times[trial] = seconds

    def close(self, config: Any, failed: bool = False) -> None:
        """There will be no more times of this candidate; if it `failed`, those it had do not count."""
        for trial in self._open.pop(config):
            if failed:
                self._times.pop(trial, None)
        if not self._open:
            self._advance()

    def stop(self) -> int:
        """Time is up; how many candidates are left: wanted, or not asked for since no batch was answered."""
        left = len(self.wanted) + len(self._unasked)
        self._steps.close()
        self.wanted.clear()
        self.ended = True
        return left

    def _advance(self, first: bool = False) -> None:
        """Ask the strategy, until it wants what is not known yet or ends."""
        while not self._open and not self.ended:
            try:
                batch = next(self._steps) if first else self._steps.send(self._times)
            except StopIteration:
                self.ended = True
                return
            self.answered += not first
            self._times = {}
            self._take(batch)
            self._unasked = self._unasked.difference(trial.config for trial in batch) if first else set()
            first = False

    def _take(self, batch: list[Trial]) -> None:
        for trial in batch:
            if self._journal.is_out(self.key, trial.config):
                continue
            known = self._journal.seconds(self.key, trial.config, trial.size, trial.extents)
            if known is not None:
                self._times[trial] = known
            else:
                self._open.setdefault(trial.config, []).append(trial)
        self.wanted.extend(self._open)
