"""``trmm_stack``: products of a stack of triangles and matrices in one launch.

    C := alpha * T * B, or alpha * B * T, of each matrix of the stack, where C may be B

Each matrix is computed as by `trmm_fused`, its blocks behind those of the matrix before. So a block waits
only for blocks of its own matrix, which the device starts before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx
from ...gpu.build.compile import KernelSource
from ...gpu.device import Device
from ...types import Side, Triangle, Uplo
from ..common.parameters import parameters
from . import mma, simt, trmm_fused
from .grouped import FMA, LARGE, GemmGrouped

__all__ = ["STEM", "TrmmStack", "plain_sources", "source"]

STEM = "trmm_stack"
PARAMETERS = parameters(
    "pointer: tri, blocks, flags, b, c",
    "int32: m, n, options",
    "int64: ldt, ldb, ldc, stride_t, stride_blocks, stride_flags, stride_b, stride_c",
    "real: alpha, alpha_i",
)


@dataclass(frozen=True)
class TrmmStack(GemmGrouped):
    """Config of one `trmm_stack` kernel, besides what `GemmGrouped` holds.

    Attributes
    ----------
    on_left : bool
        Whether T is on the left.
    MANY : int
        Large tiles for each multiprocessor, from which on these are taken; 0: tiles are of `BLK` always.
    """

    on_left: bool = True
    MANY: int = 0

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            not (self.trans_a or self.trans_b),
            "by_columns",
            "both factors by columns",
            trans_a=self.trans_a,
            trans_b=self.trans_b,
        )
        require(self.MANY >= 0, "many", "MANY >= 0", MANY=self.MANY)

    def at(self, m: int, n: int, batch: int, device: Device) -> Self:
        """Return the Config of the kernel for a stack of `batch` m-by-n matrices C."""
        large = replace(self, BLK=LARGE, MANY=0)
        is_many = self.MANY > 0 and batch * large.grid(m, n) >= self.MANY * device.sm_count
        return large if is_many else replace(self, MANY=0)

    @property
    def triangle(self) -> Triangle:
        """T; one kernel serves both triangles."""
        return Triangle.of(Uplo.LOWER, Side.LEFT if self.on_left else Side.RIGHT)

    def grid(self, m: int, n: int) -> int:
        """Blocks of an m-by-n C."""
        return int(self.blocks(m, n))


def source(config: TrmmStack) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    tri: pointer, T by columns
    blocks: pointer, the copy of its diagonal blocks, by `diagonal_blocks`
    flags: pointer, one a tile, 0 before the launch, by `diagonal_blocks`
    b, c: pointer, B, C
    m, n: int32, extents
    options: int32, whether T is upper, and whether C is another matrix than B (`OVERWRITE`)
    ldt, ldb, ldc: int64, leading dimensions (elements)
    stride_t, stride_blocks: int64, batch strides (elements)
    stride_flags: int64, flags of a matrix
    stride_b, stride_c: int64, batch strides (elements)
    alpha, alpha_i: real, parts of alpha

    Grid: x ``config.grid(m, n)``, z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def plain_sources(config: TrmmStack) -> Iterator[KernelSource]:
    """Yield all kernels of a dtype and kind of instruction."""
    for tile in {config.BLK, LARGE} if config.MANY else {config.BLK}:
        for on_left in (True, False):
            yield source(replace(config, BLK=tile, on_left=on_left, MANY=0))


def _build(config: TrmmStack):
    inner, offset, int64 = config.product, ptx.offset, ptx.types.int64
    REALS, product_of = inner.dtype_facts.reals_per_element, (simt if config.MMA_M == FMA else mma).product_of
    product = product_of(inner, False, False)
    multiply = device_function(trmm_fused.build(inner, product, config.triangle, False))

    def trmm_stack(
        tri, blocks, flags, b, c, m, n, options, ldt, ldb, ldc, stride_t, stride_blocks, stride_flags,
        stride_b, stride_c, alpha, alpha_i,
    ):  # fmt: skip
        matrix = int64(cuda.blockIdx.z)
        flags = offset(flags, matrix * stride_flags)
        tri, blocks = offset(tri, matrix * stride_t * REALS), offset(blocks, matrix * stride_blocks * REALS)
        b, c = offset(b, matrix * stride_b * REALS), offset(c, matrix * stride_c * REALS)
        multiply(tri, blocks, flags, b, c, m, n, options, ldt, ldb, ldc, alpha, alpha_i)

    return trmm_stack
