"""Base of kernels whose warpgroups multiply the stages that a producer warpgroup loads, `gemm_wgmma` and
`gemm_int8`: their sizes, and the rules of the pipeline.
"""

from __future__ import annotations

from typing import ClassVar

from ...errors import require
from ..common.kernel_config import KernelConfig

__all__ = ["ROW", "UNIT", "WarpgroupConfig"]

ROW = 128  # bytes of a row of a stage
UNIT = 1024  # bytes at multiples of which eight rows begin
WARPGROUP = 128  # threads
MAX_SHARED = 227 << 10  # bytes of a block


class WarpgroupConfig(KernelConfig):
    """The part of a Config with warpgroups and stages; the dataclass has the fields."""

    BLK_M: int
    BLK_N: int
    stages: int
    cluster: int

    #: Registers of a thread that loads operands, and of one that multiplies.
    FEW_REGISTERS: ClassVar[int] = 40
    MANY_REGISTERS: ClassVar[int] = 232

    @property
    def warpgroups(self) -> int:
        """Warpgroups that multiply."""
        return self.BLK_M // 64

    @property
    def threads(self) -> int:
        return WARPGROUP * (self.warpgroups + 1)

    @property
    def sums(self) -> int:
        """Sums of a thread."""
        return self.BLK_N // 2

    @property
    def bytes_a(self) -> int:
        """Bytes of A in a stage."""
        return self.BLK_M * ROW

    @property
    def stage_bytes(self) -> int:
        return (self.BLK_M + self.BLK_N) * ROW

    @property
    def barriers(self) -> int:
        """Offset in shared memory of the stages' mbarriers: full and empty of each."""
        return self.stages * self.stage_bytes

    @property
    def shared_bytes(self) -> int:
        """Stages, two mbarriers for each, and what aligns them."""
        return self.barriers + 16 * self.stages + UNIT

    def check_warpgroups(self) -> None:
        """The registers of a multiprocessor hold two warpgroups that multiply."""
        require(self.BLK_M in (64, 128), "warpgroups", "BLK_M in (64, 128)", BLK_M=self.BLK_M)

    def check_pipeline(self) -> None:
        """There are stages to load while others are multiplied, and memory for them."""
        require(self.stages >= 2, "pipeline", "stages >= 2", stages=self.stages)
        require(
            self.shared_bytes <= MAX_SHARED,
            "shared_memory",
            f"shared_bytes <= {MAX_SHARED}",
            shared_bytes=self.shared_bytes,
            stages=self.stages,
        )
