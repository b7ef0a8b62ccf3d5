"""``gemm_int8_guarded``: the tiles that ``gemm_int8`` leaves, by ``gemm_mma``.

It is launched after every product, on the operands as stored, and reads the same flags: a block of a tile
without one returns at once. So the host decides nothing, and waits for nothing.

Where the samples of real operands leave all tiles to FMAs, more blocks, after the others, share the first
tiles as those of the persistent kernel share the last ones. So no multiprocessor idles in the last wave.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import product
from typing import Any, ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.parameters import parameters
from ...common.tile_scheduler import tile_origins
from ..mainloop import build as build_ordinary
from ..mma import GemmMma, product_of
from ..persistent import build as build_persistent
from .product import is_flagged
from .row_scales import convict
from .tile_slots import tile_slots

__all__ = ["STEM", "GemmInt8Guarded", "source"]

STEM = "gemm_int8_guarded"
PARAMETERS = parameters(
    "int32 pointer: flags, verdicts",
    "pointer: a, b, c, partials, ready",
    "int32: m, n, k, options, conj, judges, blocks, shared, k_iters_per_block, remainder",
    "int64: lda, ldb, ldc",
    "real: alpha, alpha_i, beta, beta_i",
)


@dataclass(frozen=True, kw_only=True)
class GemmInt8Guarded(GemmMma):
    """Config of one `gemm_int8_guarded` kernel: that of a `GemmMma`, and the tiles of the flags.

    Attributes
    ----------
    FLAG_M, FLAG_N : int
        Tile of `gemm_int8`; tiles divide it.
    """

    trans_a: bool = False
    trans_b: bool = False
    BLK_M: int = 128
    BLK_N: int = 128
    BLK_K: int = 16
    DIM_XA: int = 64
    DIM_YA: int = 4
    DIM_XB: int = 8
    DIM_YB: int = 32
    VEC_A: int = 2
    VEC_B: int = 2
    PAD_A: int = 4
    PAD_B: int = 4
    WARP_M: int = 64
    WARP_N: int = 32
    MMA_K: int = 4
    stages: int = 4
    prefetch: bool = True
    FLAG_M: int = 128
    FLAG_N: int = 256

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        super().__post_init__()
        require(
            not (self.persistent or self.packed or self.three_m),
            "ordinary",
            "not (persistent or packed or three_m)",
            persistent=self.persistent,
            packed=self.packed,
            three_m=self.three_m,
        )
        require(
            self.FLAG_M % self.BLK_M == 0 and self.FLAG_N % self.BLK_N == 0,
            "flags",
            "FLAG_M % BLK_M == 0 and FLAG_N % BLK_N == 0",
            FLAG_M=self.FLAG_M,
            FLAG_N=self.FLAG_N,
            BLK_M=self.BLK_M,
            BLK_N=self.BLK_N,
        )

    @property
    def flags_of_tile(self) -> int:
        return self.FLAG_M // 16

    @property
    def sharing(self) -> GemmMma:
        """The Config of blocks that share tiles."""
        own = {each.name: getattr(self, each.name) for each in fields(GemmMma)}
        return GemmMma(**own | {"persistent": True})

    def specialize(self, trans_a: bool, trans_b: bool) -> Self:
        """Return the Config for operands with this transposition."""
        loads: dict[str, Any] = {}
        for name, blk, by_k in (("A", self.BLK_M, trans_a), ("B", self.BLK_N, not trans_b)):
            across = min((self.BLK_K if by_k else blk) // self.VEC_A, self.threads)
            loads |= {f"DIM_X{name}": across, f"DIM_Y{name}": self.threads // across}
            if self.dtype_facts.is_complex:
                loads |= {f"PAD_{name}": 4 if by_k else 2}
        return replace(self, trans_a=trans_a, trans_b=trans_b, **loads)

    @property
    def variants(self) -> tuple[Self, ...]:
        return tuple(self.specialize(*trans) for trans in product((False, True), (False, True)))


def source(config: GemmInt8Guarded) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    flags: int32 pointer, the flags of tiles
    verdicts: int32 pointer, of `sample_pairs`: where all are 1, blocks share tiles of real products
    a, b, c: pointer, A, B, C
    partials: pointer, the partial tiles of the blocks that share
    ready: pointer, one a block that shares, 0 before the launch and after it
    m, n, k: int32, extents
    options: int32, rasterization, conjugated sums, triangle of C
    conj: int32, whether B is conjugated
    judges: int32, number of verdicts
    blocks, shared: int32, blocks that share, and the tiles that they share, the first ones
    k_iters_per_block, remainder: int32, of a `TileSchedule`
    lda, ldb, ldc: int64, leading dimensions (elements)
    alpha, alpha_i, beta, beta_i: real, parts of alpha and beta

    Grid: x ``config.grid(m, n, region)``, and `blocks`.
    """
    return KernelSource.of(config, PARAMETERS, partial(_build, config))


