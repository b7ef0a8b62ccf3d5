"""``trsm_mma``: T X = alpha * B in place, T lower triangular of small order, on the tensor cores.

All around the update is in `trsm_body`. A warp keeps its columns of B as accumulators of ``mma.sync``, in
double precision. A strip of T has T's layout in shared memory: a lane reads single elements of a fragment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ...errors import require
from ...gpu.backend import device_function, ptx, unrolled
from ...gpu.build.compile import KernelSource
from ...gpu.intrinsics.mma import SHAPES, elements_per_mma
from .body import Updater, source_with
from .config import TrsmConfig

__all__ = ["STEM", "TrsmMma", "plain_sources", "source"]

STEM = "trsm_mma"


@dataclass(frozen=True)
class TrsmMma(TrsmConfig):
    """Config of one `trsm_mma` kernel, besides what `TrsmConfig` holds; `dtype` is 'd' or 'z'.

    Attributes
    ----------
    MMA_M, MMA_K : int
        Shape of the instruction, as in `GemmMma`.
    """

    MMA_M: int = 16
    MMA_K: int = 16

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        require(self.dtype in "dz", "double", "dtype in (d, z)", dtype=self.dtype)
        shape = self.MMA_M, self.MMA_K
        require(shape in SHAPES, "shape", f"(MMA_M, MMA_K) in {list(SHAPES)}", MMA_M=shape[0], MMA_K=shape[1])
        require(
            self.BLK % self.elements_per_mma[0] == 0 and self.BLK % self.elements_per_mma[1] == 0,
            "tile",
            "BLK % rows of an instruction == 0 and BLK % k of it == 0",
            BLK=self.BLK,
            rows=self.elements_per_mma[0],
            k=self.elements_per_mma[1],
        )
        self.check_shape()

    @property
    def elements_per_mma(self) -> tuple[int, int]:
        """Rows and k of T that an instruction multiplies."""
        return elements_per_mma((self.MMA_M, self.MMA_K), self.dtype_facts.reals_per_element)

    @property
    def needs(self) -> tuple[int, int]:
        """The compute capability that the instruction needs."""
        return SHAPES[self.MMA_M, self.MMA_K]

    def strip_steps(self, by_rows: bool) -> tuple[int, int]:
        """Return the steps between a strip's rows and columns, in the order of T."""
        height = self.ORDER - self.BLK
        return (1, height + self.pad) if by_rows else (self.BLK + self.pad, 1)

    @property
    def stage_elements(self) -> int:
        """A strip, by rows or by columns."""
        height = self.ORDER - self.BLK
        return max(height * (self.BLK + self.pad), self.BLK * (height + self.pad))

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread: its part of B, and either a column of a tile or fragments
        of T and of X.
        """
        fragments = self.BLK * (self.BLK + self.WARP_N) // 32
        elements = self.THR_M * self.THR_N + max(self.BLK, fragments)
        return elements * self.dtype_facts.itemsize // 4

    @property
    def reuse(self) -> float:
        """FMAs for each element loaded from shared memory."""
        return self.dtype_facts.reuse(self.BLK, self.WARP_N)


def source(config: TrsmMma, conj: bool = False, t_by_rows: bool = False) -> KernelSource:
    """The kernel of `config` for n <= ORDER and T by rows or columns; parameters and grid as in
    `body.source_with`.
    """
    return source_with(_updater, config, {"t_by_rows": t_by_rows})


def plain_sources(config: TrsmMma) -> Iterator[KernelSource]:
    """All kernels of a Config."""
    return (source(config, t_by_rows=t_by_rows) for t_by_rows in (False, True))


def _updater(config: TrsmMma, t_by_rows: bool) -> Updater:
    REALS, BLK, WARP_N = config.dtype_facts.reals_per_element, config.BLK, config.WARP_N
    GROUPS, TILE = BLK // 8, BLK // 8 * config.THR_N * REALS
    STEP_ROW, STEP_COL = (step * REALS for step in config.strip_steps(t_by_rows))
    ROWS, DEPTH = config.elements_per_mma
    instructions = BLK // ROWS, WARP_N // 8, (config.MMA_M, config.MMA_K), REALS, False
    load_tile = _fragment_loader(REALS, GROUPS, 8 * STEP_ROW, BLK // 4, 4 * STEP_COL)
    load_panel = _fragment_loader(REALS, WARP_N // 8, 8 * REALS, BLK // 4, 4 * config.row_of_panel * REALS)
    offset, ROW = ptx.offset, config.row_of_panel * REALS
    STEP_TILE = config.WARPS_PER_COLUMN_GROUP * BLK * STEP_ROW

    def tile_update(i, behind):
        multiply = ptx.warp_mma(*instructions, False, BLK // DEPTH, i * TILE)

        @device_function
        def update_tile(acc, rt, rx, ptr_t):
            load_tile(0, rt, offset(ptr_t, i * STEP_TILE))
            for x in range(i * TILE, (i + 1) * TILE):
                acc[x] = acc[x + behind * TILE]
            multiply(acc, rt, rx)

        return update_tile

    def steps(first, stop, behind):
        return [tile_update(i, behind) for i in range(first, stop)]

    @device_function
    def load(rx, panel, g, q):
        load_panel(0, rx, offset(panel, q * ROW + g * REALS))

    @device_function
    def mine(strip, tile, g, q):
        return offset(strip, (tile * BLK + g) * STEP_ROW + q * STEP_COL)

    return Updater(load, mine, steps, BLK * BLK // 32 * REALS, BLK * WARP_N // 32 * REALS)


def _fragment_loader(reals: int, count: int, step: int, quarters: int, step_k: int):
    """``load(0, fragment, ptr_t)``: `count` elements, `step` reals apart, for each fourth k."""
    load = ptx.load_shared(reals, count, step)

    @device_function
    def load_quarter(s, fragment, ptr_t):
        load(fragment, s * (count * reals), ptr_t, s * step_k)

    return unrolled(quarters, load_quarter)
