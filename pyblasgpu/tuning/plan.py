"""What a search starts from: its candidates, in an order in which a run may end anywhere, and its rivals.

It takes seconds of a core for each search, and no device: a run has it done in a process beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..database import FAMILIES, families_of, places_of
from ..gpu.device import Device
from .prune import Guidelines, candidates
from .search_problem import Place, search_problem_of
from .strategies import in_turns
from .sweep_log import Search

__all__ = ["Plan", "plan"]


class Plan(NamedTuple):
    """What a search starts from.

    Attributes
    ----------
    configs : list
        What the rules leave, the best by score at each place first.
    rivals : dict of (str, tuple of int) to float
        The best score that another family of the routine promises at a place.
    """

    configs: list[Any]
    rivals: dict[Place, float]


def plan(
    key: Search, device: Device, effort: str, guidelines: Guidelines | None, sizes: Sequence[str] = ()
) -> Plan:
    """The plan of a search, (stem, dtype, layout).

    Parameters
    ----------
    key : Search
    device : Device
    effort : str
        As in `space`.
    guidelines : Guidelines or None
        As in `prune.candidates`.
    sizes : sequence of str, optional
        Size classes. Default: all.
    """
    places = [extents for _, extents in places_of(key[0], sizes)]
    left = candidates(*key, device, effort, guidelines, places).left
    return Plan(in_turns(search_problem_of(key[0], tuple(left), device, sizes)), _rivals(key, device))


def _rivals(key: Search, device: Device) -> dict[Place, float]:
    stem, dtype, _ = key
    found: dict[Place, float] = {}
    for other in families_of(FAMILIES[stem].routine, dtype):
        if other != stem:
            for place, points in _promised(other, dtype, device).items():
                found[place] = max(points, found.get(place, 0.0))
    return found


@lru_cache
def _promised(stem: str, dtype: str, device: Device) -> dict[Place, float]:
    """The best scores of a family's short list in its first layout; the others differ in loads only."""
    short = candidates(stem, dtype, FAMILIES[stem].layouts[0], device, "quick").left
    return search_problem_of(stem, tuple(short), device).best_scores()
