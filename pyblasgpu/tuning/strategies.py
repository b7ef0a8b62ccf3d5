"""In which order candidates are timed, and when to stop: the searches of the papers, by name.

A strategy is a generator. It yields batches of measurements, is sent the seconds of those that succeeded, and
returns when it wants nothing more. It touches no device, no file and no clock, so that a recorded sweep
can be played to it as well as a device (see `replay`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice, product, zip_longest
from random import Random
from typing import Any

from .result_table import TINY, MeasurementTable
from .search_problem import Measurement, Place, Search, SearchProblem, Strategy

__all__ = [
    "STRATEGIES", "beginning_with", "ending_with_twins", "exhaustive", "in_turns", "likely", "line", "random",
    "score_first", "three_step",
]  # fmt: skip

RIVAL = 0.7  # of the best score of another family, below which a candidate is not likely to win
LIKELY = (0.8, 0.65, 0.5)  # of the best score: one part after the other, the likeliest winners first
LEAST = 12  # candidates that go on in a three-step search, however few there are


def in_turns(search: SearchProblem) -> list[Any]:
    """The candidates, the best by score at each place first, then the second best of each, and so on.

    By their best scores alone those for skinny products, which at best are far from the device's rate,
    would come last.
    """
    table = MeasurementTable(search)
    return _in_turn([table.ranked(place) for place in search.places], len(search.candidates))


def exhaustive(search: SearchProblem) -> Search:
    """Every candidate at every place."""
    yield _everywhere(search.candidates, search.places)


def likely(search: SearchProblem, parts: Sequence[float] = LIKELY) -> Search:
    """Every candidate in each size class at one of whose extents its score is the first of these `parts` of
    the best one; then what the next part adds, and so on. Nothing far behind another family's.

    A place where all of them fail gets the others.
    """
    table = MeasurementTable(search)
    # of each candidate and class, the largest part of the best score
    shares: dict[tuple[Any, str], float] = {}
    for size, extents in search.places:
        points = {config: search.score(config, size, extents) for config in search.candidates}
        best, rival = max(points.values()), RIVAL * search.rivals.get((size, extents), 0.0)
        for config, each in points.items():
            if each >= rival:
                shares[config, size] = max(each / max(best, TINY), shares.get((config, size), 0.0))
    everywhere = _everywhere(search.candidates, search.places)
    for part in parts:
        yield from table.ask([t for t in everywhere if shares.get((t.config, t.size), 0.0) >= part])
    sizes = {size for (_, size), share in shares.items() if share >= parts[-1]}
    empty = [place for place in search.places if place[0] in sizes and not table.by_time(place)]
    yield from table.ask(_everywhere(search.candidates, empty))


def beginning_with(serving: Mapping[str, Any], strategy: Strategy) -> Strategy:
    """First what serves each size class, there alone; then what `strategy` asks for.

    So a search that ends early knows what to beat wherever it has found something.
    """

    def batches(search: SearchProblem) -> Search:
        yield [
            Measurement(serving[size], size, extents) for size, extents in search.places if size in serving
        ]
        yield from strategy(search)

    return batches


def ending_with_twins(strategy: Strategy, twin: Callable[[Any], Any], count: int = 2) -> Strategy:
    """What `strategy` asks for; then at each place the twins of the fastest `count`, where they have one.

    So a switch that matters little is tried for winners alone, and does not double what is searched.
    """

    def batches(search: SearchProblem) -> Search:
        known: dict[Place, dict[Any, float]] = {place: {} for place in search.places}
        steps, times = strategy(search), None
        while True:
            try:
                measurements = next(steps) if times is None else steps.send(times)
            except StopIteration:
                break
            times = yield measurements
            for measurement, seconds in times.items():
                known[measurement.place][measurement.config] = seconds
        fastest = {place: sorted(found, key=found.__getitem__)[:count] for place, found in known.items()}
        twins = {place: [twin(config) for config in found] for place, found in fastest.items()}
        fresh = [(c, place) for place, found in twins.items() for c in found if c and c not in known[place]]
        if fresh:
            yield [Measurement(c, *place) for c, place in fresh]

    return batches


def random(search: SearchProblem, most: int = 64, seed: int = 0) -> Search:
    """`most` candidates drawn at random, at every place: what a search must beat."""
    drawn = Random(seed).sample(search.candidates, min(most, len(search.candidates)))
    yield _everywhere(drawn, search.places)


def line(search: SearchProblem, rounds: int = 2) -> Search:
    """ATLAS's relaxed line search, at every place on its own.

    From the candidate of the best score on, one group of axes after the other is searched in full, the
    others held; what interacts is in one group. It ends when a round over all groups brings nothing, or
    after `rounds`.
    """
    groups = (*search.axes.tile, *search.axes.variant) or ((),)
    table = MeasurementTable(search)
    at = {place: table.ranked(place)[0] for place in search.places}
    for _ in range(rounds):
        before = dict(at)
        for group in groups:
            lines = {place: table.line(at[place], group, place) for place in search.places}
            yield from table.ask([Measurement(c, *place) for place, found in lines.items() for c in found])
            at = {place: table.fastest(place, at[place]) for place in search.places}
        if at == before:
            return


def three_step(search: SearchProblem, keep: int = 50, share: float = 1.0) -> Search:
    """The search of Matsumoto et al.: all candidates at two sizes, the best `keep` at all sizes, pick.

    Parameters
    ----------
    keep : int
        How many go on, but no more than a twentieth of the candidates, or `LEAST`.
    share : float
        Part of the candidates, the best by score at one of the places, that takes part at all.

    Notes
    -----
    The two sizes are the smallest and the largest. What goes on are the fastest at each of the places in
    turn: by time at those two, elsewhere by score, corrected by what the times said of it.
    """
    table = MeasurementTable(search)
    count = max(math.ceil(share * len(search.candidates)), 2 * LEAST)
    first = _in_turn([table.ranked(place) for place in search.places], count)
    by_work = sorted(search.places, key=lambda place: math.prod(place[1]))
    two = list(dict.fromkeys((by_work[0], by_work[-1])))
    yield from table.ask(_everywhere(first, two))
    keep = min(keep, max(LEAST, math.ceil(len(search.candidates) / 20)))
    left = _in_turn([table.expected(place) for place in search.places], keep)
    yield from table.ask(_everywhere(left, search.places))


def score_first(
    search: SearchProblem,
    tiles: int = 8,
    variants: int = 12,
    share: float = 0.06,
    rounds: int = 2,
    patience: int = 8,
) -> Search:
    """At every place the best by score.

    First one variant of each of so many `tiles`: all variants of one have nearly the same score and would
    fill the list. Then more tiles, by score and by how others of their kind did, until `patience` rounds
    brought nothing anywhere or a `share` of the candidates is spent, for at least so many `rounds`. At last
    `variants` of the three best.
    """
    table = MeasurementTable(search)
    rounds = max(rounds, math.ceil(share * len(search.candidates) / tiles))
    idle, before = 0, dict.fromkeys(search.places, math.inf)
    for _ in range(rounds):
        fresh = {place: table.fresh(place, one_of_each=True)[:tiles] for place in search.places}
        yield from table.ask([Measurement(c, *place) for place in search.places for c in fresh[place]])
        now = {place: table.best(place) for place in search.places}
        idle = 0 if any(now[place] < before[place] for place in search.places) else idle + 1
        before = now
        if idle == patience:
            break
    alike = {place: table.fresh(place, like=table.by_time(place)[:3])[:variants] for place in search.places}
    yield from table.ask([Measurement(c, *place) for place in search.places for c in alike[place]])


def _everywhere(configs: Iterable[Any], places: Iterable[Place]) -> list[Measurement]:
    return [Measurement(config, *place) for config, place in product(configs, places)]


def _in_turn(lists: list[list[Any]], count: int) -> list[Any]:
    """`count` different items: the first of each list, the second of each, ..."""
    mixed = dict.fromkeys(item for row in zip_longest(*lists) for item in row if item is not None)
    return list(islice(mixed, count))


#: By name. In the three-step search part of the candidates takes part, the best by score.
STRATEGIES: dict[str, Strategy] = {
    "exhaustive": exhaustive,
    "likely": likely,
    "random": random,
    "line": line,
    "three-step": partial(three_step, share=0.18),
    "score-first": score_first,
}
