"""``gemm_grouped``: products of unequal sizes in one launch.

A block computes a tile of C of one of the products, which it finds in a `table`; all else is the ordinary
kernel's, as `mainloop` has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...gpu.build.compile import KernelSource
from ...gpu.device import Device
from ...gpu.intrinsics.mma import SHAPES
from ..common.kernel_config import KernelConfig
from ..common.parameters import parameters
from ..common.problem_table import ROW_WORDS, long_integer, row_reader
from ..common.tile_iterators import tile_iterator
from ..common.tile_scheduler import tile_origins
from . import mma, simt
from .mainloop import _tile

__all__ = ["FMA", "STEM", "TILES", "GemmGrouped", "plain_sources", "source"]

STEM = "gemm_grouped"
PARAMETERS = parameters("pointer: origin, scalars", "int32 pointer: problems, owners")
SMALL, LARGE = TILES = 32, 64  # rows and columns of the tiles that there are kernels for
FMA = 0  # rows of an instruction, where there are no tensor cores
#: Threads along m and n of a tile by FMAs, by dtype.
_THREADS = {
    SMALL: {"s": (8, 8), "d": (8, 8), "c": (8, 8), "z": (8, 8)},
    LARGE: {"s": (8, 8), "d": (16, 8), "c": (16, 8), "z": (16, 16)},
}
_DEPTHS = {"s": 16, "d": 16, "c": 8, "z": 8}  # BLK_K


@dataclass(frozen=True)
class GemmGrouped(KernelConfig):
    """Config of one `gemm_grouped` kernel.

    Attributes
    ----------
    BLK : int
        Rows and columns of a tile.
    MMA_M : int
        Rows of an instruction of the tensor cores; `FMA`: the kernel does without.
    trans_a, trans_b : bool
        Whether A is contiguous along k (else m), B along n (else k).
    """

    BLK: int = LARGE
    MMA_M: int = FMA
    trans_a: bool = False
    trans_b: bool = False

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        require(self.BLK in TILES, "tile", f"BLK in {TILES}", BLK=self.BLK)
        require(
            self.MMA_M in (FMA, 8, 16) and (self.MMA_M == FMA or self.dtype in "dz"),
            "mma",
            "MMA_M in (0, 8, 16), and 0 in single precision",
            MMA_M=self.MMA_M,
            dtype=self.dtype,
        )

    @cached_property
    def product(self) -> Any:
        """The Config of an ordinary product with this tile."""
        if self.MMA_M == FMA:
            return simt.GemmSimt(**self._loads, **self._fma_threads)
        warp = self.BLK // 2
        depth = 8 if self.dtype == "z" and self.MMA_M == 16 else 4
        return mma.GemmMma(**self._loads, WARP_M=warp, WARP_N=warp, MMA_M=self.MMA_M, MMA_K=depth)

    @property
    def _fma_threads(self) -> dict[str, Any]:
        x, y = _THREADS[self.BLK][self.dtype]
        wide = 16 // self.dtype_facts.itemsize
        return {"DIM_X": x, "DIM_Y": y, "VEC_M": wide, "VEC_N": wide, "UNROLL": _DEPTHS[self.dtype]}

    @property
    def _loads(self) -> dict[str, Any]:
        """Dtype, layout, tile and loads of the product.

        What is contiguous along k is transposed on its way for FMAs, by single elements, and stays so for
        tensor cores. Pads keep reads of shared memory apart.
        """
        by_fma, wide, depth = self.MMA_M == FMA, 16 // self.dtype_facts.itemsize, _DEPTHS[self.dtype]
        threads = 128 if not by_fma else _THREADS[self.BLK][self.dtype][0] * _THREADS[self.BLK][self.dtype][1]
        values: dict[str, Any] = {
            "dtype": self.dtype,
            "trans_a": self.trans_a,
            "trans_b": self.trans_b,
            "BLK_M": self.BLK,
            "BLK_N": self.BLK,
            "BLK_K": depth,
            "stages": 3,
            # a second set of complex fragments does not fit next to a problem's own numbers
            "prefetch": by_fma or self.dtype == "d" or self.BLK != LARGE,
        }
        for name, along_k in (("A", self.trans_a), ("B", not self.trans_b)):
            vector = 1 if by_fma and along_k else wide
            row_length = depth if along_k else self.BLK
            values[f"VEC_{name}"] = vector
            values[f"DIM_X{name}"] = x = min(row_length // vector, threads)
            values[f"DIM_Y{name}"] = threads // x
            pad = wide if along_k else 0
            if not by_fma:
                pad = 2 if self.dtype == "z" and not along_k else 4
            values[f"PAD_{name}"] = pad
        return values

    @property
    def threads(self) -> int:
        return int(self.product.threads)

    @property
    def shared_bytes(self) -> int:
        return int(self.product.shared_bytes)

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return int(self.product.registers)

    def on(self, device: Device) -> Self:
        """Return the Config for a device: on its tensor cores in double precision, where it has them."""
        has_mma = self.dtype in "dz" and device.has_double_mma
        return replace(self, MMA_M=(16 if device.cc >= SHAPES[16, 4] else 8) if has_mma else FMA)

    def blocks(self, m: Any, n: Any) -> Any:
        """Blocks of an m-by-n C; of arrays, of each."""
        return -(-m // self.BLK) * -(-n // self.BLK)


def source(config: GemmGrouped, conj: bool = False) -> KernelSource:
    """The kernel of `config`, for many products C := alpha A B + beta C; with `conj` B is conjugated.

    A row of problems holds, in this order: the distances of A, B and C from the origin in reals, lda, ldb and
    ldc in elements, of 64 bits; m, n, k, options, and the number of the problem's first block.

    Kernel parameters
    -----------------
    origin: pointer, the address that distances of matrices begin at
    scalars: pointer, alpha, alpha_i, beta and beta_i of each problem
    problems: int32 pointer, a row of `ROW_WORDS` words for each problem
    owners: int32 pointer, the number of each block's problem

    Grid: x the sum of ``config.blocks(m, n)``.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config, conj), flags=(("conj", conj),))


