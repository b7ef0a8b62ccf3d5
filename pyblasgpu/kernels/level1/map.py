"""``level1_map``: vectors element by element: SCAL and COPY, AXPY, SWAP, ROT and ROTM.

A block takes one tile, all of which is under way before any of it is needed; see `elements`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...gpu.compile import KernelSource
from ...types import Dtype
from .config import ACCESS, VectorConfig
from .elements import elements

__all__ = ["OPERATIONS", "STEM", "Map", "plain_sources", "source"]

STEM = "level1_map"
PARAMETERS = "ppp q qqq qqq rrrr".replace(" ", "")

#: v := alpha x; v := alpha x + y; x, v := y, x; x, v := a x + b y, c x + d y.
OPERATIONS = ("scal", "axpy", "swap", "rot")


@dataclass(frozen=True, kw_only=True)
class Map(VectorConfig):
    """Config of one `level1_map` kernel; see `VectorConfig`."""

    STEM: ClassVar[str] = STEM
    shared_bytes: ClassVar[int] = 0

    def grid(self, n: int) -> int:
        """Blocks for vectors of `n` elements."""
        return self.tiles(n)


def source(config: Map, operation: str) -> KernelSource:
    """The kernel of `config`.

    Parameters
    ----------
    config : Map
    operation : str
        One of `OPERATIONS`. Where alpha is real, SCAL multiplies parts of complex elements by it.

    Returns
    -------
    KernelSource
        Its parameters are pointers to x, y, v; int64 n, increments, and batch strides of x, y, v (elements);
        alpha and beta (real, imaginary part), of 'rot' a, b and c, d, which are real. v is x or y, or apart
        from them; of 'swap' and 'rot' it is y. Grid: x ``config.grid(n)``, z the batch.
    """
    require(operation in OPERATIONS, "operation", f"operation in {OPERATIONS}", operation=operation)
    return KernelSource.of(
        config,
        PARAMETERS,
        lambda: _build(config, operation),
        flags=(("operation", operation),),
        min_blocks=config.min_blocks,
    )


def plain_sources(config: Map) -> Iterator[KernelSource]:
    """The kernels of all operations."""
    return (source(config, operation) for operation in OPERATIONS)


def _computer(facts: Dtype, operation: str):
    """``compute(e, xs, ys, ...)``: element `e` of what becomes x, and of what becomes v."""
    PARTS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]

    @device_function
    def scal(e, xs, ys, alpha, alpha_i, beta, beta_i):
        if COMPLEX and alpha_i != real(0):
            re, im = xs[2 * e], xs[2 * e + 1]
            ys[2 * e], ys[2 * e + 1] = alpha * re - alpha_i * im, alpha * im + alpha_i * re
        else:
            for r in range(e * PARTS, e * PARTS + PARTS):
                ys[r] = alpha * xs[r]

    @device_function
    def axpy(e, xs, ys, alpha, alpha_i, beta, beta_i):
        if COMPLEX:
            re, im = xs[2 * e], xs[2 * e + 1]
            ys[2 * e] += alpha * re - alpha_i * im
            ys[2 * e + 1] += alpha * im + alpha_i * re
        else:
            ys[e] += alpha * xs[e]

    @device_function
    def swap(e, xs, ys, alpha, alpha_i, beta, beta_i):
        for r in range(e * PARTS, e * PARTS + PARTS):
            xs[r], ys[r] = ys[r], xs[r]

    @device_function
    def rot(e, xs, ys, alpha, alpha_i, beta, beta_i):
        for r in range(e * PARTS, e * PARTS + PARTS):
            x, y = xs[r], ys[r]
            xs[r], ys[r] = alpha * x + alpha_i * y, beta * x + beta_i * y

    return {"scal": scal, "axpy": axpy, "swap": swap, "rot": rot}[operation]


def _mover(config: Map, operation: str, wide: bool):
    """``move(x, y, v, ...)``: the elements of this thread read, computed and written."""
    layout, compute = elements(config, wide), _computer(config.dtype_facts, operation)
    READS_Y, WRITES_X = operation != "scal", operation in ("swap", "rot")
    read, write, compute_all = layout.read, layout.write, unrolled(layout.count, compute)

    @device_function
    def move(x, y, v, incx, incy, incv, t, left, xs, ys, alpha, alpha_i, beta, beta_i):
        read(xs, x, incx, t, left)
        if READS_Y:
            read(ys, y, incy, t, left)
        compute_all(0, xs, ys, alpha, alpha_i, beta, beta_i)
        if WRITES_X:
            write(xs, x, incx, t, left)
        write(ys, v, incv, t, left)

    return move


def _build(config: Map, operation: str):
    facts = config.dtype_facts
    real, PARTS, TILE = ptx.REALS[facts.real], facts.reals_per_element, config.TILE
    HELD = elements(config, True).count * PARTS
    int32, int64, offset = ptx.types.int32, ptx.types.int64, ptx.offset
    grid_dependency_wait, is_aligned = ptx.grid_dependency_wait, ptx.is_aligned(ACCESS // facts.real_size)
    move_wide, move_single = (_mover(config, operation, wide) for wide in (True, False))

    def level1_map(x, y, v, n, incx, incy, incv, stride_x, stride_y, stride_v, alpha, alpha_i, beta, beta_i):
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        first = int64(cuda.blockIdx.x) * TILE
        left = int32(min(n - first, TILE))
        x = offset(x, (batch * stride_x + first * incx) * PARTS)
        y = offset(y, (batch * stride_y + first * incy) * PARTS)
        v = offset(v, (batch * stride_v + first * incv) * PARTS)
        xs, ys = cuda.local.array(HELD, real), cuda.local.array(HELD, real)
        grid_dependency_wait()
        if (incx == 1) & (incy == 1) & (incv == 1) & is_aligned(x) & is_aligned(y) & is_aligned(v):
            move_wide(x, y, v, incx, incy, incv, t, left, xs, ys, alpha, alpha_i, beta, beta_i)
        else:
            move_single(x, y, v, incx, incy, incv, t, left, xs, ys, alpha, alpha_i, beta, beta_i)

    return level1_map
