"""``ldl_triangle``: L of P L D L^H P^H as one triangle, D and P, from factors as LAPACK's sytrf leaves them.

There a column of L has the rows as they were at its step: later interchanges did not touch it. A block has
some columns. It follows the interchanges from the last one back, in shared memory. So it finds the row to
which each element has moved since. An upper triangle is taken from its last row on, as a lower one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP, BlockConfig
from ...common.parameters import parameters
from .pivot_step import number_of

__all__ = ["FINDS_ZERO", "FIRST_OF_TWO", "SECOND_OF_TWO", "SINGLE", "STEM", "WHOLE", "LdlTriangle", "source"]

STEM = "ldl_triangle"
PARAMETERS = parameters(
    "int32 pointer: piv, words, info",
    "pointer: a, l, d",
    "int32: n, upper, parts, task",
    "int64: piv_step, a_rs, a_cs, l_cs",
    "int64: stride_piv, stride_words, stride_info, stride_a, stride_l, stride_d",
)
SINGLE, FIRST_OF_TWO, SECOND_OF_TWO = range(3)  # rows of D's blocks
WHOLE, FINDS_ZERO = 1, 2  # tasks: L has its ones and zeros; info becomes the number of the first zero block
COLUMNS = 8  # of a block, at least


@dataclass(frozen=True)
class LdlTriangle(BlockConfig):
    """Config of one `ldl_triangle` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`; it moves reals.
    ORDER : int
        The largest order of a matrix.
    ROOK : bool
        Whether a pivot of two columns has interchanged both of its rows, as rook pivots do.
    """

    DIM: int = 256
    ORDER: int = 56320
    ROOK: bool = False

    STEM: ClassVar[str] = STEM
    ORDERS: ClassVar[tuple[int, ...]] = (1024,)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.ORDER > 0, "order", "ORDER > 0", ORDER=self.ORDER)

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 40

    @property
    def shared_bytes(self) -> int:
        """A word a row, and pivots of as many columns as there are threads."""
        return -(-(self.ORDER + self.threads) * 4 // 16) * 16

    @property
    def variants(self) -> tuple[Self, ...]:
        return *(self.specialize(order) for order in self.ORDERS if order < self.ORDER), self

    def specialize(self, order: int) -> Self:
        """The Config for matrices of `order` rows."""
        enough = next((each for each in self.ORDERS if order <= each < self.ORDER), self.ORDER)
        return replace(self, ORDER=enough)

    def fitting(self, shared_per_block: int) -> Self:
        """The Config for a device whose blocks have `shared_per_block` bytes of shared memory."""
        return replace(self, ORDER=min(self.ORDER, shared_per_block // 4 - self.threads))

    def grid(self, rows: int, at_most: int) -> int:
        """Blocks of a matrix."""
        return max(min(-(-rows // COLUMNS), at_most), 1)


def source(config: LdlTriangle) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    piv: int32 pointer, LAPACK's pivots
    words: int32 pointer, becomes two words for each row of L: the row of A that it is; the kind of its block
    info: int32 pointer, of FINDS_ZERO becomes 0, or the number, from 1, of the first zero block of D
    a, l, d: pointer, the factors; L below its diagonal; for each row two elements of D, the second one below
    n: int32, order, at most ORDER
    upper: int32, whether the upper triangle is stored
    parts: int32, reals of an element
    task: int32, WHOLE, FINDS_ZERO, both or 0
    piv_step: int64, words from pivot to pivot
    a_rs, a_cs, l_cs: int64, row and column stride of A, column stride of L (elements)
    stride_piv, stride_words, stride_info: int64, batch strides (words)
    stride_a, stride_l, stride_d: int64, batch strides (elements)

    Grid: x any number of blocks, which share the columns; z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _follower(config: LdlTriangle):
    """``follow(rows, pivots, piv, piv_step, n, upper, stop, t)``: the rows after the interchanges from the
    last one back to row `stop`; returns whether that row is the second one of two.
    """
    DIM, int32, number = config.threads, ptx.types.int32, number_of()
    interchange = _interchanger(config)

    @device_function
    def follow(rows, pivots, piv, piv_step, n, upper, stop, t):
        is_second, end = False, int32(n)
        while end > stop:
            first = int32(max(end - DIM, stop))
            if first + t < end:
                pivots[t] = piv[(number(n, upper, first + t) - 1) * piv_step]
            cuda.syncthreads()
            j = int32(end - 1)
            while j >= first:
                pivot = pivots[j - first]
                was_second, is_second = is_second, pivot < 0 and not is_second
                if t == 0:
                    interchange(rows, j, pivot, piv, piv_step, n, upper, was_second, is_second)
                j = int32(j - 1)
            cuda.syncthreads()
            end = first
        return is_second

    return follow


def _interchanger(config: LdlTriangle):
    """``interchange(rows, j, pivot, piv, piv_step, n, upper, is_first, is_second)``: the interchange of step
    j; those of a block of two belong to its first row.
    """
    number, ROOK = number_of(), config.ROOK

    @device_function
    def interchange(rows, j, pivot, piv, piv_step, n, upper, is_first, is_second):
        if ROOK and is_first:
            second = piv[(number(n, upper, j + 1) - 1) * piv_step]
            one, other = j + 1, number(n, upper, abs(second) - 1) - 1
            rows[one], rows[other] = rows[other], rows[one]
            is_first = False  # that of its first row follows
        if not is_second:
            one, other = j + 1 if is_first else j, number(n, upper, abs(pivot) - 1) - 1
            rows[one], rows[other] = rows[other], rows[one]

    return interchange


def _completer(config: LdlTriangle):
    """``make_whole(l, l_cs, j, parts, t)``: ones and zeros of column j of L; after what is below them."""
    int32, real, DIM = ptx.types.int32, ptx.REALS[config.dtype_facts.real], config.threads

    @device_function
    def make_whole(l, l_cs, j, parts, t):
        i = int32(t)
        while i <= j:
            for part in range(parts):
                l[(i + j * l_cs) * parts + part] = real(1) if i == j and part == 0 else real(0)
            i = int32(i + DIM)

    return make_whole


def _zero_finder(config: LdlTriangle):
    """``find(lowest, a, a_rs, a_cs, piv, piv_step, n, upper, parts, t)``: the first block of order one that
    is zero, -1 where there is none; `lowest` has a word for each warp.
    """
    int32, number, real, NO_LABEL = (
        ptx.types.int32,
        number_of(),
        ptx.REALS[config.dtype_facts.real],
        ptx.NO_LABEL,
    )
    warp_first_max, WARPS, DIM = ptx.warp_first_max, config.threads // WARP, config.threads

    @device_function
    def find(lowest, a, a_rs, a_cs, piv, piv_step, n, upper, parts, t):
        found, j = int32(-1), int32(t)
        while j < n and found < 0:
            at, is_zero = j * (a_rs + a_cs) * parts, piv[(number(n, upper, j) - 1) * piv_step] > 0
            for part in range(parts):
                is_zero = is_zero and a[at + part] == real(0)
            if is_zero:
                found = j
            j = int32(j + DIM)
        label = warp_first_max(real(1), found, found >= 0)
        cuda.syncthreads()
        if t & (WARP - 1) == 0:
            lowest[t >> 5] = label
        cuda.syncthreads()
        label = NO_LABEL
        for warp in range(WARPS):
            label = min(label, lowest[warp])
        return int32(-1) if label == NO_LABEL else int32(label)

    return find


def _build(config: LdlTriangle):
    real, DIM = ptx.REALS[config.dtype_facts.real], config.threads
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait, quotient, ORDER = ptx.grid_dependency_wait, ptx.quotient, config.ORDER
    follow, interchange, number = _follower(config), _interchanger(config), number_of()
    find, make_whole = _zero_finder(config), _completer(config)

    @device_function
    def number_rows(rows, n, t):
        i = int32(t)
        while i < n:
            rows[i] = i
            i = int32(i + DIM)
        cuda.syncthreads()

    def ldl_triangle(
        piv, words, info, a, l, d, n, upper, parts, task, piv_step, a_rs, a_cs, l_cs,
        stride_piv, stride_words, stride_info, stride_a, stride_l, stride_d,
    ):  # fmt: skip
        # (1) the columns of this block, and where the rows are after all interchanges right of them
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        block, blocks = int32(cuda.blockIdx.x), int32(cuda.gridDim.x)
        rows = shared_pointer(cuda.shared.array(0, int32, alignment=16))
        pivots, is_upper = offset(rows, ORDER), upper != 0
        grid_dependency_wait()
        piv, words = offset(piv, batch * stride_piv), offset(words, batch * stride_words)
        a, l = offset(a, batch * stride_a * parts), offset(l, batch * stride_l * parts)
        d = offset(d, batch * stride_d * parts)
        if is_upper:
            a, a_rs, a_cs = offset(a, (n - 1) * (a_rs + a_cs) * parts), -a_rs, -a_cs
        share = int32(quotient(int32(n + blocks - 1), blocks))
        first, end = int32(min(block * share, n)), int32(min((block + 1) * share, n))
        number_rows(rows, n, t)
        is_second = follow(rows, pivots, piv, piv_step, n, is_upper, end, t)

        # (2) a column after the other
        j = int32(end - 1)
        while j >= first:
            pivot = int32(piv[(number(n, is_upper, j) - 1) * piv_step])
            was_second, is_second = is_second, pivot < 0 and not is_second
            i = int32(j + t)
            while i < n:
                at, is_coupled = (i * a_rs + j * a_cs) * parts, was_second and i == j + 1
                for part in range(parts):
                    value = a[at + part]
                    if i == j:
                        d[j * 2 * parts + part] = value
                        if not was_second:
                            d[(j * 2 + 1) * parts + part] = real(0)
                    if is_coupled:
                        d[(j * 2 + 1) * parts + part] = value
                    if i > j:
                        l[(rows[i] + j * l_cs) * parts + part] = real(0) if is_coupled else value
                i = int32(i + DIM)
            if (task & WHOLE) != 0:
                make_whole(l, l_cs, j, parts, t)
            cuda.syncthreads()
            if t == 0:
                words[j * 2 + 1] = int32(
                    FIRST_OF_TWO if was_second else (SECOND_OF_TWO if is_second else SINGLE)
                )
                interchange(rows, j, pivot, piv, piv_step, n, is_upper, was_second, is_second)
            cuda.syncthreads()
            j = int32(j - 1)

        # (3) the row of A that each row of L is
        i = int32(t)
        while i < n and first == 0:
            words[rows[i] * 2] = int32(number(n, is_upper, i) - 1)
            i = int32(i + DIM)
        if (task & FINDS_ZERO) != 0 and first == 0:
            zero = find(pivots, a, a_rs, a_cs, piv, piv_step, n, is_upper, parts, t)
            if t == 0:
                info[batch * stride_info] = int32(0) if zero < 0 else number(n, is_upper, zero)

    return ldl_triangle
