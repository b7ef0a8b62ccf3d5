"""Strategies: the order in which candidates are timed, and when to stop.

A strategy is a generator. It yields batches of measurements, is sent the seconds of those that succeeded, and
returns when it wants nothing more. It touches no device, no file and no clock. So a recorded sweep can be
replayed to it (`tuning/papers/replay.py`), which has the searches of the papers as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, product, zip_longest
from typing import Any

from .measurement_table import TINY, MeasurementTable
from .search_problem import Batches, Measurement, Problem, SearchProblem, Strategy

__all__ = [
    "LIKELY",
    "OTHER_FAMILY",
    "STRATEGIES",
    "beginning_with",
    "ending_with_variants",
    "everywhere",
    "exhaustive",
    "in_turns",
    "interleave",
    "likely",
    "score_first",
]

OTHER_FAMILY = 0.7  # of the best score of another family, below which a candidate is not likely to win
LIKELY = (0.8, 0.65, 0.5)  # of the best score: one part after the other, the likeliest winners first


def in_turns(search: SearchProblem) -> list[Any]:
    """The candidates, the best by score for each problem first, then the second best of each, and so on.

    By their best scores alone those for skinny products would be last: at best these are far from the
    device's rate.
    """
    table = MeasurementTable(search)
    return interleave([table.ranked(problem) for problem in search.problems], len(search.candidates))


def exhaustive(search: SearchProblem) -> Batches:
    """Every candidate on every problem."""
    yield everywhere(search.candidates, search.problems)


def likely(search: SearchProblem, least_shares: Sequence[float] = LIKELY) -> Batches:
    """The candidates whose score is near the best of a size class.

    First are those that reach the first of these `parts` of the best score on a problem of the class. Then
    what the next part adds, and so on. Nothing is timed that is far behind another family. Where all of them
    fail, the others are timed.
    """
    table = MeasurementTable(search)
    # of each candidate and class, the largest part of the best score
    shares: dict[tuple[Any, str], float] = {}
    for size, extents in search.problems:
        points = search.scores(search.candidates, size, extents)
        least = OTHER_FAMILY * search.other_families_best.get((size, extents), 0.0)
        best = max(points)
        for config, each in zip(search.candidates, points, strict=True):
            if each >= least:
                shares[config, size] = max(each / max(best, TINY), shares.get((config, size), 0.0))
    all_measurements = everywhere(search.candidates, search.problems)
    for least_share in least_shares:
        yield from table.ask(
            [m for m in all_measurements if shares.get((m.config, m.size), 0.0) >= least_share]
        )
    sizes = {size for (_, size), share in shares.items() if share >= least_shares[-1]}
    empty = [problem for problem in search.problems if problem[0] in sizes and not table.by_time(problem)]
    yield from table.ask(everywhere(search.candidates, empty))


def beginning_with(current: Mapping[str, Any], strategy: Strategy) -> Strategy:
    """First the current Config of each size class, there alone; then the requests of `strategy`.

    So a search that ends early knows what to beat wherever it has timed something.
    """

    def batches(search: SearchProblem) -> Batches:
        yield [
            Measurement(current[size], size, extents) for size, extents in search.problems if size in current
        ]
        yield from strategy(search)

    return batches


def ending_with_variants(strategy: Strategy, variant: Callable[[Any], Any]) -> Strategy:
    """Return a strategy that measures as `strategy` does; then for each problem the variants of the fastest
    two.

    So a switch that matters little is tried for winners alone, and does not double the search.

    Parameters
    ----------
    strategy : Strategy
    variant : callable
        ``variant(config)``; None where there is none.
    """

    def batches(search: SearchProblem) -> Batches:
        known: dict[Problem, dict[Any, float]] = {problem: {} for problem in search.problems}
        steps, times = strategy(search), None
        while True:
            try:
                batch = next(steps) if times is None else steps.send(times)
            except StopIteration:
                break
            times = yield batch
            for measurement, seconds in times.items():
                known[measurement.problem][measurement.config] = seconds
        last = []
        for problem, seconds_of in known.items():
            fastest = sorted(seconds_of, key=seconds_of.__getitem__)[:2]
            variants = [variant(config) for config in fastest]
            last += [Measurement(c, *problem) for c in variants if c and c not in seconds_of]
        if last:
            yield last

    return batches


def score_first(
    search: SearchProblem,
    tiles: int = 8,
    variants: int = 12,
    share: float = 0.06,
    rounds: int = 2,
    patience: int = 8,
) -> Batches:
    """Time the best by score of each problem.

    First one variant of each of the best `tiles` tiles: all variants of one have nearly the same score and
    would fill the list. Then more tiles, by the score and the tile effect, for at least `rounds` rounds. They
    end when `patience` rounds gained nothing or a `share` of the candidates is spent. At last `variants` of
    the three best.
    """
    table = MeasurementTable(search)
    rounds = max(rounds, math.ceil(share * len(search.candidates) / tiles))
    idle, before = 0, dict.fromkeys(search.problems, math.inf)
    for _ in range(rounds):
        first = {problem: table.not_asked(problem, one_of_each=True)[:tiles] for problem in search.problems}
        yield from table.ask(
            [Measurement(c, *problem) for problem in search.problems for c in first[problem]]
        )
        now = {problem: table.best(problem) for problem in search.problems}
        idle = 0 if any(now[problem] < before[problem] for problem in search.problems) else idle + 1
        before = now
        if idle == patience:
            break
    alike = {
        problem: table.not_asked(problem, like=table.by_time(problem)[:3])[:variants]
        for problem in search.problems
    }
    yield from table.ask([Measurement(c, *problem) for problem in search.problems for c in alike[problem]])


def everywhere(configs: Iterable[Any], problems: Iterable[Problem]) -> list[Measurement]:
    """Each of `configs` on each of `problems`."""
    return [Measurement(config, *problem) for config, problem in product(configs, problems)]


def interleave(lists: list[list[Any]], count: int) -> list[Any]:
    """`count` different items: the first of each list, the second of each, ..."""
    mixed = dict.fromkeys(item for row in zip_longest(*lists) for item in row if item is not None)
    return list(islice(mixed, count))


#: Strategies by name, as ``--strategy`` takes them.
STRATEGIES: dict[str, Strategy] = {
    "exhaustive": exhaustive,
    "likely": likely,
    "score-first": score_first,
}
