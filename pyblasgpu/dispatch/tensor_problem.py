"""A product that asks for tensor cores, and what speaks against them whatever it is made of."""

from __future__ import annotations

from typing import NamedTuple

from ..gpu.device import Device
from ..types import Dtype, Region
from .leaf import runs

__all__ = ["TensorProblem", "obstacle"]


class TensorProblem(NamedTuple):
    """A product that asks for tensor cores.

    Attributes
    ----------
    dtype : Dtype
    layout : str
        How A and B lie, as the Configs of products tell it.
    extents : (int, int, int, int)
        m, n, k and batch.
    device : Device
    copied : bool
        Whether an operand has neither contiguous columns nor rows.
    region : Region
        Of C.
    """

    dtype: Dtype
    layout: str
    extents: tuple[int, int, int, int]
    device: Device
    copied: bool = False
    region: Region = Region.ALL


def obstacle(problem: TensorProblem, stem: str) -> str:
    """What speaks against products by the family `stem`; nothing does where the answer is empty."""
    device = problem.device
    if not runs(stem, device):
        return f"tensor cores need compute capability 9.0, {device.name} has {device.cc[0]}.{device.cc[1]}"
    return "an operand has neither contiguous columns nor rows" if problem.copied else ""
