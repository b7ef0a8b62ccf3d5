"""``diagonal_blocks``: the blocks on the diagonals of triangles T, zero beyond them, and flags, all zero.

`trmm_fused` needs them besides T and C. The blocks follow one another, each by columns or by rows, as T does;
a unit diagonal, which T need not hold, is there in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...gpu.backend import cuda, ptx
from ...gpu.build.compile import KernelSource
from ..common.kernel_config import BlockConfig
from ..common.options import BY_ROWS, UNIT
from ..common.parameters import parameters
from ..common.region import contains

__all__ = ["STEM", "DiagonalBlocks", "source"]

STEM = "diagonal_blocks"
PARAMETERS = parameters(
    "pointer: tri, copy, flags",
    "int32: order, block, count, options",
    "int64: ldt, stride_t, stride_copy",
)


@dataclass(frozen=True)
class DiagonalBlocks(BlockConfig):
    """Config of one `diagonal_blocks` kernel; its attributes are those of `BlockConfig`."""

    STEM: ClassVar[str] = STEM

    def grid(self, order: int, block: int) -> int:
        """Blocks along x: a thread an element of the copy."""
        return -(-order // block) * -(-block * block // self.DIM)


def source(config: DiagonalBlocks) -> KernelSource:
    """The one kernel of `config`.

    Kernel parameters
    -----------------
    tri, copy, flags: pointer, T, the copy and the flags
    order, block: int32, order of T, of a block
    count: int32, number of flags, of the whole batch
    options: int32, T's triangle, a unit diagonal, a row-major T and copy (`kernels.common.options`)
    ldt: int64, leading dimension of T (elements)
    stride_t, stride_copy: int64, batch strides (elements)

    Grid: x ``config.grid(order, block)``, z the batch. A unit diagonal is not read.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _build(config: DiagonalBlocks):
    facts, DIM = config.dtype_facts, config.DIM
    real, REALS = ptx.REALS[facts.real], facts.reals_per_element
    is_inside, read, store = (
        contains(True),
        ptx.load_global(REALS, False),
        ptx.store_global_vector(REALS),
    )
    int32, int64, quotient = ptx.types.int32, ptx.types.int64, ptx.quotient
    grid_dependency_wait, store_release = ptx.grid_dependency_wait, ptx.store_release

    def diagonal_blocks(tri, copy, flags, order, block, count, options, ldt, stride_t, stride_copy):
        # (1) the element of this thread
        matrix = int64(cuda.blockIdx.z)
        elements = block * block
        spans = quotient(elements + (DIM - 1), DIM)
        number = quotient(cuda.blockIdx.x, spans)
        at = int32((cuda.blockIdx.x - number * spans) * DIM + cuda.threadIdx.x)
        slow = quotient(at, block)
        fast = at - slow * block
        i, j = (fast, slow) if options & BY_ROWS else (slow, fast)
        value = cuda.local.array(REALS, real)

        # (2) what T holds there, one on a unit diagonal, zero beyond the triangle
        grid_dependency_wait()
        first = int64(number) * block
        left = order - first
        ok = (at < elements) & (i < left) & (j < left) & is_inside(i, j, 0, options)
        is_one = (options & UNIT != 0) & (i == j)
        at_t = matrix * stride_t + (first + slow) * ldt + first + fast
        read(value, 0, tri, at_t * REALS, ok & (not is_one))
        if is_one:
            value[0] = real(1)
        store(copy, (matrix * stride_copy + first * block + at) * REALS, value, 0, at < elements)

        # (3) no block has passed anything yet
        flag = int32((cuda.blockIdx.z * cuda.gridDim.x + cuda.blockIdx.x) * DIM + cuda.threadIdx.x)
        while flag < count:
            store_release(flags, flag, int32(0))
            flag = int32(flag + cuda.gridDim.z * cuda.gridDim.x * DIM)

    return diagonal_blocks
