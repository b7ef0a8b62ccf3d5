"""The Config of ``gemm_wgmma``, and the layout of its shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ....errors import require
from ....types import Region
from ...common.tile_schedule import tile_count
from ..warpgroups import ROW, UNIT, WarpgroupConfig
from .image import BLOCKS_K, STAGE_K

__all__ = ["GemmWgmma"]


@dataclass(frozen=True)
class GemmWgmma(WarpgroupConfig):
    """Config of one `gemm_wgmma` kernel.

    Attributes
    ----------
    dtype : str
        's'.
    BLK_M, BLK_N : int
        Tile of C: each 64 rows of it are a warpgroup's. One more warpgroup loads the operands.
    PANEL : int
        Rows of A's panels and columns of B's, as they are packed; tiles divide them.
    BLK_K : int
        k after which sums are added up in float32, and whose rows have a scale of their own.
    stages : int
        Stages in shared memory, of `image.STAGE_K` k of both operands.
    cluster : int
        Blocks, one below the other, that load a part of B each, for all of them.
    ordered : bool
        The two warpgroups take turns: one adds up its sums while the other one's products run.
    """

    dtype: str = "s"
    BLK_M: int = 128
    BLK_N: int = 128
    BLK_K: int = 64
    PANEL: int = 128
    stages: int = 6
    cluster: int = 2
    ordered: bool = False

    STEM: ClassVar[str] = "gemm_wgmma"

    def __post_init__(self):
        require(self.dtype == "s", "single", "dtype in (s,)", dtype=self.dtype)
        self.check_warpgroups()
        require(
            self.BLK_N % 8 == 0 and 8 <= self.BLK_N <= 128,
            "instruction",
            "BLK_N % 8 == 0 and 8 <= BLK_N <= 128",
            BLK_N=self.BLK_N,
        )
        require(
            self.BLK_K >= STAGE_K and self.BLK_K % STAGE_K == 0,
            "whole_stages",
            f"BLK_K >= {STAGE_K} and BLK_K % {STAGE_K} == 0",
            BLK_K=self.BLK_K,
        )
        require(
            self.cluster in (1, 2) and self.BLK_N % (8 * self.cluster) == 0,
            "cluster",
            "cluster in (1, 2) and BLK_N % (8 * cluster) == 0",
            cluster=self.cluster,
            BLK_N=self.BLK_N,
        )
        require(
            self.PANEL % self.BLK_M == 0 and self.PANEL % self.BLK_N == 0,
            "panels",
            "PANEL % BLK_M == 0 and PANEL % BLK_N == 0",
            PANEL=self.PANEL,
            BLK_M=self.BLK_M,
            BLK_N=self.BLK_N,
        )
        require(
            self.warpgroups == 2 or not self.ordered,
            "turns",
            "BLK_M == 128 or not ordered",
            BLK_M=self.BLK_M,
            ordered=self.ordered,
        )
        require(
            not self.ordered or self.stages_per_block <= self.stages,
            "turns_of_blocks",
            "BLK_K / stage <= stages or not ordered",
            BLK_K=self.BLK_K,
            stages=self.stages,
            ordered=self.ordered,
        )  # one warpgroup releases no stage of a block before the other one has had all
        self.check_pipeline()

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread that multiplies: three sums an element."""
        return 3 * self.sums + 32

    @property
    def turns(self) -> int:
        """Offset in shared memory of the mbarriers of the two warpgroups' turns."""
        return self.barriers + 16 * self.stages

    @property
    def stages_per_block(self) -> int:
        return self.BLK_K // STAGE_K

    @property
    def bytes_b(self) -> int:
        return self.BLK_N * ROW

    @property
    def stage_bytes(self) -> int:
        """Bytes of a stage: A, B, and the scales of both, which are loaded with the last stage of a block."""
        used = self.bytes_a + self.bytes_b + 4 * (self.BLK_M + self.BLK_N)
        return -(-used // UNIT) * UNIT

    @property
    def shared_bytes(self) -> int:
        """Stages, two mbarriers for each, two for turns, and what aligns them."""
        return self.turns + 16 + UNIT

    @property
    def variants(self) -> Iterator[Self]:
        """The Configs that serve with this one: blocks of any k; for small C half as many columns, where
        clusters gain nothing. With the fewest k no C is small that is worth it.
        """
        for blk_k in BLOCKS_K:
            yield replace(self, BLK_K=blk_k)
            if blk_k > min(BLOCKS_K):
                yield replace(self, BLK_N=self.BLK_N // 2, BLK_K=blk_k, cluster=1)

    def grid(self, m: int, n: int, region: Region = Region.ALL, reals: int = 1) -> int:
        """Return the number of tiles of C, or of clusters' tiles; C has `m` rows, of `reals` reals each."""
        return tile_count(self.cluster * self.BLK_M // reals, self.BLK_N, m, n, region)

    def blocks(self, most: int, tiles: int) -> int:
        """Blocks of a launch for `tiles` numbered tiles; of whole clusters as many as `most` may be."""
        return min(max(most // self.cluster, 1), tiles) * self.cluster
