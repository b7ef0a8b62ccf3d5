"""``gemm_mma``: GEMM in double precision on the tensor cores, real and complex.

A block's warps tile its BLK_M x BLK_N region of C; a warp multiplies WARP_M x WARP_N of it by ``mma.sync``
instructions of MMA_M x 8 x MMA_K, which round each step as an FMA does: the result is that of a dot product
by FMAs. K-tiles have the same layout in shared memory as in global memory, padded so that no load of a
fragment meets a bank twice; so no layout of A or B needs a transposition. Complex products are four real ones
on the parts of the same fragments, one of both parts, or, as a method, three. All around the innermost
product is in `mainloop`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ...errors import require
from ...gpu.backend import device_function, ptx, unrolled
from ...gpu.build.compile import KernelSource
from ...gpu.intrinsics.mma import SHAPES, elements_per_mma, joins_parts
from ...types import Triangle
from .config import GemmConfig
from .form import Form
from .product import Product
from .source import kernel_source, plain_kernels

__all__ = ["STEM", "GemmMma", "plain_sources", "product_of", "source"]

STEM = "gemm_mma"


@dataclass(frozen=True, kw_only=True)
class GemmMma(GemmConfig):
    """Config of one `gemm_mma` kernel, besides what `GemmConfig` holds.

    Attributes
    ----------
    WARP_M, WARP_N : int
        Part of the tile that a warp computes.
    MMA_M, MMA_K : int
        Shape of an instruction, one of `mma.SHAPES`; its N is 8. Of complex operands it takes half as many
        rows and k where it multiplies both parts at once.
    three_m : bool
        Whether a complex product is made of three real ones, of real parts, imaginary parts and their sums
        (3M; Higham, *Stability of a method for multiplying complex matrices with three real matrix
        multiplications*, 1992), instead of four.
    """

    WARP_M: int
    WARP_N: int
    MMA_M: int = 16
    MMA_K: int = 8
    three_m: bool = False

    STEM: ClassVar[str] = STEM
    PACKED_PAD: ClassVar[int] = 32

    def __post_init__(self):
        require(self.dtype in "dz", "double", "dtype in (d, z)", dtype=self.dtype)
        require(
            not self.three_m or self.dtype == "z",
            "three_m",
            "three_m only with dtype z",
            three_m=self.three_m,
            dtype=self.dtype,
        )
        shape = self.MMA_M, self.MMA_K
        require(shape in SHAPES, "shape", f"(MMA_M, MMA_K) in {list(SHAPES)}", MMA_M=shape[0], MMA_K=shape[1])
        require(
            self.WARP_M % self.elements_per_mma[0] == 0 and self.BLK_M % self.WARP_M == 0,
            "warps_tile_m",
            "WARP_M % rows of an instruction == 0 and BLK_M % WARP_M == 0",
            BLK_M=self.BLK_M,
            WARP_M=self.WARP_M,
            rows=self.elements_per_mma[0],
        )
        require(
            self.WARP_N % 8 == 0 and self.BLK_N % self.WARP_N == 0,
            "warps_tile_n",
            "WARP_N % 8 == 0 and BLK_N % WARP_N == 0",
            BLK_N=self.BLK_N,
            WARP_N=self.WARP_N,
        )
        require(
            self.BLK_K % (self.SLICES_K * self.elements_per_mma[1]) == 0,
            "depth",
            "BLK_K % (SLICES_K * k of an instruction) == 0",
            BLK_K=self.BLK_K,
            SLICES_K=self.SLICES_K,
            k=self.elements_per_mma[1],
        )
        require(self.threads <= 1024, "max_threads", "threads <= 1024", threads=self.threads)
        for name in ("A", "B"):
            self.check_smem_tile(name)
        self.check_pipeline()

    @property
    def keeps_k_major(self) -> bool:
        return True

    @property
    def needs(self) -> tuple[int, int]:
        """The compute capability that the instruction needs."""
        return SHAPES[self.MMA_M, self.MMA_K]

    @property
    def elements_per_mma(self) -> tuple[int, int]:
        """Rows and k of A that an instruction multiplies."""
        return elements_per_mma((self.MMA_M, self.MMA_K), self.dtype_facts.reals_per_element, self.three_m)

    @property
    def threads(self) -> int:
        return 32 * (self.BLK_M // self.WARP_M) * (self.BLK_N // self.WARP_N) * self.SLICES_K

    @property
    def steps(self) -> int:
        return self.BLK_K // self.elements_per_mma[1] // self.SLICES_K

    @property
    def THR_M(self) -> int:
        return self.WARP_M // 8

    @property
    def THR_N(self) -> int:
        return self.WARP_N // 4

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread; the compiler adds addresses and counters."""
        quarters = self.elements_per_mma[1] // 4
        fragments = (self.WARP_M + self.WARP_N) // 8 * quarters * (2 if self.prefetch else 1)
        if self.three_m:  # sums of parts, too
            fragments += (self.WARP_M + self.WARP_N) // 16 * quarters
        elif joins_parts(
            (self.MMA_M, self.MMA_K), self.dtype_facts.reals_per_element
        ):  # A with its parts exchanged, too
            fragments += self.WARP_M // 8 * quarters
        elements = self.sums // self.dtype_facts.reals_per_element + fragments + self.staged_elements
        return elements * self.dtype_facts.itemsize // 4

    @property
    def sums(self) -> int:
        return self.THR_M * self.THR_N * (3 if self.three_m else self.dtype_facts.reals_per_element)

    @property
    def reuse(self) -> float:
        """FMAs for each element loaded from shared memory."""
        return self.dtype_facts.reuse(self.WARP_M, self.WARP_N)


