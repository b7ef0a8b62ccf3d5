"""A product for which a Config is chosen, and the variant of a Config that it needs."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from ..errors import BackendUnavailable
from ..gpu.device import Device
from ..types import Dtype, Region, Triangle
from .operand_copies import ALIGNED, OperandLayouts
from .variants import fused_variant, three_m_variant

__all__ = ["GemmProblem", "match_alignment", "variant_for", "without_3m"]


class GemmProblem(NamedTuple):
    """A product, and what is fixed of how it is computed."""

    stems: tuple[str, ...]
    dtype: Dtype
    layout: str
    extents: tuple[int, ...]
    region: Region | Triangle
    splits: int | None
    copied: tuple[bool, bool]
    packed: bool | None
    aligned: tuple[int, int]
    three_m: bool
    room: int | None

    @property
    def layouts(self) -> OperandLayouts:
        """How the operands lie."""
        return OperandLayouts(self.layout, self.copied, self.aligned)

    @property
    def is_batch(self) -> bool:
        """Whether it is of more than one matrix."""
        return prod(self.extents[3:]) > 1


def without_3m(problem: GemmProblem) -> GemmProblem:
    """What is asked for where no kernel has the three products; a product in place has no stand-in."""
    if isinstance(problem.region, Triangle):
        raise BackendUnavailable(f"no {problem.dtype.name} product at hand can be made in place")
    return problem._replace(three_m=False)


def variant_for(config: Any, problem: GemmProblem, device: Device) -> Any:
    """`config`, or its variant with three products, or for a product in place; None where there is none."""
    if isinstance(problem.region, Triangle):
        return fused_variant(config, problem.region)
    return three_m_variant(config, device) if problem.three_m else config


@lru_cache(maxsize=1 << 12)
def match_alignment(config: Any, aligned: tuple[int, int]) -> Any:
    """`config` as it runs on operands that begin at multiples of so many bytes."""
    a, b = (max(distance // config.dtype_facts.itemsize, 1) for distance in aligned)
    sector_misaligned = min(aligned) < ALIGNED
    return config.for_alignment(a, b, sector_misaligned) if sector_misaligned else config
