"""The funnel: rules of the Config, limits of the device, guidelines. The compiler goes on (`compile_pool`).

A rule is a `ConfigError`, wherever it is raised; the funnel counts by its name.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from ..database import FAMILIES, tuned_points
from ..dispatch.product_kinds import persistent
from ..errors import ConfigError
from ..gpu.device import Device
from ..gpu.garbage import uncollected
from ..kernels.common.axes import Axis, Parameters, length
from ..kernels.space import space
from ..model.occupancy import Fit, check_device, demand, has_register_slack, registers_needed
from ..model.score import scores
from ..types import DTYPES
from .configs import ConfigBuilder

__all__ = ["GUIDELINES", "Funnel", "Guidelines", "best_few", "candidates", "defaults", "tile_of"]


@dataclass(frozen=True)
class Guidelines:
    """Minimums that a candidate must reach beyond running at all (Table 1 of Kurzak et al.).

    Attributes
    ----------
    threads, blocks : int
        Resident at once on a multiprocessor.
    reuse : float
        FMAs for each element loaded in the innermost loop.
    score : float
        Share of the best estimate, at one of the problems at which the family is tuned, that a candidate's
        must reach there. 0 leaves it to the effort how many are kept.
    """

    threads: int = 64
    blocks: int = 1
    reuse: float = 1.0
    score: float = 0.0


#: Loose ones: small tiles win small products.
GUIDELINES = {
    "s": Guidelines(reuse=1.3),
    "d": Guidelines(reuse=1.0),
    "c": Guidelines(reuse=2.0),
    "z": Guidelines(reuse=1.5),
}

#: A leaf's threads are many and their tiles small, because its columns are few; or it is a single warp.
LEAF_GUIDELINES = Guidelines(threads=32, reuse=0.6)

EXHAUSTIVE_SCORE = 0.95  # of all ways to load every tile, some 10^5, what the guidelines require by default
NORMAL = 24  # candidates that 'normal' keeps for each size class
OUTERMOST = 500  # values of the outermost loop that are scored at once
ALIKE = 4  # and of these with the same block of C
PERSISTENT = {"quick": 2, "normal": 6, "exhaustive": 12}  # persistent candidates for each size class


@dataclass
class Funnel:
    """Counts of the candidates: how many went in, how many each rule removed; and those that are left.

    Some of these were added: persistent variants of others, and to 'normal' what 'quick' has besides.
    """

    total: int = 0
    added: int = 0
    removed: Counter[str] = field(default_factory=Counter)
    left: list[Any] = field(default_factory=list)

    def drop(self, rule: str, count: int = 1) -> None:
        self.removed[rule] += count
        self.total += count


def check_guidelines(config: Any, fit: Fit, guidelines: Guidelines) -> None:
    """Raise `ConfigError` where `config` is not worth compiling, by the formulas of its family."""
    (threads, _, shared), device = demand(config), fit.device
    limit = device.max_registers_per_thread
    needed = registers_needed(config, device)
    if config.reuse < guidelines.reuse:
        raise ConfigError("reuse", f"reuse >= {guidelines.reuse}", reuse=config.reuse)
    if needed > limit:
        raise ConfigError("registers", f"estimated registers <= {limit}", registers=needed)
    fits = fit.occupancy(threads, needed, shared)
    if fits < config.min_blocks:
        few = {"blocks": fits, "min_blocks": config.min_blocks}
        raise ConfigError("occupancy", "blocks a multiprocessor holds >= min_blocks", **few)
    blocks = fit.blocks(config)
    if blocks < guidelines.blocks:
        raise ConfigError("blocks", f"blocks >= {guidelines.blocks}", blocks=blocks)
    # a bound that does not bind gives the same code again
    is_asked = config.min_blocks > 1 and "min_blocks" in FAMILIES[config.STEM].parameters
    if is_asked and has_register_slack(config, device):
        same = "min_blocks == 1 where registers are not short"
        raise ConfigError("same_code", same, min_blocks=config.min_blocks)
    if blocks * threads < guidelines.threads:
        least = f"resident threads >= {guidelines.threads}"
        raise ConfigError("threads", least, threads=blocks * threads)


def defaults(stem: str, dtype: str, effort: str) -> Guidelines:
    """The guidelines of a family where none are given."""
    wanted = GUIDELINES[dtype] if FAMILIES[stem].routine == "gemm" else LEAF_GUIDELINES
    return replace(wanted, score=EXHAUSTIVE_SCORE) if effort == "exhaustive" else wanted


@uncollected()  # a fifth of the time otherwise: the objects form no cycle
def candidates(
    stem: str,
    dtype: str,
    layout: str,
    device: Device,
    effort: str = "quick",
    guidelines: Guidelines | None = None,
    problems: Sequence[tuple[int, ...]] = (),
) -> Funnel:
    """The candidates of a family that its rules, `device` and the guidelines leave.

    Parameters
    ----------
    stem, dtype, layout : str
        Key, as in the database.
    effort : str
        'quick', 'normal' or 'exhaustive'; 'normal' keeps the best by `score.score` at each problem and what
        'quick' has, unless the guidelines say how near the best a candidate must be.
    guidelines : Guidelines, optional
        Default: `defaults`.
    problems : sequence of extents, optional
        Problems where the score decides. Default: where the family is tuned.
    """
    wanted = guidelines or defaults(stem, dtype, effort)
    axes = space(stem, DTYPES[dtype], layout, device, effort)
    problems = problems or [extents for _, extents in tuned_points(stem)]
    fit = Fit(device)

    def check(config: Any) -> None:
        check_device(config, device)
        check_guidelines(config, fit, wanted)

    walk = _Walk(ConfigBuilder(stem, dtype, layout), check)
    if wanted.score:  # the first axis says how well the best may do
        best = scores(list(walk(axes[:1], Funnel())), problems, device).max(axis=0, initial=0.0)
        walk.is_near = lambda configs: (scores(configs, problems, device) >= wanted.score * best).any(axis=1)
    funnel = Funnel()
    configs = list(walk(axes, funnel))
    funnel.left = list(dict.fromkeys(configs))
    if len(funnel.left) < len(configs):
        funnel.removed["repeated"] = len(configs) - len(funnel.left)
    if effort == "normal" and not wanted.score:
        kept = _best(funnel.left, problems, device, NORMAL, ALIKE)
        funnel.removed["score"] = len(funnel.left) - len(kept)
        funnel.left = kept
        _add(funnel, candidates(stem, dtype, layout, device, "quick", wanted, problems).left)
    if FAMILIES[stem].routine == "gemm":
        variants = [each for config in funnel.left for each in persistent(config, device)]
        _add(funnel, _best(variants, problems, device, PERSISTENT[effort], alike=1))
    return funnel


def _add(funnel: Funnel, configs: list[Any]) -> None:
    known = set(funnel.left)
    added = [config for config in configs if config not in known]
    funnel.left += added
    funnel.added += len(added)


class _Walk:
    """The nested loops. A broken rule drops the branch, and with it all that the inner loops would add.

    Parameters
    ----------
    make : ConfigBuilder
    check : callable
        Raises `ConfigError` for a Config that is not wanted.

    Attributes
    ----------
    is_near : callable or None
        Returns of which Configs the score is near the best; those of a loop are scored at once.
    """

    is_near: Callable[[list[Any]], Any] | None = None

    def __init__(self, make: ConfigBuilder, check: Callable[[Any], None]):
        self._make, self._check = make, check

    def __call__(self, axes: Sequence[Axis], funnel: Funnel) -> Iterator[Any]:
        """The Configs at the innermost points, in the order of the loops."""
        outermost, *rest = axes
        values = iter(outermost({}))
        while some := list(islice(values, OUTERMOST)):
            points = self._beyond([(({}, None), first) for first in some], rest, funnel)
            for at, axis in enumerate(rest, start=1):
                steps = [(point, inner) for point in points for inner in axis(point[0])]
                points = self._beyond(steps, axes[at + 1 :], funnel)
            funnel.total += len(points)
            yield from (config for _, config in points)

    def _beyond(
        self, steps: list[tuple[_Point, Parameters]], rest: Sequence[Axis], funnel: Funnel
    ) -> list[_Point]:
        """The points that are reached from others by further values, `rest` being the loops within; without
        those where a rule is broken.
        """
        points, checked = list[_Point](), list[int]()
        for point, values in steps:
            chosen, before = point
            if values.items() <= chosen.items():
                points.append(point)
                continue
            tried = {**chosen, **values}
            if before is not None and all(getattr(before, name) == value for name, value in values.items()):
                points.append((tried, before))
                continue
            try:
                config = self._make(tried, before, values)
                self._check(config)
            except ConfigError as broken:
                funnel.drop(broken.rule, _branch(tried, rest))
            else:
                checked.append(len(points))
                points.append((tried, config))
        if self.is_near is None or not checked:
            return points
        near = self.is_near([points[at][1] for at in checked])
        far = {at for at, is_kept in zip(checked, near, strict=True) if not is_kept}
        for at in far:
            funnel.drop("score", _branch(points[at][0], rest))
        return [point for at, point in enumerate(points) if at not in far]


def _branch(tried: Parameters, rest: Sequence[Axis]) -> int:
    """How many points the loops within would reach."""
    return math.prod(length(axis, tried) for axis in rest)


#: Values chosen, and the Config of these, which has been checked.
_Point = tuple[Parameters, Any]


def tile_of(config: Any) -> tuple:
    """Return the parameters that `config` shares with those of other layouts that are likely as fast."""
    return tuple(getattr(config, name) for name in FAMILIES[config.STEM].axes.across_layouts)


def best_few(
    configs: Iterable[Any], extents: tuple[int, ...], device: Device, most: int = NORMAL, alike: int = ALIKE
) -> list[Any]:
    """The best at `extents` by score, and of each block of C only `alike`, lest one fill the list."""
    return _best(list(dict.fromkeys(configs)), [extents], device, most, alike)


def _best(
    configs: list[Any], problems: Sequence[tuple[int, ...]], device: Device, most: int, alike: int
) -> list[Any]:
    """Return the best few different `configs` of a family at each problem, like `best_few`, each once."""
    points, kept = scores(configs, problems, device), dict[int, None]()
    blocks = [(config.BLK_M, config.BLK_N) for config in configs]
    for at_problem in points.T:
        seen, few = Counter[tuple](), 0
        for at in np.argsort(-at_problem, kind="stable").tolist():
            seen[blocks[at]] += 1
            if seen[blocks[at]] <= alike:
                kept[at] = None
                few += 1
                if few == most:
                    break
    return [configs[at] for at in kept]
