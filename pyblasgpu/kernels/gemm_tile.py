"""``gemm_tile``: the universal GEMM stencil of Kurzak, Tomov and Dongarra (2011), for FMA units.

A block of DIM_X x DIM_Y threads computes a BLK_M x BLK_N tile of C; each thread keeps THR_M x THR_N
elements of it in registers. A and B pass in stripes BLK_K deep, through shared memory or straight into
registers (one choice per operand: Matsumoto, Nakasato and Sedukhin; Steinsland). To load a stripe of A
the same threads are reshaped to DIM_XA x DIM_YA, of B to DIM_XB x DIM_YB, the first along the dimension
that is contiguous in memory.

    C (m x n, rows contiguous) := alpha * A (m x k) * B (k x n) + beta * C

All four dtypes are one text: memory is read as reals, `parts` of them an element.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from ..errors import require
from ..gpu.backend import cuda, device_function, ptx, unrolled
from ..gpu.compile import KernelSource
from ..types import DTYPES, Dtype
from .stripe import Stripe, loaders

STEM = "gemm_tile"
PARAMETERS = "ppp iii qqq qqq rrrr".replace(" ", "")
RASTER = 8  # tiles of C are walked in columns of this many rows of tiles, so that a wave shares its A in L2
MAX_VECTOR = 16  # bytes of the widest memory instruction


@dataclass(frozen=True)
class GemmTile:
    """Config of one `gemm_tile` kernel.

    Attributes
    ----------
    dtype : str
        's', 'd', 'c' or 'z'.
    trans_a, trans_b : bool
        Whether A is contiguous along k (else m), B along n (else k).
    BLK_M, BLK_N, BLK_K : int
        Tile of C, depth of a stripe.
    DIM_X, DIM_Y : int
        Threads along M, N.
    DIM_XA, DIM_YA, DIM_XB, DIM_YB : int
        The same threads when they load A, B: along the contiguous dimension, along the other.
    VEC_A, VEC_B : int
        Elements of one global load.
    VEC_M, VEC_N : int
        Adjacent rows, columns of a thread: the width of its loads from shared memory.
    WARP_X : int
        Lanes of a warp along M.
    UNROLL : int
        Steps along k that are unrolled.
    stages : int
        1: the next stripe is staged through registers (Algorithm 1 of the paper). More: a ring of so
        many stripes in shared memory, filled by cp.async.
    PAD_A, PAD_B : int
        Elements added to a row of the stripe in shared memory, against bank conflicts.
    share_a, share_b : bool
        Whether the operand goes through shared memory.
    read_only : bool
        Whether fragments straight from global memory take the read-only data path (the texture switch of
        the paper).
    min_blocks : int
        Blocks a multiprocessor must be able to hold: bounds the registers of a thread.
    """

    dtype: str
    trans_a: bool
    trans_b: bool
    BLK_M: int
    BLK_N: int
    BLK_K: int
    DIM_X: int
    DIM_Y: int
    DIM_XA: int
    DIM_YA: int
    DIM_XB: int
    DIM_YB: int
    VEC_A: int = 1
    VEC_B: int = 1
    VEC_M: int = 1
    VEC_N: int = 1
    WARP_X: int = 8
    UNROLL: int = 8
    stages: int = 1
    PAD_A: int = 0
    PAD_B: int = 0
    share_a: bool = True
    share_b: bool = True
    read_only: bool = False
    min_blocks: int = 1

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        self._check_threads()
        for name in ("A", "B"):
            self._check_operand(name)
        require(
            self.BLK_K % self.UNROLL == 0,
            "unroll",
            "BLK_K % UNROLL == 0",
            BLK_K=self.BLK_K,
            UNROLL=self.UNROLL,
        )
        require(self.stages >= 1, "stages", "stages >= 1", stages=self.stages)
        require(
            self.stages == 1 or (self.share_a and self.share_b),
            "async_is_shared", "stages == 1 or (share_a and share_b)",
            stages=self.stages, share_a=self.share_a, share_b=self.share_b,
        )  # fmt: skip

    def _check_threads(self):
        x, y, warp_x = self.DIM_X, self.DIM_Y, self.WARP_X
        require(self.threads <= 1024, "max_threads", "DIM_X * DIM_Y <= 1024", DIM_X=x, DIM_Y=y)
        require(self.threads % 32 == 0, "whole_warps", "DIM_X * DIM_Y % 32 == 0", DIM_X=x, DIM_Y=y)
        require(
            warp_x in (1, 2, 4, 8, 16, 32) and x % warp_x == 0 and y % (32 // warp_x) == 0,
            "warp_tiles_grid", "DIM_X % WARP_X == 0 and DIM_Y % (32 / WARP_X) == 0",
            DIM_X=x, DIM_Y=y, WARP_X=warp_x,
        )  # fmt: skip
        m, n = self.BLK_M, self.BLK_N
        require(
            m % (x * self.VEC_M) == 0,
            "tile_m",
            "BLK_M % (DIM_X * VEC_M) == 0",
            BLK_M=m,
            DIM_X=x,
            VEC_M=self.VEC_M,
        )
        require(
            n % (y * self.VEC_N) == 0,
            "tile_n",
            "BLK_N % (DIM_Y * VEC_N) == 0",
            BLK_N=n,
            DIM_Y=y,
            VEC_N=self.VEC_N,
        )

    def _check_operand(self, name: str):
        stripe, shared, vector = self._operand(name)
        size = self.dtype_facts.itemsize
        if shared:
            stripe.check(name, self.threads, asynchronous=self.stages > 1)
            require(
                vector * size in (4, 8, 16),
                "fragment_bytes",
                "VEC * itemsize in (4, 8, 16)",
                VEC=vector,
                itemsize=size,
            )
            require(
                stripe.lead % vector == 0, "fragment_aligned", "(BLK + PAD) % VEC == 0",
                BLK=stripe.blk, PAD=stripe.pad, VEC=vector,
            )  # fmt: skip

    def _operand(self, name: str) -> tuple[Stripe, bool, int]:
        """The stripe of A or B, whether it is shared, and the vector of its fragments."""
        if name == "A":
            return self.stripe_a, self.share_a, self.VEC_M
        return self.stripe_b, self.share_b, self.VEC_N

    @cached_property
    def dtype_facts(self) -> Dtype:
        return DTYPES[self.dtype]

    @cached_property
    def stripe_a(self) -> Stripe:
        return Stripe(
            self.dtype_facts,
            self.BLK_M,
            self.BLK_K,
            self.DIM_XA,
            self.DIM_YA,
            self.VEC_A,
            self.PAD_A,
            self.trans_a,
        )

    @cached_property
    def stripe_b(self) -> Stripe:
        return Stripe(
            self.dtype_facts,
            self.BLK_N,
            self.BLK_K,
            self.DIM_XB,
            self.DIM_YB,
            self.VEC_B,
            self.PAD_B,
            not self.trans_b,
        )

    @property
    def threads(self) -> int:
        return self.DIM_X * self.DIM_Y

    @property
    def THR_M(self) -> int:
        return self.BLK_M // self.DIM_X

    @property
    def THR_N(self) -> int:
        return self.BLK_N // self.DIM_Y

    @property
    def layout(self) -> str:
        return ("t" if self.trans_a else "n") + ("t" if self.trans_b else "n")

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        reals = self.stages * (self.stripe_a.reals * self.share_a + self.stripe_b.reals * self.share_b)
        return reals * self.dtype_facts.real_size

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread (Algorithm 3; the compiler adds addresses and counters)."""
        elements = self.THR_M * self.THR_N + self.THR_M + self.THR_N
        if self.stages == 1:
            elements += (self.BLK_M * self.share_a + self.BLK_N * self.share_b) * self.BLK_K // self.threads
        return elements * self.dtype_facts.itemsize // 4

    @property
    def reuse(self) -> float:
        """FMAs for each element loaded in the innermost loop (Algorithm 3)."""
        ratio = self.THR_M * self.THR_N / (self.THR_M + self.THR_N)
        return 2 * ratio if self.dtype_facts.is_complex else ratio

    def unaligned(self, a: bool, b: bool) -> GemmTile:
        """The same Config with scalar global loads of A, B."""
        return replace(self, VEC_A=1 if a else self.VEC_A, VEC_B=1 if b else self.VEC_B)

    def grid(self, m: int, n: int) -> int:
        """Blocks along x for an m-by-n C."""
        return -(-m // self.BLK_M) * -(-n // self.BLK_N)


def source(config: GemmTile, conj_a: bool = False, conj_b: bool = False) -> KernelSource:
    """The kernel of `config`, with A, B conjugated or not.

    The kernel's parameters are pointers to A, B, C; int32 m, n, k; int64 leading strides and batch
    strides of A, B, C (elements); alpha and beta (real, imaginary part). Grid: x ``config.grid(m, n)``,
    z the batch.
    """
    return KernelSource(
        name=STEM,
        config=config,
        flags=(("conj_a", conj_a), ("conj_b", conj_b)),
        real=config.dtype_facts.real,
        parameters=PARAMETERS,
        threads=config.threads,
        min_blocks=config.min_blocks,
        shared_bytes=config.shared_bytes,
        build=lambda: _build(config, conj_a, conj_b),
    )


def _fragment_loader(config: GemmTile, name: str):
    """``load(local, kk, pointer, ...)``: a thread's part of column kk of A's stripe, row kk of B's."""
    stripe, shared, vector = config._operand(name)
    dim, count = (config.DIM_X, config.THR_M) if name == "A" else (config.DIM_Y, config.THR_N)
    parts = config.dtype_facts.parts
    if shared:
        LEAD = stripe.lead * parts
        load = ptx.load_shared(vector * parts, count // vector, dim * vector * parts)

        @device_function
        def from_shared(local, kk, pointer, lead, place, extent, depth):
            load(local, 0, pointer, kk * LEAD + place * vector * parts)

        return from_shared

    K_MAJOR = stripe.k_major
    read = ptx.load_global(parts, config.read_only)

    @device_function
    def from_global(local, kk, pointer, lead, place, extent, depth):
        for i in range(count):
            at = (i // vector) * (dim * vector) + place * vector + i % vector
            index = at * lead + kk if K_MAJOR else kk * lead + at
            read(local, i * parts, pointer, index * parts, (at < extent) & (kk < depth))

    return from_global


def _column_writer(config: GemmTile, read_c: bool):
    """``write(j, ...)``: column j of the thread's tile, alpha acc + beta C; C is unread without `read_c`."""
    PARTS, THR_M = config.dtype_facts.parts, config.THR_M
    DIM_X, DIM_Y, VEC_M, VEC_N = config.DIM_X, config.DIM_Y, config.VEC_M, config.VEC_N
    COMPLEX = config.dtype_facts.is_complex
    int64 = ptx.types.int64
    read, write_real = ptx.load_global(PARTS, False), ptx.store_global

    @device_function
    def write(j, c, acc, old, ldc, tx, ty, rows, cols, alpha, alpha_i, beta, beta_i):
        col = (j // VEC_N) * (DIM_Y * VEC_N) + ty * VEC_N + j % VEC_N
        for i in range(THR_M):
            row = (i // VEC_M) * (DIM_X * VEC_M) + tx * VEC_M + i % VEC_M
            ok = (row < rows) & (col < cols)
            at = (int64(col) * ldc + row) * PARTS
            x = (j * THR_M + i) * PARTS
            if read_c:
                read(old, 0, c, at, ok)
            if COMPLEX:
                re = alpha * acc[x] - alpha_i * acc[x + 1]
                im = alpha * acc[x + 1] + alpha_i * acc[x]
                if read_c:
                    re += beta * old[0] - beta_i * old[1]
                    im += beta * old[1] + beta_i * old[0]
                write_real(c, at, re, ok)
                write_real(c, at + 1, im, ok)
            else:
                re = alpha * acc[x]
                if read_c:
                    re += beta * old[0]
                write_real(c, at, re, ok)

    return unrolled(config.THR_N, write)


def _build(config: GemmTile, conj_a: bool, conj_b: bool):
    facts = config.dtype_facts
    real, PARTS = ptx.REALS[facts.real], facts.parts
    int32, int64 = ptx.types.int32, ptx.types.int64
    BLK_M, BLK_N, BLK_K, UNROLL, STAGES = (
        config.BLK_M,
        config.BLK_N,
        config.BLK_K,
        config.UNROLL,
        config.stages,
    )
    WARP_X = config.WARP_X
    WARP_Y, WARPS_X = 32 // config.WARP_X, config.DIM_X // config.WARP_X
    TRANS_A, TRANS_B = config.trans_a, config.trans_b
    ACC, FRAG_A, FRAG_B = config.THR_M * config.THR_N * PARTS, config.THR_M * PARTS, config.THR_N * PARTS
    B_STRIPE = config.stripe_a.reals * config.share_a  # where B's stripe starts in a stage
    STAGE = B_STRIPE + config.stripe_b.reals * config.share_b
    STAGED_A, STAGED_B = config.stripe_a.staged(config.threads), config.stripe_b.staged(config.threads)
    SHARE_A, SHARE_B = config.share_a, config.share_b

    load_a, load_b = loaders(config.stripe_a, STAGES, SHARE_A), loaders(config.stripe_b, STAGES, SHARE_B)
    start_a, start_a_edge, finish_a = load_a.start, load_a.start_edge, load_a.finish
    start_b, start_b_edge, finish_b = load_b.start, load_b.start_edge, load_b.finish
    fragment_a, fragment_b = _fragment_loader(config, "A"), _fragment_loader(config, "B")
    rank1 = ptx.rank1_update(config.THR_M, config.THR_N, PARTS, conj_a, conj_b)
    zero = ptx.fill(ACC)
    overwrite_columns, update_columns = _column_writer(config, False), _column_writer(config, True)
    commit, wait = ptx.commit_async, ptx.wait_async(max(STAGES - 2, 0))
    offset, shared_pointer = ptx.offset, ptx.shared_pointer

    @device_function
    def multiply_step(kk, acc, ra, rb, pa, pb, lda, ldb, tx, ty, rows, cols, depth):
        fragment_a(ra, kk, pa, lda, tx, rows, depth)
        fragment_b(rb, kk, pb, ldb, ty, cols, depth)
        rank1(acc, ra, rb)

    multiply_steps = unrolled(UNROLL, multiply_step)

    @device_function
    def multiply(acc, ra, rb, a, b, shared, lda, ldb, tx, ty, rows, cols, depth):
        pa = shared if SHARE_A else a
        pb = offset(shared, B_STRIPE) if SHARE_B else b
        for kk in range(0, BLK_K, UNROLL):
            multiply_steps(kk, acc, ra, rb, pa, pb, lda, ldb, tx, ty, rows, cols, depth)

    @device_function
    def start(shared, staged_a, staged_b, a, b, lda, ldb, t, rows, cols, depth):
        if rows >= BLK_M and cols >= BLK_N and depth >= BLK_K:
            start_a(shared, staged_a, a, lda, t, rows, depth)
            start_b(offset(shared, B_STRIPE), staged_b, b, ldb, t, cols, depth)
        elif depth > 0:
            start_a_edge(shared, staged_a, a, lda, t, rows, depth)
            start_b_edge(offset(shared, B_STRIPE), staged_b, b, ldb, t, cols, depth)
        if STAGES > 1:
            commit()

    def gemm_tile(
        a, b, c, m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, alpha, alpha_i, beta, beta_i
    ):
        # (1) the tile of this block, the place of this thread
        t = cuda.threadIdx.x
        lane, warp = t % 32, t // 32
        tx = (warp % WARPS_X) * WARP_X + ((lane & 1) | (lane // (2 * WARP_Y) * 2) if WARP_Y < 32 else 0)
        ty = (warp // WARPS_X) * WARP_Y + (lane // 2 % WARP_Y if WARP_X > 1 else lane)
        tiles_m, tiles_n = (m + BLK_M - 1) // BLK_M, (n + BLK_N - 1) // BLK_N
        tile = cuda.blockIdx.x
        column = tile // (RASTER * tiles_n)
        within = tile - column * (RASTER * tiles_n)
        height = min(tiles_m - column * RASTER, RASTER)
        row0, col0 = (column * RASTER + within % height) * BLK_M, within // height * BLK_N
        rows, cols, depth = m - row0, n - col0, int32(k)
        batch = int64(cuda.blockIdx.z)
        a = offset(a, (batch * stride_a + (row0 * lda if TRANS_A else int64(row0))) * PARTS)
        b = offset(b, (batch * stride_b + (int64(col0) if TRANS_B else col0 * ldb)) * PARTS)
        c = offset(c, (batch * stride_c + col0 * ldc + row0) * PARTS)
        step_a = (BLK_K if TRANS_A else BLK_K * lda) * PARTS
        step_b = (BLK_K * ldb if TRANS_B else BLK_K) * PARTS
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))

        # (2) zero the accumulators
        acc, old = cuda.local.array(ACC, real), cuda.local.array(2, real)
        ra, rb = cuda.local.array(FRAG_A, real), cuda.local.array(FRAG_B, real)
        staged_a, staged_b = cuda.local.array(STAGED_A, real), cuda.local.array(STAGED_B, real)
        zero(acc, real(0))

        # (3) prologue: the first stripes
        stripes = (k + BLK_K - 1) // BLK_K
        ahead_a, ahead_b, ahead = a, b, depth
        for stage in range(max(STAGES - 1, 1)):
            start(
                offset(shared, stage * STAGE),
                staged_a,
                staged_b,
                ahead_a,
                ahead_b,
                lda,
                ldb,
                t,
                rows,
                cols,
                ahead,
            )
            ahead_a, ahead_b, ahead = offset(ahead_a, step_a), offset(ahead_b, step_b), ahead - BLK_K

        # (4) body: start a stripe that comes later, multiply the present one
        reading, writing = 0, STAGES - 1
        for stripe in range(stripes):
            if STAGES > 1:
                wait()
                cuda.syncthreads()
            else:
                if stripe > 0:
                    cuda.syncthreads()
                finish_a(shared, staged_a, t)
                finish_b(offset(shared, B_STRIPE), staged_b, t)
                cuda.syncthreads()
            start(
                offset(shared, writing * STAGE),
                staged_a,
                staged_b,
                ahead_a,
                ahead_b,
                lda,
                ldb,
                t,
                rows,
                cols,
                ahead,
            )
            multiply(acc, ra, rb, a, b, offset(shared, reading * STAGE), lda, ldb, tx, ty, rows, cols, depth)
            a, ahead_a = offset(a, step_a), offset(ahead_a, step_a)
            b, ahead_b = offset(b, step_b), offset(ahead_b, step_b)
            depth, ahead = depth - BLK_K, ahead - BLK_K
            reading = reading + 1 if reading < STAGES - 1 else 0
            writing = writing + 1 if writing < STAGES - 1 else 0

        # (5) C := alpha acc + beta C; the branch stands outside the unrolled columns
        if beta == real(0) and beta_i == real(0):
            overwrite_columns(0, c, acc, old, ldc, tx, ty, rows, cols, alpha, alpha_i, beta, beta_i)
        else:
            update_columns(0, c, acc, old, ldc, tx, ty, rows, cols, alpha, alpha_i, beta, beta_i)

    return gemm_tile
