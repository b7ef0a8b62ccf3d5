"""``copy_scaled``: D := alpha * op(S), any strides on both sides; with D = S it scales in place.

Packs operands without a unit stride, unpacks results, scales C when a product vanishes, and fills with
zeros (alpha = 0 reads nothing). Of a square it can do a triangle alone: then nothing of the other one is read
or written. Accesses are real by real, so that any alignment of a real will do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ..errors import require
from ..gpu.backend import cuda, device_function, ptx
from ..gpu.compile import KernelSource
from ..types import DTYPES, Dtype
from .part import check_part, inside, is_hermitian, met

STEM = "copy_scaled"
PARAMETERS = "pp ii qqqq qq rr".replace(" ", "")


@dataclass(frozen=True)
class CopyScaled:
    """Config of one `copy_scaled` kernel.

    Attributes
    ----------
    dtype : str
        's', 'd', 'c' or 'z'.
    BLK_M, BLK_N : int
        Elements a block of threads copies, along rows and columns.
    DIM_X, DIM_Y : int
        Threads along rows, columns.
    """

    dtype: str
    BLK_M: int = 32
    BLK_N: int = 32
    DIM_X: int = 32
    DIM_Y: int = 8

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        m, n, x, y = self.BLK_M, self.BLK_N, self.DIM_X, self.DIM_Y
        require(self.threads <= 1024, "max_threads", "DIM_X * DIM_Y <= 1024", DIM_X=x, DIM_Y=y)
        require(self.threads % 32 == 0, "whole_warps", "DIM_X * DIM_Y % 32 == 0", DIM_X=x, DIM_Y=y)
        require(m % x == 0 and n % y == 0, "tile", "BLK_M % DIM_X == 0 and BLK_N % DIM_Y == 0",
                BLK_M=m, BLK_N=n, DIM_X=x, DIM_Y=y)  # fmt: skip
        require(m % y == 0 and n % x == 0, "tile_turned", "BLK_M % DIM_Y == 0 and BLK_N % DIM_X == 0",
                BLK_M=m, BLK_N=n, DIM_X=x, DIM_Y=y)  # fmt: skip

    @cached_property
    def dtype_facts(self) -> Dtype:
        return DTYPES[self.dtype]

    @property
    def threads(self) -> int:
        return self.DIM_X * self.DIM_Y

    @property
    def shared_bytes(self) -> int:
        """A tile, its rows padded by one element against bank conflicts."""
        return self.BLK_M * (self.BLK_N + 1) * self.dtype_facts.itemsize

    def grid(self, rows: int, cols: int) -> int:
        """Blocks along x for `rows` by `cols` elements."""
        return -(-rows // self.BLK_M) * -(-cols // self.BLK_N)


def source(
    config: CopyScaled,
    conj: bool,
    zero: bool,
    read_by_rows: bool,
    write_by_rows: bool,
    part: str = "all",
    mirrored: bool = False,
) -> KernelSource:
    """The kernel of `config`.

    Parameters
    ----------
    config : CopyScaled
    conj : bool
        Conjugate what is read.
    zero : bool
        alpha is zero: S is not read.
    read_by_rows, write_by_rows : bool
        Whether neighbours in S's, D's memory are neighbouring rows (else columns).
    part : str
        One of `part.PARTS`. With a Hermitian one alpha is real.
    mirrored : bool
        Above the diagonal D becomes what it is below, conjugated in a Hermitian one; `part` is 'lower' or
        'hermitian'.

    Returns
    -------
    KernelSource
        Its parameters are pointers to S, D; int32 rows, columns; int64 row and column stride of S, of D,
        batch strides of S, D (elements); alpha (real, imaginary part). Grid: x ``config.grid(rows,
        cols)``, z the batch.
    """
    check_part(part)
    if mirrored:
        check_part(part, ("lower", "hermitian"))
    flags = (("conj", conj), ("mirrored", mirrored), ("part", part), ("read_by_rows", read_by_rows),
             ("write_by_rows", write_by_rows), ("zero", zero))  # fmt: skip
    return KernelSource(
        name=STEM,
        config=config,
        flags=flags,
        real=config.dtype_facts.real,
        parameters=PARAMETERS,
        threads=config.threads,
        min_blocks=1,
        shared_bytes=config.shared_bytes,
        build=lambda: _build(config, conj, zero, read_by_rows, write_by_rows, part, mirrored),
    )


def _build(
    config: CopyScaled,
    conj: bool,
    zero: bool,
    read_by_rows: bool,
    write_by_rows: bool,
    part: str,
    mirrored: bool,
):
    facts = config.dtype_facts
    real, PARTS, COMPLEX = ptx.REALS[facts.real], facts.parts, facts.is_complex
    int64, offset, shared_pointer = ptx.types.int64, ptx.offset, ptx.shared_pointer
    in_turn = ptx.in_turn
    BLK_M, BLK_N, THREADS = config.BLK_M, config.BLK_N, config.threads
    TOTAL, ROW, SIGN = BLK_M * BLK_N, (BLK_N + 1) * PARTS, -1 if conj else 1
    REAL_DIAGONAL, is_met, of_part = is_hermitian(part), met(part, BLK_M, BLK_N), inside(part)
    READ_FAST, WRITE_FAST = (BLK_M if read_by_rows else BLK_N), (BLK_M if write_by_rows else BLK_N)
    MIRROR_FAST, MIRROR_SIGN = (BLK_N if write_by_rows else BLK_M), -1 if REAL_DIAGONAL else 1

    @device_function
    def wanted(i, j, rows, cols, shift):
        return (i < rows) & (j < cols) & of_part(i, j, shift)

    @device_function
    def read_tile(tile, s, row_stride, col_stride, t, rows, cols, shift, alpha, alpha_i):
        for first in range(0, TOTAL, THREADS):
            fast, slow = (t + first) % READ_FAST, (t + first) // READ_FAST
            i, j = (fast, slow) if read_by_rows else (slow, fast)
            if wanted(i, j, rows, cols, shift):
                at, place = (i * row_stride + j * col_stride) * PARTS, i * ROW + j * PARTS
                if COMPLEX:
                    re, im = s[at], real(SIGN) * s[at + 1]
                    tile[place] = alpha * re - alpha_i * im
                    tile[place + 1] = alpha * im + alpha_i * re
                    if REAL_DIAGONAL and i + shift == j:
                        tile[place] = alpha * re
                        tile[place + 1] = real(0)
                else:
                    tile[place] = alpha * s[at]

    @device_function
    def write_tile(d, tile, row_stride, col_stride, t, rows, cols, shift):
        for first in range(0, TOTAL, THREADS):
            fast, slow = (t + first) % WRITE_FAST, (t + first) // WRITE_FAST
            i, j = (fast, slow) if write_by_rows else (slow, fast)
            if wanted(i, j, rows, cols, shift):
                at = (i * row_stride + j * col_stride) * PARTS
                for part in range(PARTS):
                    d[at + part] = real(0) if zero else tile[i * ROW + j * PARTS + part]

    @device_function
    def mirror_tile(d, tile, row_stride, col_stride, t, rows, cols, shift):
        for first in range(0, TOTAL, THREADS):
            fast, slow = (t + first) % MIRROR_FAST, (t + first) // MIRROR_FAST
            i, j = (slow, fast) if write_by_rows else (fast, slow)
            if wanted(i, j, rows, cols, shift) and i + shift > j:
                at, place = (j * row_stride + i * col_stride) * PARTS, i * ROW + j * PARTS
                d[at] = tile[place]
                if COMPLEX:
                    d[at + 1] = real(MIRROR_SIGN) * tile[place + 1]

    def copy_scaled(s, d, m, n, s_rs, s_cs, d_rs, d_cs, stride_s, stride_d, alpha, alpha_i):
        # (1) the tile of this block
        t = cuda.threadIdx.x
        tiles_m = (m + BLK_M - 1) // BLK_M
        row0, col0 = int64(cuda.blockIdx.x % tiles_m) * BLK_M, int64(cuda.blockIdx.x // tiles_m) * BLK_N
        batch, rows, cols, shift = int64(cuda.blockIdx.z), m - row0, n - col0, row0 - col0
        in_turn()  # also where nothing is to do: the next launch takes it that all before this one are over
        if not is_met(shift):
            return
        d = offset(d, batch * stride_d * PARTS)
        tile = shared_pointer(cuda.shared.array(0, real, alignment=16))

        # (2) read it in the order of S, (3) write it in the order of D
        if not zero:
            s = offset(s, (batch * stride_s + row0 * s_rs + col0 * s_cs) * PARTS)
            read_tile(tile, s, s_rs, s_cs, t, rows, cols, shift, alpha, alpha_i)
            cuda.syncthreads()
        write_tile(offset(d, (row0 * d_rs + col0 * d_cs) * PARTS), tile, d_rs, d_cs, t, rows, cols, shift)
        if mirrored:
            mirror_tile(
                offset(d, (col0 * d_rs + row0 * d_cs) * PARTS), tile, d_rs, d_cs, t, rows, cols, shift
            )

    return copy_scaled
