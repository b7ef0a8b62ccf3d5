"""``svd_correction``: I + E, by which columns of B = A V and of V are multiplied to become orthogonal.

BᴴB = S and VᴴV = I − R are nearly diagonal. E_ij = (S_ij + S_jj R_ij) / (S_jj − S_ii) takes off both what
columns have of one another, to first order. Where two columns of B are orthogonal to rounding and about as
long, R alone counts. So it does where E is large, as then to first order is not enough. That is harmless for
equal singular values, and leaves others as they are.
A block has a tile of S and R below the diagonal, and writes it and the one across.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ....types import Dtype
from ...common.kernel_config import BlockConfig
from ...common.parameters import parameters

__all__ = ["STEM", "SvdCorrection", "source"]

STEM = "svd_correction"
PARAMETERS = parameters(
    "pointer: s, v, w, other",
    "int32 pointer: info",
    "int32: n, ld, copies",
    "int64: stride_s, stride_v, stride_w, stride_other, stride_info",
)
TILE = 32  # rows and columns of a tile
LEAST = 10  # multiple of the unit roundoff up to which columns are orthogonal
CLOSE = 0.5  # difference of squares, of the larger one, up to which columns are about as long
LARGE = 0.25  # elements of E, beyond which R alone counts


@dataclass(frozen=True)
class SvdCorrection(BlockConfig):
    """Config of one `svd_correction` kernel; its attributes are those of `BlockConfig`."""

    STEM: ClassVar[str] = STEM
    RESIDENT: ClassVar[int] = 1024  # so that some write while others read

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 48

    @property
    def shared_elements(self) -> int:
        """The tile across the diagonal, its columns padded against bank conflicts."""
        return TILE * (TILE + 1)

    def grid(self, n: int) -> int:
        """Blocks along x: tiles on the diagonal and below."""
        tiles = -(-n // TILE)
        return tiles * (tiles + 1) // 2


def source(config: SvdCorrection) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    s, v: pointer, BᴴB and VᴴV, n by n
    w, other: pointer, I + E, and a copy of it
    info: int32 pointer, becomes 0
    n, ld, copies: int32, order, leading dimension of all four, and 2 where `other` is written too, else 1
    stride_s, stride_v, stride_w, stride_other, stride_info: int64, batch strides (elements, words)

    Grid: x ``config.grid(n)``, z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _corrector(facts: Dtype) -> Callable:
    """``correct(e, re, im, p, q, low, high, tolerance)``: E_ij and E_ji to ``e``, of an element (re, im) of S
    and (p, q) of VᴴV, and S_ii and S_jj.
    """
    real, COMPLEX = ptx.REALS[facts.real], facts.is_complex
    divide, root = ptx.divide, ptx.square_root

    @device_function
    def correct(e, re, im, p, q, low, high, tolerance):
        apart, size = high - low, abs(re)
        e[1], e[3] = real(0), real(0)
        if COMPLEX:
            size = max(size, abs(im))
        is_orthogonal = size <= tolerance * (root(low) * root(high))
        factor = divide(real(1), apart)
        e[0], e[2] = (re - high * p) * factor, (low * p - re) * factor
        if COMPLEX:
            e[1], e[3] = (im - high * q) * factor, (im - low * q) * factor
        largest = max(max(abs(e[0]), abs(e[1])), max(abs(e[2]), abs(e[3])))
        is_close = is_orthogonal and abs(apart) <= real(CLOSE) * max(low, high)
        if is_close or not largest <= real(LARGE):  # nor where it is NaN
            e[0], e[2] = real(-0.5) * p, real(-0.5) * p
            if COMPLEX:
                e[1], e[3] = real(-0.5) * q, real(0.5) * q

    return correct


def _build(config: SvdCorrection):
    facts, ROWS, LD = config.dtype_facts, config.DIM // TILE, TILE + 1
    real, REALS, COMPLEX = ptx.REALS[facts.real], facts.reals_per_element, facts.is_complex
    UNIT, int32, int64 = facts.unit_roundoff, ptx.types.int32, ptx.types.int64
    offset, shared_pointer, grid_dependency_wait = ptx.offset, ptx.shared_pointer, ptx.grid_dependency_wait
    correct = _corrector(facts)

    def svd_correction(
        s, v, w, other, info, n, ld, copies, stride_s, stride_v, stride_w, stride_other, stride_info
    ):
        # (1) the tile of this block
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        lane, line = int32(t & 31), int32(t >> 5)
        tiles, j0, i0 = int32((n + TILE - 1) >> 5), int32(0), int32(cuda.blockIdx.x)
        while i0 >= tiles - j0:
            i0, j0 = int32(i0 - (tiles - j0)), int32(j0 + 1)
        i0, j0 = int32((i0 + j0) * TILE), int32(j0 * TILE)
        s, v = offset(s, batch * stride_s * REALS), offset(v, batch * stride_v * REALS)
        w, other = offset(w, batch * stride_w * REALS), offset(other, batch * stride_other * REALS)
        across = shared_pointer(cuda.shared.array(0, real, alignment=16))
        e = cuda.local.array(4, real)
        tolerance = real(UNIT) * real(LEAST)
        grid_dependency_wait()
        if cuda.blockIdx.x == 0 and t == 0:
            info[batch * stride_info] = int32(0)

        # (2) elements below the diagonal, and on it
        i, line_j = int32(i0 + lane), int32(line)
        low = s[i * (ld + 1) * REALS] if i < n else real(1)
        while line_j < TILE:
            j = int32(j0 + line_j)
            if i < n and j <= i:
                at = int32((j * ld + i) * REALS)
                re, p, im, q = s[at], v[at], real(0), real(0)
                if COMPLEX:
                    im, q = s[at + 1], v[at + 1]
                if i == j:
                    e[0], e[1] = real(1.5) - real(0.5) * p, real(0)
                else:
                    correct(e, re, im, p, q, low, s[j * (ld + 1) * REALS], tolerance)
                for part in range(REALS):
                    w[at + part] = e[part]
                    across[(lane * LD + line_j) * REALS + part] = e[2 + part]
                    if copies > 1:
                        other[at + part] = e[part]
            line_j = int32(line_j + ROWS)
        cuda.syncthreads()

        # (3) those across the diagonal
        j, line_i = int32(j0 + lane), int32(line)
        while line_i < TILE:
            i = int32(i0 + line_i)
            if i < n and j < i:
                for part in range(REALS):
                    x, at = across[(line_i * LD + lane) * REALS + part], int32((i * ld + j) * REALS + part)
                    w[at] = x
                    if copies > 1:
                        other[at] = x
            line_i = int32(line_i + ROWS)

    return svd_correction