def _sharer(config: GemmInt8Guarded):
    """``share(a, b, c, partials, ready, m, n, k, options, schedule, lds, scalars)``: this block's part of the
    tiles that are shared, the first ones: the persistent kernel counts blocks from the last one.
    """
    int32, int64, sharing = ptx.types.int32, ptx.types.int64, config.sharing
    multiply = device_function(build_persistent(sharing, product_of(sharing, False, False)))

    @device_function
    def share(a, b, c, partials, ready, m, n, k, options, schedule, lds, scalars):
        shared, k_iters_per_block, remainder = schedule
        (lda, ldb, ldc), (alpha, alpha_i, beta, beta_i) = lds, scalars
        waves, none = int32(0), int64(0)
        multiply(
            a, b, c, partials, ready, m, n, k, options, shared, waves, k_iters_per_block, remainder, lda, ldb,
            ldc, none, none, none, alpha, alpha_i, beta, beta_i,
        )  # fmt: skip

    return share


def _no_sharer():
    @device_function
    def share(a, b, c, partials, ready, m, n, k, options, schedule, lds, scalars):
        pass

    return share


def _build(config: GemmInt8Guarded):
    int32, int64, BLK_M, BLK_N = ptx.types.int32, ptx.types.int64, config.BLK_M, config.BLK_N
    tile_origin, flagged = tile_origins(BLK_M, BLK_N, None), is_flagged(config)
    slot = tile_slots(config.FLAG_M, config.FLAG_N)
    products = [product_of(config, False, conj) for conj in (False, config.dtype_facts.is_complex)]
    multiply, multiply_conj = (
        device_function(build_ordinary(config, each, None, waits=False)) for each in products
    )
    COMPLEX, SHARES, hopeless = config.dtype_facts.is_complex, not config.dtype_facts.is_complex, convict()
    grid_dependency_wait = ptx.grid_dependency_wait
    share = _sharer(config) if SHARES else _no_sharer()

    def gemm_int8_guarded(
        flags, verdicts, a, b, c, partials, ready, m, n, k, options, conj, judges, blocks, shared,
        k_iters_per_block, remainder, lda, ldb, ldc, alpha, alpha_i, beta, beta_i,
    ):  # fmt: skip
        # (1) the blocks that share tiles, after the others
        block, lane = int32(cuda.blockIdx.x), int32(cuda.threadIdx.x % 32)
        if SHARES and block >= int32(cuda.gridDim.x) - blocks:
            grid_dependency_wait()
            if hopeless(verdicts, judges, lane):
                schedule, lds = (shared, k_iters_per_block, remainder), (lda, ldb, ldc)
                scalars = alpha, alpha_i, beta, beta_i
                share(a, b, c, partials, ready, m, n, k, options, schedule, lds, scalars)
            return

        # (2) a tile with a flag that is not shared
        tiles_m, tiles_n = (m + BLK_M - 1) // BLK_M, (n + BLK_N - 1) // BLK_N
        row, col = tile_origin(cuda.blockIdx.x, tiles_m, tiles_n, options)
        # a triangle's squares of tiles may reach beyond the last row and column
        tile = slot(int32(min(row, m - 1)), int32(min(col, n - 1)), m, n, options)
        grid_dependency_wait()
        if flagged(flags, tile, lane) and not (
            SHARES and block < shared and hopeless(verdicts, judges, lane)
        ):
            none = int64(0)
            if COMPLEX and conj != 0:
                multiply_conj(
                    a, b, c, m, n, k, options, int64(k), lda, ldb, ldc, none, none, none, alpha,
                    alpha_i, beta, beta_i,
                )  # fmt: skip
            else:
                multiply(
                    a, b, c, m, n, k, options, int64(k), lda, ldb, ldc, none, none, none, alpha,
                    alpha_i, beta, beta_i,
                )  # fmt: skip

    return gemm_int8_guarded
