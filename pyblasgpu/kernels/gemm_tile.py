"""``gemm_tile``: the universal GEMM stencil of Kurzak, Tomov and Dongarra (2011), for FMA units.

A block of DIM_X x DIM_Y threads computes a BLK_M x BLK_N tile of C; each thread keeps THR_M x THR_N
elements of it in registers. A and B pass in stripes BLK_K deep, through shared memory or straight into
registers (one choice per operand: Matsumoto, Nakasato and Sedukhin; Steinsland). To load a stripe of A
the same threads are reshaped to DIM_XA x DIM_YA, of B to DIM_XB x DIM_YB, the first along the dimension
that is contiguous in memory. All around the innermost product is in `gemm_body`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..errors import require
from ..gpu.backend import device_function, ptx
from ..gpu.compile import KernelSource
from .gemm_body import Product
from .gemm_config import GemmConfig
from .gemm_source import kernel_source
from .stripe import Stripe

__all__ = ["STEM", "GemmTile", "source"]

STEM = "gemm_tile"


@dataclass(frozen=True, kw_only=True)
class GemmTile(GemmConfig):
    """Config of one `gemm_tile` kernel, beside what `GemmConfig` holds.

    Attributes
    ----------
    DIM_X, DIM_Y : int
        Threads along M, N.
    VEC_M, VEC_N : int
        Adjacent rows, columns of a thread: the width of its loads from shared memory.
    WARP_X : int
        Lanes of a warp along M.
    UNROLL : int
        Steps along k that are unrolled.
    share_a, share_b : bool
        Whether the operand goes through shared memory.
    read_only : bool
        Whether fragments straight from global memory take the read-only data path (the texture switch of
        the paper).
    by_rows : bool
        Whether a step multiplies its tile row by row, such that neighbouring FMAs share an operand (else
        element by element).
    """

    DIM_X: int
    DIM_Y: int
    VEC_M: int = 1
    VEC_N: int = 1
    WARP_X: int = 8
    UNROLL: int = 8
    share_a: bool = True
    share_b: bool = True
    read_only: bool = False
    by_rows: bool = False

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        self._check_threads()
        for name in ("A", "B"):
            self._check_operand(name)
        require(
            self.BLK_K % self.UNROLL == 0, "unroll", "BLK_K % UNROLL == 0",
            BLK_K=self.BLK_K, UNROLL=self.UNROLL,
        )  # fmt: skip
        self.check_pipeline()

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
            m % (x * self.VEC_M) == 0, "tile_m", "BLK_M % (DIM_X * VEC_M) == 0",
            BLK_M=m, DIM_X=x, VEC_M=self.VEC_M,
        )  # fmt: skip
        require(
            n % (y * self.VEC_N) == 0, "tile_n", "BLK_N % (DIM_Y * VEC_N) == 0",
            BLK_N=n, DIM_Y=y, VEC_N=self.VEC_N,
        )  # fmt: skip

    def _check_operand(self, name: str):
        stripe, shared, vector = self.operand(name)
        size = self.dtype_facts.itemsize
        require(
            vector * size in (4, 8, 16), "fragment_bytes", "VEC * itemsize in (4, 8, 16)",
            VEC=vector, itemsize=size,
        )  # fmt: skip
        if shared:
            self.check_stripe(name)
            require(
                stripe.lead % vector == 0, "fragment_aligned", "(BLK + PAD) % VEC == 0",
                BLK=stripe.blk, PAD=stripe.pad, VEC=vector,
            )  # fmt: skip

    def operand(self, name: str) -> tuple[Stripe, bool, int]:
        """The stripe of A or B, whether it is shared, and the vector of its fragments."""
        if name == "A":
            return self.stripe_a, self.share_a, self.VEC_M
        return self.stripe_b, self.share_b, self.VEC_N

    @property
    def shares(self) -> tuple[bool, bool]:
        return self.share_a, self.share_b

    @property
    def threads(self) -> int:
        return self.DIM_X * self.DIM_Y

    @property
    def steps(self) -> int:
        return self.BLK_K

    @property
    def THR_M(self) -> int:
        return self.BLK_M // self.DIM_X

    @property
    def THR_N(self) -> int:
        return self.BLK_N // self.DIM_Y

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread (Algorithm 3; the compiler adds addresses and counters)."""
        fragments = (self.THR_M + self.THR_N) * (2 if self.prefetch else 1)
        elements = self.THR_M * self.THR_N + fragments + self.staged_elements
        return elements * self.dtype_facts.itemsize // 4

    @property
    def reuse(self) -> float:
        """FMAs for each element loaded in the innermost loop (Algorithm 3)."""
        return self.dtype_facts.reuse(self.THR_M, self.THR_N)


def source(config: GemmTile, conj_a: bool = False, conj_b: bool = False, part: str = "all") -> KernelSource:
    """The kernel of `config`, with A, B conjugated or not, for all of C or a `part` of it: see
    `kernel_source`.
    """
    return kernel_source(config, conj_a, conj_b, part, _product)


def _product(config: GemmTile, conj_a: bool, conj_b: bool) -> Product:
    facts = config.dtype_facts
    DIM_X, DIM_Y, VEC_M, VEC_N = config.DIM_X, config.DIM_Y, config.VEC_M, config.VEC_N
    B_STRIPE = config.place_b
    SHARE_A, SHARE_B = config.share_a, config.share_b
    fragment_a, fragment_b = _fragment_loader(config, "A"), _fragment_loader(config, "B")
    rank1 = ptx.rank1_update(config.THR_M, config.THR_N, facts.parts, conj_a, conj_b, config.by_rows)
    offset = ptx.offset
    along_m, along_n = _places(config)

    @device_function
    def load(step, ra, rb, shared, a, b, lda, ldb, t, rows, cols, depth):
        fragment_a(ra, step, shared if SHARE_A else a, lda, along_m(t), rows, depth)
        fragment_b(rb, step, offset(shared, B_STRIPE) if SHARE_B else b, ldb, along_n(t), cols, depth)

    @device_function
    def row(i, t):
        return (i // VEC_M) * (DIM_X * VEC_M) + along_m(t) * VEC_M + i % VEC_M

    @device_function
    def col(j, t):
        return (j // VEC_N) * (DIM_Y * VEC_N) + along_n(t) * VEC_N + j % VEC_N

    reals_a, reals_b = config.THR_M * facts.parts, config.THR_N * facts.parts
    return Product(load, rank1, config.UNROLL, row, col, reals_a, reals_b, run=VEC_M)


def _places(config: GemmTile):
    """``along_m(t)``, ``along_n(t)``: the place of thread `t` in the DIM_X x DIM_Y grid.

    Lanes are mapped so that those which share a vector of A, and those which share one of B, are near:
    two rows of lanes alternate, and a wide load of shared memory is served in fewer passes.
    """
    WARP_X, WARP_Y = config.WARP_X, 32 // config.WARP_X
    WARPS_X = config.DIM_X // WARP_X

    @device_function
    def along_m(t):
        lane, warp = t % 32, t // 32
        return (warp % WARPS_X) * WARP_X + ((lane & 1) | (lane // (2 * WARP_Y) * 2) if WARP_Y < 32 else 0)

    @device_function
    def along_n(t):
        lane, warp = t % 32, t // 32
        return (warp // WARPS_X) * WARP_Y + (lane // 2 % WARP_Y if WARP_X > 1 else lane)

    return along_m, along_n


def _fragment_loader(config: GemmTile, name: str):
    """``load(local, kk, pointer, ...)``: a thread's part of column kk of A's stripe, row kk of B's."""
    stripe, shared, vector = config.operand(name)
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
