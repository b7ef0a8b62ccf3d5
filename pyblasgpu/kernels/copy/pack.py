"""``pack``: an operand of a product, op() applied, into a packed layout (`packing`), zeros at its ends.

These are the copy kernels of Matsumoto, Nakasato, Sedukhin (2012), section 3.2; one text serves both, for a
transposition is a matter of strides. A thread copies a *tile*: 16 bytes along the extent by up to 4 k. It
loads all of it, by 16 bytes where S is aligned so, else by elements or by reals, and writes 16 bytes at a
time. A source that is contiguous along k is read along k and turned in registers, so that no thread waits for
another, and shared memory is not needed. Which layout it is, the strides of the target say; the kernel is the
same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd
from typing import ClassVar, Self

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...gpu.build.compile import KernelSource
from ..common.kernel_config import KernelConfig, require_warps
from ..common.options import CONJUGATE
from ..common.parameters import parameters
from .packing import Packing

__all__ = ["STEM", "Pack", "source"]

STEM = "pack"
PARAMETERS = parameters(
    "pointer: s, d",
    "int32: extent, k, options",
    "int64: s_rs, s_ks, d_ts, d_ss, d_ks, stride_s, stride_d",
)
STORE = 16  # bytes of one store
DEPTH = 4  # k of a thread tile, at most: 64 bytes a thread are under way
SIDE = 4  # threads side by side along k, if S is contiguous there: a warp reads runs of 64 bytes, writes 128


@dataclass(frozen=True)
class Pack(KernelConfig):
    """Config of one `pack` kernel.

    Attributes
    ----------
    BLK, BLK_K, PAD : int
        Layout of the packed operand: extent of a tile, depth of a k-tile, elements added to a row of a tile.
    DIM_X, DIM_Y : int
        Threads of a block along the extent and along k, a thread tile each.
    """

    BLK: int = 128
    BLK_K: int = 16
    PAD: int = 0
    DIM_X: int = 32
    DIM_Y: int = 8

    STEM: ClassVar[str] = STEM
    RESIDENT: ClassVar[int] = 1024  # so that enough reads are under way

    def __post_init__(self):
        size, x, y = self.dtype_facts.itemsize, self.DIM_X, self.DIM_Y
        require(
            self.BLK >= 1 and self.BLK_K >= 1 and self.PAD >= 0,
            "k_tile",
            "BLK >= 1 and BLK_K >= 1 and PAD >= 0",
            BLK=self.BLK,
            BLK_K=self.BLK_K,
            PAD=self.PAD,
        )
        for name, extent in (("BLK", self.BLK), ("PAD", self.PAD)):
            require(
                extent * size % STORE == 0,
                "vectors",
                f"{name} * itemsize % {STORE} == 0",
                **{name: extent, "itemsize": size},
            )
        require_warps(DIM_X=x, DIM_Y=y)
        require(y % SIDE == 0, "side", f"DIM_Y % {SIDE} == 0", DIM_Y=y)

    @property
    def VEC(self) -> int:
        """Elements of one store."""
        return STORE // self.dtype_facts.itemsize

    @property
    def depth(self) -> int:
        """k of a thread tile, which is within a k-tile."""
        return gcd(DEPTH, self.BLK_K)

    @property
    def threads(self) -> int:
        return self.DIM_X * self.DIM_Y

    def specialize(self, packing: Packing) -> Self:
        """Return the Config for operands packed so; raises `ConfigError` where a rule is broken."""
        return replace(self, BLK=packing.blk, BLK_K=packing.depth, PAD=packing.pad)

    def grid(self, extent: int, k: int) -> int:
        """Blocks along x for an operand of these extents."""
        packed = -(-extent // self.BLK) * (self.BLK + self.PAD), -(-k // self.BLK_K) * self.BLK_K
        return -(-packed[0] // (self.DIM_X * self.VEC)) * -(-packed[1] // (self.DIM_Y * self.depth))


def source(config: Pack) -> KernelSource:
    """The kernel of `config`; by S's strides it is contiguous along the extent or along k.

    Kernel parameters
    -----------------
    s, d: pointer, source and target, D at a multiple of 16 bytes
    extent, k: int32, of S
    options: int32, whether S is conjugated (`kernels.common.options`)
    s_rs, s_ks: int64, strides of S along the extent, along k (elements)
    d_ts, d_ss, d_ks: int64, from tile to tile, k-tile to k-tile, k to k of D (`Packing.steps`)
    stride_s, stride_d: int64, batch strides (elements)

    Grid: x ``config.grid(extent, k)``, z the batch. The steps of D are multiples of 16 bytes.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


