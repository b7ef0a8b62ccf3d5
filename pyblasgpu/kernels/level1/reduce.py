"""``level1_reduce``: a vector, or two, reduced to a number: DOT, NRM2, ASUM, I?AMAX.

Each block reduces its share of the tiles to a partial result. The block that ends last, by its ticket,
reduces the partial results, in the order of the blocks. So there is one launch, and the same bits
whichever block is last. What a partial result is, and how two make one, is defined in `operations`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...gpu.build.compile import KernelSource
from ...types import Dtype
from ..common.kernel_config import WARP
from ..common.options import CONJUGATE, PAIRS
from ..common.parameters import parameters
from .config import ACCESS, VectorConfig, extents
from .elements import elements
from .operations import OPERATIONS, operation_of

__all__ = ["OPERATIONS", "STEM", "Reduce", "integers", "plain_sources", "source"]

STEM = "level1_reduce"
PARAMETERS = parameters(
    "pointer: x, y, partials, flags, out",
    "int64: n",
    "int32: options",
    "int64: incx, incy, stride_x, stride_y, stride_out",
)
#: Operations that take complex elements as pairs of reals.
BY_REALS = ("nrm2", "asum")


@dataclass(frozen=True, kw_only=True)
class Reduce(VectorConfig):
    """Config of one `level1_reduce` kernel.

    Attributes
    ----------
    dtype, DIM, UNROLL
        See `VectorConfig`.
    ALONE : int
        Tiles of a vector that a single block reduces.
    BLOCKS : int
        Blocks of a longer one, at most.
    """

    UNROLL: int = 4
    ALONE: int = 2
    BLOCKS: int = 1024

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        super().__post_init__()
        require(self.ALONE >= 1, "alone", "ALONE >= 1", ALONE=self.ALONE)
        require(self.BLOCKS >= 1, "blocks", "BLOCKS >= 1", BLOCKS=self.BLOCKS)

    @property
    def shared_bytes(self) -> int:
        """A partial result of each thread, of three reals at most."""
        return 3 * self.DIM * self.dtype_facts.real_size

    def grid(self, n: int, alone: bool = False) -> int:
        """Blocks for a vector of `n` elements; with `alone` one."""
        tiles = self.tiles(n)
        return 1 if alone or tiles <= self.ALONE else min(tiles, self.BLOCKS)


def source(config: Reduce, operation: str) -> KernelSource:
    """The kernel of `config`; NRM2 and ASUM have one of reals.

    Parameters
    ----------
    config : Reduce
    operation : str
        One of `OPERATIONS`.

    Kernel parameters
    -----------------
    x, y: pointer, the vectors
    partials: pointer, partial results, `reals_of` of the operation for each block
    flags: pointer, 0 before and after, one for each vector of a batch if x of the grid is more than 1
    out: pointer, the result
    n: int64, elements, the first of `integers`
    options: int32, bits
    incx, incy: int64, increments (elements)
    stride_x, stride_y, stride_out: int64, batch strides (elements)

    Grid: x ``config.grid(n)``, z the batch.
    """
    require(operation in OPERATIONS, "operation", f"operation in {OPERATIONS}", operation=operation)
    config = config.of_reals if operation in BY_REALS else config
    return KernelSource.of(
        config,
        PARAMETERS,
        lambda: _build(config, operation),
        flags=(("operation", operation),),
    )


def integers(
    dtype: Dtype,
    operation: str,
    conj: bool,
    n: int,
    increments: tuple[int, int],
    batch_strides: tuple[int, int],
    stride_out: int,
) -> tuple[int, ...]:
    """The integers of a launch on x, y of `dtype`: how many elements, options, increments, batch strides of
    them and of the result.
    """
    config = Reduce(dtype=dtype.letter)
    config = config.of_reals if operation in BY_REALS else config
    n, steps, strides, pairs = extents(dtype, config, n, increments, batch_strides)
    return n, pairs | CONJUGATE * conj, *steps, *strides, stride_out


def plain_sources(config: Reduce) -> Iterator[KernelSource]:
    """The kernels of all operations."""
    return (source(config, operation) for operation in OPERATIONS)


def _gatherer(config: Reduce, operation: str, wide: bool):
    """``gather(acc, where, x, y, ...)``: the elements of this thread of a tile, added to `acc`."""
    layout, functions = elements(config, wide), operation_of(config.dtype_facts, operation)
    read, index, accumulate, READS_Y = layout.read, layout.index, functions.accumulate, operation == "dot"

    @device_function
    def take(e, acc, where, xs, ys, first, t, left, conj):
        accumulate(e, acc, where, xs, ys, first + index(e, t, left), conj)

    accumulate_tile = functions.accumulate_all(layout.count, unrolled(layout.count, take))

    @device_function
    def gather(acc, where, xs, ys, x, y, incx, incy, pair, first, t, left, conj):
        read(xs, x, incx, pair, t, left)
        if READS_Y:
            read(ys, y, incy, pair, t, left)
        accumulate_tile(acc, where, xs, ys, first, t, left, conj)

    return gather


def _block_reducer(config: Reduce, operation: str):
    """``reduce_block(acc, sums, t)``: `acc` of the first thread becomes that of the block, in a fixed order.

    Each lane of the first warp adds up those of its number in the other warps, then the warp halves itself.
    """
    functions, DIM = operation_of(config.dtype_facts, operation), config.DIM
    ACC_REALS, merge, sync_warp = functions.reals, functions.merge, ptx.sync_warp

    @device_function
    def put_one(r, acc, sums, t):
        sums[r * DIM + t] = acc[r]

    put = unrolled(ACC_REALS, put_one)

    @device_function
    def reduce_block(acc, sums, t):
        put(0, acc, sums, t)
        cuda.syncthreads()
        if t < WARP:
            for other in range(t + WARP, DIM, WARP):
                merge(acc, sums, other, DIM)
            half = WARP // 2
            while half > 0:
                if t < 2 * half:
                    put(0, acc, sums, t)
                sync_warp()
                if t < half:
                    merge(acc, sums, t + half, DIM)
                half //= 2

    return reduce_block


def _build(config: Reduce, operation: str):
    facts, functions = config.dtype_facts, operation_of(config.dtype_facts, operation)
    real, REALS, TILE, DIM = ptx.REALS[facts.real], facts.reals_per_element, config.TILE, config.DIM
    HELD, ACC_REALS = elements(config, True).count * REALS, functions.reals
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait, is_aligned = ptx.grid_dependency_wait, ptx.is_aligned(ACCESS // facts.real_size)
    take_ticket, store_relaxed = ptx.take_ticket, ptx.store_relaxed
    gather_wide, gather_single = (_gatherer(config, operation, wide) for wide in (True, False))
    PAIRS_, CONJ_ = PAIRS, CONJUGATE
    reduce_block, start, settle = _block_reducer(config, operation), functions.start, functions.settle
    merge, finish, HELD_Y = functions.merge, functions.finish, HELD if operation == "dot" else 1

    def level1_reduce(x, y, partials, flags, out, n, options, incx, incy, stride_x, stride_y, stride_out):
        # (1) the tiles of this block
        t, batch, blocks = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z), int32(cuda.gridDim.x)
        x, y = offset(x, batch * stride_x * REALS), offset(y, batch * stride_y * REALS)
        sums = shared_pointer(cuda.shared.array(0, real, alignment=16))
        acc, where = cuda.local.array(ACC_REALS, real), cuda.local.array(1, int64)
        xs, ys = cuda.local.array(HELD, real), cuda.local.array(HELD_Y, real)
        wide = (incx == 1) & (incy == 1) & is_aligned(x) & is_aligned(y)
        pair, conj = int32(options & PAIRS_), int32(options & CONJ_)
        incx, incy = incx << pair, incy << pair
        grid_dependency_wait()
        start(acc, where)
        first = int64(cuda.blockIdx.x) * TILE
        while first < n:
            left = int32(min(n - first, TILE))
            begin = first >> pair
            here, there = offset(x, begin * incx * REALS), offset(y, begin * incy * REALS)
            if wide:
                gather_wide(acc, where, xs, ys, here, there, incx, incy, pair, first, t, left, conj)
            else:
                gather_single(acc, where, xs, ys, here, there, incx, incy, pair, first, t, left, conj)
            first += int64(blocks) * TILE
        settle(acc, where)
        reduce_block(acc, sums, t)

        # (2) of several blocks the last one reduces their partial results, and leaves the flag 0
        is_last = True
        if blocks > 1:
            partials = offset(partials, batch * (blocks * ACC_REALS))
            if t == 0:
                for r in range(ACC_REALS):
                    partials[r * blocks + cuda.blockIdx.x] = acc[r]
            cuda.syncthreads()
            ticket = int32(0)
            if t == 0:
                ticket = take_ticket(flags, batch)
            is_last = bool(cuda.syncthreads_or(int32(1 if ticket == blocks - 1 else 0)))
            if is_last:
                start(acc, where)
                settle(acc, where)
                for block in range(t, blocks, DIM):
                    merge(acc, partials, block, blocks)
                reduce_block(acc, sums, t)
                if t == 0:
                    store_relaxed(flags, batch, int32(0))
        if is_last and t == 0:
            finish(out, batch * stride_out, acc)

    return level1_reduce
