"""``pivot_moves``: what pivots say, as the moves of `laswp`, which are one permutation for each group.

A thread follows a row through the interchanges of a group: one on top, or one that a pivot names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, ptx
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import KernelConfig
from ...common.parameters import parameters

__all__ = ["STEM", "PivotMoves", "source"]

STEM = "pivot_moves"
LARGE, FEW = 256, 64  # pivots of a group where so few columns are interchanged that its steps count
PARAMETERS = parameters(
    "int32 pointer: piv, moves",
    "int32: count, base",
    "int64: step, stride_piv, stride_moves",
)


@dataclass(frozen=True)
class PivotMoves(KernelConfig):
    """Config of the `pivot_moves` kernel.

    Attributes
    ----------
    dtype : str
        Has no effect.
    GROUP : int
        Pivots of a group.
    """

    GROUP: int = 32

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        require(
            self.GROUP % 16 == 0 and 16 <= self.GROUP <= 512,
            "threads",
            "GROUP % 16 == 0 and 16 <= GROUP <= 512",
            GROUP=self.GROUP,
        )

    @property
    def threads(self) -> int:
        return 2 * self.GROUP

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 32

    @property
    def shared_bytes(self) -> int:
        return self.GROUP * 4

    def specialize(self, columns: int) -> Self:
        """The Config for interchanges in `columns` columns: in few, larger groups leave fewer steps."""
        return replace(self, GROUP=max(self.GROUP, LARGE)) if columns < FEW else self

    def grid(self, pivots: int) -> int:
        """Blocks along x."""
        return -(-pivots // self.GROUP)

    @property
    def variants(self) -> tuple[Self, ...]:
        return tuple(self.specialize(columns) for columns in (1, FEW))


def source(config: PivotMoves) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    piv, moves: int32 pointer, pivots, counted from 0, and moves
    count: int32, the number of pivots
    base: int32, the first row on top
    step: int64, words from pivot to pivot
    stride_piv, stride_moves: int64, batch strides (words)

    Grid: x ``config.grid(pivots)``, z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _build(config: PivotMoves):
    GROUP, int32, int64 = config.GROUP, ptx.types.int32, ptx.types.int64
    offset, shared_pointer, grid_dependency_wait = ptx.offset, ptx.shared_pointer, ptx.grid_dependency_wait

    def pivot_moves(piv, moves, count, base, step, stride_piv, stride_moves):
        # (1) the pivots of this block, counted from its first row
        t, block, batch = int32(cuda.threadIdx.x & 1023), int32(cuda.blockIdx.x), int64(cuda.blockIdx.z)
        pivots, first = shared_pointer(cuda.shared.array(0, int32, alignment=16)), int32(block * GROUP)
        here = int32(min(count - first, GROUP))
        grid_dependency_wait()
        piv = offset(piv, batch * stride_piv + first * step)
        moves = offset(moves, batch * stride_moves + first * 2)
        if t < here:
            pivots[t] = int32(piv[t * step] - base - first)
        cuda.syncthreads()

        # (2) the row of this thread: one on top, or the first of its name that is not
        row, follows = int32(t), t < here
        if t >= GROUP and t - GROUP < here:
            row = int32(pivots[t - GROUP])
            follows = row < 0 or row >= here
            for other in range(t - GROUP):
                follows = follows and pivots[other] != row

        # (3) where it goes
        label = row
        for i in range(here):
            pivot = int32(pivots[i])
            if label == i:
                label = pivot
            elif label == pivot:
                label = int32(i)
        if follows and label >= 0 and label < here:
            moves[label] = row
        if t < here:
            moves[GROUP + t] = label

    return pivot_moves
