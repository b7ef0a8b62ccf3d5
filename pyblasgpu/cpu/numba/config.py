"""The Config of a GEMM on a processor: the two levels of blocking, as on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import require
from ...types import DTYPES, Dtype

__all__ = ["CpuGemm"]


@dataclass(frozen=True, kw_only=True)
class CpuGemm:
    """Config of one `cpu_gemm` kernel.

    Attributes
    ----------
    dtype : str
        's', 'd', 'c', 'z'.
    BLK_M, BLK_K : int
        Block of A that is packed for the second-level cache.
    BLK_N : int
        Columns of B that are packed with it, BLK_K deep, for the last-level cache.
    THR_M, THR_N : int
        Register tile: what the innermost loop computes.
    VEC : int
        Reals of a vector register.
    UNROLL : int
        Steps along k that are unrolled.
    """

    dtype: str
    BLK_M: int
    BLK_N: int
    BLK_K: int
    THR_M: int
    THR_N: int
    VEC: int
    UNROLL: int = 4

    STEM: ClassVar[str] = "cpu_gemm"

    def __post_init__(self) -> None:
        facts = self.dtype_facts
        require(
            self.THR_M * facts.reals_per_element % self.VEC == 0,
            "whole_vectors",
            "THR_M * reals % VEC == 0",
            THR_M=self.THR_M,
            reals=facts.reals_per_element,
            VEC=self.VEC,
        )
        for name in ("M", "N"):
            block, tile = getattr(self, f"BLK_{name}"), getattr(self, f"THR_{name}")
            require(
                block > 0 and block % tile == 0,
                f"tile_{name.lower()}",
                f"BLK_{name} % THR_{name} == 0",
                **{f"BLK_{name}": block, f"THR_{name}": tile},
            )
        for name in ("BLK_K", "UNROLL"):
            require(getattr(self, name) > 0, "positive", f"{name} > 0", **{name: getattr(self, name)})

    @property
    def dtype_facts(self) -> Dtype:
        return DTYPES[self.dtype]

    @property
    def vectors(self) -> int:
        """Vector registers of a column of the register tile."""
        return self.THR_M * self.dtype_facts.reals_per_element // self.VEC

    @property
    def registers(self) -> int:
        """Vector registers that the innermost loop needs: the sums, a column of A, and an element of B."""
        return self.vectors * (self.THR_N * self.dtype_facts.reals_per_element + 1) + 1

    @property
    def reuse(self) -> float:
        """FMAs for each element loaded in the innermost loop."""
        return self.dtype_facts.reuse(self.THR_M, self.THR_N)
