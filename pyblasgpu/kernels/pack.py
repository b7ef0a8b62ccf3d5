"""``pack``: an operand of a product, op() applied, into a packed layout (`packing`), zeros at its ends.

These are the copy kernels of Matsumoto, Nakasato, Sedukhin (2012), section 3.2; one text serves both, for a
transposition is a matter of strides. A block copies a tile of the packed operand through shared memory:
it reads real by real, so that any alignment of a real will do, in the order in which they lie, and writes
16 bytes a thread. Which layout it is, the strides of the target say; the kernel is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

from ..errors import require
from ..gpu.backend import cuda, device_function, ptx, unrolled
from ..gpu.compile import KernelSource
from ..types import DTYPES, Dtype
from .packing import Packing

__all__ = ["STEM", "Pack", "source"]

STEM = "pack"
PARAMETERS = "pp ii qq qqq qq".replace(" ", "")
STORE = 16  # bytes of one store
RESIDENT = 1024  # threads of a multiprocessor, so that enough reads are under way
NEIGHBOURS = 8  # threads that store side by side: 128 bytes; with four rows a warp, shared reads never clash


@dataclass(frozen=True)
class Pack:
    """Config of one `pack` kernel.

    Attributes
    ----------
    dtype : str
        's', 'd', 'c' or 'z'.
    BLK, BLK_K, PAD : int
        Of the packed operand: extent of a tile, depth of a stripe, elements added to a row of a tile.
    TILE, TILE_K : int
        What a block of threads copies: elements of packed rows, and rows.
    DIM : int
        Threads of a block.
    """

    dtype: str
    BLK: int = 128
    BLK_K: int = 16
    PAD: int = 0
    TILE: int = 64
    TILE_K: int = 32
    DIM: int = 256

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        size = self.dtype_facts.itemsize
        require(
            self.BLK >= 1 and self.BLK_K >= 1 and self.PAD >= 0,
            "stripe", "BLK >= 1 and BLK_K >= 1 and PAD >= 0",
            BLK=self.BLK, BLK_K=self.BLK_K, PAD=self.PAD,
        )  # fmt: skip
        for name, extent in (("BLK", self.BLK), ("PAD", self.PAD)):
            require(extent * size % STORE == 0, "vectors", f"{name} * itemsize % {STORE} == 0",
                    **{name: extent, "itemsize": size})  # fmt: skip
        require(0 < self.DIM <= 1024, "max_threads", "0 < DIM <= 1024", DIM=self.DIM)
        require(self.DIM % 32 == 0, "whole_warps", "DIM % 32 == 0", DIM=self.DIM)
        require(
            self.TILE > 0 and self.TILE * size % (NEIGHBOURS * STORE) == 0,
            "lines", f"TILE > 0 and TILE * itemsize % {NEIGHBOURS * STORE} == 0",
            TILE=self.TILE, itemsize=size,
        )  # fmt: skip
        require(
            self.TILE_K > 0 and self.TILE * self.TILE_K % (self.DIM * self.VEC) == 0,
            "threads_tile", "TILE_K > 0 and TILE * TILE_K * itemsize % (DIM * 16) == 0",
            TILE=self.TILE, TILE_K=self.TILE_K, itemsize=size, DIM=self.DIM,
        )  # fmt: skip
        require(self.TILE_K % 2 == 0, "odd_rows", "TILE_K % 2 == 0", TILE_K=self.TILE_K)

    @cached_property
    def dtype_facts(self) -> Dtype:
        return DTYPES[self.dtype]

    @property
    def VEC(self) -> int:
        """Elements of one store."""
        return STORE // self.dtype_facts.itemsize

    @property
    def threads(self) -> int:
        return self.DIM

    @property
    def shared_bytes(self) -> int:
        """A tile, k along its rows, which are one element longer against bank conflicts."""
        return self.TILE * (self.TILE_K + 1) * self.dtype_facts.itemsize

    def serving(self, packing: Packing) -> Self:
        """The same Config for operands packed so; raises `ConfigError` where it cannot."""
        return replace(self, BLK=packing.blk, BLK_K=packing.depth, PAD=packing.pad)

    def grid(self, extent: int, k: int) -> int:
        """Blocks along x for an operand of these extents."""
        packed = -(-extent // self.BLK) * (self.BLK + self.PAD), -(-k // self.BLK_K) * self.BLK_K
        return -(-packed[0] // self.TILE) * -(-packed[1] // self.TILE_K)


def source(config: Pack, conj: bool, read_by_rows: bool) -> KernelSource:
    """The kernel of `config`.

    Parameters
    ----------
    config : Pack
    conj : bool
        Conjugate what is read.
    read_by_rows : bool
        Whether neighbours in S's memory are neighbours along the extent (else along k).

    Returns
    -------
    KernelSource
        Its parameters are pointers to S, D, the latter at a multiple of 16 bytes; int32 extent, k; int64
        strides of S along the extent, along k; of D from tile to tile, from stripe to stripe, from one k to
        the next (`Packing.steps`, multiples of 16 bytes); batch strides of S, D (elements). Grid: x
        ``config.grid(extent, k)``, z the batch.
    """
    return KernelSource(
        name=STEM,
        config=config,
        flags=(("conj", conj), ("read_by_rows", read_by_rows)),
        real=config.dtype_facts.real,
        parameters=PARAMETERS,
        threads=config.threads,
        min_blocks=max(RESIDENT // config.threads, 1),
        shared_bytes=config.shared_bytes,
        build=lambda: _build(config, conj, read_by_rows),
    )


def _reader(config: Pack, by_rows: bool):
    """``read(tile, s, row_stride, k_stride, t, shift, rows, depth)``: asynchronously, zeros where S ends.

    `shift` is where the tile begins in a packed row, from the first row of S it meets; what is unsigned
    divides quicker.
    """
    PARTS, SIZE, DIM = config.dtype_facts.parts, config.dtype_facts.real_size, config.DIM
    BLK, LEAD, ROW = config.BLK, config.BLK + config.PAD, (config.TILE_K + 1) * PARTS
    REALS, FAST = config.TILE * config.TILE_K * PARTS, (config.TILE if by_rows else config.TILE_K)
    int32, uint32, copy = ptx.types.int32, ptx.types.uint32, ptx.copy_async(SIZE)

    @device_function
    def read(tile, s, row_stride, k_stride, t, shift, rows, depth):
        for first in range(0, REALS, DIM):
            part, element = (t + first) % PARTS, (t + first) // PARTS
            fast, slow = element % FAST, element // FAST
            p, kk = (fast, slow) if by_rows else (slow, fast)
            place = uint32(shift + p)
            i = place % LEAD
            row = place // LEAD * BLK + i
            ok = (i < BLK) & (row < rows) & (kk < depth)
            at = (row * row_stride + kk * k_stride) * PARTS + part
            copy(tile, p * ROW + kk * PARTS + part, s, at, int32(SIZE if ok else 0))

    return read


def _writer(config: Pack, conj: bool):
    """``write(d, tile, values, tile_step, stripe_step, k_step, t, shift, shift_k, width, depth)``.

    `shift`, `shift_k` are where the tile begins in the packed tile and stripe at `d`.
    """
    PARTS, VEC, DIM = config.dtype_facts.parts, config.VEC, config.DIM
    LEAD, BLK_K, TILE_K = config.BLK + config.PAD, config.BLK_K, config.TILE_K
    ROW, VECTORS, CONJ = (TILE_K + 1) * PARTS, config.TILE * TILE_K // VEC, conj and PARTS == 2
    load, store = ptx.load_shared(PARTS, VEC, ROW), ptx.store_global_vector(VEC * PARTS)
    uint32 = ptx.types.uint32

    @device_function
    def negate(v, values):
        values[2 * v + 1] = -values[2 * v + 1]

    conjugate = unrolled(VEC, negate)

    @device_function
    def write(d, tile, values, tile_step, stripe_step, k_step, t, shift, shift_k, width, depth):
        for first in range(0, VECTORS, DIM):
            neighbour, rest = (t + first) % NEIGHBOURS, (t + first) // NEIGHBOURS
            p, kk = (rest // TILE_K * NEIGHBOURS + neighbour) * VEC, rest % TILE_K
            load(values, 0, tile, p * ROW + kk * PARTS)
            if CONJ:
                conjugate(0, values)
            place, row = uint32(shift + p), uint32(shift_k + kk)
            at = place // LEAD * tile_step + row // BLK_K * stripe_step + row % BLK_K * k_step
            store(d, (at + place % LEAD) * PARTS, values, 0, (p < width) & (kk < depth))

    return write


def _build(config: Pack, conj: bool, by_rows: bool):
    facts = config.dtype_facts
    real, PARTS, VALUES = ptx.REALS[facts.real], facts.parts, config.VEC * facts.parts
    int32, int64, uint32 = ptx.types.int32, ptx.types.int64, ptx.types.uint32
    offset, shared_pointer, in_turn = ptx.offset, ptx.shared_pointer, ptx.in_turn
    BLK, LEAD, BLK_K = config.BLK, config.BLK + config.PAD, config.BLK_K
    TILE, TILE_K = config.TILE, config.TILE_K
    read, write = _reader(config, by_rows), _writer(config, conj)
    commit, wait = ptx.commit_async, ptx.wait_async(0)

    def pack(s, d, extent, k, s_rs, s_ks, d_ts, d_ss, d_ks, stride_s, stride_d):
        # (1) the tile of this block: packed rows are the tiles' rows one after another
        t = uint32(cuda.threadIdx.x)
        width = int64((extent + BLK - 1) // BLK) * LEAD
        depth = int64((k + BLK_K - 1) // BLK_K) * BLK_K
        across = (width + TILE - 1) // TILE
        first, k0 = cuda.blockIdx.x % across * TILE, cuda.blockIdx.x // across * TILE_K
        panel, stripe = first // LEAD, k0 // BLK_K
        shift, shift_k = uint32(first - panel * LEAD), uint32(k0 - stripe * BLK_K)
        batch, row0 = int64(cuda.blockIdx.z), panel * BLK
        s = offset(s, (batch * stride_s + row0 * s_rs + k0 * s_ks) * PARTS)
        d = offset(d, (batch * stride_d + panel * d_ts + stripe * d_ss) * PARTS)
        tile = shared_pointer(cuda.shared.array(0, real, alignment=16))

        # (2) read it in the order of S
        in_turn()
        read(tile, s, s_rs, s_ks, t, shift, int32(extent - row0), int32(k - k0))
        commit()
        wait()
        cuda.syncthreads()

        # (3) write it in the order of D
        values = cuda.local.array(VALUES, real)
        width, depth = int32(min(width - first, TILE)), int32(min(depth - k0, TILE_K))
        write(d, tile, values, d_ts, d_ss, d_ks, t, shift, shift_k, width, depth)

    return pack
