"""The Config of ``gemm_int8``, and where things lie in its shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ....errors import require
from ....types import DTYPES, Dtype
from .moduli import check_moduli

__all__ = ["ROW", "VECTOR", "GemmInt8"]

ROW = 128  # bytes of a row of a stage
UNIT = 1024  # bytes at multiples of which eight rows begin
WARPGROUP = 128  # threads
MOST_SHARED = 227 << 10  # bytes of a block
VECTOR = 16  # residues of a thread that are written at once


@dataclass(frozen=True)
class GemmInt8:
    """Config of one `gemm_int8` kernel.

    Attributes
    ----------
    dtype : str
        'd'.
    moduli : int
        Moduli, of which there are images.
    BLK_M, BLK_N : int
        Tile of C: each 64 rows of it are a warpgroup's. One more warpgroup brings the operands.
    PANEL : int
        Rows of A's panels and columns of B's, as they are packed.
    stages : int
        Stages in shared memory, of `image.STAGE_K` k of both operands.
    cluster : int
        Blocks, one below the other, that bring a part of B each, for all of them.
    sample : int
        Of how many chunks of a stage one has digits.
    """

    dtype: str = "d"
    moduli: int = 14
    BLK_M: int = 128
    BLK_N: int = 256
    PANEL: int = 128
    stages: int = 4
    cluster: int = 2
    sample: int = 8

    STEM: ClassVar[str] = "gemm_int8"
    #: Registers of a thread that brings operands, and of one that multiplies.
    FEW_REGISTERS: ClassVar[int] = 40
    MANY_REGISTERS: ClassVar[int] = 232
    min_blocks: ClassVar[int] = 1
    #: k, with which no sum leaves int32, and all are reduced right.
    MOST_K: ClassVar[int] = 1 << 16

    def __post_init__(self):
        check_moduli(self.dtype, self.moduli)
        require(self.BLK_M in (64, 128), "warpgroups", "BLK_M in (64, 128)", BLK_M=self.BLK_M)
        require(
            self.BLK_N % 32 == 0 and 32 <= self.BLK_N <= 256,
            "instruction",
            "BLK_N % 32 == 0 and 32 <= BLK_N <= 256",
            BLK_N=self.BLK_N,
        )
        require(
            self.cluster in (1, 2)
            and self.PANEL % self.BLK_M == 0
            and self.piece % 8 == 0
            and self.PANEL % self.piece == 0,
            "pieces",
            "cluster in (1, 2), PANEL % BLK_M == 0, BLK_N / cluster within a panel or whole panels",
            cluster=self.cluster,
            PANEL=self.PANEL,
            BLK_M=self.BLK_M,
            BLK_N=self.BLK_N,
        )
        require(
            self.sample in (1, 2, 4, 8),
            "chunks",
            "sample in (1, 2, 4, 8)",
            sample=self.sample,
        )
        require(self.stages >= 2, "pipeline", "stages >= 2", stages=self.stages)
        require(
            self.shared_bytes <= MOST_SHARED,
            "shared_memory",
            f"shared_bytes <= {MOST_SHARED}",
            shared_bytes=self.shared_bytes,
            stages=self.stages,
        )

    @cached_property
    def dtype_facts(self) -> Dtype:
        return DTYPES[self.dtype]

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
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread that multiplies."""
        return self.sums + 40

    @property
    def columns(self) -> int:
        """Columns of B that a block brings."""
        return self.BLK_N // self.cluster

    @property
    def piece(self) -> int:
        """Columns of one copy: within a panel."""
        return min(self.columns, self.PANEL)

    @property
    def bytes_a(self) -> int:
        """Bytes of A in a stage."""
        return self.BLK_M * ROW

    @property
    def stage_bytes(self) -> int:
        return (self.BLK_M + self.BLK_N) * ROW

    @property
    def barriers(self) -> int:
        """Where, in shared memory, the mbarriers of stages begin: full and empty of each."""
        return self.stages * self.stage_bytes

    @property
    def shared_bytes(self) -> int:
        """Stages, two mbarriers for each, and what aligns them."""
        return self.barriers + 16 * self.stages + UNIT

    @property
    def flags_of_tile(self) -> int:
        """Flags of a tile: one a warp that multiplies."""
        return 4 * self.warpgroups

    @property
    def vectors(self) -> int:
        """Vectors of residues of a thread."""
        return self.sums // VECTOR

    @property
    def words_of_tile(self) -> int:
        """Words of the residues of a tile."""
        return self.BLK_M * self.BLK_N // 4

    def tiles(self, m: int, n: int) -> int:
        """Tiles of C."""
        return -(-m // self.BLK_M) * -(-n // self.BLK_N)

    def grid(self, m: int, n: int) -> int:
        """Tiles of C of whole clusters, which are numbered."""
        return -(-m // (self.cluster * self.BLK_M)) * -(-n // self.BLK_N)

    def blocks(self, most: int, tiles: int) -> int:
        """Blocks of a launch for so many numbered tiles; of whole clusters as many as `most` may be."""
        return min(max(most // self.cluster, 1), tiles) * self.cluster
