"""The Config of ``gemm_int8``, and the layout of its shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....errors import require
from ....types import Region
from ...common.tile_schedule import tile_count
from ..warpgroups import WarpgroupConfig
from .image import parts_of
from .moduli import ServesFactors, check_moduli

__all__ = ["VECTOR", "GemmInt8"]

VECTOR = 16  # residues of a thread that are written at once


@dataclass(frozen=True)
class GemmInt8(ServesFactors, WarpgroupConfig):
    """Config of one `gemm_int8` kernel.

    Attributes
    ----------
    dtype : str
        'd' or 'z'.
    moduli : int
        Moduli, of each of which there are `image.parts_of` images.
    BLK_M, BLK_N : int
        Tile of C: each 64 rows of it are a warpgroup's. One more warpgroup loads the operands.
    PANEL : int
        Rows of A's panels and columns of B's, as they are packed.
    stages : int
        Stages in shared memory, of `image.STAGE_K` k of both operands.
    cluster : int
        Blocks, one below the other, that load a part of B each, for all of them.
    sample : int
        Chunks of a stage of which one has digits.
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
    #: k, with which no sum leaves int32, and all are reduced right.
    MAX_K: ClassVar[int] = 1 << 16

    def __post_init__(self):
        check_moduli(self.dtype, self.moduli)
        self.check_warpgroups()
        require(
            self.BLK_N % 32 == 0 and 32 <= self.BLK_N <= 256,
            "instruction",
            "BLK_N % 32 == 0 and 32 <= BLK_N <= 256",
            BLK_N=self.BLK_N,
        )
        require(
            self.cluster in (1, 2)
            and self.PANEL % self.BLK_M == 0
            and self.copy_columns % 8 == 0
            and self.PANEL % self.copy_columns == 0,
            "cluster",
            "cluster in (1, 2), PANEL % BLK_M == 0, BLK_N / cluster within a panel or whole panels",
            cluster=self.cluster,
            PANEL=self.PANEL,
            BLK_M=self.BLK_M,
            BLK_N=self.BLK_N,
        )
        require(
            self.sample in (1, 2, 4, 8),
            "sample",
            "sample in (1, 2, 4, 8)",
            sample=self.sample,
        )
        self.check_pipeline()

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread that multiplies."""
        return self.sums + 40

    @property
    def images(self) -> int:
        """Images that are multiplied; after them there is that of digits."""
        return self.moduli * parts_of(self.dtype_facts)

    @property
    def columns(self) -> int:
        """Columns of B that a block loads."""
        return self.BLK_N // self.cluster

    @property
    def copy_columns(self) -> int:
        """Columns of one copy: within a panel."""
        return min(self.columns, self.PANEL)

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

    def tiles(self, m: int, n: int, region: Region = Region.ALL) -> int:
        """Tiles of C, or of a triangle of it, that are kept."""
        return tile_count(self.BLK_M, self.BLK_N, m, n, region)

    def grid(self, m: int, n: int, region: Region = Region.ALL) -> int:
        """Tiles of C of whole clusters, which are numbered."""
        return tile_count(self.cluster * self.BLK_M, self.BLK_N, m, n, region)

    def blocks(self, most: int, tiles: int) -> int:
        """Blocks of a launch for `tiles` numbered tiles; of whole clusters as many as `most` may be."""
        return min(max(most // self.cluster, 1), tiles) * self.cluster
