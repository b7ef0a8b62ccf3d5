"""``sytrf_panel``: L D L^H of symmetric or Hermitian matrices, whole small ones and panels of large ones.

The pivots are those of Bunch and Kaufman, as LAPACK's sytf2 chooses them, or rook pivots. Four threads have a
row. A column is computed when it is due, from columns of L (V) and of L D (W) before it. So the rest of the
matrix is read alone. A step finds the largest element of a column, and of one more where the diagonal is
small compared to it; for rook pivots of as many as the search visits. A small matrix is in shared memory. The
rows of a panel are those of several blocks, which meet once a search.

A pivot of two columns that begins in the last column of a panel takes the first one of the next panel too.
What is right of the panel is then updated by V W^H. So V and W have one column more than a panel; it is zero
where it was not needed. An upper triangle is factored from its last row on, as a lower one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP
from ...common.parameters import parameters
from ..qr.meeting import WORDS
from ..triangles.leaf_config import TriangleInShared
from .pivot_search import (
    BACK,
    BACKWARDS,
    COUNTS,
    DONE,
    END,
    FIRST,
    KK,
    KP,
    LANES,
    OTHER,
    ROOK_COUNTS,
    TEMP,
    UPPER_ROW,
    meeter,
    searcher,
    sizer,
)
from .pivot_step import column_writer, mover, number_of, publisher
from .rook_step import PUBLISHED, rook_chooser, rook_mover, rook_pivot_writer

__all__ = ["PANEL", "SPREAD", "STEM", "WHOLE", "SytrfPanel", "source"]

STEM = "sytrf_panel"
PARAMETERS = parameters(
    "int32 pointer: piv, info",
    "pointer: a, v, rows",
    "int32 pointer: state, flags",
    "int32: n, before, cols, upper, hermitian",
    "int64: piv_step, a_rs, a_cs, v_cs",
    "int64: stride_piv, stride_info, stride_a, stride_v, stride_rows, stride_state",
)
WHOLE, PANEL, SPREAD = range(3)  # a matrix; a panel of one block; a panel of several
ALPHA = (1 + 17**0.5) / 8  # Bunch and Kaufman's, which bounds the growth of elements
CANDIDATES = 4  # columns: two of this step, two of the step before
CARRIES = 2  # words: columns that a panel took of the next one, of panels with even and odd numbers


@dataclass(frozen=True)
class SytrfPanel(TriangleInShared):
    """Config of one `sytrf_panel` kernel.

    Attributes
    ----------
    dtype, DIM
        See `TriangleInShared`.
    ORDER : int
        The largest order of a whole matrix, or the columns of a panel.
    KIND : int
        WHOLE, PANEL or SPREAD.
    ROOK : bool
        Whether pivots are rook pivots; kernels of them are compiled when they are called for.
    """

    ORDER: int = 64
    DIM: int = 256
    KIND: int = WHOLE
    ROOK: bool = False

    STEM: ClassVar[str] = STEM
    ORDERS: ClassVar[tuple[int, ...]] = (32, 64)

    @property
    def padding(self) -> int:
        return 32 // self.dtype_facts.itemsize  # neighbouring rows and columns then meet different banks

    @property
    def width(self) -> int:
        """Columns of V, and of W."""
        return self.ORDER + (self.KIND != WHOLE)

    @property
    def columns(self) -> int:
        """Columns of V, W and candidates."""
        return 2 * self.width + CANDIDATES

    @property
    def shared_elements(self) -> int:
        """V, W and candidates of a whole matrix, and a word for each of two searches of a warp."""
        labels = -(-2 * 4 * self.threads // WARP // self.dtype_facts.itemsize)
        return labels + (self.columns * self.ld if self.KIND == WHOLE else 0)

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 20 * self.dtype_facts.itemsize // 4 + 64

    @property
    def variants(self) -> tuple[Self, ...]:
        return *super().variants, *(replace(self, KIND=kind) for kind in (PANEL, SPREAD))

    def panel(self, rows: int, at_most: int) -> Self:
        """The Config of panels of matrices of `rows` rows, with `at_most` blocks at a time."""
        return replace(self, KIND=PANEL if self.grid(rows, at_most) == 1 else SPREAD)

    def grid(self, rows: int, at_most: int) -> int:
        """Blocks of a panel of `rows` rows: no more than `at_most`, nor than have a row for all threads."""
        return max(min(-(-rows // (self.threads // LANES)), at_most), 1)

    def rows(self, blocks: int) -> int:
        """Elements of the rows of V and W that blocks publish."""
        return 2 * (PUBLISHED if self.ROOK else 3) * self.width * blocks

    def state(self, blocks: int) -> int:
        """Words that the panels of a matrix leave one another, and their blocks."""
        return CARRIES + 2 * blocks


def source(config: SytrfPanel) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    piv, info: int32 pointer, LAPACK's pivots and info
    a, v: pointer, A and, of a panel, ``config.columns`` columns of memory: V, W, candidates
    rows: pointer, of several blocks ``config.rows(blocks)`` elements
    state, flags: int32 pointer, of panels ``config.state(blocks)`` words, and 0 before and after
    n: int32, order of the whole matrix
    before: int32, rows before this panel
    cols: int32, columns of the panel
    upper, hermitian: int32, whether the upper triangle is stored; whether the other one is conjugated
    piv_step: int64, words from pivot to pivot
    a_rs, a_cs, v_cs: int64, row and column stride of A, column stride of V (elements)
    stride_piv, stride_info: int64, batch strides (words)
    stride_a, stride_v, stride_rows: int64, batch strides (elements)
    stride_state: int64, batch stride (words)

    Grid: x one block, or several of a panel that are all resident; z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config), cooperative=config.KIND == SPREAD)


def _loader(config: SytrfPanel):
    """``load(s, a, rs, cs, n, t)``: the lower triangle of a whole matrix to shared memory."""
    REALS, LD, DIM = config.dtype_facts.reals_per_element, config.ld, config.threads
    int32, quotient = ptx.types.int32, ptx.quotient

    @device_function
    def load(s, a, rs, cs, n, t):
        by_rows = abs(rs) > abs(cs)
        e = int32(t)
        while e < n * n:
            slow = int32(quotient(e, n))
            fast = int32(e - slow * n)
            i, j = (slow, fast) if by_rows else (fast, slow)
            if i >= j:
                for part in range(REALS):
                    s[(i + j * LD) * REALS + part] = a[(i * rs + j * cs) * REALS + part]
            e = int32(e + DIM)
        cuda.syncthreads()

    return load


def _pivot_chooser(config: SytrfPanel):
    """``choose(choice, x, n, a, rs, cs, ..., k, to, ...)``: the pivot of column k, see `_build`: its row, its
    columns, the candidate of its first one, and whether the column is zero or its diagonal no number.
    """
    facts, SPREADS = config.dtype_facts, config.KIND == SPREAD
    REALS, real, int32, divide = facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int32, ptx.divide
    search, size_of = searcher(config, SPREADS), sizer(facts)
    publish = publisher(config)

    @device_function
    def choose(
        choice, x, n, a, rs, cs, v, w, ld, step, rows, labels, state, flags, k, to, m, low, high, sign, block,
        blocks, t,
    ):  # fmt: skip
        largest = search(
            x, n, a, rs, cs, v, w, ld, step, labels, state, flags, k, k, to, m, low, high, sign, block,
            blocks, t,
        )  # fmt: skip
        diagonal, most = size_of(w, (k * step + to * ld) * REALS), real(0)
        if largest >= 0:
            most = size_of(w, (largest * step + to * ld) * REALS)
        choice[0], choice[1], choice[2] = int32(k), int32(1), int32(to)
        choice[3] = int32((diagonal != diagonal) | ((diagonal == real(0)) & (most == real(0))))
        if choice[3] == 0 and not diagonal >= real(ALPHA) * most:
            other, of_row = int32(to + 1), real(0)
            if SPREADS:
                publish(n, rows, v, w, ld, step, k, largest, low, high, block, t)
            second = search(
                x, n, a, rs, cs, v, w, ld, step, labels, state, flags, k, largest, other, m, low, high, sign,
                block, blocks, t,
            )  # fmt: skip
            if second >= 0:
                of_row = size_of(w, (second * step + other * ld) * REALS)
            if not diagonal >= real(ALPHA) * most * divide(most, of_row):
                choice[0] = largest
                if size_of(w, (largest * step + other * ld) * REALS) >= real(ALPHA) * of_row:
                    choice[2] = other
                else:
                    choice[1] = int32(2)

    return choose


def _pivot_writer():
    """``write(piv, piv_step, n, upper, first, second, other, width)``: LAPACK's numbers of the row `other`,
    with which the last row of a pivot was interchanged; rows are those of the whole matrix.
    """
    int32, number = ptx.types.int32, number_of()

    @device_function
    def write(piv, piv_step, n, upper, first, second, other, width):
        pivot = number(n, upper, other)
        if width == 2:
            pivot = int32(-pivot)
            piv[(number(n, upper, second) - 1) * piv_step] = pivot
        piv[(number(n, upper, first) - 1) * piv_step] = pivot

    return write


def _zeros(config: SytrfPanel):
    """``clear(n, v, w, ld, step, k, cols, low, high, t)``: zeros where V and W have no column, or where a
    column right of the panel needs no update.
    """
    REALS, DIM = config.dtype_facts.reals_per_element, config.threads
    real, int32 = ptx.REALS[config.dtype_facts.real], ptx.types.int32

    @device_function
    def put(v, w, at):
        for part in range(REALS):
            v[at + part] = real(0)
            w[at + part] = real(0)

    @device_function
    def clear(n, v, w, ld, step, k, cols, low, high, t):
        i = int32(max(low, cols) + t)
        while i < high:
            if n[FIRST] > 0:
                put(v, w, i * step * REALS)
            if k == cols:
                put(v, w, (i * step + cols * ld) * REALS)
            i = int32(i + DIM)
        if k > cols and low <= cols and cols < high:
            cuda.syncthreads()
            j = int32(t)
            while j <= cols:
                put(v, w, (cols * step + j * ld) * REALS)
                j = int32(j + DIM)

    return clear


def _build(config: SytrfPanel):
    facts, IS_PANEL, WIDTH, LD = config.dtype_facts, config.KIND != WHOLE, config.width, config.ld
    REALS, real, MEMORY = facts.reals_per_element, ptx.REALS[facts.real], config.columns * config.ld
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    SPREADS, ROOK = config.KIND == SPREAD, config.ROOK
    load, clear, (write_one, write_two) = _loader(config), _zeros(config), column_writer(config)
    NUMBERS, CHOICES = (ROOK_COUNTS, 6) if ROOK else (COUNTS, 4)
    choose, move, write_pivot = (
        (rook_chooser(config, SPREADS, ALPHA), rook_mover(config, SPREADS), rook_pivot_writer())
        if ROOK
        else (_pivot_chooser(config), mover(config, SPREADS), _pivot_writer())
    )
    (meet, leave), number = meeter(SPREADS), number_of()
    grid_dependency_wait, sync_warp, quotient = ptx.grid_dependency_wait, ptx.sync_warp, ptx.quotient
    LABELS = 0 if IS_PANEL else MEMORY * facts.itemsize // 4

    @device_function
    def start(counts, upper):
        for each in range(NUMBERS):
            counts[each] = int32(0)
        counts[KK] = counts[KP] = int32(-1)
        counts[BACKWARDS] = upper

    @device_function
    def pivot(local, counts, held, inside, columns, told, span, place, pivots, k, to, m, bad):
        p, x, choice = local
        matrix, rs, cs = held
        a, a_rs, a_cs = inside
        v, w, ld, step = columns
        rows, labels, exchanged, flags = told
        low, high, share, sign = span
        block, blocks, t = place
        piv, piv_step, n, before, upper = pivots
        choose(
            choice, x, counts, matrix, rs, cs, v, w, ld, step, rows, labels, exchanged, flags, k, to, m,
            low, high, sign, block, blocks, t,
        )  # fmt: skip
        kp, width, source, is_zero = choice[0], choice[1], choice[2], choice[3] != 0
        kk = int32(k + width - 1)
        if ROOK:
            first, other = choice[4], choice[5]
            if kp != kk or first != k:
                move(
                    x, counts, matrix, rs, cs, v, w, ld, step, rows, k, kk, first, kp, low, high, share, sign,
                    flags, block, blocks, t,
                )  # fmt: skip
                meet(counts, flags, blocks, t)
        elif kp != kk:
            move(x, counts, matrix, rs, cs, v, w, ld, step, rows, k, kk, kp, low, high, share, sign, t)
            meet(counts, flags, blocks, t)
        if is_zero and bad == 0:
            bad = int32(number(n, upper != 0, before + k))
        if block == 0 and t == 0:
            if ROOK:
                rows_of = before + k, before + kk, before + first, before + kp
                write_pivot(piv, piv_step, n, upper != 0, *rows_of, width)
            else:
                write_pivot(piv, piv_step, n, upper != 0, before + k, before + kk, before + kp, width)
        if width == 1:
            write_one(p, x, a, a_rs, a_cs, v, w, ld, step, k, kp, source, is_zero, low, high, t)
        elif ROOK:
            write_two(
                p, x, a, a_rs, a_cs, v, w, ld, step, k, first, kp, source, other, sign, low, high, t
            )  # fmt: skip
        else:
            write_two(
                p, x, a, a_rs, a_cs, v, w, ld, step, k, k, kp, source, source + 1, sign, low, high, t
            )  # fmt: skip
        if ROOK:
            counts[OTHER], counts[BACK] = other, int32(k if first == kk else kk)
            counts[UPPER_ROW] = int32(-1) if first == k else first
        counts[DONE], counts[KK], counts[KP], counts[TEMP] = k, kk, kp, source
        counts[END] = k if is_zero else int32(k + width)
        sync_warp()
        return width, bad

    def sytrf_panel(
        piv, info, a, v, rows, state, flags, n, before, cols, upper, hermitian, piv_step, a_rs, a_cs, v_cs,
        stride_piv, stride_info, stride_a, stride_v, stride_rows, stride_state,
    ):  # fmt: skip
        # (1) the rows of this block, from the first one of the panel on
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        block, blocks = int32(cuda.blockIdx.x), int32(cuda.gridDim.x)
        s = shared_pointer(cuda.shared.array(0, real, alignment=16))
        labels = offset(shared_pointer(cuda.shared.array(0, int32, alignment=16)), LABELS)
        p, x = cuda.local.array(10, real), cuda.local.array(8, real)
        counts, choice = cuda.local.array(NUMBERS, int32), cuda.local.array(CHOICES, int32)
        grid_dependency_wait()
        m, step, sign = int32(n - before), int32(1), real(1)
        piv, info = offset(piv, batch * stride_piv), offset(info, batch * stride_info)
        a = offset(a, batch * stride_a * REALS)
        if hermitian != 0:
            sign = real(-1)
        if upper != 0:
            a, a_rs, a_cs = offset(a, (n - 1) * (a_rs + a_cs) * REALS), -a_rs, -a_cs
        a = offset(a, before * (a_rs + a_cs) * REALS)
        start(counts, upper)
        k, bad, low, high, share = int32(0), int32(0), int32(0), m, m
        if IS_PANEL:
            share = int32(quotient(int32(m + blocks - 1), blocks))
            number_of_panel = int32(quotient(before, int32(WIDTH - 1)))
            low, high = int32(min(block * share, m)), int32(min((block + 1) * share, m))
            state, flags = offset(state, batch * stride_state), offset(flags, batch * WORDS)
            v, rows = offset(v, batch * stride_v * REALS), offset(rows, batch * stride_rows * REALS)
            if upper != 0:
                v, step = offset(v, (m - 1) * REALS), int32(-1)
            if before > 0:
                k = int32(state[number_of_panel & 1])
            matrix, rs, cs, ld = a, a_rs, a_cs, v_cs
        else:
            matrix, v, rs, cs, ld = s, s, int64(1), int64(LD), int64(LD)
            load(s, a, a_rs, a_cs, n, t)
        w, counts[FIRST], counts[DONE], counts[END] = offset(v, WIDTH * ld * REALS), k, k, k
        exchanged, to = offset(state, CARRIES), int32(WIDTH)

        # (2) a pivot after the other
        held, inside, columns = (matrix, rs, cs), (a, a_rs, a_cs), (v, w, ld, step)
        told, span = (rows, labels, exchanged, flags), (low, high, share, sign)
        place, pivots = (block, blocks, t), (piv, piv_step, n, before, upper)
        while k < cols:
            width, bad = pivot(
                (p, x, choice), counts, held, inside, columns, told, span, place, pivots, k, to, m, bad
            )
            k, to = int32(k + width), int32(2 * WIDTH + 2 - to)

        # (3) what the next panel finds
        if IS_PANEL:
            if m > cols:
                clear(counts, v, w, ld, step, k, cols, low, high, t)
            leave(flags, blocks, t)
        if block == 0 and t == 0:
            if IS_PANEL:
                state[(number_of_panel + 1) & 1] = int32(k - cols)
            if before == 0 or (bad != 0 and info[0] == 0):
                info[0] = bad

    return sytrf_panel