def plain_sources(config: GemmGrouped) -> Iterator[KernelSource]:
    """Yield all kernels of a dtype and kind of instruction."""
    conjs = (False, True) if config.dtype_facts.is_complex else (False,)
    for tile in TILES:
        for trans_a, trans_b in ((False, False), (False, True), (True, False), (True, True)):
            each = replace(config, BLK=tile, trans_a=trans_a, trans_b=trans_b)
            yield from (source(each, conj) for conj in conjs)


def _build(config: GemmGrouped, conj: bool):
    inner = config.product
    real, REALS = ptx.REALS[inner.dtype_facts.real], inner.dtype_facts.reals_per_element
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    BLK_M, BLK_N, WORDS = inner.BLK_M, inner.BLK_N, ROW_WORDS
    begin_a, begin_b = tile_iterator(inner.smem_tile_a).begin, tile_iterator(inner.smem_tile_b).begin
    product_of = simt.product_of if config.MMA_M == FMA else mma.product_of
    tile, tile_origin = _tile(inner, product_of(inner, False, conj), False, False), tile_origins(BLK_M, BLK_N)
    compute, is_aligned = tile.compute, tile.is_aligned
    read_row, wide, read = row_reader(), long_integer(), ptx.load_global(1, False)
    grid_dependency_wait = ptx.grid_dependency_wait

    @device_function
    def read_scalar(i, numbers, scalars, row):
        read(numbers, i, scalars, row + i, True)

    read_scalars = unrolled(4, read_scalar)

    def gemm_grouped(origin, scalars, problems, owners):
        # (1) the problem of this block, and its tile
        words, numbers = cuda.local.array(WORDS, int32), cuda.local.array(4, real)
        grid_dependency_wait()
        owner = read_row(words, problems, owners)
        read_scalars(0, numbers, scalars, int64(owner) * 4)
        t, m, n, k, options = cuda.threadIdx.x, words[12], words[13], words[14], words[15]
        lda, ldb, ldc = wide(words, 6), wide(words, 8), wide(words, 10)
        tiles_m, tiles_n = (m + BLK_M - 1) // BLK_M, (n + BLK_N - 1) // BLK_N
        row0, col0 = tile_origin(int32(cuda.blockIdx.x - words[16]), tiles_m, tiles_n, options)
        a = offset(origin, wide(words, 0) + begin_a(row0, int64(0), lda) * REALS)
        b = offset(origin, wide(words, 2) + begin_b(col0, int64(0), ldb) * REALS)
        c = offset(origin, wide(words, 4) + (col0 * ldc + row0) * REALS)

        # (2) to (5) are those of the ordinary kernel
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))
        compute(
            is_aligned(a, b, lda, ldb), a, b, c, m - row0, n - col0, k, row0 - col0, options, lda, ldb, ldc,
            t, shared, numbers[0], numbers[1], numbers[2], numbers[3],
        )  # fmt: skip

    return gemm_grouped
