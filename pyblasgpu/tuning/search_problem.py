"""Input of a search: candidates, problems, an estimate of their times, and what varies together."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from ..database import tuned_points
from ..gpu.device import Device
from ..kernels.registry import FAMILIES, Axes
from ..model.score import scores

__all__ = [
    "Axes",
    "Problem",
    "Batches",
    "Strategy",
    "SearchProblem",
    "Times",
    "Measurement",
    "search_problem_of",
    "tile_key",
]

#: (size class, extents): a call for which the fastest Config is wanted.
Problem = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Measurement:
    """One measurement that a strategy requests.

    Attributes
    ----------
    config : object
        A candidate.
    size : str
        Size class.
    extents : tuple of int
        Extents that are run.
    """

    config: Any
    size: str
    extents: tuple[int, ...]

    @property
    def problem(self) -> Problem:
        return self.size, self.extents


class SearchProblem(NamedTuple):
    """Input of a search for one (stem, dtype, layout).

    Attributes
    ----------
    candidates : tuple
        Configs that keep the rules.
    problems : tuple of (str, tuple of int)
        Problems for which the fastest Config is wanted.
    scores : callable
        ``scores(candidates, size, extents)``, an estimate for each; larger is better.
    axes : Axes
        The lines of the line search, and what makes two candidates variants of one tile.
    other_families_best : mapping of (str, tuple of int) to float
        The best score that another family promises for a problem, if any.
    """

    candidates: tuple[Any, ...]
    problems: tuple[Problem, ...]
    scores: Callable[[tuple[Any, ...], str, tuple[int, ...]], Sequence[float]]
    axes: Axes = Axes()
    other_families_best: Mapping[Problem, float] = MappingProxyType({})

    def best_scores(self) -> dict[Problem, float]:
        """The best score for each problem."""
        return {
            problem: max(self.scores(self.candidates, *problem), default=0.0) for problem in self.problems
        }


Times = Mapping[Measurement, float]
#: Yields batches of measurements, and is sent the seconds of those that succeeded.
Batches = Generator[list[Measurement], Times, None]
Strategy = Callable[[SearchProblem], Batches]


def search_problem_of(
    stem: str, candidates: tuple[Any, ...], device: Device, sizes: Sequence[str] = ()
) -> SearchProblem:
    """The search among `candidates` of a family, on all its problems or on those of the classes `sizes`."""

    def points(configs: tuple[Any, ...], size: str, extents: tuple[int, ...]) -> list[float]:
        at_problem: list[float] = scores(configs, [extents], device)[:, 0].tolist()
        return at_problem

    return SearchProblem(candidates, tuned_points(stem, sizes), points, FAMILIES[stem].axes)


def tile_key(config: Any, axes: Axes) -> Hashable:
    """Equal for variants of one tile."""
    names = [name for group in axes.tile for name in group]
    return tuple(getattr(config, name, None) for name in names) if names else config
