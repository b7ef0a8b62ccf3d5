"""A product for which a Config is chosen, and its kind."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ..errors import BackendUnavailable
from ..types import Dtype, Region, Triangle
from .operand_copies import OperandLayouts
from .product_kinds import PACKED, PACKED_3M, PLAIN, THREE_M, TRMM_LEFT, TRMM_RIGHT, Kind

__all__ = ["GemmProblem", "without_3m"]


class GemmProblem(NamedTuple):
    """A product, and what is fixed of how it is computed; whether it `adds` to C, which is read then."""

    stems: tuple[str, ...]
    dtype: Dtype
    layout: str
    extents: tuple[int, ...]
    region: Region | Triangle
    splits: int | None
    copied: tuple[bool, bool]
    packed: bool | None
    aligned: tuple[int, int]
    conjs: tuple[bool, bool]
    three_m: bool
    workspace_limit: int | None
    adds: bool = False

    @property
    def layouts(self) -> OperandLayouts:
        """How the operands lie."""
        return OperandLayouts(self.layout, self.copied, self.aligned)

    def kind(self, packed: bool = False) -> Kind:
        """What of it decides which Configs serve it, of `packed` operands or of such as they lie."""
        if isinstance(self.region, Triangle):
            return Kind(TRMM_LEFT if self.region.on_left else TRMM_RIGHT, conj=any(self.conjs))
        # a copy is not conjugated
        conj_a, conj_b = (
            conj and not (packed or copied) for conj, copied in zip(self.conjs, self.copied, strict=True)
        )
        use = (PACKED_3M if packed else THREE_M) if self.three_m else PACKED if packed else PLAIN
        return Kind(use, self.region is not Region.ALL, conj_a != conj_b)

    @property
    def is_batch(self) -> bool:
        """Whether it is of more than one matrix."""
        return prod(self.extents[3:]) > 1


def without_3m(problem: GemmProblem) -> GemmProblem:
    """What is asked for where no kernel has the three products; a product in place has no stand-in."""
    if isinstance(problem.region, Triangle):
        raise BackendUnavailable(f"no {problem.dtype.name} product at hand can be made in place")
    return problem._replace(three_m=False)
