"""``pack_triples``: A and B as three BF16 numbers an element, in images that ``gemm_triples`` reads.

A panel has block after block, of each stages of `TRIPLE_STAGE_K` k, of each part after part: BLK rows of 128
bytes, swizzled as wgmma reads them. A unit that `pack_halves` would pack is packed by one block of threads,
which takes another then. Where `pack_halves` has set no flag, it returns at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.parameters import parameters
from .operand_reader import CHUNK, copier, reader, thread_coords, unit_finder
from .pack_halves import PackHalves
from .triples import PARTS, TRIPLE_STAGE_K

__all__ = ["STEM", "PackTriples", "source"]

STEM = "pack_triples"
PARAMETERS = parameters(
    "pointer: a, b, d",
    "int32 pointer: flags, any_flag",
    "int32: extent_a, extent_b, k, options_a, options_b, units_a, units",
    "int64: a_rs, a_ks, a_batch, b_rs, b_ks, b_batch",
)
#: Sizes of elements: no product, nor a part of one, leaves float32.
SMALLEST, LARGEST = 2.0**-60, 2.0**60


@dataclass(frozen=True)
class PackTriples(PackHalves):
    """Config of one `pack_triples` kernel: that of a `PackHalves`, with blocks of a whole stage or more."""

    BLK_K: int = 256

    STEM: ClassVar[str] = STEM

    @property
    def words(self) -> int:
        """Words of a unit's image."""
        return self.rows * self.BLK_K * PARTS // 2

    @property
    def shared_bytes(self) -> int:
        """The image of a unit."""
        return 4 * self.words

    @property
    def variants(self) -> tuple[Self, ...]:
        return (self.specialize(self.BLK, self.BLK_K),)


def source(config: PackTriples) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    a, b: pointer, A and B
    d: pointer, the image, at a multiple of 16 bytes
    flags, any_flag: int32 pointer, the flags, and the word that says whether there is anything to do
    extent_a, extent_b, k: int32, rows of A, columns of B, k of the real operands
    options_a, options_b: int32, as in `pack_halves`
    units_a, units: int32, units of all matrices of A, and of both operands
    a_rs, a_ks, a_batch: int64, strides of A along the extent, along k, to the next matrix (elements)
    b_rs, b_ks, b_batch: int64, strides of B along the extent, along k, to the next matrix (elements)

    Grid: x as many blocks as the device holds.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _writer(config: PackTriples):
    """``write(0, image, values, words, bad, t, options)``: all chunks of a thread, split and swizzled, to
    shared memory; `bad[0]` becomes 1 where triples do not hold an element.
    """
    real, coords, quotient, offset = ptx.types.float32, thread_coords(config), ptx.quotient, ptx.offset
    ROWS, STAGE_CHUNKS, store = config.rows, TRIPLE_STAGE_K // CHUNK, ptx.store_shared(4)
    int32, pair, lower, upper = ptx.types.int32, ptx.bfloat_pair, ptx.lower_bfloat, ptx.upper_bfloat

    @device_function
    def is_kept(x):
        size = abs(x)
        return ((size >= real(SMALLEST)) & (size <= real(LARGEST))) | (x == real(0))

    @device_function
    def split_two(p, i, values, words, bad):
        x, y = values[i * CHUNK + 2 * p], values[i * CHUNK + 2 * p + 1]
        bad[0] |= 0 if is_kept(x) & is_kept(y) else 1
        first = pair(x, y)
        x, y = x - lower(first), y - upper(first)
        second = pair(x, y)
        words[p], words[p + 4] = first, second
        words[p + 8] = pair(x - lower(second), y - upper(second))

    split_chunk = unrolled(CHUNK // 2, split_two)

    @device_function
    def write(i, image, values, words, bad, t, options):
        row, chunk = coords(i, t, options)
        split_chunk(0, i, values, words, bad)
        stage, turn = quotient(chunk, STAGE_CHUNKS), row & 7
        within = int32((chunk - stage * STAGE_CHUNKS) ^ turn)
        for part in range(PARTS):
            store(offset(image, ((stage * PARTS + part) * ROWS + row) * 32), within * 4, words, 4 * part)

    return unrolled(config.chunks // config.threads, write)


def _build(config: PackTriples):
    real, int32, int64 = ptx.types.float32, ptx.types.int32, ptx.types.int64
    BLK, ROWS, COMPLEX = config.BLK, config.rows, config.dtype == "c"
    BLOCK, SPLIT = BLK * config.BLK_K * PARTS // 2, 4 * PARTS
    VALUES = config.chunks // config.threads * CHUNK
    offset, shared_pointer, quotient = ptx.offset, ptx.shared_pointer, ptx.quotient
    grid_dependency_wait, copy_all = ptx.grid_dependency_wait, copier(config, config.words)
    read, write, find = reader(config), _writer(config), unit_finder(config)

    def pack_triples(
        a, b, d, flags, any_flag, extent_a, extent_b, k, options_a, options_b, units_a, units, a_rs, a_ks,
        a_batch, b_rs, b_ks, b_batch,
    ):  # fmt: skip
        t, image = int32(cuda.threadIdx.x), shared_pointer(cuda.shared.array(0, real, alignment=16))
        values, words = cuda.local.array(VALUES, real), cuda.local.array(SPLIT, real)
        vector, bad = cuda.local.array(4, real), cuda.local.array(1, int32)
        grid_dependency_wait()
        unit = int32(cuda.blockIdx.x if any_flag[0] != 0 else units)
        while unit < units:
            is_a = unit < units_a
            s, extent, options = (a, extent_a, options_a) if is_a else (b, extent_b, options_b)
            rs, ks, batch = (a_rs, a_ks, a_batch) if is_a else (b_rs, b_ks, b_batch)
            expanded, own = int32(1 if COMPLEX and is_a else 0), int32(unit if is_a else unit - units_a)
            s, row0, k0, rows, depth = find(s, own, extent, k, rs, ks, batch, expanded)
            bad[0] = 0
            read(values, s, t, rows, depth, int32(row0 - k0), rs, ks, options, expanded)
            write(0, image, values, words, bad, t, options)
            failed = cuda.syncthreads_or(bad[0])
            if t == 0:
                flags[unit] = int32(1 if failed else 0)
            block = quotient(unit, BLK // ROWS)
            at = int64(block) * BLOCK + (unit - block * (BLK // ROWS)) * (ROWS * 32)
            copy_all(0, offset(d, at), image, vector, t)
            cuda.syncthreads()
            unit = int32(unit + cuda.gridDim.x)

    return pack_triples
