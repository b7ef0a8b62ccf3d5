"""The funnel: rules of the Config, limits of the device, guidelines. (`build` goes on with the compiler.)

A rule is a `ConfigError`, wherever it stands; the funnel counts by its name.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import ge
from typing import Any

from ..database import FAMILIES, STOP_ROUTINES, places_of
from ..errors import ConfigError, require
from ..gpu.device import Device
from ..types import DTYPES
from .axes import Axis, Parameters
from .score import OVERHEAD, blocks_per_sm, comfortable, score
from .space import space

__all__ = [
    "GUIDELINES", "Funnel", "Guidelines", "best_few", "candidates", "check_device", "defaults", "persistent",
    "tile_of",
]  # fmt: skip


@dataclass(frozen=True)
class Guidelines:
    """What a candidate must promise beyond running at all (Table 1 of Kurzak et al.).

    Attributes
    ----------
    threads, blocks : int
        Of a multiprocessor, resident at once.
    reuse : float
        FMAs for each element loaded in the innermost loop.
    score : float
        Of the best estimate at one of the places at which the family is tuned, the part that a
        candidate's must reach there. 0 leaves it to the effort how many are kept.
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

EXHAUSTIVE_SCORE = 0.95  # of all ways to load every tile, some 10^5, what the guidelines ask by default
NORMAL = 24  # candidates that 'normal' keeps for each size class
ALIKE = 4  # and of these with the same block of C
FEWER = (1, 2, 4)  # persistent blocks a multiprocessor, where it holds more
TWINS = {"quick": 2, "normal": 6, "exhaustive": 12}  # persistent candidates for each size class


@dataclass
class Funnel:
    """How many candidates went in, how many each rule removed, and which are left; of these, how many were
    added: the persistent twins of others, and to those of 'normal' what 'quick' has besides.
    """

    total: int = 0
    added: int = 0
    removed: Counter[str] = field(default_factory=Counter)
    left: list[Any] = field(default_factory=list)

    def drop(self, rule: str, count: int = 1) -> None:
        self.removed[rule] += count
        self.total += count


def check_device(config: Any, device: Device) -> None:
    """Raise `ConfigError` where `device` cannot run `config` at all."""
    threads, shared = device.max_threads_per_block, device.shared_per_block
    require(config.threads <= threads, "device_threads", f"threads <= {threads}", threads=config.threads)
    require(config.shared_bytes <= shared, "device_shared", f"shared_bytes <= {shared}",
            shared_bytes=config.shared_bytes)  # fmt: skip
    require(config.stages == 1 or device.has_async_copy, "device_async", "stages == 1 before sm_80",
            stages=config.stages, arch=device.arch)  # fmt: skip
    needs = getattr(config, "needs", (0, 0))
    require(device.cc >= needs, "device_instruction", f"compute capability >= {needs[0]}.{needs[1]}",
            arch=device.arch)  # fmt: skip


def check_guidelines(config: Any, device: Device, guidelines: Guidelines) -> None:
    """Raise `ConfigError` where `config` is not worth compiling, by the formulas of its family."""
    needed, limit = config.registers + OVERHEAD, device.max_registers_per_thread
    require(config.reuse >= guidelines.reuse, "reuse", f"reuse >= {guidelines.reuse}", reuse=config.reuse)
    require(needed <= limit, "registers", f"estimated registers <= {limit}", registers=needed)
    blocks = blocks_per_sm(config, device)
    fits = device.occupancy(config.threads, needed, config.shared_bytes)
    require(fits >= config.min_blocks, "occupancy", "blocks a multiprocessor holds >= min_blocks",
            blocks=fits, min_blocks=config.min_blocks)  # fmt: skip
    require(blocks >= guidelines.blocks, "blocks", f"blocks >= {guidelines.blocks}", blocks=blocks)
    # a bound that does not bind gives the same code again
    require(config.min_blocks == 1 or not comfortable(config, device), "same_code",
            "min_blocks == 1 where registers are not short", min_blocks=config.min_blocks)  # fmt: skip
    resident = blocks * config.threads
    require(resident >= guidelines.threads, "threads", f"resident threads >= {guidelines.threads}",
            threads=resident)  # fmt: skip


def defaults(stem: str, dtype: str, effort: str) -> Guidelines:
    """The guidelines of a family where none are given."""
    wanted = LEAF_GUIDELINES if FAMILIES[stem].routine in STOP_ROUTINES else GUIDELINES[dtype]
    return replace(wanted, score=EXHAUSTIVE_SCORE) if effort == "exhaustive" else wanted


