"""``ldl_rows``: rows of right-hand sides of P L D L^H P^H: interchanged, or solved with the blocks of D.

A thread has the element of a row, or of both rows of a block of D, of one right-hand side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import BlockConfig
from ...common.parameters import parameters
from ...common.substitution import divider
from .ldl_triangle import FIRST_OF_TWO, SINGLE
from .pivot_step import pair_inverter

__all__ = ["BLOCKS", "DIVIDE", "GATHER", "SCATTER", "STEM", "LdlRows", "source"]

STEM = "ldl_rows"
PARAMETERS = parameters(
    "int32 pointer: words",
    "pointer: d, b, x",
    "int32: n, r, task, hermitian",
    "int64: b_rs, b_cs, x_cs, stride_words, stride_d, stride_b, stride_x",
)
GATHER, DIVIDE, SCATTER, BLOCKS = range(4)  # rows of B to X; D^-1 X; rows of X to B; B becomes D


@dataclass(frozen=True)
class LdlRows(BlockConfig):
    """Config of one `ldl_rows` kernel; its attributes are those of `BlockConfig`."""

    STEM: ClassVar[str] = STEM

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 16 * self.dtype_facts.itemsize // 4 + 32

    def grid(self, rows: int, cols: int) -> int:
        """Blocks for as many elements."""
        return min(-(-rows * cols // self.threads), 2**20)


def source(config: LdlRows) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    words: int32 pointer, as `ldl_triangle` leaves them
    d, b, x: pointer, D as `ldl_triangle` leaves it, right-hand sides, and X, column-major
    n, r: int32, rows and right-hand sides
    task: int32, GATHER, DIVIDE, SCATTER or BLOCKS
    hermitian: int32, whether D is Hermitian, else symmetric
    b_rs, b_cs, x_cs: int64, row and column stride of B, column stride of X (elements)
    stride_words: int64, batch stride (words)
    stride_d, stride_b, stride_x: int64, batch strides (elements)

    Grid: x any number of blocks, which share the elements; z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _block_solver(config: LdlRows):
    """``solve(p, y, d, kind, x, i, sign)``: one row, or both of a block of D, in place from row i on."""
    facts = config.dtype_facts
    COMPLEX, REALS = facts.is_complex, facts.reals_per_element
    divide, invert = divider(facts), pair_inverter(facts)

    @device_function
    def multiply(p, at, by):
        if COMPLEX:
            p[at], p[at + 1] = p[at] * p[by] - p[at + 1] * p[by + 1], p[at] * p[by + 1] + p[at + 1] * p[by]
        else:
            p[at] = p[at] * p[by]

    @device_function
    def solve(p, d, kind, x, i, sign):
        for part in range(REALS):
            p[part], p[2 + part] = d[i * 2 * REALS + part], d[(i * 2 + 1) * REALS + part]
        if kind == SINGLE:
            divide(x, i * REALS, p[0], p[REALS - 1])
        elif kind == FIRST_OF_TWO:
            for part in range(REALS):
                p[4 + part], p[6 + part] = p[2 + part], d[(i + 1) * 2 * REALS + part]
                p[10 + part], p[12 + part] = x[i * REALS + part], x[(i + 1) * REALS + part]
            if COMPLEX:
                p[5] = sign * p[5]
            invert(p)
            multiply(p, 10, 8)
            multiply(p, 12, 4)
            multiply(p, 6, 10)
            multiply(p, 0, 12)
            for part in range(REALS):
                x[i * REALS + part] = p[6 + part] - p[12 + part]
                x[(i + 1) * REALS + part] = p[part] - p[10 + part]

    return solve


def _block_reader(config: LdlRows):
    """``read(p, words, d, i, j, sign)``: entry (i, j) of D."""
    REALS, real = config.dtype_facts.reals_per_element, ptx.REALS[config.dtype_facts.real]

    @device_function
    def read(p, words, d, i, j, sign):
        first = min(i, j)
        is_there = i == j or (abs(i - j) == 1 and words[first * 2 + 1] == FIRST_OF_TWO)
        for part in range(REALS):
            p[part] = d[(first * 2 + (0 if i == j else 1)) * REALS + part] if is_there else real(0)
        if REALS == 2 and i < j:
            p[1] = sign * p[1]

    return read


def _build(config: LdlRows):
    facts, DIM = config.dtype_facts, config.threads
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]
    solve, read = _block_solver(config), _block_reader(config)
    int32, int64, offset, grid_dependency_wait = (
        ptx.types.int32,
        ptx.types.int64,
        ptx.offset,
        ptx.grid_dependency_wait,
    )

    def ldl_rows(
        words, d, b, x, n, r, task, hermitian, b_rs, b_cs, x_cs, stride_words, stride_d, stride_b, stride_x
    ):
        batch, p, sign = int64(cuda.blockIdx.z), cuda.local.array(14, real), real(1)
        if hermitian != 0:
            sign = real(-1)
        grid_dependency_wait()
        words, d = offset(words, batch * stride_words), offset(d, batch * stride_d * REALS)
        b, x = offset(b, batch * stride_b * REALS), offset(x, batch * stride_x * REALS)
        element, step = int64(cuda.blockIdx.x) * DIM + cuda.threadIdx.x, int64(cuda.gridDim.x) * DIM
        while element < int64(n) * r:
            column = element // n
            i = int32(element - column * n)
            there = offset(x, column * x_cs * REALS)
            at = (words[i * 2] * b_rs + column * b_cs) * REALS
            if task == DIVIDE:
                solve(p, d, words[i * 2 + 1], there, i, sign)
            elif task == GATHER:
                for part in range(REALS):
                    there[i * REALS + part] = b[at + part]
            elif task == BLOCKS:
                read(p, words, d, i, int32(column), sign)
                for part in range(REALS):
                    b[(i * b_rs + column * b_cs) * REALS + part] = p[part]
            else:
                for part in range(REALS):
                    b[at + part] = there[i * REALS + part]
            element += step

    return ldl_rows
