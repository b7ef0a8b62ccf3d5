"""``gemm_simt``: the universal GEMM stencil of Kurzak, Tomov and Dongarra (2011), for FMA units.

A block of DIM_X x DIM_Y threads computes a BLK_M x BLK_N tile of C; each thread keeps THR_M x THR_N
elements of it in registers. A and B pass in k-tiles BLK_K deep, through shared memory or straight into
registers (one choice per operand: Matsumoto, Nakasato and Sedukhin; Steinsland). To load a k-tile of A
the same threads are reshaped to DIM_XA x DIM_YA, of B to DIM_XB x DIM_YB, the first along the dimension
that is contiguous in memory. All around the innermost product is in `mainloop`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ...errors import require
from ...gpu.backend import device_function, in_order, ptx, unrolled
from ...gpu.build.compile import KernelSource
from ...types import Triangle
from ..common.kernel_config import require_warps
from ..common.smem_tile import SmemTile
from ..copy.packing import ROW
from .config import GemmConfig
from .form import Form
from .product import Product
from .source import kernel_source, plain_kernels

__all__ = ["STEM", "GemmSimt", "plain_sources", "product_of", "source"]

STEM = "gemm_simt"


@dataclass(frozen=True, kw_only=True)
class GemmSimt(GemmConfig):
    """Config of one `gemm_simt` kernel, besides what `GemmConfig` holds.

    Attributes
    ----------
    DIM_X, DIM_Y : int
        Threads along M, N.
    VEC_M, VEC_N : int
        Adjacent rows, columns of a thread: the width of its loads from shared memory.
    WARP_X : int
        Lanes of a warp along M.
    VEC_K : int
        Elements along k that a thread reads at a time of a k-tile that is contiguous along k. 1: such a
        k-tile is transposed on its way to shared memory. More: it stays as stored, and is loaded by wide
        copies; then the rows, columns of a thread are not adjacent, lest those of a warp meet in a bank.
    UNROLL : int
        Elements along k that are unrolled.
    share_a, share_b : bool
        Whether the operand goes through shared memory.
    read_only : bool
        Whether loads take the read-only data path (the texture switch of the paper): of fragments straight
        from global memory, and through registers into shared memory.
    by_rows : bool
        Whether a step multiplies its tile row by row, such that neighbouring FMAs share an operand (else
        element by element).
    """

    DIM_X: int
    DIM_Y: int
    VEC_M: int = 1
    VEC_N: int = 1
    VEC_K: int = 1
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
            self.BLK_K % (self.SLICES_K * self.UNROLL) == 0,
            "unroll",
            "BLK_K % (SLICES_K * UNROLL) == 0",
            BLK_K=self.BLK_K,
            SLICES_K=self.SLICES_K,
            UNROLL=self.UNROLL,
        )
        self._check_depth()
        require(
            self.stages == 1 or not self.read_only,
            "async_read_only",
            "stages == 1 or not read_only",
            stages=self.stages,
            read_only=self.read_only,
        )
        self.check_pipeline()

    def _check_depth(self):
        depth, size = self.VEC_K, self.dtype_facts.itemsize
        require(
            depth * size in (4, 8, 16),
            "depth_bytes",
            "VEC_K * itemsize in (4, 8, 16)",
            VEC_K=depth,
            itemsize=size,
        )
        require(
            self.UNROLL % depth == 0, "depth_unrolled", "UNROLL % VEC_K == 0", UNROLL=self.UNROLL, VEC_K=depth
        )
        if depth == 1:
            return
        kept = [name for name in ("A", "B") if self.operand(name)[0].is_kept]
        require(
            bool(kept) and all(self.shares),
            "depth_of_kept",
            "VEC_K == 1 unless both operands are shared, one of them contiguous along k",
            VEC_K=depth,
            trans_a=self.trans_a,
            trans_b=self.trans_b,
        )
        for name in kept:
            smem_tile, _, vector = self.operand(name)
            require(vector == 1, "kept_apart", f"VEC == 1 of the kept tile of {name}", VEC=vector)
            require(
                smem_tile.ld % depth == 0,
                "depth_aligned",
                f"(BLK_K + PAD_{name}) % VEC_K == 0",
                BLK_K=self.BLK_K,
                PAD=smem_tile.pad,
                VEC_K=depth,
            )

    def _check_threads(self):
        x, y, warp_x = self.DIM_X, self.DIM_Y, self.WARP_X
        require_warps(DIM_X=x, DIM_Y=y)
        require_warps(DIM_X=x, DIM_Y=y, SLICES_K=self.SLICES_K)
        require(
            warp_x in (1, 2, 4, 8, 16, 32) and x % warp_x == 0 and y % (32 // warp_x) == 0,
            "warp_tiles_grid",
            "DIM_X % WARP_X == 0 and DIM_Y % (32 / WARP_X) == 0",
            DIM_X=x,
            DIM_Y=y,
            WARP_X=warp_x,
        )
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
        smem_tile, shared, vector = self.operand(name)
        size = self.dtype_facts.itemsize
        require(
            vector * size in (4, 8, 16),
            "fragment_bytes",
            "VEC * itemsize in (4, 8, 16)",
            VEC=vector,
            itemsize=size,
        )
        if shared:
            self.check_smem_tile(name)
            require(
                smem_tile.ld % vector == 0,
                "fragment_aligned",
                "(BLK + PAD) % VEC == 0",
                BLK=smem_tile.blk,
                PAD=smem_tile.pad,
                VEC=vector,
            )

    def operand(self, name: str) -> tuple[SmemTile, bool, int]:
        """The k-tile of A or B, whether it is shared, and the vector of its fragments."""
        if name == "A":
            return self.smem_tile_a, self.share_a, self.VEC_M
        return self.smem_tile_b, self.share_b, self.VEC_N

    @property
    def shares(self) -> tuple[bool, bool]:
        return self.share_a, self.share_b

    @property
    def keeps_k_major(self) -> bool:
        return self.VEC_K > 1

    @property
    def loads_read_only(self) -> bool:
        return self.read_only

    @property
    def threads(self) -> int:
        return self.DIM_X * self.DIM_Y * self.SLICES_K

    @property
    def reads_before_wait(self) -> tuple[int, ...]:
        """Both by the read-only path: it knows no turn, so the launch before must not have written them."""
        return (0, 1) if self.read_only else ()

    @property
    def steps(self) -> int:
        return self.BLK_K // self.VEC_K // self.SLICES_K

    @property
    def THR_M(self) -> int:
        return self.BLK_M // self.DIM_X

    @property
    def THR_N(self) -> int:
        return self.BLK_N // self.DIM_Y

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread (Algorithm 3; the compiler adds addresses and counters)."""
        fragments = (self.THR_M + self.THR_N) * self.VEC_K * (2 if self.prefetch else 1)
        elements = self.THR_M * self.THR_N + fragments + self.staged_elements
        return elements * self.dtype_facts.itemsize // 4

    @property
    def reuse(self) -> float:
        """FMAs for each element loaded in the innermost loop (Algorithm 3)."""
        return self.dtype_facts.reuse(self.THR_M, self.THR_N)