def candidates(
    stem: str,
    dtype: str,
    layout: str,
    device: Device,
    effort: str = "quick",
    guidelines: Guidelines | None = None,
    places: Sequence[tuple[int, ...]] = (),
) -> Funnel:
    """The candidates of a family that its rules, `device` and the guidelines leave.

    Parameters
    ----------
    stem, dtype, layout : str
        As in the database.
    effort : str
        'quick', 'normal' or 'exhaustive'; 'normal' keeps the best by `score.score` at each place and what
        'quick' has, unless the guidelines say how near the best a candidate must come.
    guidelines : Guidelines, optional
        Default: `defaults`.
    places : sequence of extents, optional
        Where the score decides. Default: where the family is tuned.
    """
    family, facts = FAMILIES[stem], DTYPES[dtype]
    wanted = guidelines or defaults(stem, dtype, effort)
    axes = space(stem, facts, layout, device, effort)
    places = places or [extents for _, extents in places_of(stem)]
    least: list[float] = []

    def build(chosen: Parameters) -> Any:
        config = family.config(dtype, layout, chosen)
        check_device(config, device)
        check_guidelines(config, device, wanted)
        if least:
            points = (score(stem, config, extents, device) for extents in places)
            require(any(map(ge, points, least)), "score", f"a score >= {wanted.score} of the best")
        return config

    if wanted.score:  # the first axis says how well the best may do
        tiles = list(_walk(axes[:1], {}, build, Funnel()))
        best = (
            max((score(stem, tile, extents, device) for tile in tiles), default=0.0) for extents in places
        )
        least = [wanted.score * points for points in best]
    funnel = Funnel()
    walked = list(_walk(axes, {}, build, funnel))
    funnel.left = list(dict.fromkeys(walked))
    if len(funnel.left) < len(walked):
        funnel.removed["repeated"] = len(walked) - len(funnel.left)
    if effort == "normal" and not wanted.score:
        kept = dict.fromkeys(c for extents in places for c in best_few(funnel.left, extents, device))
        funnel.removed["score"] = len(funnel.left) - len(kept)
        funnel.left = list(kept)
        _add(funnel, candidates(stem, dtype, layout, device, "quick", wanted, places).left)
    if FAMILIES[stem].routine == "gemm":
        _add(funnel, _persistent(funnel.left, places, device, TWINS[effort]))
    return funnel


def _add(funnel: Funnel, configs: list[Any]) -> None:
    known = set(funnel.left)
    fresh = [config for config in configs if config not in known]
    funnel.left += fresh
    funnel.added += len(fresh)


def persistent(config: Any, device: Device) -> list[Any]:
    """`config` with persistent blocks: as many as a multiprocessor holds, and fewer, of which each has more
    of a product that is soon over; none where there is no such.
    """
    most = blocks_per_sm(config, device) if config.stages > 1 else 0
    counts = sorted({count for count in (*FEWER, most) if 0 < count <= most}, reverse=True)
    return [replace(config, persistent=True, min_blocks=count) for count in counts]


def _persistent(configs: Iterable[Any], places: Sequence[tuple[int, ...]], device: Device, most: int) -> list:
    """The persistent twins of `configs`; the best few by score at each of `places`."""
    twins = [twin for config in configs for twin in persistent(config, device)]
    return list(dict.fromkeys(twin for at in places for twin in best_few(twins, at, device, most, alike=1)))


def _walk(axes: Sequence[Axis], chosen: Parameters, build, funnel: Funnel) -> Iterator[Any]:
    """The nested loops. A broken rule drops the branch, and with it all that the inner loops would add."""
    first, *rest = axes
    for values in first(chosen):
        tried = {**chosen, **values}
        try:
            config = build(tried)
        except ConfigError as broken:
            funnel.drop(broken.rule, math.prod(len(axis(tried)) for axis in rest))
            continue
        if rest:
            yield from _walk(rest, tried, build, funnel)
        else:
            funnel.total += 1
            yield config


def tile_of(config: Any) -> tuple:
    """What makes two candidates the same but for how they load."""
    return tuple(getattr(config, name, None) for name in _TILE)


_TILE = (
    "BLK_M",
    "BLK_N",
    "BLK_K",
    "DIM_X",
    "DIM_Y",
    "VEC_K",
    "WARP_M",
    "WARP_N",
    "stages",
    "prefetch",
    "min_blocks",
    "persistent",
)


def best_few(
    configs: Iterable[Any], extents: tuple[int, ...], device: Device, most: int = NORMAL, alike: int = ALIKE
) -> list[Any]:
    """The best at `extents` by score, and of each block of C only `alike`, lest one fill the list."""
    points = {config: score(config.STEM, config, extents, device) for config in configs}
    blocks: Counter[tuple] = Counter()
    chosen = []
    for config in sorted(points, key=points.__getitem__, reverse=True):
        block = config.BLK_M, config.BLK_N
        blocks[block] += 1
        if blocks[block] <= alike:
            chosen.append(config)
    return chosen[:most]
