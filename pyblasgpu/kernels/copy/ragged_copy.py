"""``ragged_copy``: copies of matrices of unequal sizes in one launch, scaled, and completed to larger ones.

A block copies a tile of one of the matrices, which it finds in a `problem_table`, through shared memory: so
neighbours in memory are read and written by neighbouring lanes, whatever the order of either matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...gpu.build.compile import KernelSource
from ..common.kernel_config import WARP, BlockConfig
from ..common.options import CONJUGATE, TRIANGLE, UNIT
from ..common.parameters import parameters
from ..common.problem_table import ROW_WORDS, long_integer, row_reader

__all__ = ["STEM", "TILE", "RaggedCopy", "source"]

STEM = "ragged_copy"
PARAMETERS = parameters("pointer: sources, targets, scalars", "int32 pointer: problems, owners")
TILE = WARP  # rows and columns
_LD = TILE + 1  # odd, against bank conflicts


@dataclass(frozen=True)
class RaggedCopy(BlockConfig):
    """Config of one `ragged_copy` kernel; its attributes are those of `BlockConfig`."""

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(TILE**2 % self.DIM == 0, "tile", f"{TILE}**2 % DIM == 0", DIM=self.DIM)

    @property
    def shared_elements(self) -> int:
        return TILE * _LD

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 64

    def blocks(self, rows: Any, cols: Any) -> Any:
        """Blocks of a matrix; of arrays, of each."""
        return -(-rows // TILE) * -(-cols // TILE)


def source(config: RaggedCopy) -> KernelSource:
    """The kernel of `config`, for many copies: a target of rows by cols elements gets alpha times the m by n
    of its source, and zeros beyond them.

    A row of problems holds, in this order: the distances of source and target in reals, row and column
    strides of both in elements, of 64 bits; m, n, rows, cols, the number of the first block, and options:
    `TRIANGLE`, of which the elements above the diagonal are zero and are not read, and those of the diagonal
    beyond m and n are one; `UNIT`, whose diagonal is one and is not read; `CONJUGATE`.

    Kernel parameters
    -----------------
    sources, targets: pointer, the addresses that distances of sources, targets begin at
    scalars: pointer, alpha and alpha_i of each problem
    problems: int32 pointer, a row of `ROW_WORDS` words for each problem
    owners: int32 pointer, the number of each block's problem

    Grid: x the sum of ``config.blocks(rows, cols)``.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _reader(config: RaggedCopy):
    """``read(0, shared, source, row0, col0, t, ...)``: a tile of the target, as it is to be, into shared
    memory.
    """
    facts, LINES = config.dtype_facts, config.DIM // TILE
    REALS, COMPLEX, real, int32, int64 = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.types.int32,
        ptx.types.int64,
    )
    load, select = ptx.load_global(1, False), ptx.select

    @device_function
    def element(x, shared, value, source, row0, col0, t, row_step, col_step, m, n, options, alpha, alpha_i):
        line, lane = int32(t // TILE + x * LINES), int32(t % TILE)
        by_rows = abs(col_step) < abs(row_step)
        i, j = (line, lane) if by_rows else (lane, line)
        row, col = int32(row0 + i), int32(col0 + j)
        is_inside = (row < m) & (col < n)
        is_beyond = (options & TRIANGLE != 0) & ((row >= m) | (col >= n))
        is_one = (row == col) & ((options & UNIT != 0) | is_beyond)
        is_read = (
            is_inside & ((options & TRIANGLE == 0) | (row >= col)) & ((row != col) | (options & UNIT == 0))
        )
        at = (int64(row) * row_step + int64(col) * col_step) * REALS
        for part in range(REALS):
            load(value, part, source, at + part, is_read)
        re, im = value[0], value[REALS - 1]
        to = (i * _LD + j) * REALS
        if COMPLEX:
            im = -im if options & CONJUGATE else im
            # a real alpha leaves NaN in its part
            if alpha_i == real(0):
                re, im = alpha * re, alpha * im
            else:
                re, im = alpha * re - alpha_i * im, alpha * im + alpha_i * re
            shared[to + 1] = select(is_read, im, real(0))
        else:
            re = alpha * re
        shared[to] = select(is_one, real(1), select(is_read, re, real(0)))

    return unrolled(TILE // LINES, element)


def _writer(config: RaggedCopy):
    """``write(0, shared, target, row0, col0, t, ...)``: the tile to the target."""
    REALS, LINES = config.dtype_facts.reals_per_element, config.DIM // TILE
    int32, int64, store = ptx.types.int32, ptx.types.int64, ptx.store_global

    @device_function
    def element(x, shared, target, row0, col0, t, row_step, col_step, rows, cols):
        line, lane = int32(t // TILE + x * LINES), int32(t % TILE)
        by_rows = abs(col_step) < abs(row_step)
        i, j = (line, lane) if by_rows else (lane, line)
        row, col = int32(row0 + i), int32(col0 + j)
        at = (int64(row) * row_step + int64(col) * col_step) * REALS
        for part in range(REALS):
            store(target, at + part, shared[(i * _LD + j) * REALS + part], (row < rows) & (col < cols))

    return unrolled(TILE // LINES, element)


def _build(config: RaggedCopy):
    facts, WORDS = config.dtype_facts, ROW_WORDS
    real, REALS = ptx.REALS[facts.real], facts.reals_per_element
    int32, int64, offset, quotient = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.quotient
    read_row, wide, load, shared_pointer = (
        row_reader(),
        long_integer(),
        ptx.load_global(1, False),  # the read-only path would not see what the kernel before wrote
        ptx.shared_pointer,
    )
    read_tile, write_tile, grid_dependency_wait = _reader(config), _writer(config), ptx.grid_dependency_wait

    def ragged_copy(sources, targets, scalars, problems, owners):
        words, numbers = cuda.local.array(WORDS, int32), cuda.local.array(2, real)
        value = cuda.local.array(REALS, real)
        grid_dependency_wait()
        owner = read_row(words, problems, owners)
        for part in range(2):
            load(numbers, part, scalars, int64(owner) * 2 + part, True)
        t, rows, cols = int32(cuda.threadIdx.x), words[14], words[15]
        tile, down = int32(cuda.blockIdx.x - words[16]), quotient(rows + (TILE - 1), TILE)
        across = quotient(tile, down)
        row0, col0 = int32((tile - across * down) * TILE), int32(across * TILE)
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))
        source, target = offset(sources, wide(words, 0)), offset(targets, wide(words, 2))
        read_tile(
            0, shared, value, source, row0, col0, t, wide(words, 4), wide(words, 6), words[12], words[13],
            words[17], numbers[0], numbers[1],
        )  # fmt: skip
        cuda.syncthreads()
        write_tile(0, shared, target, row0, col0, t, wide(words, 8), wide(words, 10), rows, cols)

    return ragged_copy