@dataclass(frozen=True)
class ThreadTile:
    """A thread's reads of its tile: by *lines*, each one run where S is.

    Along k a thread tile is LOADS runs of RUN k, STEP apart: those of NEXT threads alternate, so that their
    loads at one time are contiguous.
    """

    config: Pack
    by_rows: bool

    @property
    def RUN(self) -> int:
        return 1 if self.by_rows else gcd(self.config.VEC, self.config.depth)

    @property
    def LOADS(self) -> int:
        return self.config.depth // self.RUN

    @property
    def SIDE(self) -> int:
        """Threads side by side along k."""
        return 1 if self.by_rows else SIDE

    @property
    def NEXT(self) -> int:
        """Threads side by side along k within a k-tile."""
        return gcd(self.SIDE, self.config.BLK_K // self.config.depth)

    @property
    def STEP(self) -> int:
        return self.NEXT * self.RUN

    @property
    def LINE(self) -> int:
        """Elements of a line."""
        return self.config.VEC if self.by_rows else self.RUN

    @property
    def LINES(self) -> int:
        return self.config.VEC * self.config.depth // self.LINE


def _locator(thread_tile: ThreadTile):
    """``locate(block, t, across, deep)``: the thread's vector along the extent, of `across`, and its thread
    tile along k, of `deep`. Blocks follow one another in S's order.
    """
    X, Y, SIDE, BY_ROWS = (
        thread_tile.config.DIM_X,
        thread_tile.config.DIM_Y,
        thread_tile.SIDE,
        thread_tile.by_rows,
    )
    uint32 = ptx.types.uint32

    @device_function
    def locate(block, t, across, deep):
        blocks = uint32(across + (X - 1)) // X if BY_ROWS else uint32(deep + (Y - 1)) // Y
        slow = uint32(block) // uint32(blocks)
        fast = uint32(block - slow * blocks)
        x, y = (fast, slow) if BY_ROWS else (slow, fast)
        return uint32(x * X + t // SIDE % X), uint32(y * Y + t // (SIDE * X) * SIDE + t % SIDE)

    return locate


def _reader(thread_tile: ThreadTile, width: int):
    """``read(0, values, s, row_step, k_step, rows, depth)``: a thread tile of S, line by line, `width` reals
    at a time, zeros beyond the `rows` and the `depth` that are left. All is loaded before any is used.
    """
    REALS = thread_tile.config.dtype_facts.reals_per_element
    VEC, BY_ROWS, STEP = thread_tile.config.VEC, thread_tile.by_rows, thread_tile.STEP
    LINE_REALS, load = thread_tile.LINE * REALS, ptx.load_global(width, False)

    @device_function
    def read(line, values, s, row_step, k_step, rows, depth):
        for first in range(0, LINE_REALS, width):
            k_offset = first // REALS
            i, kk = (k_offset, line * STEP) if BY_ROWS else (line % VEC, line // VEC * STEP + k_offset)
            at = (i * row_step + kk * k_step) * REALS + first % REALS
            load(values, line * LINE_REALS + first, s, at, (i < rows) & (kk < depth))

    return unrolled(thread_tile.LINES, read)


def _readers(thread_tile: ThreadTile):
    """``read(values, s, row_step, k_step, rows, depth)``: by lines where they are runs, aligned, and none is
    cut by an end of S; else by elements, or by reals where complex numbers are aligned as such alone.
    """
    config, REALS, BY_ROWS = (
        thread_tile.config,
        thread_tile.config.dtype_facts.reals_per_element,
        thread_tile.by_rows,
    )
    WIDTH, REACH = (
        thread_tile.LINE * REALS,
        config.VEC if BY_ROWS else thread_tile.STEP * (thread_tile.LOADS - 1) + thread_tile.RUN,
    )
    offset, is_wide, is_whole = ptx.offset, ptx.is_aligned(WIDTH), ptx.is_aligned(REALS)
    read_lines, read_elements, read_reals = (_reader(thread_tile, width) for width in (WIDTH, REALS, 1))

    @device_function
    def read(values, s, row_step, k_step, rows, depth):
        step, ld, left = (row_step, k_step, rows) if BY_ROWS else (k_step, row_step, depth)
        uncut = (left >= REACH) | (left <= 0)
        if WIDTH > REALS and (step == 1) & uncut & is_wide(s) & is_wide(offset(s, ld * REALS)):
            read_lines(0, values, s, row_step, k_step, rows, depth)
        elif REALS == 1 or is_whole(s):
            read_elements(0, values, s, row_step, k_step, rows, depth)
        else:
            read_reals(0, values, s, row_step, k_step, rows, depth)

    return read


def _writer(thread_tile: ThreadTile):
    """``write(0, d, values, vector, k_step, sign, ok)``: a thread tile as it was read, vector by vector of D;
    imaginary parts times `sign`.
    """
    REALS = thread_tile.config.dtype_facts.reals_per_element
    VEC, RUN, STEP = thread_tile.config.VEC, thread_tile.RUN, thread_tile.STEP
    store = ptx.store_global_vector(VEC * REALS)

    @device_function
    def write(kk, d, values, vector, k_step, sign, ok):
        load, run = kk // RUN, kk % RUN
        for v in range(VEC):
            for part in range(REALS):
                vector[v * REALS + part] = values[((load * VEC + v) * RUN + run) * REALS + part]
            if REALS == 2:
                vector[v * REALS + 1] = sign * vector[v * REALS + 1]
        store(d, (load * STEP + run) * k_step * REALS, vector, 0, ok)

    return unrolled(thread_tile.config.depth, write)


def _packer(config: Pack, by_rows: bool):
    """``pack_thread_tile(s, d, ...)``: pack a thread's tile of S, contiguous `by_rows` or along k."""
    facts, thread_tile = config.dtype_facts, ThreadTile(config, by_rows)
    real, REALS, VEC, DEEP = ptx.REALS[facts.real], facts.reals_per_element, config.VEC, config.depth
    int32, int64, uint32 = ptx.types.int32, ptx.types.int64, ptx.types.uint32
    offset, grid_dependency_wait, locate = ptx.offset, ptx.grid_dependency_wait, _locator(thread_tile)
    BLK, BLK_K, RUN, NEXT = config.BLK, config.BLK_K, thread_tile.RUN, thread_tile.NEXT
    VECTORS, THREAD_TILES = (
        (BLK + config.PAD) // VEC,
        BLK_K // DEEP,
    )  # of a row of a tile, of a k-tile along k
    WIDTH, VALUES = VEC * REALS, VEC * REALS * DEEP
    read, write = _readers(thread_tile), _writer(thread_tile)

    @device_function
    def pack_thread_tile(s, d, extent, k, options, s_rs, s_ks, d_ts, d_ss, d_ks, stride_s, stride_d):
        # (1) the thread tile of this thread: packed rows are the tiles' rows one after another, and so are
        # k-tiles
        across = uint32(uint32(extent + (BLK - 1)) // BLK * VECTORS)
        deep = uint32(uint32(k + (BLK_K - 1)) // BLK_K * THREAD_TILES)
        x, y = locate(uint32(cuda.blockIdx.x), uint32(cuda.threadIdx.x), across, deep)
        panel, k_tile = uint32(x // VECTORS), uint32(y // THREAD_TILES)
        i, n = uint32(x - panel * VECTORS) * VEC, uint32(y - k_tile * THREAD_TILES)
        kk = uint32(n // NEXT * (NEXT * DEEP) + n % NEXT * RUN)
        batch, row, col = int64(cuda.blockIdx.z), int64(panel) * BLK + i, int64(k_tile) * BLK_K + kk
        s = offset(s, (batch * stride_s + row * s_rs + col * s_ks) * REALS)
        d = offset(d, (batch * stride_d + panel * d_ts + k_tile * d_ss + kk * d_ks + i) * REALS)
        values, vector = cuda.local.array(VALUES, real), cuda.local.array(WIDTH, real)

        # (2) read it in the order of S
        grid_dependency_wait()
        read(values, s, s_rs, s_ks, int32(extent - row) if i < BLK else int32(0), int32(k - col))

        # (3) write it in the order of D
        sign = real(-1) if options & CONJUGATE else real(1)
        write(0, d, values, vector, d_ks, sign, (x < across) & (y < deep))

    return pack_thread_tile


def _build(config: Pack):
    pack_by_rows, pack_along_k = _packer(config, True), _packer(config, False)

    def pack(s, d, extent, k, options, s_rs, s_ks, d_ts, d_ss, d_ks, stride_s, stride_d):
        if abs(s_rs) <= abs(s_ks):
            pack_by_rows(s, d, extent, k, options, s_rs, s_ks, d_ts, d_ss, d_ks, stride_s, stride_d)
        else:
            pack_along_k(s, d, extent, k, options, s_rs, s_ks, d_ts, d_ss, d_ks, stride_s, stride_d)

    return pack