def source(
    config: GemmMma,
    form: Form = Form.ALL,
    conj: bool = False,
    triangle: Triangle | None = None,
    solved: bool = False,
) -> KernelSource:
    """The kernel of `config` that computes all of C or a triangle, with B conjugated or not; or that
    multiplies C in place by a `triangle`, or solves it: see `kernel_source`.
    """
    return kernel_source(config, form, conj, triangle, solved, product_of)


plain_sources = partial(plain_kernels, source)


def product_of(config: GemmMma, conj_a: bool, conj_b: bool) -> Product:
    reals, smem_tile_a, smem_tile_b = (
        config.dtype_facts.reals_per_element,
        config.smem_tile_a,
        config.smem_tile_b,
    )
    (ROWS, DEPTH), WARP_M, WARP_N = config.elements_per_mma, config.WARP_M, config.WARP_N
    WARPS_M = config.BLK_M // WARP_M
    B_TILE = config.offset_b
    SLICES, GROUP, SLICE = config.SLICES_K, config.slice_threads, config.steps * DEPTH
    STEP_A, STEP_KA, STEP_B, STEP_KB = (
        smem_tile_a.step,
        smem_tile_a.step_k,
        smem_tile_b.step,
        smem_tile_b.step_k,
    )
    rows_of_eight, columns_of_eight = WARP_M // 8, WARP_N // 8
    load_a = ptx.load_shared(reals, rows_of_eight, 8 * STEP_A * reals)
    load_b = ptx.load_shared(reals, columns_of_eight, 8 * STEP_B * reals)
    shape = config.MMA_M, config.MMA_K
    counts, three_m = (WARP_M // ROWS, columns_of_eight), config.three_m
    update = ptx.warp_mma(*counts, shape, reals, conj_a, conj_b, three_m=three_m)
    offset = ptx.offset

    @device_function
    def load_quarter(s, ra, rb, pa, pb):
        load_a(ra, s * (rows_of_eight * reals), pa, s * (4 * STEP_KA * reals))
        load_b(rb, s * (columns_of_eight * reals), pb, s * (4 * STEP_KB * reals))

    load_quarters = unrolled(DEPTH // 4, load_quarter)

    @device_function
    def load(step, ra, rb, shared, a, b, lda, ldb, t, rows, cols, depth):
        g, quarter = t % 32 // 4, t % 4
        if SLICES > 1:
            quarter, t = quarter + t // GROUP * SLICE, t % GROUP
        row, col = t // 32 % WARPS_M * WARP_M + g, t // 32 // WARPS_M * WARP_N + g
        along_k = step * DEPTH + quarter
        pa = offset(shared, (row * STEP_A + along_k * STEP_KA) * reals)
        pb = offset(shared, B_TILE + (col * STEP_B + along_k * STEP_KB) * reals)
        load_quarters(0, ra, rb, pa, pb)

    @device_function
    def row(i, t):
        return t // 32 % WARPS_M * WARP_M + (i * 8 + t % 32 // 4)

    @device_function
    def col(j, t):
        return t // 32 // WARPS_M * WARP_N + j // 2 * 8 + t % 4 * 2 + j % 2

    @device_function
    def combine_one(i, acc):
        by_real, by_imaginary, by_sums = acc[3 * i], acc[3 * i + 1], acc[3 * i + 2]
        acc[2 * i] = by_real - by_imaginary
        acc[2 * i + 1] = by_sums - by_real - by_imaginary

    fragment = DEPTH // 4 * reals
    return Product(
        load,
        update,
        config.steps,
        row,
        col,
        rows_of_eight * fragment,
        columns_of_eight * fragment,
        run=1,
        combine=unrolled(config.THR_M * config.THR_N, combine_one) if three_m else None,
    )