def source(
    config: GemmSimt,
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


def product_of(config: GemmSimt, conj_a: bool, conj_b: bool) -> Product:
    facts = config.dtype_facts
    DIM_X, DIM_Y, VEC_M, VEC_N = config.DIM_X, config.DIM_Y, config.VEC_M, config.VEC_N
    B_TILE = config.offset_b
    SHARE_A, SHARE_B = config.share_a, config.share_b
    fragment_a, fragment_b = _fragment_loader(config, "A"), _fragment_loader(config, "B")
    update, VEC_K, offset = _update(config, conj_a, conj_b), config.VEC_K, ptx.offset
    along_m, along_n = _thread_coords(config)
    SLICES, GROUP, STEPS = config.SLICES_K, config.slice_threads, config.steps
    SLICE_A, SLICE_B = (
        STEPS * VEC_K * smem_tile.step_k * facts.reals_per_element
        for smem_tile in (config.smem_tile_a, config.smem_tile_b)
    )

    @device_function
    def load(step, ra, rb, shared, a, b, lda, ldb, t, rows, cols, depth):
        tile_a, tile_b = (shared if SHARE_A else a), (offset(shared, B_TILE) if SHARE_B else b)
        if SLICES > 1:
            tile_a, tile_b = offset(tile_a, t // GROUP * SLICE_A), offset(tile_b, t // GROUP * SLICE_B)
        fragment_a(ra, step, tile_a, lda, along_m(t), rows, depth)
        fragment_b(rb, step, tile_b, ldb, along_n(t), cols, depth)

    @device_function
    def row(i, t):
        return (i // VEC_M) * (DIM_X * VEC_M) + along_m(t) * VEC_M + i % VEC_M

    @device_function
    def col(j, t):
        return (j // VEC_N) * (DIM_Y * VEC_N) + along_n(t) * VEC_N + j % VEC_N

    reals_a, reals_b = (count * VEC_K * facts.reals_per_element for count in (config.THR_M, config.THR_N))
    return Product(load, update, config.UNROLL // VEC_K, row, col, reals_a, reals_b, run=VEC_M)


def _update(config: GemmSimt, conj_a: bool, conj_b: bool):
    """``update(acc, ra, rb)``: the products of a step, one k after the other."""
    THR_M, THR_N, VEC_K = config.THR_M, config.THR_N, config.VEC_K

    def fragment_offsets(smem_tile: SmemTile, count: int, kk: int) -> tuple[int, int]:
        """The first element of one k in a fragment, and from one to the next."""
        return (kk, VEC_K) if smem_tile.is_kept else (kk * count, 1)

    def of_one(kk: int):
        rank1 = ptx.rank1_update(
            THR_M,
            THR_N,
            config.dtype_facts.reals_per_element,
            conj_a,
            conj_b,
            config.by_rows,
            fragment_offsets(config.smem_tile_a, THR_M, kk),
            fragment_offsets(config.smem_tile_b, THR_N, kk),
        )

        @device_function
        def update(acc, ra, rb):
            rank1(acc, ra, rb)

        return update

    return in_order([of_one(kk) for kk in range(VEC_K)])


def _thread_coords(config: GemmSimt):
    """``along_m(t)``, ``along_n(t)``: the coordinates of thread `t` in the DIM_X x DIM_Y grid.

    Lanes are mapped so that those which share a vector of A, and those which share one of B, are near:
    two rows of lanes alternate, and a wide load of shared memory is served in fewer passes.
    """
    WARP_X, WARP_Y = config.WARP_X, 32 // config.WARP_X
    WARPS_X, WARPS, SLICES = config.DIM_X // WARP_X, config.slice_threads // 32, config.SLICES_K

    @device_function
    def along_m(t):
        lane, warp = t % 32, t // 32
        return (warp % WARPS_X) * WARP_X + ((lane & 1) | (lane // (2 * WARP_Y) * 2) if WARP_Y < 32 else 0)

    @device_function
    def along_n(t):
        lane, warp = t % 32, (t // 32 % WARPS if SLICES > 1 else t // 32)
        return (warp // WARPS_X) * WARP_Y + (lane // 2 % WARP_Y if WARP_X > 1 else lane)

    return along_m, along_n


def _fragment_loader(config: GemmSimt, name: str):
    """``load(local, step, pointer, ...)``: a thread's part of the `step`-th column of A's k-tile, row of B's,
    or VEC_K of them.
    """
    smem_tile, shared, vector = config.operand(name)
    dim, count = (config.DIM_X, config.THR_M) if name == "A" else (config.DIM_Y, config.THR_N)
    offset, reals, VEC_K = ptx.offset, config.dtype_facts.reals_per_element, config.VEC_K
    LD = smem_tile.ld * reals
    if shared and smem_tile.is_kept:
        load_rows = ptx.load_shared(VEC_K * reals, count, dim * LD)

        @device_function
        def from_kept(local, step, pointer, ld, thread, extent, depth):
            load_rows(local, 0, pointer, thread * LD + step * (VEC_K * reals))

        return from_kept
    if shared:
        load = ptx.load_shared(vector * reals, count // vector, dim * vector * reals)

        @device_function
        def load_one(kk, local, pointer):
            load(local, kk * (count * reals), pointer, kk * LD)

        load_all = unrolled(VEC_K, load_one)

        @device_function
        def from_shared(local, step, pointer, ld, thread, extent, depth):
            load_all(0, local, offset(pointer, step * (VEC_K * LD) + thread * vector * reals))

        return from_shared

    K_MAJOR, PACKED, int64 = smem_tile.k_major, smem_tile.packed, ptx.types.int64
    ROWS_OF_TILE, TILE_LD = PACKED and smem_tile.packing != ROW, smem_tile.ld
    read = ptx.load_global(reals, config.read_only)

    @device_function
    def from_global(local, kk, pointer, ld, thread, extent, depth):
        row = int64(TILE_LD) if ROWS_OF_TILE else ld
        for i in range(count):
            at = (i // vector) * (dim * vector) + thread * vector + i % vector
            index = at * row + kk if K_MAJOR else kk * row + at
            is_there = True if PACKED else (at < extent) & (kk < depth)
            read(local, i * reals, pointer, index * reals, is_there)

    return from_global
