"""``copy_scaled``: D := alpha * op(S), any strides on both sides; with D = S it scales in place.

Packs operands without a unit stride, unpacks results, scales C when a product vanishes, and fills with
zeros (alpha = 0 reads nothing). Of a square it can do a triangle alone: then nothing of the other one is read
or written. Complex numbers that are aligned as reals alone are accessed real by real.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ...errors import require
from ...gpu.build.compile import KernelSource
from ..common.kernel_config import KernelConfig, require_warps
from ..common.parameters import parameters

STEM = "copy_scaled"
SMALL = 32  # rows and columns of small matrices
PARAMETERS = parameters(
    "pointer: s, d",
    "int32: m, n, options",
    "int64: s_rs, s_cs, d_rs, d_cs, stride_s, stride_d",
    "real: alpha, alpha_i",
)


@dataclass(frozen=True)
class CopyScaled(KernelConfig):
    """Config of one `copy_scaled` kernel.

    Attributes
    ----------
    BLK_M, BLK_N : int
        Elements a block of threads copies, along rows and columns.
    DIM_X, DIM_Y : int
        Threads along rows, columns.
    """

    BLK_M: int = 32
    BLK_N: int = 32
    DIM_X: int = 32
    DIM_Y: int = 8

    STEM: ClassVar[str] = STEM
    RESIDENT: ClassVar[int] = 1024  # which all wait for memory

    def __post_init__(self):
        m, n, x, y = self.BLK_M, self.BLK_N, self.DIM_X, self.DIM_Y
        require_warps(DIM_X=x, DIM_Y=y)
        require(
            m % x == 0 and n % y == 0,
            "tile",
            "BLK_M % DIM_X == 0 and BLK_N % DIM_Y == 0",
            BLK_M=m,
            BLK_N=n,
            DIM_X=x,
            DIM_Y=y,
        )
        require(
            m % y == 0 and n % x == 0,
            "tile_turned",
            "BLK_M % DIM_Y == 0 and BLK_N % DIM_X == 0",
            BLK_M=m,
            BLK_N=n,
            DIM_X=x,
            DIM_Y=y,
        )
        require(
            x * y % m == 0 and x * y % n == 0,
            "whole_lines",
            "DIM_X * DIM_Y % BLK_M == 0 and DIM_X * DIM_Y % BLK_N == 0",
            BLK_M=m,
            BLK_N=n,
            DIM_X=x,
            DIM_Y=y,
        )

    @property
    def threads(self) -> int:
        return self.DIM_X * self.DIM_Y

    def specialize(self, rows: int, cols: int, batch: int) -> Self:
        """The Config for a batch: blocks of two warps, many of which a multiprocessor holds, where matrices
        are small.
        """
        if batch == 1 or max(rows, cols) > SMALL:
            return self
        return replace(self, BLK_M=16, BLK_N=16, DIM_X=16, DIM_Y=4)

    @property
    def per_thread(self) -> int:
        """Elements that a thread copies."""
        return self.BLK_M * self.BLK_N // self.threads

    @property
    def shared_bytes(self) -> int:
        """A tile, its rows padded by one element against bank conflicts."""
        return self.BLK_M * (self.BLK_N + 1) * self.dtype_facts.itemsize

    def grid(self, rows: int, cols: int) -> int:
        """Blocks along x for `rows` by `cols` elements."""
        return -(-rows // self.BLK_M) * -(-cols // self.BLK_N)

    @property
    def variants(self) -> tuple[Self, ...]:
        return self, self.specialize(SMALL, SMALL, 2)


def source(config: CopyScaled) -> KernelSource:
    """The kernel of `config`, for matrices by rows and by columns, distinguished by their strides.

    Kernel parameters
    -----------------
    s, d: pointer, source and target
    m, n: int32, rows and columns
    options: int32, see the notes
    s_rs, s_cs, d_rs, d_cs: int64, row and column stride of S, of D (elements)
    stride_s, stride_d: int64, batch strides (elements)
    alpha, alpha_i: real, parts of alpha

    Grid: x ``config.grid(m, n)``, z the batch.

    Notes
    -----
    The options (`kernels.common.options`) are a region, with whose Hermitian diagonal alpha is real; whether
    S is conjugated; whether D is filled with zeros, and S not read; and whether D is mirrored: above the
    diagonal it becomes what it is below, conjugated in a Hermitian one; the region is a lower triangle then.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _build(config: CopyScaled):
    from .copy_scaled_kernel import build  # when it is compiled

    return build(config)
