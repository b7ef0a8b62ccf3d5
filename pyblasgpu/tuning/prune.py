"""The funnel: rules of the Config, limits of the device, guidelines. (`build` goes on with the compiler.)

A rule is a `ConfigError`, wherever it stands; the funnel counts by its name.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..database import FAMILIES, sizes_of, tuned_at
from ..errors import ConfigError, require
from ..gpu.device import Device
from ..types import DTYPES
from .score import OVERHEAD, blocks_per_sm, score
from .space import Axis, Parameters, space

__all__ = ["GUIDELINES", "Funnel", "Guidelines", "candidates", "check_device", "tile_of"]


@dataclass(frozen=True)
class Guidelines:
    """What a candidate must promise beyond running at all (Table 1 of Kurzak et al.).

    Attributes
    ----------
    threads, blocks : int
        Of a multiprocessor, resident at once.
    reuse : float
        FMAs for each element loaded in the innermost loop.
    """

    threads: int = 64
    blocks: int = 1
    reuse: float = 1.0


#: Loose ones: small tiles win small products.
GUIDELINES = {
    "s": Guidelines(reuse=1.3),
    "d": Guidelines(reuse=1.0),
    "c": Guidelines(reuse=2.0),
    "z": Guidelines(reuse=1.5),
}

#: A leaf's threads are many and their tiles small, because its columns are few.
LEAF_GUIDELINES = Guidelines(reuse=0.6)

NORMAL = 24  # candidates that 'normal' keeps for each size class
ALIKE = 4  # and of these with the same block of C


@dataclass
class Funnel:
    """How many candidates went in, how many each rule removed, and which are left."""

    total: int = 0
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
    resident = blocks * config.threads
    require(resident >= guidelines.threads, "threads", f"resident threads >= {guidelines.threads}",
            threads=resident)  # fmt: skip


def candidates(
    stem: str,
    dtype: str,
    layout: str,
    device: Device,
    effort: str = "quick",
    guidelines: Guidelines | None = None,
) -> Funnel:
    """The candidates of a family that its rules, `device` and the guidelines leave.

    Parameters
    ----------
    stem, dtype, layout : str
        As in the database.
    effort : str
        'quick', 'normal' or 'exhaustive'; 'normal' keeps the best by `score.score`, class by class.
    guidelines : Guidelines, optional
        Default: `GUIDELINES` of the dtype, `LEAF_GUIDELINES` for leaves.
    """
    family, facts = FAMILIES[stem], DTYPES[dtype]
    wanted = guidelines or (GUIDELINES[dtype] if stem == "gemm_tile" else LEAF_GUIDELINES)
    funnel = Funnel()
    axes = space(stem, facts, layout, device, effort)

    def build(chosen: Parameters) -> Any:
        config = family.config(dtype, layout, chosen)
        check_device(config, device)
        check_guidelines(config, device, wanted)
        return config

    funnel.left = list(dict.fromkeys(_walk(axes, {}, build, funnel)))
    if effort == "normal":
        _keep_best(stem, funnel, device)
    return funnel


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
    grid = (config.BLK_M, config.BLK_N, config.BLK_K, config.DIM_X, config.DIM_Y)
    return (*grid, config.stages, config.min_blocks)


def _keep_best(stem: str, funnel: Funnel, device: Device) -> None:
    """The best of each size class by score, and of each block of C only a few, lest one fill the list."""
    kept: dict[Any, None] = {}
    for size in sizes_of(stem):
        extents = tuned_at(stem, size)[-1]
        ranked = sorted(funnel.left, key=lambda config: score(stem, config, extents, device), reverse=True)
        alike: Counter[tuple] = Counter()
        chosen = []
        for config in ranked:
            block = tile_of(config)[:2]
            alike[block] += 1
            if alike[block] <= ALIKE:
                chosen.append(config)
        kept.update(dict.fromkeys(chosen[:NORMAL]))
    funnel.removed["score"] = len(funnel.left) - len(kept)
    funnel.left = list(kept)
