"""In which order candidates are timed, and when to stop: the searches of the papers, by name.

A strategy is a generator. It yields batches of trials, is sent the seconds of those that succeeded, and
returns when it wants nothing more. It touches no device, no file and no clock, so that a recorded sweep
can be played to it as well as a device (see `replay`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..database import sizes_of, tuned_at
from ..gpu.device import Device
from .score import score

__all__ = ["STRATEGIES", "Axes", "Place", "Strategy", "Task", "Times", "Trial", "exhaustive", "task_of"]

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


class Axes(NamedTuple):
    """Attributes of a Config that are varied together, the most important first.

    Attributes
    ----------
    tile : tuple of tuple of str
        What decides resources and reuse.
    variant : tuple of tuple of str
        How a tile is loaded.
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
    """

    candidates: tuple[Any, ...]
    places: tuple[Place, ...]
    score: Callable[[Any, str, tuple[int, ...]], float]
    axes: Axes = Axes()


Times = Mapping[Trial, float]
Strategy = Callable[[Task], Generator[list[Trial], Times, None]]

_LEAF_AXES = Axes(
    tile=(("BLK_M", "DIM_X"), ("BLK_N", "DIM_Y"), ("BLK_K", "SLICES"), ("stages",), ("min_blocks",))
)
_AXES = {
    "gemm_tile": Axes(
        tile=(
            ("BLK_M", "BLK_N"), ("DIM_X", "DIM_Y"), ("BLK_K", "stages"), ("min_blocks",),
            ("share_a", "share_b", "read_only"),
        ),
        variant=(("WARP_X",), ("VEC_A", "DIM_XA", "PAD_A"), ("VEC_B", "DIM_XB", "PAD_B")),
    ),
    "trsm_leaf": _LEAF_AXES,
    "trmm_leaf": _LEAF_AXES,
}  # fmt: skip


def task_of(stem: str, candidates: tuple[Any, ...], device: Device) -> Task:
    """The task of deciding among `candidates` of a family at every place at which it is tuned."""
    places = tuple((size, extents) for size in sizes_of(stem) for extents in tuned_at(stem, size))

    def points(config: Any, size: str, extents: tuple[int, ...]) -> float:
        return score(stem, config, extents, device)

    return Task(candidates, places, points, _AXES.get(stem, Axes()))


def exhaustive(task: Task) -> Generator[list[Trial], Times, None]:
    """Every candidate at every place."""
    yield [Trial(config, *place) for config in task.candidates for place in task.places]


def tile_key(config: Any, axes: Axes) -> Hashable:
    """Equal for candidates that differ in how a tile is loaded only."""
    return tuple(getattr(config, name, config) for group in axes.tile for name in group)


STRATEGIES: dict[str, Strategy] = {"exhaustive": exhaustive}
