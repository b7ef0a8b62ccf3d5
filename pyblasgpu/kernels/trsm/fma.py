"""``trsm_fma``: T X = alpha * B in place, T lower triangular of small order, on FMA units.

All around the update is in `trsm_body`. A warp keeps its columns of B as `trsm_mma` does; a lane multiplies
for its own elements, so that any dtype will do. It holds its columns of X in registers for a whole strip, and
reads the rows of T by 16 bytes. A strip is therefore row-major in shared memory, for any layout of T.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import require
from ...gpu.backend import device_function, ptx, unrolled
from ...gpu.build.compile import KernelSource
from .body import UNPREDICATED_ROWS, Updater, source_with
from .config import TrsmConfig

__all__ = ["STEM", "TrsmFma", "source"]

STEM = "trsm_fma"
VECTOR = 16  # bytes of a load from shared memory


@dataclass(frozen=True)
class TrsmFma(TrsmConfig):
    """Config of one `trsm_fma` kernel: what `TrsmConfig` holds."""

    STEM: ClassVar[str] = STEM
    SEPARATE_FINITE_LOOP: ClassVar[bool] = True

    def __post_init__(self):
        require(self.BLK % 8 == 0, "tile", "BLK % 8 == 0", BLK=self.BLK)
        self.check_shape()

    @property
    def vector(self) -> int:
        """Elements of T that a lane loads at once."""
        return VECTOR // self.dtype_facts.itemsize

    @property
    def row_of_strip(self) -> int:
        """Elements from row to row of a strip: the vectors of eight rows are in different banks."""
        return self.BLK + self.vector

    def strip_steps(self, by_rows: bool) -> tuple[int, int]:
        """Always by rows."""
        return self.row_of_strip, 1

    @property
    def stage_elements(self) -> int:
        return (self.ORDER - self.BLK) * self.row_of_strip

    @property
    def loaded_groups(self) -> int:
        """Rows of T, of every eight one, from which a lane loads together."""
        return max(UNPREDICATED_ROWS, self.BLK) // 8

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread: its part of B, its columns of X, and vectors of T."""
        elements = (self.THR_M + self.BLK) * self.THR_N + self.loaded_groups * self.vector
        return elements * self.dtype_facts.itemsize // 4

    @property
    def reuse(self) -> float:
        """FMAs for each element loaded from shared memory, where most tiles are below."""
        return self.dtype_facts.reuse(self.THR_M, self.THR_N)


def source(config: TrsmFma, conj: bool = False, t_by_rows: bool = False) -> KernelSource:
    """The one kernel of `config`, for n <= ORDER and any T; parameters and grid as in
    `body.source_with`.
    """
    return source_with(_updater, config, {})


def _updater(config: TrsmFma) -> Updater:
    REALS, BLK, COLUMNS, WIDTH = config.dtype_facts.reals_per_element, config.BLK, config.THR_N, config.vector
    GROUPS, ROW, offset = BLK // 8, config.row_of_strip * REALS, ptx.offset
    STEP_TILE = config.WARPS_PER_COLUMN_GROUP * BLK * ROW
    TILE, load_panel = GROUPS * COLUMNS * REALS, _panel_loader(config)

    def slots(first, stop):
        """Return the offsets in `acc` of the lane's elements of the tiles, by rows."""
        rows = ((tile, group) for tile in range(first, stop) for group in range(GROUPS))
        return [
            tile * TILE + (col * GROUPS + group) * REALS for tile, group in rows for col in range(COLUMNS)
        ]

    def steps(first, stop, behind):
        groups, targets = (stop - first) * GROUPS, tuple(slots(first, stop))
        others = tuple(slots(first + behind, stop + behind))
        load = ptx.load_shared(WIDTH * REALS, GROUPS, 8 * ROW)

        def step(k):
            # the first step takes the accumulators in place
            sources = targets if k > 0 else others
            multiply = ptx.shifted_update(groups, COLUMNS, WIDTH, REALS, False, sources, targets, first=k)

            @device_function
            def load_tile(tile, rt, ptr_t):
                load(rt, tile * (GROUPS * WIDTH * REALS), ptr_t, (first + tile) * STEP_TILE + k * REALS)

            load_tiles = unrolled(stop - first, load_tile)

            @device_function
            def update_step(acc, rt, rx, ptr_t):
                load_tiles(0, rt, ptr_t)
                multiply(acc, rt, rx)

            return update_step

        return [step(k) for k in range(0, BLK, WIDTH)]

    @device_function
    def load(rx, panel, g, q):
        load_panel(0, rx, offset(panel, 2 * q * REALS))

    @device_function
    def mine(strip, tile, g, q):
        return offset(strip, (tile * BLK + g) * ROW)

    return Updater(load, mine, steps, config.loaded_groups * WIDTH * REALS, BLK * COLUMNS * REALS)


def _panel_loader(config: TrsmFma):
    """``load(0, rx, panel)``: a lane's columns of X, two of each eight; row by row."""
    REALS, PAIRS = config.dtype_facts.reals_per_element, config.WARP_N // 8
    PAIR, ROW = 2 * REALS, config.row_of_panel * REALS
    WIDTH = min(PAIR, VECTOR // config.dtype_facts.real_size)
    load = ptx.load_shared(WIDTH, PAIR // WIDTH, WIDTH)

    @device_function
    def load_pair(e, rx, panel):
        load(rx, e * PAIR, panel, e // PAIRS * ROW + e % PAIRS * 8 * REALS)

    return unrolled(config.BLK * PAIRS, load_pair)
