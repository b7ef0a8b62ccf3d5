"""Tune with the searches of the papers: ``python tuning/papers/strategies.py --strategy three-step ...``

The same as ``pyblasgpu tune``, whose options it takes, with more strategies: ATLAS's line search, the
three-step search of Matsumoto et al., and a random sample.
"""

from __future__ import annotations

import math
import sys
from functools import partial
from random import Random
from typing import Any

from pyblasgpu import cli
from pyblasgpu.tuning.measurement_table import MeasurementTable
from pyblasgpu.tuning.search_problem import Batches, Measurement, Problem, SearchProblem, Strategy
from pyblasgpu.tuning.strategies import STRATEGIES, everywhere, interleave

__all__ = ["ALL_STRATEGIES", "line", "main", "random", "three_step"]

LEAST = 12  # candidates that go on in a three-step search, however few there are


def random(search: SearchProblem, most: int = 64, seed: int = 0) -> Batches:
    """`most` candidates drawn at random, on every problem: what a search must beat."""
    drawn = Random(seed).sample(search.candidates, min(most, len(search.candidates)))
    yield everywhere(drawn, search.problems)


def line(search: SearchProblem, rounds: int = 2) -> Batches:
    """The relaxed line search of ATLAS, for each problem on its own.

    From the candidate of the best score on, one group of axes after the other is searched in full, the
    others held. What interacts is in one group. It ends when a round over all groups brings nothing, or
    after `rounds`.
    """
    groups = (*search.axes.tile, *search.axes.variant) or ((),)
    table = MeasurementTable(search)
    at = {problem: table.ranked(problem)[0] for problem in search.problems}
    for _ in range(rounds):
        before = dict(at)
        for group in groups:
            lines = {problem: _line(table, at[problem], group, problem) for problem in search.problems}
            yield from table.ask([Measurement(c, *p) for p, configs in lines.items() for c in configs])
            at = {problem: next(iter(table.by_time(problem)), at[problem]) for problem in search.problems}
        if at == before:
            return


def _line(table: MeasurementTable, start: Any, group: tuple[str, ...], problem: Problem) -> list[Any]:
    """Return for every value of `group` the candidate that is otherwise most like `start`."""
    axes = table.search.axes
    others = [name for each in (*axes.tile, *axes.variant) if each != group for name in each]
    nearest: dict[tuple, tuple[int, Any]] = {}
    for config in table.ranked(problem):
        value = tuple(getattr(config, name, None) for name in group) if group else config
        distance = sum(getattr(config, name, None) != getattr(start, name, None) for name in others)
        if value not in nearest or distance < nearest[value][0]:
            nearest[value] = distance, config
    return [config for _, config in nearest.values()]


def three_step(search: SearchProblem, keep: int = 50, share: float = 1.0) -> Batches:
    """The search of Matsumoto et al.: all candidates at two sizes, the best `keep` at all sizes, pick.

    Parameters
    ----------
    keep : int
        How many go on, but no more than a twentieth of the candidates, or `LEAST`.
    share : float
        Part of the candidates, the best by score for one of the problems, that takes part at all.

    Notes
    -----
    The two sizes are the smallest and the largest. What goes on are the fastest for each problem in turn: by
    time at those two, elsewhere by the score and the tile effect.
    """
    table = MeasurementTable(search)
    count = max(math.ceil(share * len(search.candidates)), 2 * LEAST)
    first = interleave([table.ranked(problem) for problem in search.problems], count)
    by_work = sorted(search.problems, key=lambda problem: math.prod(problem[1]))
    two = list(dict.fromkeys((by_work[0], by_work[-1])))
    yield from table.ask(everywhere(first, two))
    keep = min(keep, max(LEAST, math.ceil(len(search.candidates) / 20)))
    left = interleave([table.expected(problem) for problem in search.problems], keep)
    yield from table.ask(everywhere(left, search.problems))


#: By name. In the three-step search part of the candidates takes part, the best by score.
ALL_STRATEGIES: dict[str, Strategy] = {
    **STRATEGIES,
    "random": random,
    "line": line,
    "three-step": partial(three_step, share=0.18),
}


def main(arguments: list[str]) -> int:
    """Tune; returns the exit code."""
    STRATEGIES.update(ALL_STRATEGIES)
    return cli.main(["tune", *arguments])


if __name__ == "__main__":  # the processes that compile import this file too
    sys.exit(main(sys.argv[1:]))
