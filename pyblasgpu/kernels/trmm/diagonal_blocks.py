"""``diagonal_blocks``: the blocks on the diagonals of triangles T, zero beyond them, and flags, all zero.

`trmm_fused` needs them besides T and C. The blocks follow one another, each by columns or by rows, as T does;
a unit diagonal, which T need not hold, is there in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...gpu.build.compile import KernelSource
from ..common.kernel_config import BlockConfig
from ..common.options import BY_ROWS, UNIT
from ..common.parameters import parameters
from ..common.region import contains

__all__ = ["STEM", "DiagonalBlocks", "source"]

STEM = "diagonal_blocks"
ELEMENTS = 4  # of a thread, loaded before any is stored
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
        """Blocks along x: a thread `ELEMENTS` elements of the copy."""
        return -(-order // block) * -(-block * block // (self.DIM * ELEMENTS))


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
    VALUES = ELEMENTS * REALS
    is_inside, read, store = (
        contains(True),
        ptx.load_global(REALS, False),
        ptx.store_global_vector(REALS),
    )
    int32, int64, quotient = ptx.types.int32, ptx.types.int64, ptx.quotient
    grid_dependency_wait, store_release, offset = ptx.grid_dependency_wait, ptx.store_release, ptx.offset

    @device_function
    def load(i, values, tri, first, begin, left, block, ldt, options):
        at = int32(begin + i * DIM)
        slow = quotient(at, block)
        fast = at - slow * block
        row, col = (fast, slow) if options & BY_ROWS else (slow, fast)
        ok = (slow < block) & (row < left) & (col < left) & is_inside(row, col, 0, options)
        is_one = (options & UNIT != 0) & (row == col)
        read(values, i * REALS, tri, ((first + slow) * ldt + first + fast) * REALS, ok & (not is_one))
        if is_one:
            values[i * REALS] = real(1)

    @device_function
    def keep(i, values, copy, begin, elements):
        at = begin + i * DIM
        store(copy, int64(at) * REALS, values, i * REALS, at < elements)

    load_all, keep_all = unrolled(ELEMENTS, load), unrolled(ELEMENTS, keep)

    def diagonal_blocks(tri, copy, flags, order, block, count, options, ldt, stride_t, stride_copy):
        # (1) the elements of this thread
        elements, matrix = block * block, int64(cuda.blockIdx.z)
        spans = quotient(elements + (DIM * ELEMENTS - 1), DIM * ELEMENTS)
        number = quotient(cuda.blockIdx.x, spans)
        begin = int32((cuda.blockIdx.x - number * spans) * (DIM * ELEMENTS) + cuda.threadIdx.x)
        first = int64(number) * block
        tri = offset(tri, matrix * stride_t * REALS)
        copy = offset(copy, (matrix * stride_copy + first * block) * REALS)
        values = cuda.local.array(VALUES, real)

        # (2) what T holds there, one on a unit diagonal, zero beyond the triangle
        grid_dependency_wait()
        load_all(0, values, tri, first, begin, int32(order - first), block, ldt, options)
        keep_all(0, values, copy, begin, elements)

        # (3) no block has passed anything yet
        flag = int32((cuda.blockIdx.z * cuda.gridDim.x + cuda.blockIdx.x) * DIM + cuda.threadIdx.x)
        while flag < count:
            store_release(flags, flag, int32(0))
            flag = int32(flag + cuda.gridDim.z * cuda.gridDim.x * DIM)

    return diagonal_blocks
