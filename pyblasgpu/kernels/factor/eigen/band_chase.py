"""``band_chase``: T of a symmetric or Hermitian band matrix, A = Q T Qᴴ real and tridiagonal, in one launch.

Sweep i makes what is below the subdiagonal of column i zero by a reflector. That fills a block below, of
which the next reflector clears the first column, and so on to the end (Bischof, Lang and Sun). Sweeps have a
resident block of threads each, and follow one another down the band: step k of a sweep waits until step k + 1
of the one before is over, by a number in memory.

With another option the same kernel scales A, and completes it, for the reduction to a band.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP, BlockConfig
from ...common.parameters import parameters
from ..qr.meeting import meeting
from ..qr.reflector import scaler
from .band_steps import band_loader, keeper, stepper
from .rotation import PARTIALS, team_max
from .sytrd_steps import UNROLL, leaf_writer, matrix_loader, sizer

__all__ = ["FILLS", "STEM", "WANTS_VECTORS", "BandChase", "source"]

STEM = "band_chase"
PARAMETERS = parameters(
    "pointer: a, work, band, vectors, tau, d, e, leaves, scale",
    "int32 pointer: info, progress, flags",
    "int32: n, ld, leaf, padded, conj, options, group, steps",
    "int64: a_rs, a_cs",
)
#: Options: A is scaled and completed, and nothing else; vectors of the reflectors are wanted.
FILLS, WANTS_VECTORS = 1, 2


@dataclass(frozen=True)
class BandChase(BlockConfig):
    """Config of one `band_chase` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    WIDTH : int
        Subdiagonals of the band, and rows of a reflector.
    """

    DIM: int = 256
    WIDTH: int = WARP

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(1 < self.WIDTH <= WARP, "width", "1 < WIDTH <= 32", WIDTH=self.WIDTH)
        require(
            self.WIDTH % self.WARPS == 0, "columns", "WIDTH % (DIM / 32) == 0", WIDTH=self.WIDTH, DIM=self.DIM
        )

    @property
    def WARPS(self) -> int:
        """Warps of a block."""
        return self.DIM // WARP

    @property
    def OWN(self) -> int:
        """Columns of a warp."""
        return self.WIDTH // self.WARPS

    @property
    def LD(self) -> int:
        """Elements from column to column of the band: its diagonal, and what a sweep fills."""
        return 2 * self.WIDTH

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 4 * self.OWN * self.dtype_facts.itemsize // 4 + 64

    @property
    def shared_elements(self) -> int:
        """Sums of columns, and twice sums of rows of each warp; reals for a maximum."""
        return self.WIDTH + 2 * self.DIM + PARTIALS

    def leading_dimension(self, order: int) -> int:
        """Elements from column to column of the matrix at work: whole groups of rows."""
        return -(-order // WARP) * WARP

    def columns(self, order: int) -> int:
        """Columns of the matrix at work, and some that are zero."""
        return order + UNROLL

    def steps(self, order: int) -> int:
        """Reflectors of the longest sweep."""
        return -(-(order - 1) // self.WIDTH)

    def grid(self, order: int, multiprocessors: int) -> int:
        """Blocks of a chase, all resident: as many as sweeps are under way."""
        return min(-(-order // (2 * self.WIDTH)) + 1, multiprocessors)


def source(config: BandChase) -> KernelSource:
    """The kernel of `config`, for n >= 2.

    Kernel parameters
    -----------------
    a: pointer, with FILLS the matrix, whose lower triangle is read
    work: pointer, A times a power of two, both triangles, ld by ``config.columns(n)`` elements, by columns
    band: pointer, n ``config.LD`` elements; with FILLS a real for each block
    vectors: pointer, WIDTH + group by `group` elements for each group of sweeps and each step: V
    tau: pointer, `group` elements each
    d, e: pointer, reals, diagonal and subdiagonal of T, the latter with zeros to `padded`
    leaves: pointer, reals, blocks of T, torn apart, continued to `padded` by what is beyond all eigenvalues
    scale: pointer, a real, by which eigenvalues are to be multiplied; NaN where A is not finite
    info: int32 pointer, 0, or n where A is not finite: it counts as zero then
    progress: int32 pointer, n elements
    flags: int32 pointer, 0 before and after
    n, ld, leaf, padded, conj: int32, order, leading dimension, orders of leaves, conj of A
    options: int32, FILLS, or WANTS_VECTORS or 0
    group, steps: int32, sweeps of a group, ``config.steps(n)``
    a_rs, a_cs: int64, row and column stride of A (elements)

    Grid: x blocks that are all resident.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config), cooperative=True)


