"""``sum_pieces``: C += alpha * (the sum of pieces), for tiles of C that a persistent kernel has parted.

The block that began such a tile has written its part to C, the blocks after it have left theirs in scratch
(`gemm_persistent`). They are added up in the order of k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..errors import require
from ..gpu.backend import cuda, ptx
from ..gpu.compile import KernelSource
from .part import check_part, inside, is_hermitian
from .summing import Summing, adder, writer
from .walk import Walk, locator

__all__ = ["STEM", "SumPieces", "source"]

STEM = "sum_pieces"
PARAMETERS = "pp iiiiiii qq rr".replace(" ", "")


@dataclass(frozen=True, kw_only=True)
class SumPieces(Summing):
    """Config of one `sum_pieces` kernel, beside what `Summing` holds.

    Attributes
    ----------
    BLK_M, BLK_N : int
        The tile of the product.
    """

    BLK_M: int
    BLK_N: int

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        super().__post_init__()
        require(
            self.BLK_M % self.VEC == 0, "whole_loads", "BLK_M % (16 / itemsize) == 0",
            BLK_M=self.BLK_M, itemsize=self.dtype_facts.itemsize,
        )  # fmt: skip

    @property
    def slices(self) -> int:
        """Blocks that share a tile."""
        return -(-self.BLK_M * self.BLK_N // (self.DIM * self.VEC))

    def grid(self, walk: Walk) -> int:
        """Blocks for the tiles that `walk` may part: one for each end of a run but the last."""
        return (walk.blocks - 1) * self.slices


def source(config: SumPieces, part: str = "all") -> KernelSource:
    """The kernel of `config`, for a product of all of C or of one of `part.PARTS`.

    Its parameters are pointers to the pieces and C; int32 m, n, stripes of a tile, and blocks, rounds, run
    and longer of the `Walk`; int64 leading stride and batch stride of C (elements); alpha (real, imaginary
    part). Grid: x ``config.grid(walk)``.
    """
    check_part(part)
    return KernelSource(
        name=STEM,
        config=config,
        flags=(("part", part),),
        real=config.dtype_facts.real,
        parameters=PARAMETERS,
        threads=config.threads,
        min_blocks=1,
        shared_bytes=0,
        build=lambda: _build(config, part),
    )


def _build(config: SumPieces, part: str):
    facts = config.dtype_facts
    real, PARTS, VEC = ptx.REALS[facts.real], facts.parts, config.VEC
    int64, offset, quotient = ptx.types.int64, ptx.offset, ptx.quotient
    BLK_M, BLK_N, DIM, SLICES = config.BLK_M, config.BLK_N, config.DIM, config.slices
    TILE, WIDTH, AHEAD = BLK_M * BLK_N, VEC * PARTS, config.UNROLL * VEC * PARTS
    zero, add_up, write = ptx.fill(WIDTH), adder(facts, config.UNROLL), writer(facts, is_hermitian(part))
    locate, of_part = locator(BLK_M, BLK_N, part), inside(part)

    def sum_pieces(p, c, m, n, stripes, blocks, rounds, run, longer, ldc, stride_c, alpha, alpha_i):
        # (1) the tile in which the run of a block begins, unless another's run began in it before
        t = cuda.threadIdx.x
        slice_ = cuda.blockIdx.x % SLICES
        block = cuda.blockIdx.x // SLICES + 1
        begin = block * run + min(block, longer)
        which = quotient(begin, stripes)
        start = which * stripes
        if begin > start and begin - run - (1 if block <= longer else 0) <= start:
            last = block
            while last + 1 < blocks and (last + 1) * run + min(last + 1, longer) < start + stripes:
                last += 1

            # (2) the sum of its pieces but the one that begins it
            acc, ahead = cuda.local.array(WIDTH, real), cuda.local.array(AHEAD, real)
            zero(acc, real(0))
            here = (slice_ * DIM + t) * VEC
            first = offset(p, (int64(block) * TILE + here) * PARTS)
            add_up(acc, ahead, first, TILE, last - block + 1, here < TILE)

            # (3) C += alpha times it
            old = cuda.local.array(PARTS, real)
            row0, col0, matrix = locate(rounds * blocks + which, m, n)
            row, col = row0 + here % BLK_M, col0 + here // BLK_M
            for v in range(VEC):
                ok = (row + v < m) & (col < n) & (here < TILE) & of_part(row + v, col, 0)
                at = (matrix * stride_c + int64(col) * ldc + row + v) * PARTS
                im = acc[v * PARTS + 1] if PARTS == 2 else real(0)
                write(
                    c, at, acc[v * PARTS], im, old, ok, row + v == col, True, alpha, alpha_i, real(1), real(0)
                )

    return sum_pieces
