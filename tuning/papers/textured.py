"""Algorithm 1 of Kurzak et al. with reads by two-dimensional textures: the third way of their stencil.

The other two are plain loads, and the read-only path in the place of one-dimensional textures (`read_only`).
It is the kernel of a `GemmSimt` with one stage, both operands shared, C = alpha A B + beta C. Only the loads
into registers differ: they have coordinates, not addresses, and need no mask at edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from pyblasgpu.errors import require
from pyblasgpu.gpu import launch, memory
from pyblasgpu.gpu.backend import cuda, device_function, ptx
from pyblasgpu.gpu.build.compile import KernelSource
from pyblasgpu.gpu.driver import check, load
from pyblasgpu.kernels.common.parameters import parameters
from pyblasgpu.kernels.common.smem_tile import SmemTile
from pyblasgpu.kernels.common.tile_loaders import loaders
from pyblasgpu.kernels.common.tile_scheduler import tile_origins
from pyblasgpu.kernels.gemm.epilogue import epilogue, reals_read
from pyblasgpu.kernels.gemm.mainloop import mma_k_block
from pyblasgpu.kernels.gemm.simt import GemmSimt, product_of
from pyblasgpu.operands import Operand
from tuning.papers.textures import reader, texture_of

__all__ = ["product", "source"]

PARAMETERS = parameters(
    "pointer: c",
    "int32: m, n, k, options",
    "int64: texture_a, texture_b, ldc",
    "real: alpha, alpha_i, beta, beta_i",
)


def source(config: GemmSimt) -> KernelSource:
    """The kernel of `config` that reads A and B by textures.

    Kernel parameters
    -----------------
    c: pointer, C
    m, n, k: int32, extents
    options: int32, how C is rasterized (`kernels.common.options`)
    texture_a, texture_b: int64, texture objects of A and B
    ldc: int64, leading dimension of C (elements)
    alpha, alpha_i, beta, beta_i: real, parts of alpha and beta

    Grid: x ``config.grid(m, n)``.

    Raises
    ------
    ConfigError
        Where operands do not both pass through registers into shared memory, transposed where need be.
    """
    facts = {"stages": config.stages, "shares": config.shares, "packed": config.packed}
    is_algorithm_1 = config.stages == 1 and all(config.shares) and not config.packed
    require(is_algorithm_1, "textured", "stages == 1, both operands shared and not packed", **facts)
    return KernelSource.of(config, PARAMETERS, partial(_build, config), flags=(("texture", "2d"),))


@contextmanager
def product(
    config: GemmSimt, alpha: complex, a: Operand, b: Operand, beta: complex, c: Operand
) -> Iterator[Callable[[int], None]]:
    """A block with a function of a stream that enqueues C := alpha A B + beta C, C by columns.

    At its end, when textures end, it waits for the device.
    """
    reals = tuple(part for x in map(complex, (alpha, beta)) for part in (x.real, x.imag))
    kernel = launch.kernel(source(config), c.device)
    with ExitStack() as held:
        textures = [held.enter_context(texture_of(each)) for each in (a, b)]
        integers = (c.rows, c.cols, a.cols, 0, *textures, c.col_stride)
        grid = config.grid(c.rows, c.cols), 1, 1
        with memory.current_context(c.device):
            yield lambda stream: kernel.launch(grid, stream, (c.pointer,), integers, reals)
            check(load().cuCtxSynchronize(), "cuCtxSynchronize")


def _loader(k_tile: SmemTile) -> Callable[..., None]:
    """``start(staged, texture, first, k0, t)``: the k-tile that begins at `first` along m or n, at `k0`."""
    DIM_X, DIM_Y, VEC, K_MAJOR = k_tile.dim_x, k_tile.dim_y, k_tile.vec, k_tile.k_major
    STEPS_X, STEPS_Y = k_tile.major // (DIM_X * VEC), k_tile.minor // DIM_Y
    REALS, int32, read = k_tile.dtype.reals_per_element, ptx.types.int32, reader(k_tile.dtype)

    @device_function
    def start(staged, texture, first, k0, t):
        x0, y0 = (k0, first) if K_MAJOR else (first, k0)
        x0, y0 = x0 + t % DIM_X * VEC, y0 + t // DIM_X
        for y in range(STEPS_Y):
            for x in range(STEPS_X):
                for e in range(VEC):
                    at = ((y * STEPS_X + x) * VEC + e) * REALS
                    read(staged, at, texture, int32(x0 + x * DIM_X * VEC + e), int32(y0 + y * DIM_Y))

    return start


def _build(config: GemmSimt) -> Callable[..., None]:
    innermost, dtype = product_of(config, False, False), config.dtype_facts
    tile_a, tile_b = config.smem_tile_a, config.smem_tile_b
    start_a, start_b = _loader(tile_a), _loader(tile_b)
    finish_a, finish_b = (loaders(tile, 1, True).finish for tile in (tile_a, tile_b))
    multiply_tile, write, zero = (
        mma_k_block(config, innermost),
        epilogue(config, innermost),
        ptx.fill(config.sums),
    )
    real, REALS, int32, offset = ptx.REALS[dtype.real], dtype.reals_per_element, ptx.types.int32, ptx.offset
    BLK_M, BLK_N, BLK_K, B_TILE, ACC = config.BLK_M, config.BLK_N, config.BLK_K, config.offset_b, config.sums
    FRAG_A, FRAG_B = innermost.fragment_a, innermost.fragment_b
    STAGED_A, STAGED_B = (tile.staged(config.threads) for tile in (tile_a, tile_b))
    OLD = max(reals_read(config, run) for run in (0, innermost.run))
    origin, shared_pointer, grid_dependency_wait = (
        tile_origins(BLK_M, BLK_N),
        ptx.shared_pointer,
        ptx.grid_dependency_wait,
    )

    def gemm_textured(c, m, n, k, options, texture_a, texture_b, ldc, alpha, alpha_i, beta, beta_i):
        t = cuda.threadIdx.x
        tiles_m, tiles_n = (m + BLK_M - 1) // BLK_M, (n + BLK_N - 1) // BLK_N
        row0, col0 = origin(cuda.blockIdx.x, tiles_m, tiles_n, options)
        rows, cols, shift = m - row0, n - col0, row0 - col0
        c = offset(c, (col0 * ldc + row0) * REALS)
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))
        acc, old = cuda.local.array(ACC, real), cuda.local.array(OLD, real)
        ra, rb = cuda.local.array(FRAG_A, real), cuda.local.array(FRAG_B, real)
        staged_a, staged_b = cuda.local.array(STAGED_A, real), cuda.local.array(STAGED_B, real)
        zero(acc, real(0))
        grid_dependency_wait()
        start_a(staged_a, texture_a, row0, int32(0), t)
        start_b(staged_b, texture_b, col0, int32(0), t)
        for k0 in range(0, k, BLK_K):
            if k0 > 0:
                cuda.syncthreads()
            finish_a(shared, staged_a, t)
            finish_b(offset(shared, B_TILE), staged_b, t)
            cuda.syncthreads()
            start_a(staged_a, texture_a, row0, int32(k0 + BLK_K), t)
            start_b(staged_b, texture_b, col0, int32(k0 + BLK_K), t)
            multiply_tile(acc, ra, rb, shared, c, c, ldc, ldc, t, rows, cols, BLK_K)
        write(c, acc, old, ldc, t, rows, cols, shift, options, alpha, alpha_i, beta, beta_i)

    return gemm_textured
