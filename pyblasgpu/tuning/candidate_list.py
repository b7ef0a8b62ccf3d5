"""Start of a search: its candidates in order, and the best scores of other families.

The order is such that a run may end anywhere. A list takes seconds of a core and no device, so a run has the
lists made in processes of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ..database import FAMILIES, families_of, tuned_points
from ..gpu.device import Device
from .prune import Guidelines, candidates
from .search_problem import Problem, search_problem_of
from .strategies import in_turns
from .sweep_log import SearchKey

__all__ = ["CandidateList", "CandidateOptions", "candidate_list"]


@dataclass(frozen=True)
class CandidateOptions:
    """Candidates of a run.

    Attributes
    ----------
    effort : str
        Effort, as in `space`.
    sizes : sequence of str
        Size classes that are tuned; none: all.
    guidelines : callable
        Gives the guidelines of a family in a dtype; by default those of `prune.candidates`.
    executor : Executor or None
        Makes the lists of candidates; None: a thread of this process.
    """

    effort: str = "quick"
    sizes: Sequence[str] = ()
    guidelines: Callable[[str, str], Guidelines | None] = lambda stem, dtype: None
    executor: Executor | None = None


class CandidateList(NamedTuple):
    """Start of a search.

    Attributes
    ----------
    configs : list
        Configs that keep the rules, the best by score for each problem first.
    other_families_best : dict of (str, tuple of int) to float
        The best score that another family of the routine promises for a problem.
    """

    configs: list[Any]
    other_families_best: dict[Problem, float]


def candidate_list(
    key: SearchKey, device: Device, effort: str, guidelines: Guidelines | None, sizes: Sequence[str] = ()
) -> CandidateList:
    """The candidates of a search, (stem, dtype, layout).

    Parameters
    ----------
    key : SearchKey
    device : Device
    effort : str
        Effort, as in `space`.
    guidelines : Guidelines or None
        Guidelines, as in `prune.candidates`.
    sizes : sequence of str, optional
        Size classes. Default: all.
    """
    problems = [extents for _, extents in tuned_points(key[0], sizes)]
    left = candidates(*key, device, effort, guidelines, problems).left
    search = search_problem_of(key[0], tuple(left), device, sizes)
    return CandidateList(in_turns(search), _other_families_best(key, device))


def _other_families_best(key: SearchKey, device: Device) -> dict[Problem, float]:
    stem, dtype, _ = key
    best: dict[Problem, float] = {}
    for other in families_of(FAMILIES[stem].routine, dtype):
        if other != stem:
            for problem, points in _best_scores(other, dtype, device).items():
                best[problem] = max(points, best.get(problem, 0.0))
    return best


@lru_cache
def _best_scores(stem: str, dtype: str, device: Device) -> dict[Problem, float]:
    """The best scores of a family's short list in its first layout; the others differ in loads only."""
    short = candidates(stem, dtype, FAMILIES[stem].layouts[0], device, "quick").left
    return search_problem_of(stem, tuple(short), device).best_scores()
