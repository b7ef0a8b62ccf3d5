"""The persistent GEMM kernel: blocks that walk over the tiles of C, and never wait for a first stripe.

The ring of stripes goes on from one piece of a tile to the next (`walk`): the stripes of the next are on
their way while this one is multiplied and written, so a piece costs no start. All else is as in the ordinary
kernel, and taken from `gemm_body`.
"""

from __future__ import annotations

from ..gpu.backend import cuda, device_function, ptx
from .gemm_body import Product, ring, starter, tile_writer
from .gemm_config import GemmConfig
from .stripe import loaders, walkers
from .walk import locator
from .walk import pieces as walk_pieces

__all__ = ["build"]


def _pointers(config: GemmConfig, part: str):
    """``begin(number, tile, first, count, ...)``: where a piece begins; ``advance(ahead, ...)``: where the
    stripe after that begins, of this piece or of the next.

    Both return what is `ahead` of the loads: pointers into A and B; rows, columns and depth from there on, no
    depth where nothing comes any more; stripes left of the piece, and its number.
    """
    PARTS, walk_a, walk_b = config.dtype_facts.parts, walkers(config.stripe_a), walkers(config.stripe_b)
    begin_a, begin_b, next_a, next_b = walk_a.begin, walk_b.begin, walk_a.step, walk_b.step
    BLK_K, int32, int64, offset = config.BLK_K, ptx.types.int32, ptx.types.int64, ptx.offset
    quotient, locate, piece_of = ptx.quotient, locator(config.BLK_M, config.BLK_N, part), walk_pieces()

    @device_function
    def begin(number, tile, first, count, a, b, m, n, k, lda, ldb, stride_a, stride_b):
        row0, col0, matrix = locate(tile, m, n)
        along = int64(first) * BLK_K
        at_a = matrix * stride_a + begin_a(row0, along, lda)
        at_b = matrix * stride_b + begin_b(col0, along, ldb)
        depth = int32(k - first * BLK_K if count > 0 else 0)
        left = int32(m - row0), int32(n - col0), depth, int32(count), int32(number)
        return (offset(a, at_a * PARTS), offset(b, at_b * PARTS), *left)

    @device_function
    def advance(ahead, a, b, m, n, k, tiles, rounds, run, longer, lda, ldb, stride_a, stride_b):
        pa, pb, rows, cols, depth, left, number = ahead
        if left == 1:
            tile, first, count = piece_of(
                number + 1, quotient(k + (BLK_K - 1), BLK_K), tiles, rounds, run, longer
            )
            return begin(number + 1, tile, first, count, a, b, m, n, k, lda, ldb, stride_a, stride_b)
        pa = offset(pa, next_a(lda) * PARTS)
        pb = offset(pb, next_b(ldb) * PARTS)
        return pa, pb, rows, cols, int32(depth - BLK_K), int32(left - 1), number

    return begin, advance


def _finisher(config: GemmConfig, product: Product, part: str):
    """``finish(...)``: a piece that begins its tile, or is all of it, to C as alpha acc + beta C; any other,
    of which a block has one at most, to the block's place in scratch, column-major.
    """
    BLK_M, BLK_N, PARTS = config.BLK_M, config.BLK_N, config.dtype_facts.parts
    real, int32, int64 = ptx.REALS[config.dtype_facts.real], ptx.types.int32, ptx.types.int64
    offset, locate = ptx.offset, locator(config.BLK_M, config.BLK_N, part)
    write = tile_writer(config, product, part)

    @device_function
    def finish(acc, old, t, tile, first, c, pieces, m, n, ldc, stride_c, alpha, alpha_i, beta, beta_i):
        row0, col0, matrix = locate(tile, m, n)
        into = offset(c, (matrix * stride_c + col0 * ldc + row0) * PARTS)
        rows, cols = int32(m - row0), int32(n - col0)
        if first > 0:
            into, ldc = offset(pieces, int64(cuda.blockIdx.x) * (BLK_M * BLK_N * PARTS)), int64(BLK_M)
            alpha, alpha_i, beta, beta_i = real(1), real(0), real(0), real(0)
        write(into, acc, old, ldc, t, rows, cols, row0 - col0, alpha, alpha_i, beta, beta_i)

    return finish


