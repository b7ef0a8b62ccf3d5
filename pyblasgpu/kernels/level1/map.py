"""``level1_map``: vectors element by element: SCAL and COPY, AXPY, SWAP, ROT and ROTM.

A block takes one tile, all of which is under way before any of it is needed; see `elements`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...gpu.build.compile import KernelSource
from ...types import Dtype
from ..common.options import EXCHANGES, PAIRS, READS_Y
from ..common.parameters import parameters
from .config import ACCESS, VectorConfig, extents
from .elements import elements

__all__ = ["OPERATIONS", "STEM", "Map", "integers", "plain_sources", "source"]

STEM = "level1_map"
PARAMETERS = parameters(
    "pointer: x, y, v",
    "int64: n",
    "int32: options",
    "int64: incx, incy, incv, stride_x, stride_y, stride_v",
    "real: alpha, alpha_i, beta, beta_i",
)

#: v := alpha x; v := alpha x + y; x, v := y, x; x, v := a x + b y, c x + d y. Of two a kernel does either.
OPERATIONS = ("scal", "axpy", "swap", "rot")
RESIDENT = 2048  # threads of a multiprocessor
_OPTIONS = {"axpy": READS_Y, "swap": EXCHANGES}


@dataclass(frozen=True, kw_only=True)
class Map(VectorConfig):
    """Config of one `level1_map` kernel; see `VectorConfig`."""

    STEM: ClassVar[str] = STEM

    @property
    def min_blocks(self) -> int:
        """Blocks that fill a multiprocessor's threads: a thread has few loads in flight."""
        return max(RESIDENT // (self.DIM * self.UNROLL), 1)

    def grid(self, n: int) -> int:
        """Blocks for vectors of `n` elements."""
        return self.tiles(n)


def source(config: Map, operation: str) -> KernelSource:
    """The kernel of `config`: one for SCAL and AXPY, one of reals for SWAP and ROT.

    Parameters
    ----------
    config : Map
    operation : str
        One of `OPERATIONS`. Where alpha is real, SCAL multiplies parts of complex elements by it.

    Kernel parameters
    -----------------
    x, y, v: pointer, the vectors; v is x or y, or apart from them; for 'swap' and 'rot' it is y
    n: int64, elements, the first of `integers`
    options: int32, bits
    incx, incy, incv: int64, increments (elements)
    stride_x, stride_y, stride_v: int64, batch strides (elements)
    alpha, alpha_i, beta, beta_i: real, parts of alpha and beta; for 'rot' the real a, b and c, d

    Grid: x ``config.grid(n)``, z the batch.
    """
    require(operation in OPERATIONS, "operation", f"operation in {OPERATIONS}", operation=operation)
    both = operation in ("swap", "rot")
    config = config.of_reals if both else config
    return KernelSource.of(
        config,
        PARAMETERS,
        lambda: _build(config, both),
        flags=(("operation", "rot" if both else "axpy"),),
    )


def integers(
    dtype: Dtype,
    operation: str,
    n: int,
    increments: tuple[int, int, int],
    batch_strides: tuple[int, int, int],
) -> tuple[int, ...]:
    """The integers of a launch on x, y, v of `dtype`: elements, options, increments, batch strides."""
    config = Map(dtype=dtype.letter)
    config = config.of_reals if operation in ("swap", "rot") else config
    n, steps, strides, pairs = extents(dtype, config, n, increments, batch_strides)
    return n, pairs | _OPTIONS.get(operation, 0), *steps, *strides


def plain_sources(config: Map) -> Iterator[KernelSource]:
    """The kernels of all operations."""
    return iter(dict.fromkeys(source(config, operation) for operation in OPERATIONS))


def _scaler(facts: Dtype) -> Any:
    """``compute(e, xs, ys, ...)``: element `e` of v, for SCAL and AXPY."""
    COMPLEX, real, select = facts.is_complex, ptx.REALS[facts.real], ptx.select

    @device_function
    def compute(e, xs, ys, options, alpha, alpha_i, beta, beta_i):
        adds = options & READS_Y != 0
        if COMPLEX:
            re, im = alpha * xs[2 * e], alpha * xs[2 * e + 1]
            if alpha_i != real(0):
                re -= alpha_i * xs[2 * e + 1]
                im += alpha_i * xs[2 * e]
            ys[2 * e] = select(adds, re + ys[2 * e], re)
            ys[2 * e + 1] = select(adds, im + ys[2 * e + 1], im)
        else:
            ys[e] = select(adds, alpha * xs[e] + ys[e], alpha * xs[e])

    return compute


def _rotator(facts: Dtype) -> Any:
    """``compute(e, xs, ys, ...)``: element `e` of x and y, for SWAP and ROT.

    What becomes x waits for x too where they are exchanged: SWAP that does not wait takes longer than ROT.
    """
    select = ptx.select

    @device_function
    def compute(e, xs, ys, options, alpha, alpha_i, beta, beta_i):
        exchanges, x, y = options & EXCHANGES != 0, xs[e], ys[e]
        xs[e] = select(exchanges, y, alpha * x + alpha_i * y)
        ys[e] = select(exchanges, x, beta * x + beta_i * y)

    return compute


def _mover(config: Map, both: bool, wide: bool) -> Any:
    """``move(x, y, v, ...)``: the elements of this thread read, computed and written."""
    layout, facts = elements(config, wide), config.dtype_facts
    read, write = layout.read, layout.write
    compute_all = unrolled(layout.count, _rotator(facts) if both else _scaler(facts))

    @device_function
    def move(x, y, v, incx, incy, incv, pair, t, left, options, xs, ys, alpha, alpha_i, beta, beta_i):
        read(xs, x, incx, pair, t, left)
        if both or options & READS_Y:
            read(ys, y, incy, pair, t, left)
        compute_all(0, xs, ys, options, alpha, alpha_i, beta, beta_i)
        if both:
            write(xs, x, incx, pair, t, left)
        write(ys, v, incv, pair, t, left)

    return move


def _build(config: Map, both: bool) -> Any:
    facts = config.dtype_facts
    real, REALS, TILE = ptx.REALS[facts.real], facts.reals_per_element, config.TILE
    HELD, PAIRS_ = elements(config, True).count * REALS, PAIRS
    int32, int64, offset, zero = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.fill(HELD)
    grid_dependency_wait, is_aligned = ptx.grid_dependency_wait, ptx.is_aligned(ACCESS // facts.real_size)
    move_wide, move_single = (_mover(config, both, wide) for wide in (True, False))

    def level1_map(
        x, y, v, n, options, incx, incy, incv, stride_x, stride_y, stride_v, alpha, alpha_i, beta, beta_i
    ):
        t, batch, pair = (
            int32(cuda.threadIdx.x & 1023),
            int64(cuda.blockIdx.z),
            int32(options & PAIRS_ if both else 0),
        )
        first = int64(cuda.blockIdx.x) * TILE
        left = int32(min(n - first, TILE))
        wide = (incx == 1) & (incy == 1) & (incv == 1)
        incx, incy, incv, begin = incx << pair, incy << pair, incv << pair, first >> pair
        x = offset(x, (batch * stride_x + begin * incx) * REALS)
        y = offset(y, (batch * stride_y + begin * incy) * REALS)
        v = offset(v, (batch * stride_v + begin * incv) * REALS)
        xs, ys = cuda.local.array(HELD, real), cuda.local.array(HELD, real)
        grid_dependency_wait()
        zero(ys, real(0))
        if wide & is_aligned(x) & is_aligned(y) & is_aligned(v):
            move_wide(x, y, v, incx, incy, incv, pair, t, left, options, xs, ys, alpha, alpha_i, beta, beta_i)
        else:
            move_single(
                x, y, v, incx, incy, incv, pair, t, left, options, xs, ys, alpha, alpha_i, beta, beta_i
            )

    return level1_map
