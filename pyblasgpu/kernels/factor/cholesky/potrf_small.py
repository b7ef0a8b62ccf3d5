"""``potrf_small``: Cholesky factors of a batch of matrices of up to 16 rows in place, several a warp.

A lane owns a row, which is in shared memory. Column after column: the lane of the pivot takes its root, every
lane below divides by it, and takes the product with the column off its row. Nothing waits for another warp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.parameters import parameters
from ..lu.small_matrices import SmallMatrices, matrix_loader

__all__ = ["ORDER", "STEM", "PotrfSmall", "source"]

STEM = "potrf_small"
PARAMETERS = parameters(
    "int32 pointer: info",
    "pointer: source, a",
    "int32: n, clean, lanes, count",
    "int64: a_rs, a_cs, stride_info, stride_a",
)
ORDER = 16  # rows at most: beyond, a block a matrix is as fast


@dataclass(frozen=True)
class PotrfSmall(SmallMatrices):
    """Config of one `potrf_small` kernel; its attributes are those of `SmallMatrices`."""

    STEM: ClassVar[str] = STEM
    #: Elements from row to row in shared memory: odd, against bank conflicts.
    LD: ClassVar[int] = ORDER + 1

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 48

    @property
    def shared_elements(self) -> int:
        """A row a thread."""
        return self.DIM * self.LD


def source(config: PotrfSmall) -> KernelSource:
    """The kernel of `config`, for the lower triangles of matrices of order n <= ORDER.

    Kernel parameters
    -----------------
    info: int32 pointer, info: 0, or the number, from 1, of the first pivot that is not positive
    source, a: pointer, A and its factor, which may replace it
    n: int32, order
    clean: int32, whether the strict upper triangle becomes zero
    lanes: int32, lanes of a matrix, ``config.lanes(n)``
    count: int32, matrices
    a_rs, a_cs: int64, row and column stride of A (elements)
    stride_info: int64, batch stride of info (words)
    stride_a: int64, batch stride of A (elements)

    Grid: x ``config.grid(n, count)``.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _updater(config: PotrfSmall) -> Callable:
    """``update(rows, row, j, lane)``: the product of this row's element of column j with the column taken
    off the row, up to its diagonal, of which the imaginary part counts for nothing.
    """
    REALS, LD, COMPLEX = config.dtype_facts.reals_per_element, config.LD, config.dtype_facts.is_complex
    int32 = ptx.types.int32

    @device_function
    def update(rows, row, j, lane):
        re, im, k = row[j * REALS], row[j * REALS + REALS - 1], int32(j + 1)
        while k <= lane:
            at, of = int32(k * REALS), int32((k * LD + j) * REALS)
            if COMPLEX:
                other, other_im = rows[of], rows[of + 1]
                row[at] -= re * other + im * other_im
                row[at + 1] -= im * other - re * other_im
            else:
                row[at] -= re * rows[of]
            k = int32(k + 1)

    return update


def _writer(config: PotrfSmall) -> Callable:
    """``write(a, rows, a_rs, a_cs, n, clean, lane, lanes)``: the triangle back, its diagonal real, and zeros
    beyond it if `clean`.
    """
    facts, LD, store = config.dtype_facts, config.LD, ptx.store_global
    REALS, real, int32, select = facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int32, ptx.select

    @device_function
    def write_element(a, rows, i, j, a_rs, a_cs, clean, ok):
        ok = ok & ((j <= i) | (clean != 0))
        for part in range(REALS):
            is_kept = (j < i) | ((j == i) & (part == 0))
            value = select(is_kept, rows[(i * LD + j) * REALS + part], real(0))
            store(a, (i * a_rs + j * a_cs) * REALS + part, value, ok)

    @device_function
    def write(a, rows, a_rs, a_cs, n, clean, lane, lanes):
        by_columns = abs(a_rs) <= abs(a_cs)
        slow = int32(0)
        while slow < n:  # neighbours in memory by neighbouring lanes
            i, j = (int32(lane), slow) if by_columns else (slow, int32(lane))
            write_element(a, rows, i, j, a_rs, a_cs, clean, lane < n)
            slow = int32(slow + 1)

    return write


def _build(config: PotrfSmall):
    facts, LD, DIM = config.dtype_facts, config.LD, config.DIM
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    quotient, sync_warp, square_root, divide = ptx.quotient, ptx.sync_warp, ptx.square_root, ptx.divide
    load, update, write = matrix_loader(config), _updater(config), _writer(config)
    grid_dependency_wait = ptx.grid_dependency_wait

    def potrf_small(info, source, a, n, clean, lanes, count, a_rs, a_cs, stride_info, stride_a):
        # (1) the triangle of this group of lanes, a row a lane
        t = int32(cuda.threadIdx.x & 1023)
        group, lane = int32(quotient(t, lanes)), int32(t & (lanes - 1))
        matrix = int64(cuda.blockIdx.x) * quotient(int32(DIM), lanes) + group
        is_here = matrix < count
        rows = offset(shared_pointer(cuda.shared.array(0, real, alignment=16)), group * lanes * LD * REALS)
        row = offset(rows, lane * LD * REALS)
        grid_dependency_wait()
        first = matrix * stride_a * REALS
        source, a = offset(source, first), offset(a, first)
        load(rows, source, a_rs, a_cs, n if is_here else 0, n, lane, lanes, True)

        # (2) a column after the other; a pivot that is not positive is noted, and stops nothing
        ok, bad, j = is_here & (lane < n), int32(0), int32(0)
        while j < n:
            pivot = rows[(j * LD + j) * REALS]
            if bad == 0 and not pivot > real(0):
                bad = int32(j + 1)
            root = square_root(pivot)
            sync_warp()
            if ok and lane >= j:
                row[j * REALS] = root if lane == j else divide(row[j * REALS], root)
                if REALS == 2:
                    row[j * REALS + 1] = divide(row[j * REALS + 1], root)
            sync_warp()
            if ok and lane > j:
                update(rows, row, j, lane)
            sync_warp()
            j = int32(j + 1)

        # (3) the factor, and the first bad pivot
        if is_here:
            write(a, rows, a_rs, a_cs, n, clean, lane, lanes)
            if lane == 0:
                info[matrix * stride_info] = bad

    return potrf_small