def _filler(config: BandChase) -> Callable:
    """``fill(a, work, sizes, scale, info, flags, partials, h, n, ld, conj, a_rs, a_cs, block, blocks, t)``:
    A of about one, with both triangles.
    """
    DIM, real, int32 = config.DIM, ptx.REALS[config.dtype_facts.real], ptx.types.int32
    fill_rows, find_size, scales = matrix_loader(config), sizer(config), scaler(config.dtype_facts)
    largest, (meet, _) = team_max(DIM), meeting()

    @device_function
    def fill(a, work, sizes, scale, info, flags, partials, h, n, ld, conj, a_rs, a_cs, block, blocks, t):
        most = find_size(a, a_rs, a_cs, n, block, blocks, t)
        most = largest(most, partials, t, int32(DIM))
        if t == 0:
            sizes[block] = most
        meet(flags, int32(1), blocks, t)
        most, i = real(0), t
        while i < blocks:
            most = max(most, sizes[i])
            i = int32(i + DIM)
        most = largest(most, partials, t, int32(DIM))
        is_bad = not most < real(float("inf"))
        scales(h, most)
        fill_rows(work, a, a_rs, a_cs, h[0], is_bad, conj, n, ld, block, blocks, t)
        if t == 0 and block == 0:
            scale[0] = real(float("nan")) if is_bad else h[1]
            info[0] = n if is_bad else int32(0)

    return fill


def _build(config: BandChase):
    facts, DIM, WIDTH = config.dtype_facts, config.DIM, config.WIDTH
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]
    HALF, SIZE = config.OWN * REALS, 2 * config.OWN * REALS  # reals of the columns of a thread
    int32, offset, shared_pointer = ptx.types.int32, ptx.offset, ptx.shared_pointer
    grid_dependency_wait, quotient = ptx.grid_dependency_wait, ptx.quotient
    load_acquire, store_release = ptx.load_acquire, ptx.store_release
    fill, load_band, step, (meet, part) = _filler(config), band_loader(config), stepper(config), meeting()
    write_leaves, keep = leaf_writer(config), keeper(config)

    def band_chase(
        a, work, band, vectors, tau, d, e, leaves, scale, info, progress, flags,
        n, ld, leaf, padded, conj, options, group, steps, a_rs, a_cs,
    ):  # fmt: skip
        t, block, blocks = int32(cuda.threadIdx.x & 1023), int32(cuda.blockIdx.x), int32(cuda.gridDim.x)
        partials = shared_pointer(cuda.shared.array(0, real, alignment=16))
        shared = offset(partials, PARTIALS * REALS)
        x, y, z = (
            cuda.local.array(SIZE, real),
            cuda.local.array(SIZE, real),
            cuda.local.array(HALF, real),
        )
        h, acc, v = (
            cuda.local.array(5, real),
            cuda.local.array(REALS, real),
            cuda.local.array(REALS, real),
        )
        grid_dependency_wait()
        if options & FILLS:
            fill(a, work, band, scale, info, flags, partials, h, n, ld, conj, a_rs, a_cs, block, blocks, t)
            part(flags, blocks, t)
            return

        # (1) the band, and no sweep begun
        load_band(band, work, n, ld, block, blocks, t)
        i = int32(block * DIM + t)
        while i < n:
            progress[i] = int32(0)
            i = int32(i + blocks * DIM)
        meet(flags, int32(1), blocks, t)

        # (2) each block a sweep after another, each sweep down the band
        i = block
        while i < n - 1:
            before = int32(quotient(int32(n - i + WIDTH - 1), int32(WIDTH)))
            k, row, seen = int32(0), int32(i + 1), int32(0)
            while row < n:
                if t == 0 and i > 0:
                    while seen < min(k + 2, before):
                        seen = load_acquire(progress, i - 1)
                cuda.syncthreads()
                step(x, y, z, acc, v, h, shared, band, d, e, i, k, row, n, t)
                cuda.syncthreads()
                if t == WARP:  # while the first warp looks for the next step
                    store_release(progress, i, int32(k + 1))
                if options & WANTS_VECTORS and t >= DIM - WARP:  # nothing waits for it
                    keep(vectors, tau, h, v, i, k, group, steps, min(int32(WIDTH), n - row), int32(t & 31))
                k, row = int32(k + 1), int32(row + WIDTH)
            i = int32(i + blocks)
        meet(flags, int32(2), blocks, t)

        # (3) the leaves
        write_leaves(leaves, d, e, partials, n, leaf, padded, block, blocks, t)
        part(flags, blocks, t)

    return band_chase
