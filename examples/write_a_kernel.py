"""
Write a kernel
==============

A kernel family is a frozen Config with its rules, and a factory that closes over the Config. The factory
decides in Python what depends on the Config, before the compiler sees the kernel. This one is DGMM, C :=
diag(x) A, which scales each row.

The script runs in the simulator: threads are Python functions, and races, missing barriers and accesses out
of bounds raise an error. On a GPU the same text is compiled.
"""

import os

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # before Numba is imported

from dataclasses import dataclass

import numpy as np

try:
    from pyblasgpu.errors import ConfigError, require
    from pyblasgpu.gpu.backend import cuda, device_function, ptx, unrolled
    from pyblasgpu.gpu.backend import require as require_backend
    from pyblasgpu.gpu.build.compile import KernelSource
    from pyblasgpu.gpu.launch import kernel
    from pyblasgpu.types import DTYPES

    require_backend()
except RuntimeError as missing:
    print(f"skipped: the simulator cannot run here ({missing})")
    raise SystemExit from None

# %%
# The Config: tile and threads, with every rule by name. A Config that breaks one cannot be made.


@dataclass(frozen=True)
class Dgmm:
    """Config of one `dgmm` kernel: a block of DIM threads scales a tile of BLK_M x BLK_N."""

    dtype: str
    BLK_M: int = 32
    BLK_N: int = 8
    DIM: int = 64

    def __post_init__(self):
        require(self.dtype in "sd", "real", "dtype in ('s', 'd')", dtype=self.dtype)
        tile = {"DIM": self.DIM, "BLK_M": self.BLK_M, "BLK_N": self.BLK_N}
        require(self.DIM % self.BLK_M == 0, "whole_columns", "DIM % BLK_M == 0", **tile)
        columns = self.DIM // self.BLK_M
        require(self.BLK_N % columns == 0, "whole_steps", "BLK_N % (DIM // BLK_M) == 0", **tile)


try:
    Dgmm("d", DIM=48)
except ConfigError as error:
    print(error)

# %%
# The factory. A kernel takes a pointer a matrix, then extents, then strides in elements. ``unrolled``
# unrolls for certain: what indexes registers must be unrolled. Edges are predicates of the loads and
# stores, not branches.


def build(config: Dgmm):
    """The kernel of `config`."""
    BLK_M, BLK_N = config.BLK_M, config.BLK_N
    COLUMNS = config.DIM // BLK_M
    real, int64, offset = ptx.REALS[DTYPES[config.dtype].real], ptx.types.int64, ptx.offset
    load, store = ptx.load_global(1, False), ptx.store_global

    @device_function
    def scale(step, c, a, factor, element, lda, ldc, i, j, rows, cols):
        column = j + step * COLUMNS
        inside = (i < rows) & (column < cols)
        load(element, 0, a, column * lda + i, inside)
        store(c, column * ldc + i, factor[0] * element[0], inside)

    scale_all = unrolled(BLK_N // COLUMNS, scale)

    def dgmm(x, a, c, m, n, lda, ldc):
        # (1) the tile of this block, by 64-bit arithmetic once; 32-bit indices within it
        row0, col0 = cuda.blockIdx.x * BLK_M, cuda.blockIdx.y * BLK_N
        i, j, rows, cols = cuda.threadIdx.x % BLK_M, cuda.threadIdx.x // BLK_M, m - row0, n - col0
        a, c = offset(a, int64(col0) * lda + row0), offset(c, int64(col0) * ldc + row0)

        # (2) one factor a thread, then its elements of the tile
        factor, element = cuda.local.array(1, real), cuda.local.array(1, real)
        load(factor, 0, x, row0 + i, i < rows)
        scale_all(0, c, a, factor, element, lda, ldc, i, j, rows, cols)

    return dgmm


# %%
# The source has all that decides the machine code. Parameters: p a pointer to reals, i
# int32, q int64.


def source(config: Dgmm) -> KernelSource:
    """What is compiled, or simulated."""
    return KernelSource(
        name="dgmm",
        config=config,
        flags=(),
        real=DTYPES[config.dtype].real,
        parameters="pppiiqq",
        threads=config.DIM,
        min_blocks=1,
        shared_bytes=0,
        build=lambda: build(config),
    )


# %%
# A launch with extents that no tile divides. ``ptx.adopt`` makes an array known to the simulator as device
# memory.

config, (m, n) = Dgmm("d"), (45, 13)
rng = np.random.default_rng(0)
x, a = rng.standard_normal(m), np.asfortranarray(rng.standard_normal((m, n)))
c = np.full((m, n), np.nan, order="F")
grid = -(-m // config.BLK_M), -(-n // config.BLK_N), 1
kernel(source(config), 0).launch(grid, 0, [ptx.adopt(array) for array in (x, a, c)], (m, n, m, m), ())

assert np.array_equal(c, x[:, None] * a)
print(f"dgmm of {m} x {n} in the simulator, {grid[0] * grid[1]} blocks: right in every bit")
