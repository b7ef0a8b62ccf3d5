"""In which order candidates are timed, and when to stop: the searches of the papers, by name.

A strategy is a generator. It yields batches of trials, is sent the seconds of those that succeeded, and
returns when it wants nothing more. It touches no device, no file and no clock, so that a recorded sweep
can be played to it as well as a device (see `replay`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice, product, zip_longest
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..database import places_of
from ..gpu.device import Device
from .score import score

__all__ = [
    "STRATEGIES", "Axes", "Place", "Strategy", "Task", "Times", "Trial", "beginning_with", "exhaustive",
    "ending_with_twins", "in_turns", "likely", "line", "random", "score_first", "task_of", "three_step",
]  # fmt: skip

#: (size class, extents), where a choice must be made.
Place = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Trial:
    """One measurement that a strategy asks for.

    Attributes
    ----------
    config : object
        A candidate: a Config, or a stop size.
    size : str
        Size class.
    extents : tuple of int
        What is run.
    """

    config: Any
    size: str
    extents: tuple[int, ...]

    @property
    def place(self) -> Place:
        return self.size, self.extents


class Axes(NamedTuple):
    """Attributes of a Config that are varied together, the most important first.

    Attributes
    ----------
    tile : tuple of tuple of str
        What the score depends on most.
    variant : tuple of tuple of str
        How a tile is compiled and loaded.
    """

    tile: tuple[tuple[str, ...], ...] = ()
    variant: tuple[tuple[str, ...], ...] = ()


class Task(NamedTuple):
    """What is searched: one (stem, dtype, layout).

    Attributes
    ----------
    candidates : tuple
        What the rules have left.
    places : tuple of (str, tuple of int)
        Where a choice must be made.
    score : callable
        ``score(config, size, extents)``, an estimate; larger is better.
    axes : Axes
        The lines of the line search, and what makes two candidates variants of one tile.
    rivals : mapping of (str, tuple of int) to float
        The best score that another family promises at a place, if any.
    """

    candidates: tuple[Any, ...]
    places: tuple[Place, ...]
    score: Callable[[Any, str, tuple[int, ...]], float]
    axes: Axes = Axes()
    rivals: Mapping[Place, float] = MappingProxyType({})

    def best_scores(self) -> dict[Place, float]:
        """The best score at each place."""
        return {
            place: max((self.score(config, *place) for config in self.candidates), default=0.0)
            for place in self.places
        }


RIVAL = 0.7  # of the best score of another family, below which a candidate is not likely to win
LIKELY = (0.8, 0.65, 0.5)  # of the best score: one part after the other, the likeliest winners first
TINY = 1e-12  # for the logarithm of a score of nothing
LEAST = 12  # candidates that go on in a three-step search, however few there are

Times = Mapping[Trial, float]
Strategy = Callable[[Task], Generator[list[Trial], Times, None]]

_LEAF_AXES = Axes(
    tile=(("BLK_M", "DIM_X"), ("BLK_N", "DIM_Y"), ("BLK_K", "SLICES")),
    variant=(("stages", "min_blocks"),),
)
_LOADS = ("VEC_A", "DIM_XA", "PAD_A"), ("VEC_B", "DIM_XB", "PAD_B")
_AXES = {
    "gemm_tile": Axes(
        tile=(
            ("BLK_M", "BLK_N"), ("DIM_X", "DIM_Y"), ("BLK_K", "stages", "VEC_K"),
            ("share_a", "share_b", "read_only"),
        ),
        variant=(("min_blocks", "prefetch", "persistent"), ("by_rows",), ("WARP_X",), *_LOADS),
    ),
    "gemm_mma": Axes(
        tile=(
            ("BLK_M", "BLK_N"), ("WARP_M", "WARP_N"), ("BLK_K", "stages"), ("MMA_M", "MMA_K"),
        ),
        variant=(("min_blocks", "prefetch", "persistent"), *_LOADS),
    ),
    "trsm_leaf": _LEAF_AXES,
    "trmm_leaf": _LEAF_AXES,
    "trsm_mma": Axes(
        tile=(("ORDER", "BLK"), ("WARPS", "WARP_N"), ("MMA_M", "MMA_K")),
        variant=(("LOADERS",), ("SPLIT",), ("stages", "min_blocks")),
    ),
    "trsm_fma": Axes(
        tile=(("ORDER", "BLK"), ("WARPS", "WARP_N")),
        variant=(("LOADERS",), ("SPLIT",), ("stages", "min_blocks")),
    ),
}  # fmt: skip


def task_of(stem: str, candidates: tuple[Any, ...], device: Device, sizes: Sequence[str] = ()) -> Task:
    """The task of deciding among `candidates` of a family at every place at which it is tuned, or at those of
    the classes `sizes`.
    """

    def points(config: Any, size: str, extents: tuple[int, ...]) -> float:
        return score(stem, config, extents, device)

    return Task(candidates, places_of(stem, sizes), points, _AXES.get(stem, Axes()))


def in_turns(task: Task) -> list[Any]:
    """The candidates, the best by score at each place first, then the second best of each, and so on.

    By their best scores alone those for skinny products, which at best are far from the device's rate,
    would come last.
    """
    table = _Table(task)
    return _in_turn([table.ranked(place) for place in task.places], len(task.candidates))


Search = Generator[list[Trial], Times, None]


def exhaustive(task: Task) -> Search:
    """Every candidate at every place."""
    yield _everywhere(task.candidates, task.places)


def likely(task: Task, parts: Sequence[float] = LIKELY) -> Search:
    """Every candidate in each size class at one of whose extents its score is the first of these `parts` of
    the best one; then what the next part adds, and so on. Nothing far behind another family's.

    A place where all of them fail gets the others.
    """
    table = _Table(task)
    # of each candidate and class, the largest part of the best score
    shares: dict[tuple[Any, str], float] = {}
    for size, extents in task.places:
        points = {config: task.score(config, size, extents) for config in task.candidates}
        best, rival = max(points.values()), RIVAL * task.rivals.get((size, extents), 0.0)
        for config, each in points.items():
            if each >= rival:
                shares[config, size] = max(each / max(best, TINY), shares.get((config, size), 0.0))
    everywhere = _everywhere(task.candidates, task.places)
    for part in parts:
        yield from table.ask([t for t in everywhere if shares.get((t.config, t.size), 0.0) >= part])
    sizes = {size for (_, size), share in shares.items() if share >= parts[-1]}
    empty = [place for place in task.places if place[0] in sizes and not table.by_time(place)]
    yield from table.ask(_everywhere(task.candidates, empty))


def beginning_with(serving: Mapping[str, Any], strategy: Strategy) -> Strategy:
    """First what serves each size class, there alone; then what `strategy` asks for.

    So a search that ends early knows what to beat wherever it has found something.
    """

    def search(task: Task) -> Search:
        yield [Trial(serving[size], size, extents) for size, extents in task.places if size in serving]
        yield from strategy(task)

    return search


def ending_with_twins(strategy: Strategy, twin: Callable[[Any], Any], count: int = 2) -> Strategy:
    """What `strategy` asks for; then at each place the twins of the fastest `count`, where they have one.

    So a switch that matters little is tried for winners alone, and does not double what is searched.
    """

    def search(task: Task) -> Search:
        known: dict[Place, dict[Any, float]] = {place: {} for place in task.places}
        steps, times = strategy(task), None
        while True:
            try:
                trials = next(steps) if times is None else steps.send(times)
            except StopIteration:
                break
            times = yield trials
            for trial, seconds in times.items():
                known[trial.place][trial.config] = seconds
        fastest = {place: sorted(found, key=found.__getitem__)[:count] for place, found in known.items()}
        twins = {place: [twin(config) for config in found] for place, found in fastest.items()}
        fresh = [(c, place) for place, found in twins.items() for c in found if c and c not in known[place]]
        if fresh:
            yield [Trial(c, *place) for c, place in fresh]

    return search


def random(task: Task, most: int = 64, seed: int = 0) -> Search:
    """`most` candidates drawn at random, at every place: what a search must beat."""
    drawn = Random(seed).sample(task.candidates, min(most, len(task.candidates)))
    yield _everywhere(drawn, task.places)


def line(task: Task, rounds: int = 2) -> Search:
    """ATLAS's relaxed line search, at every place on its own.

    From the candidate of the best score on, one group of axes after the other is searched in full, the
    others held; what interacts is in one group. It ends when a round over all groups brings nothing, or
    after `rounds`.
    """
    groups = (*task.axes.tile, *task.axes.variant) or ((),)
    table = _Table(task)
    at = {place: table.ranked(place)[0] for place in task.places}
    for _ in range(rounds):
        before = dict(at)
        for group in groups:
            lines = {place: table.line(at[place], group, place) for place in task.places}
            yield from table.ask([Trial(c, *place) for place, found in lines.items() for c in found])
            at = {place: table.fastest(place, at[place]) for place in task.places}
        if at == before:
            return


def three_step(task: Task, keep: int = 50, share: float = 1.0) -> Search:
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
    table = _Table(task)
    count = max(math.ceil(share * len(task.candidates)), 2 * LEAST)
    first = _in_turn([table.ranked(place) for place in task.places], count)
    by_work = sorted(task.places, key=lambda place: math.prod(place[1]))
    two = list(dict.fromkeys((by_work[0], by_work[-1])))
    yield from table.ask(_everywhere(first, two))
    keep = min(keep, max(LEAST, math.ceil(len(task.candidates) / 20)))
    left = _in_turn([table.expected(place) for place in task.places], keep)
    yield from table.ask(_everywhere(left, task.places))


def score_first(
    task: Task, tiles: int = 8, variants: int = 12, share: float = 0.06, rounds: int = 2, patience: int = 8
) -> Search:
    """At every place the best by score.

    First one variant of each of so many `tiles`: all variants of one have nearly the same score and would
    fill the list. Then more tiles, by score and by how others of their kind did, until `patience` rounds
    brought nothing anywhere or a `share` of the candidates is spent, for at least so many `rounds`. At last
    `variants` of the three best.
    """
    table = _Table(task)
    rounds = max(rounds, math.ceil(share * len(task.candidates) / tiles))
    idle, before = 0, dict.fromkeys(task.places, math.inf)
    for _ in range(rounds):
        fresh = {place: table.fresh(place, one_of_each=True)[:tiles] for place in task.places}
        yield from table.ask([Trial(c, *place) for place in task.places for c in fresh[place]])
        now = {place: table.best(place) for place in task.places}
        idle = 0 if any(now[place] < before[place] for place in task.places) else idle + 1
        before = now
        if idle == patience:
            break
    alike = {place: table.fresh(place, like=table.by_time(place)[:3])[:variants] for place in task.places}
    yield from table.ask([Trial(c, *place) for place in task.places for c in alike[place]])


def tile_key(config: Any, axes: Axes) -> Hashable:
    """Equal for variants of one tile."""
    names = [name for group in axes.tile for name in group]
    return tuple(getattr(config, name, None) for name in names) if names else config


def _everywhere(configs: Iterable[Any], places: Iterable[Place]) -> list[Trial]:
    return [Trial(config, *place) for config, place in product(configs, places)]


def _in_turn(lists: list[list[Any]], count: int) -> list[Any]:
    """`count` different items: the first of each list, the second of each, ..."""
    mixed = dict.fromkeys(item for row in zip_longest(*lists) for item in row if item is not None)
    return list(islice(mixed, count))


class _Table:
    """What a search knows: the scores, and the times so far; each an array over the candidates a place."""

    def __init__(self, task: Task):
        self.task = task
        self._number = {config: i for i, config in enumerate(task.candidates)}
        self._asked = {place: np.zeros(len(task.candidates), dtype=bool) for place in task.places}
        self._times = {place: np.full(len(task.candidates), math.nan) for place in task.places}
        self._points: dict[Place, np.ndarray] = {}
        self._ranked: dict[Place, list[Any]] = {}
        self._lucky: np.ndarray | None = None

    def ask(self, trials: list[Trial]) -> Search:
        """Yield those of `trials` that were not asked for before, and keep the answers."""
        fresh = []
        for trial in trials:
            asked, number = self._asked[trial.place], self._number[trial.config]
            if not asked[number]:
                asked[number] = True
                fresh.append(trial)
        if fresh:
            answers = yield fresh
            for trial, seconds in answers.items():
                self._times[trial.place][self._number[trial.config]] = seconds
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
            points = [self.task.score(config, *place) for config in self.task.candidates]
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
        keys = (tile_key(config, self.task.axes) for config in self.task.candidates)
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=int)

    @property
    def _luck(self) -> np.ndarray:
        """By tile, how much better than its score it did on average, in logarithms; few times count less."""
        if self._lucky is None:
            surprises = np.array([self._surprise(place) for place in self.task.places])
            timed = ~np.isnan(surprises)
            tiles, count = np.broadcast_to(self._tiles, surprises.shape)[timed], len(self._tiles)
            sums = np.bincount(tiles, surprises[timed], minlength=count)
            self._lucky = sums / (np.bincount(tiles, minlength=count) + 1)
        return self._lucky

    def _named(self, numbers: np.ndarray) -> list[Any]:
        return [self.task.candidates[i] for i in numbers]

    def fastest(self, place: Place, otherwise: Any) -> Any:
        return next(iter(self.by_time(place)), otherwise)

    def line(self, start: Any, group: tuple[str, ...], place: Place) -> list[Any]:
        """For every value of `group` the candidate that is otherwise most like `start`."""
        others = [n for g in (*self.task.axes.tile, *self.task.axes.variant) if g != group for n in g]
        found: dict[tuple, tuple[int, Any]] = {}
        for config in self.ranked(place):
            value = tuple(getattr(config, name, None) for name in group) if group else config
            differs = sum(getattr(config, name, None) != getattr(start, name, None) for name in others)
            if value not in found or differs < found[value][0]:
                found[value] = differs, config
        return [config for _, config in found.values()]


#: By name. In the three-step search part of the candidates takes part, the best by score.
STRATEGIES: dict[str, Strategy] = {
    "exhaustive": exhaustive,
    "likely": likely,
    "random": random,
    "line": line,
    "three-step": partial(three_step, share=0.18),
    "score-first": score_first,
}
