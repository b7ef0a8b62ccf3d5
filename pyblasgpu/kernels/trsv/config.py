"""Config of `trsv`: rows, columns, groups, threads; its rules, and its variants for a call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ...errors import require
from ..common.kernel_config import WARP, KernelConfig
from .limits import MAX_COLS

__all__ = ["STEM", "WARP", "Trsv"]

STEM = "trsv"
REGISTERS, MAX_REGISTERS = 65536, 255  # 32-bit ones, of a block, and of a thread
OTHER_REGISTERS = 26  # of a thread, besides those for a group of rows


@dataclass(frozen=True)
class Trsv(KernelConfig):
    """Config of one `trsv` kernel.

    Attributes
    ----------
    ROWS : int
        Rows of T and of X that a block owns, and of a tile.
    COLS : int
        Right-hand sides that a thread keeps, at least as many as there are.
    GROUP : int
        Rows that are solved at a time.
    DIM_M, DIM_K : int
        Threads along the rows, and along the columns of a tile.
    """

    ROWS: int = 128
    COLS: int = 1
    GROUP: int = 8
    DIM_M: int = 32
    DIM_K: int = 16

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        require(
            self.threads % WARP == 0 and self.ROWS <= self.threads <= 1024,
            "row_threads",
            "DIM_M * DIM_K % 32 == 0 and ROWS <= DIM_M * DIM_K <= 1024",
            ROWS=self.ROWS,
            DIM_M=self.DIM_M,
            DIM_K=self.DIM_K,
        )
        require(
            self.ROWS > 0 and self.ROWS % self.DIM_M == 0 and self.ROWS % self.DIM_K == 0,
            "tile",
            "ROWS % DIM_M == 0 and ROWS % DIM_K == 0",
            ROWS=self.ROWS,
            DIM_M=self.DIM_M,
            DIM_K=self.DIM_K,
        )
        require(self.COLS in (1, 2, 4), "columns", "COLS in (1, 2, 4)", COLS=self.COLS)
        require(
            self.GROUP in (4, 8) and self.ROWS % self.GROUP == 0,
            "group",
            "GROUP in (4, 8) and ROWS % GROUP == 0",
            GROUP=self.GROUP,
            ROWS=self.ROWS,
        )

    @property
    def threads(self) -> int:
        return self.DIM_M * self.DIM_K

    @property
    def THR_M(self) -> int:
        """Rows of a tile that a thread has."""
        return self.ROWS // self.DIM_M

    @property
    def THR_K(self) -> int:
        """Columns of a tile that a thread has."""
        return self.ROWS // self.DIM_K

    @property
    def ld(self) -> int:
        """Elements from column to column of the diagonal block: whole vectors, and a padding of one."""
        return self.ROWS + 16 // self.dtype_facts.itemsize

    @property
    def ld_sums(self) -> int:
        """Elements from the sums of the threads of one `DIM_K` to those of the next."""
        return self.ROWS * self.COLS + 1

    @property
    def panel(self) -> int:
        """Elements of a block row of X."""
        return self.ROWS * self.COLS

    @property
    def shared_elements(self) -> int:
        """The diagonal block, the rest of X, y, the solution, the inverse of the diagonal, sums."""
        return self.ROWS * (self.ld + 1) + 3 * self.panel + self.DIM_K * self.ld_sums

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread: a tile and its sums, or a group of rows."""
        words = self.dtype_facts.itemsize // 4
        return max(self.THR_M * (self.THR_K + self.COLS) * words, self.group_registers)

    @property
    def group_registers(self) -> int:
        """32-bit registers for a group of rows, half of its corner of T, a line of T, three rows."""
        elements = self.GROUP * (self.COLS + self.GROUP // 2) + self.GROUP + 3 * self.COLS
        return elements * self.dtype_facts.itemsize // 4

    @property
    def _spills(self) -> bool:
        """Whether a group of rows needs more registers than its threads have, by the estimate."""
        have = min(REGISTERS // self.threads, MAX_REGISTERS)
        return self.group_registers + OTHER_REGISTERS > have

    def specialize(self, columns: int, shared: int) -> Trsv:
        """Return the Config for `columns` right-hand sides, with no more rows than `shared` bytes of shared
        memory hold, no larger groups and no more threads than there are registers for.
        """
        config = replace(self, COLS=next(cols for cols in (1, 2, MAX_COLS) if cols >= columns))
        while config.shared_bytes > shared:
            config = replace(config, ROWS=config.ROWS // 2)
        if config._spills:
            config = replace(config, GROUP=4)
        return replace(config, DIM_K=config.DIM_K // 2) if config._spills else config

    def grid(self, n: int) -> int:
        """Blocks for a triangle of order `n`."""
        return -(-n // self.ROWS)
