"""The persistent GEMM kernel: blocks that walk over the tiles of C, and never wait for a first stripe.

The ring of stripes goes on from one piece of a tile to the next (`walk`): the stripes of the next are on
their way while this one is multiplied and written, so a piece costs no start. All else is as in the ordinary
kernel, and taken from `gemm_body`.

Of a parted tile the block with its beginning, the *owner*, writes C. The blocks after it, whose runs begin
within the tile, leave their accumulators in scratch and set a flag, early in their runs; the owner comes to
the tile at the end of its own, and adds them up in the order of k. Runs are counted from the last block of
the grid, so a block waits only for such as the device starts before it.
"""

from __future__ import annotations

from math import gcd

from ..gpu.backend import cuda, device_function, ptx, unrolled
from .gemm_body import Product, ring, starter, tile_writer
from .gemm_config import GemmConfig
from .stripe import loaders, walkers
from .walk import locator
from .walk import pieces as walk_pieces

__all__ = ["AHEAD", "build"]

AHEAD = 16  # loads of a piece that are under way at a time


def _pointers(config: GemmConfig, part: str):
    """``begin(number, tile, first, count, ...)``: where a piece begins; ``advance(ahead, ...)``: where the
    stripe after that begins, of this piece or of the next.

    Both return what is `ahead` of the loads: pointers into A and B; rows, columns and depth from there on, no
    depth where nothing comes any more; stripes left of the piece, and its number.
    """
    PARTS, walk_a, walk_b = config.dtype_facts.parts, walkers(config.stripe_a), walkers(config.stripe_b)
    begin_a, begin_b, next_a, next_b = walk_a.begin, walk_b.begin, walk_a.step, walk_b.step
    BLK_K, int32, int64, offset = config.BLK_K, ptx.types.int32, ptx.types.int64, ptx.offset
    afresh, quotient, piece_of = ptx.afresh, ptx.quotient, walk_pieces()
    locate = locator(config.BLK_M, config.BLK_N, part)

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
    def advance(ahead, block, a, b, m, n, k, tiles, rounds, run, longer, lda, ldb, stride_a, stride_b):
        pa, pb, rows, cols, depth, left, number = ahead
        if left == 1:
            tile, first, count = piece_of(
                number + 1, afresh(block), quotient(k + (BLK_K - 1), BLK_K), tiles, rounds, run, longer
            )
            return begin(number + 1, tile, first, count, a, b, m, n, k, lda, ldb, stride_a, stride_b)
        pa = offset(pa, next_a(lda) * PARTS)
        pb = offset(pb, next_b(ldb) * PARTS)
        return pa, pb, rows, cols, int32(depth - BLK_K), int32(left - 1), number

    return begin, advance


def _pieces(config: GemmConfig):
    """``leave(acc, piece, t)``, ``add(acc, piece, t)``: a block's accumulators to its place in scratch, and
    those of another from there; the first real of all threads, then the second.
    """
    facts, THREADS = config.dtype_facts, config.threads
    ACC = config.THR_M * config.THR_N * facts.parts
    GROUP = gcd(AHEAD, ACC)
    real, offset, read, store = ptx.REALS[facts.real], ptx.offset, ptx.load_global(1, False), ptx.store_global

    @device_function
    def leave_real(x, acc, mine):
        store(mine, x * THREADS, acc[x], True)

    @device_function
    def fetch_real(x, got, mine, first):
        read(got, x, mine, (first + x) * THREADS, True)

    @device_function
    def add_real(x, acc, got, first):
        acc[first + x] += got[x]

    fetch, add_up = unrolled(GROUP, fetch_real), unrolled(GROUP, add_real)

    @device_function
    def add_group(g, acc, got, mine):
        fetch(0, got, mine, g * GROUP)
        add_up(0, acc, got, g * GROUP)

    leave_all, add_groups = unrolled(ACC, leave_real), unrolled(ACC // GROUP, add_group)

    @device_function
    def leave(acc, piece, t):
        leave_all(0, acc, offset(piece, t))

    @device_function
    def add(acc, piece, t):
        got = cuda.local.array(GROUP, real)
        add_groups(0, acc, got, offset(piece, t))

    return leave, add


def _finisher(config: GemmConfig, product: Product, part: str):
    """``finish(...)``: what is done with the sum of a piece, `count` stripes of a tile from the `first` on.

    A piece within a tile, of which a block has one at most, goes to the block's place in scratch. One that
    begins its tile is added up with the others of it, and goes to C as alpha acc + beta C.
    """
    PIECE, PARTS = config.BLK_M * config.BLK_N * config.dtype_facts.parts, config.dtype_facts.parts
    int32, int64, offset = ptx.types.int32, ptx.types.int64, ptx.offset
    afresh, signal, received = ptx.afresh, ptx.signal, ptx.received
    locate = locator(config.BLK_M, config.BLK_N, part)
    write, (leave, add) = tile_writer(config, product, part), _pieces(config)

    @device_function
    def finish(
        acc, old, t, block, tile, first, count, stripes, run, longer, c, pieces, flags, m, n, ldc, stride_c,
        alpha, alpha_i, beta, beta_i,
    ):  # fmt: skip
        # addresses made of what is known before would take registers all the time
        block, t = afresh(block), afresh(int32(t))
        if first > 0:
            leave(acc, offset(pieces, int64(block) * PIECE), t)
            cuda.syncthreads()
            if t == 0:
                signal(flags, block)
        else:
            other = int32(block)
            while count < stripes:
                other = int32(other + 1)
                if t == 0:
                    while not received(flags, other):
                        pass
                cuda.syncthreads()
                add(acc, offset(pieces, int64(other) * PIECE), t)
                count = int32(count + run + (1 if other < longer else 0))
            row0, col0, matrix = locate(tile, m, n)
            into = offset(c, (matrix * stride_c + col0 * ldc + row0) * PARTS)
            rows, cols = int32(m - row0), int32(n - col0)
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
        a, b, c, pieces, flags, m, n, k, tiles, rounds, run, longer, lda, ldb, ldc,
        stride_a, stride_b, stride_c, alpha, alpha_i, beta, beta_i,
    ):  # fmt: skip
        # (1) the first piece of this block
        t, block = cuda.threadIdx.x, int32(cuda.gridDim.x - 1 - cuda.blockIdx.x)
        stripes = quotient(k + (BLK_K - 1), BLK_K)
        tile, first, left = piece_of(0, block, stripes, tiles, rounds, run, longer)
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
            ahead = advance(
                ahead, block, a, b, m, n, k, tiles, rounds, run, longer, lda, ldb, stride_a, stride_b
            )
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
                    ahead, block, a, b, m, n, k, tiles, rounds, run, longer, lda, ldb, stride_a, stride_b
                )
                left -= 1

            # (5) C := alpha acc + beta C, or acc to scratch; the next piece
            tile, first, count = piece_of(number, block, stripes, tiles, rounds, run, longer)
            finish(
                acc, old, t, block, tile, first, count, stripes, run, longer, c, pieces, flags, m, n, ldc,
                stride_c, alpha, alpha_i, beta, beta_i,
            )  # fmt: skip
            number += 1
            _, _, left = piece_of(number, block, stripes, tiles, rounds, run, longer)

    gemm.__name__ = gemm.__qualname__ = config.STEM  # what a profiler shows
    return gemm
