"""One k-tile of A or B, BLK_K deep: its layout in global and shared memory, and a thread's share of the load.

In shared memory a k-tile is [k][m] (or [k][n]), rows of ``ld`` elements, so that the innermost loop does not
know the operand's layout in global memory: a k-tile that is contiguous along k is transposed on the way. Or,
with `keeps_k_major`, such a k-tile stays [m][k], for who reads single elements, or some along k.

A k-tile of a packed operand (`packed_tile`) has the layout in global memory that it has in shared memory, or
row by row, with its padding and zeros where the matrix has ended: nothing is masked.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import require
from ...types import Dtype
from ..copy.packing import CBL

__all__ = ["RUN", "SmemTile"]

RUN = 16  # bytes of one copy of a packed k-tile


@dataclass(frozen=True)
class SmemTile:
    """The shape of a k-tile and of the threads that load it.

    Attributes
    ----------
    dtype : Dtype
    blk, depth : int
        Extent along m or n, and along k.
    dim_x, dim_y : int
        Threads along the dimension that is contiguous in memory, and along the other.
    vec : int
        Elements of one load.
    pad : int
        Elements added to a row in shared memory.
    k_major : bool
        Whether memory is contiguous along k.
    keeps_k_major : bool
        Whether a k-tile that is contiguous along k stays so.
    packed : bool
        Whether the operand is packed, in tiles and k-tiles like these, rows of `ld` elements.
    packing : int
        Layout of a packed operand: ROW, CBL or RBL of `packing`.
    through_l1 : bool
        Whether asynchronous copies of 16 bytes pass through the L1 cache.
    read_only : bool
        Whether loads through registers take the read-only path.
    """

    dtype: Dtype
    blk: int
    depth: int
    dim_x: int
    dim_y: int
    vec: int
    pad: int
    k_major: bool
    keeps_k_major: bool = False
    packed: bool = False
    through_l1: bool = False
    read_only: bool = False
    packing: int = CBL

    @property
    def is_kept(self) -> bool:
        """Whether it is contiguous along k, and stays so."""
        return self.k_major and self.keeps_k_major

    @property
    def transposes(self) -> bool:
        """Whether the contiguous dimension changes on the way."""
        return self.k_major and not self.keeps_k_major

    @property
    def cache_policy(self) -> str:
        """PTX's cache policy of asynchronous copies."""
        return "ca" if self.through_l1 else "cg"

    @property
    def load_bytes(self) -> int:
        """Bytes of one load."""
        return self.vec * self.dtype.itemsize

    @property
    def major(self) -> int:
        """Extent along the contiguous dimension."""
        return self.depth if self.k_major else self.blk

    @property
    def minor(self) -> int:
        return self.blk if self.k_major else self.depth

    @property
    def rows(self) -> int:
        """Rows in shared memory."""
        return self.blk if self.is_kept else self.depth

    @property
    def ld(self) -> int:
        """Elements from one row to the next in shared memory."""
        return self.blk * self.depth // self.rows + self.pad

    @property
    def step(self) -> int:
        """Elements from one row of A, one column of B, to the next in shared memory."""
        return self.ld if self.is_kept else 1

    @property
    def step_k(self) -> int:
        """Elements from one k to the next in shared memory."""
        return 1 if self.is_kept else self.ld

    @property
    def reals(self) -> int:
        """Reals it takes in shared memory, a multiple of 16 bytes."""
        quantum = 16 // self.dtype.real_size
        return -(-self.ld * self.rows * self.dtype.reals_per_element // quantum) * quantum

    def staged(self, threads: int) -> int:
        """Reals of the k-tile that one thread holds while it is staged through registers."""
        return max(self.blk * self.depth * self.dtype.reals_per_element // threads, 1)

    def check(self, name: str, threads: int, asynchronous: bool) -> None:
        """Raise `ConfigError` where `threads` threads cannot load the k-tile of operand `name`."""
        x, y, vec = f"DIM_X{name}", f"DIM_Y{name}", f"VEC_{name}"
        require(
            self.dim_x * self.dim_y == threads,
            "load_grid",
            f"{x} * {y} == DIM_X * DIM_Y",
            **{x: self.dim_x, y: self.dim_y, "threads": threads},
        )
        if self.packed and asynchronous:
            return
        require(
            self.major % (self.dim_x * self.vec) == 0 and self.minor % self.dim_y == 0,
            "load_grid_tiles_smem_tile",
            f"major % ({x} * {vec}) == 0 and minor % {y} == 0",
            **{"major": self.major, "minor": self.minor, x: self.dim_x, y: self.dim_y, vec: self.vec},
        )
        require(
            self.load_bytes in (4, 8, 16),
            "load_bytes",
            f"{vec} * itemsize in (4, 8, 16)",
            **{vec: self.vec, "itemsize": self.dtype.itemsize},
        )
        require(
            self.transposes or self.ld % self.vec == 0,
            "row_aligned",
            f"(row + PAD_{name}) % {vec} == 0",
            **{"row": self.ld - self.pad, "PAD": self.pad, vec: self.vec},
        )
        require(
            not (asynchronous and self.transposes) or self.vec == 1,
            "async_transposes_by_element",
            f"stages == 1 or {vec} == 1 where the tile is transposed",
            **{vec: self.vec},
        )

    def check_packed(self, name: str) -> None:
        """Raise `ConfigError` where rows of operand `name` are not packed in whole runs."""
        for what, extent in ((f"BLK of {name}", self.blk), (f"PAD_{name}", self.pad)):
            require(
                extent * self.dtype.itemsize % RUN == 0,
                "packed_runs",
                f"{what} * itemsize % {RUN} == 0",
                **{what: extent, "itemsize": self.dtype.itemsize},
            )