def build(config: GemmConfig, product: Product, part: str = "all"):
    """The kernel's function; of C it knows the tiles that a part of it meets."""
    facts = config.dtype_facts
    real, int32, quotient = ptx.REALS[facts.real], ptx.types.int32, ptx.quotient
    BLK_K, STAGES, PREFETCH = config.BLK_K, config.stages, config.prefetch
    ACC, FRAG_A, FRAG_B = config.THR_M * config.THR_N * facts.parts, product.fragment_a, product.fragment_b
    OLD, (NEXT_A, NEXT_B) = product.run * facts.parts, ((FRAG_A, FRAG_B) if PREFETCH else (1, 1))
    STAGE = config.stage_reals

    load_a, load_b = (loaders(stripe, STAGES, True) for stripe in (config.stripe_a, config.stripe_b))
    start, load, zero = starter(config, load_a, load_b), product.load, ptx.fill(ACC)
    multiply_stripe = ring(config, product, start)
    (begin, advance), piece_of = _pointers(config, part), walk_pieces()
    finish = _finisher(config, product, part)
    wait = ptx.wait_async(max(STAGES - 2, 0))
    offset, shared_pointer = ptx.offset, ptx.shared_pointer

    def gemm(
        a, b, c, pieces, m, n, k, tiles, rounds, run, longer, lda, ldb, ldc, stride_a, stride_b, stride_c,
        alpha, alpha_i, beta, beta_i,
    ):  # fmt: skip
        # (1) the first piece of this block
        t = cuda.threadIdx.x
        stripes = quotient(k + (BLK_K - 1), BLK_K)
        tile, first, left = piece_of(0, stripes, tiles, rounds, run, longer)
        ahead = begin(0, tile, first, left, a, b, m, n, k, lda, ldb, stride_a, stride_b)
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))

        # (2) registers
        acc, old = cuda.local.array(ACC, real), cuda.local.array(OLD, real)
        ra, rb = cuda.local.array(FRAG_A, real), cuda.local.array(FRAG_B, real)
        ra_next, rb_next = cuda.local.array(NEXT_A, real), cuda.local.array(NEXT_B, real)

        # (3) prologue: the first stripes
        for stage in range(STAGES - 1):
            pa, pb, rows, cols, depth, _, _ = ahead
            start(offset(shared, stage * STAGE), old, old, pa, pb, lda, ldb, t, rows, cols, depth)
            ahead = advance(ahead, a, b, m, n, k, tiles, rounds, run, longer, lda, ldb, stride_a, stride_b)
        if PREFETCH:
            wait()
            cuda.syncthreads()
            load(0, ra, rb, shared, a, b, lda, ldb, t, 0, 0, 0)

        number, reading = int32(0), 0
        while left > 0:
            # (4) body: start a stripe that comes later, multiply the present one
            zero(acc, real(0))
            while left > 0:
                here = offset(shared, reading * STAGE)
                into = offset(shared, (reading - 1 if reading > 0 else STAGES - 1) * STAGE)
                reading = reading + 1 if reading < STAGES - 1 else 0
                there = offset(shared, reading * STAGE)
                pa, pb, rows, cols, depth, _, _ = ahead
                multiply_stripe(
                    acc, ra, rb, ra_next, rb_next, here, there, into, old, old,
                    pa, pb, rows, cols, depth, a, b, lda, ldb, t, 0, 0, 0,
                )  # fmt: skip
                ahead = advance(
                    ahead, a, b, m, n, k, tiles, rounds, run, longer, lda, ldb, stride_a, stride_b
                )
                left -= 1

            # (5) C := alpha acc + beta C, or acc to scratch; the next piece
            tile, first, _ = piece_of(number, stripes, tiles, rounds, run, longer)
            finish(acc, old, t, tile, first, c, pieces, m, n, ldc, stride_c, alpha, alpha_i, beta, beta_i)
            number += 1
            _, _, left = piece_of(number, stripes, tiles, rounds, run, longer)

    gemm.__name__ = gemm.__qualname__ = config.STEM  # what a profiler shows
    return gemm
