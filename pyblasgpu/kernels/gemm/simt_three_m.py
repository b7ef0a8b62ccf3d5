"""``gemm_simt_3m``: complex products on FMA units by three real products, not four.

Of (a + ib)(c + id) a thread adds up P = ac, Q = bd and R = (a + b)(c + d); the real part is P - Q, the
imaginary one R - P - Q (3M, see `GemmMma`). So an element of C has three sums, not two, and a step has a
quarter fewer FMAs, besides the sums of parts. All else is `gemm_simt`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from ...errors import require
from ...gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ...gpu.build.compile import KernelSource
from ...types import Triangle
from . import simt
from .form import Form
from .product import Product
from .source import kernel_source, plain_kernels

__all__ = ["STEM", "GemmSimtThreeM", "plain_sources", "product_of", "source"]

STEM = "gemm_simt_3m"
SUMS = 3  # of an element of C


@dataclass(frozen=True, kw_only=True)
class GemmSimtThreeM(simt.GemmSimt):
    """Config of one `gemm_simt_3m` kernel: that of the `gemm_simt` kernel with the same tile and loads."""

    trans_a: bool = False
    trans_b: bool = False
    BLK_M: int = 64
    BLK_N: int = 64
    BLK_K: int = 8
    DIM_XA: int = 64
    DIM_YA: int = 4
    DIM_XB: int = 8
    DIM_YB: int = 32
    DIM_X: int = 16
    DIM_Y: int = 16

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        require(self.dtype in "cz", "complex", "dtype in (c, z)", dtype=self.dtype)
        super().__post_init__()

    @property
    def three_m(self) -> bool:
        """Whether a product is made of three real ones."""
        return True

    @property
    def sums(self) -> int:
        return SUMS * self.THR_M * self.THR_N

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread; the compiler adds addresses and counters."""
        more = self.THR_M * self.THR_N + self.THR_M + self.THR_N  # the third sums, and sums of parts
        return super().registers + more * self.dtype_facts.real_size // 4


def source(
    config: GemmSimtThreeM,
    form: Form = Form.ALL,
    conj: bool = False,
    triangle: Triangle | None = None,
    solved: bool = False,
) -> KernelSource:
    """The kernel of `config` that computes all of C or a triangle, with B conjugated or not."""
    return kernel_source(config, form, conj, triangle, solved, product_of)


plain_sources = partial(plain_kernels, source)


def product_of(config: GemmSimtThreeM, conj_a: bool, conj_b: bool) -> Product:
    by_four = simt.product_of(config, conj_a, conj_b)

    @device_function
    def combine_one(i, acc):
        by_real, by_imaginary, by_sums = acc[SUMS * i], acc[SUMS * i + 1], acc[SUMS * i + 2]
        acc[2 * i] = by_real - by_imaginary
        acc[2 * i + 1] = by_sums - by_real - by_imaginary

    combine = unrolled(config.THR_M * config.THR_N, combine_one)
    return replace(by_four, update=_update(config, conj_a, conj_b), combine=combine)


def _update(config: GemmSimtThreeM, conj_a: bool, conj_b: bool):
    """``update(acc, ra, rb)``: the three products of a step, one k after the other."""
    THR_M, THR_N, VEC_K = config.THR_M, config.THR_N, config.VEC_K
    real = ptx.REALS[config.dtype_facts.real]

    def by_part(part: int):
        """The products of one part: sum number `part` of each element."""
        at = tuple(SUMS * (j * THR_M + i) + part for i in range(THR_M) for j in range(THR_N))
        return ptx.shifted_update(THR_M, THR_N, 1, 1, False, at, at)

    by_real, by_imaginary, by_sum = map(by_part, range(SUMS))

    def parts(count: int, kept: bool, kk: int, conj: bool):
        """``split(0, fragment, re, im, both)``: the parts of one k's elements, and their sums."""
        first, step = (kk, VEC_K) if kept else (kk * count, 1)

        @device_function
        def split_one(i, fragment, re, im, both):
            x, y = fragment[2 * (first + i * step)], fragment[2 * (first + i * step) + 1]
            y = -y if conj else y
            re[i], im[i], both[i] = x, y, x + y

        return unrolled(count, split_one)

    def of_one(kk: int):
        split_a = parts(THR_M, config.smem_tile_a.is_kept, kk, conj_a)
        split_b = parts(THR_N, config.smem_tile_b.is_kept, kk, conj_b)

        @device_function
        def update(acc, ra, rb):
            a_re, a_im, a_sum = (
                cuda.local.array(THR_M, real),
                cuda.local.array(THR_M, real),
                cuda.local.array(THR_M, real),
            )
            b_re, b_im, b_sum = (
                cuda.local.array(THR_N, real),
                cuda.local.array(THR_N, real),
                cuda.local.array(THR_N, real),
            )
            split_a(0, ra, a_re, a_im, a_sum)
            split_b(0, rb, b_re, b_im, b_sum)
            by_real(acc, a_re, b_re)
            by_imaginary(acc, a_im, b_im)
            by_sum(acc, a_sum, b_sum)

        return update

    return in_order([of_one(kk) for kk in range(VEC_K)])
