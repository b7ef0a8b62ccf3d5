"""Base of the Configs of `trsm_mma` and `trsm_fma`: the order, tiles, warps, stages; and their rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import require
from ..common.kernel_config import KernelConfig

__all__ = ["TrsmConfig"]


@dataclass(frozen=True)
class TrsmConfig(KernelConfig):
    """Config of a leaf whose warps own columns of B.

    Attributes
    ----------
    ORDER : int
        The largest order of T.
    BLK : int
        Rows of a tile.
    WARPS : int
        Warps of a block that own columns, or groups of them (`WARPS_PER_COLUMN_GROUP`).
    WARP_N : int
        Columns of B a warp owns.
    stages : int
        Strips of T in shared memory, at least 2.
    min_blocks : int
        Blocks a multiprocessor must be able to hold.
    PRODUCER_WARPS : int
        Further warps of a block, which only load T; 0: all warps load their part.
    WARPS_PER_COLUMN_GROUP : int
        Warps that own the same columns, 1 or 2: of these one has the even tiles of rows, the other the odd.
    """

    ORDER: int
    BLK: int
    WARPS: int
    WARP_N: int = 8
    stages: int = 2
    min_blocks: int = 1
    PRODUCER_WARPS: int = 0
    WARPS_PER_COLUMN_GROUP: int = 1

    #: Whether the tiles have a loop of their own until something is not finite. True divisions within the
    #: loop cost FMA units 4 to 6 % of a leaf that makes none; on tensor cores that way gains nothing.
    SEPARATE_FINITE_LOOP: ClassVar[bool] = False

    def check_shape(self) -> None:
        """Raise `ConfigError` where order, tiles, columns, stages or threads do not fit together."""
        require(
            self.ORDER >= self.BLK > 0 and self.ORDER % self.BLK == 0,
            "order",
            "ORDER >= BLK > 0 and ORDER % BLK == 0",
            ORDER=self.ORDER,
            BLK=self.BLK,
        )
        require(self.WARP_N in (8, 16, 32), "lane_columns", "WARP_N in (8, 16, 32)", WARP_N=self.WARP_N)
        require(self.stages >= 2, "stages", "stages >= 2", stages=self.stages)
        require(
            self.WARPS >= 1 and self.PRODUCER_WARPS >= 0 and self.threads <= 1024,
            "max_threads",
            "32 <= 32 * (WARPS * WARPS_PER_COLUMN_GROUP + PRODUCER_WARPS) <= 1024",
            WARPS=self.WARPS,
            WARPS_PER_COLUMN_GROUP=self.WARPS_PER_COLUMN_GROUP,
            PRODUCER_WARPS=self.PRODUCER_WARPS,
        )
        require(
            self.WARPS_PER_COLUMN_GROUP in (1, 2) and self.tiles % self.WARPS_PER_COLUMN_GROUP == 0,
            "split",
            "WARPS_PER_COLUMN_GROUP in (1, 2) and ORDER / BLK % WARPS_PER_COLUMN_GROUP == 0",
            WARPS_PER_COLUMN_GROUP=self.WARPS_PER_COLUMN_GROUP,
            ORDER=self.ORDER,
            BLK=self.BLK,
        )

    def strip_steps(self, by_rows: bool) -> tuple[int, int]:
        """Elements from row to row, and from column to column, of a strip in shared memory.

        `by_rows` says whether neighbouring rows of T are neighbours in memory (else columns).
        """
        raise NotImplementedError

    @property
    def stage_elements(self) -> int:
        """A strip in shared memory, for any layout of T."""
        raise NotImplementedError

    @property
    def threads(self) -> int:
        return 32 * (self.owners + self.PRODUCER_WARPS)

    @property
    def owners(self) -> int:
        """Warps of a block that own a part of B."""
        return self.WARPS * self.WARPS_PER_COLUMN_GROUP

    @property
    def loading_threads(self) -> int:
        """Threads that load the strips of T."""
        return 32 * (self.PRODUCER_WARPS or self.owners)

    @property
    def BLK_M(self) -> int:
        return self.BLK

    @property
    def BLK_N(self) -> int:
        return self.WARPS * self.WARP_N

    @property
    def BLK_K(self) -> int:
        return self.BLK

    @property
    def THR_M(self) -> int:
        return self.ORDER // 8 // self.WARPS_PER_COLUMN_GROUP

    @property
    def THR_N(self) -> int:
        return self.WARP_N // 4

    @property
    def tiles(self) -> int:
        """Tiles along the diagonal."""
        return self.ORDER // self.BLK

    @property
    def pad(self) -> int:
        """Elements between lines of a panel in shared memory, against bank conflicts."""
        return 4 // self.dtype_facts.reals_per_element

    @property
    def row_of_panel(self) -> int:
        """Elements from one row of a warp's panel to the next in shared memory."""
        return self.WARP_N + self.pad

    @property
    def panel_elements(self) -> int:
        """A panel of a warp: a tile of its columns."""
        return self.BLK * self.row_of_panel

    @property
    def panels(self) -> int:
        """A warp's panels: what was solved before, what is solved, and the same divided by the diagonal."""
        return 3

    @property
    def shared_elements(self) -> int:
        """The stages, the diagonal tiles, the inverses of the diagonal, the warps' panels."""
        diagonal = self.ORDER * (self.BLK + 1)
        return self.stages * self.stage_elements + diagonal + self.WARPS * self.panels * self.panel_elements

    @property
    def shared_bytes(self) -> int:
        return self.shared_elements * self.dtype_facts.itemsize

    def grid(self, columns: int) -> int:
        """Blocks along x for `columns` columns of B."""
        return -(-columns // self.BLK_N)
