"""``gemm_guarded``: the tiles that ``gemm_wgmma`` leaves, by ``gemm_simt``.

It is launched after every `gemm_wgmma`, on the operands as stored, and reads the same flags: a block with no
flagged operand returns at once. So the host decides nothing, and waits for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product as pairs
from typing import Any, ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.parameters import parameters
from ...common.tile_scheduler import tile_origins
from ..mainloop import build as build_ordinary
from ..simt import GemmSimt, product_of
from .triangular_factor import diagonal_adder, flags_of_triangle, k_of_triangle

__all__ = ["STEM", "GemmGuarded", "plain_sources", "source"]

STEM = "gemm_guarded"
PARAMETERS = parameters(
    "int32 pointer: flags_a, flags_b, further_a, further_b",
    "pointer: a, b, c",
    "int32: m, n, k, options, count, per_grain, further",
    "int64: stride_fa, stride_fb, stride_ga, stride_gb, lda, ldb, ldc, stride_a, stride_b, stride_c",
    "real: alpha, alpha_i, beta, beta_i",
)


@dataclass(frozen=True, kw_only=True)
class GemmGuarded(GemmSimt):
    """Config of one `gemm_guarded` kernel: that of a `GemmSimt`, and the panels of the flags.

    Attributes
    ----------
    PANEL : int
        Rows of a panel of A (reals), columns of one of B, as `gemm_wgmma` has them; tiles divide them.
    """

    trans_a: bool = False
    trans_b: bool = False
    BLK_M: int = 64
    BLK_N: int = 128
    BLK_K: int = 16
    DIM_X: int = 8
    DIM_Y: int = 16
    DIM_XA: int = 16
    DIM_YA: int = 8
    DIM_XB: int = 16
    DIM_YB: int = 8
    VEC_A: int = 4
    VEC_M: int = 4
    VEC_N: int = 4
    PAD_B: int = 4
    WARP_X: int = 8
    UNROLL: int = 16
    stages: int = 3
    prefetch: bool = True
    PANEL: int = 128

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        super().__post_init__()
        require(
            not (self.persistent or self.packed),
            "ordinary",
            "not (persistent or packed)",
            persistent=self.persistent,
            packed=self.packed,
        )
        require(
            self.panel_rows % self.BLK_M == 0 and self.PANEL % self.BLK_N == 0,
            "panels",
            "panel_rows % BLK_M == 0 and PANEL % BLK_N == 0",
            PANEL=self.PANEL,
            panel_rows=self.panel_rows,
            BLK_M=self.BLK_M,
            BLK_N=self.BLK_N,
        )

    @property
    def panel_rows(self) -> int:
        """Elements down a panel of A."""
        return self.PANEL // self.dtype_facts.reals_per_element

    def specialize(self, trans_a: bool, trans_b: bool, panel: int) -> Self:
        """Return the Config for operands with this transposition, and panels of `panel` rows and columns.

        What is contiguous along m or n is loaded by vectors, what is along k is transposed by single copies.
        """
        threads, vector = self.threads, 16 // self.dtype_facts.itemsize
        loads: dict[str, Any] = {}
        for name, blk, by_k in (("A", self.BLK_M, trans_a), ("B", self.BLK_N, not trans_b)):
            across = min(self.BLK_K if by_k else blk // vector, threads)
            loads |= {f"DIM_X{name}": across, f"DIM_Y{name}": threads // across}
            loads |= {f"VEC_{name}": 1 if by_k else vector, f"PAD_{name}": vector if by_k else 0}
        return replace(self, trans_a=trans_a, trans_b=trans_b, PANEL=panel, **loads)


def source(config: GemmGuarded, conj: bool = False) -> KernelSource:
    """The kernel of `config` that computes all of C or a triangle; with `conj` B is conjugated.

    Kernel parameters
    -----------------
    flags_a, flags_b: int32 pointer, the flags of A and B
    further_a, further_b: int32 pointer, flags of elements that pairs do not serve
    a, b, c: pointer, A, B, C
    m, n, k: int32, extents
    options: int32, rasterization, triangle of C, or which factor is a triangle
    count: int32, flags of a panel
    per_grain: int32, flags of `GRAIN` k of a panel
    further: int32, further flags of a panel, which may be none
    stride_fa, stride_fb: int64, flags from one matrix of A, B to the next
    stride_ga, stride_gb: int64, further flags from one matrix of A, B to the next
    lda, ldb, ldc: int64, leading dimensions (elements)
    stride_a, stride_b, stride_c: int64, batch strides (elements)
    alpha, alpha_i, beta, beta_i: real, parts of alpha and beta

    Grid: x ``config.grid(m, n, region)``, z the batch.
    """
    return KernelSource.of(config, PARAMETERS, partial(_build, config, conj), flags=(("conj", conj),))


def plain_sources(config: GemmGuarded) -> Iterator[KernelSource]:
    """All kernels of a Config, with operands of either layout."""
    conjs = (False, True) if config.dtype_facts.is_complex else (False,)
    for trans_a, trans_b, conj in pairs((False, True), (False, True), conjs):
        yield source(config.specialize(trans_a, trans_b, config.PANEL), conj)


def _build(config: GemmGuarded, conj: bool):
    int32, int64, quotient, offset = ptx.types.int32, ptx.types.int64, ptx.quotient, ptx.offset
    BLK_M, BLK_N, PANEL_M, PANEL_N = config.BLK_M, config.BLK_N, config.panel_rows, config.PANEL
    THREADS, tile_origin = config.threads, tile_origins(BLK_M, BLK_N, None)
    TRANS_A, TRANS_B, REALS = config.trans_a, config.trans_b, config.dtype_facts.reals_per_element
    product = product_of(config, False, conj)
    multiply = device_function(build_ordinary(config, product, None, waits=False))
    grid_dependency_wait = ptx.grid_dependency_wait
    TRIANGULAR_FACTORS = not config.dtype_facts.is_complex
    flags_of, k_of, add_diagonal = flags_of_triangle(), k_of_triangle(config), diagonal_adder(config)

    @device_function
    def is_flagged(flags_a, flags_b, row, col, first, checked, count):
        of_a = offset(flags_a, int64(quotient(int32(row), PANEL_M)) * count + first)
        of_b = offset(flags_b, int64(quotient(int32(col), PANEL_N)) * count + first)
        flagged, i = int32(0), int32(cuda.threadIdx.x)
        while i < checked:
            flagged = int32(flagged | of_a[i] | of_b[i])
            i = int32(i + THREADS)
        return cuda.syncthreads_or(flagged)

    def gemm_guarded(
        flags_a, flags_b, further_a, further_b, a, b, c, m, n, k, options, count, per_grain, further,
        stride_fa, stride_fb, stride_ga, stride_gb, lda, ldb, ldc, stride_a, stride_b, stride_c,
        alpha, alpha_i, beta, beta_i,
    ):  # fmt: skip
        tiles_m, tiles_n = (m + BLK_M - 1) // BLK_M, (n + BLK_N - 1) // BLK_N
        row0, col0 = tile_origin(cuda.blockIdx.x, tiles_m, tiles_n, options)
        batch = int64(cuda.blockIdx.z)
        flags_a, flags_b = offset(flags_a, batch * stride_fa), offset(flags_b, batch * stride_fb)
        further_a, further_b = offset(further_a, batch * stride_ga), offset(further_b, batch * stride_gb)
        first, checked = int32(0), int32(count)
        if TRIANGULAR_FACTORS:
            first, checked = flags_of(row0, col0, options, count, per_grain)
        grid_dependency_wait()
        # a triangle's squares of tiles may reach beyond the last row
        row, col = int32(min(row0, m - 1)), int32(min(col0, n - 1))
        flagged = is_flagged(flags_a, flags_b, row, col, first, checked, count)
        if flagged and further > 0:
            flagged = is_flagged(further_a, further_b, row, col, int32(0), further, further)
        if flagged:
            begin, depth, diagonal, last = int32(0), int32(k), int32(0), int32(0)
            if TRIANGULAR_FACTORS:
                begin, depth, diagonal, last = k_of(row0, col0, k, options)
            multiply(
                offset(a, begin * (1 if TRANS_A else lda) * REALS),
                offset(b, begin * (ldb if TRANS_B else 1) * REALS), c, m, n, depth, options,
                int64(depth) * cuda.gridDim.z, lda, ldb, ldc, stride_a, stride_b, stride_c, alpha,
                alpha_i, beta, beta_i,
            )  # fmt: skip
            if TRIANGULAR_FACTORS and diagonal < last:
                cuda.syncthreads()
                add_diagonal(a, b, c, m, n, row0, col0, diagonal, last, options, lda, ldb, ldc, alpha)

    return gemm_guarded
