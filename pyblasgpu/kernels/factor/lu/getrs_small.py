"""``getrs_small``: solutions from P L U or L L^H of up to 64 rows, of a batch as a rule, in one launch.

A lane owns a row of op(LU), or two, in shared memory, and its elements of some right-hand sides in registers.
It takes the interchanges on reading or on writing. Both triangles are solved by columns (`small_sweeps`). Of
Cholesky factors one triangle is read, and the other one is its conjugate transpose. Kernels for the inverse,
where B is the identity, write a triangle of it in place of the factor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP
from ...common.options import CONJUGATE, MIRRORED, UNIT
from ...common.parameters import parameters
from .small_matrices import GROUPS, SmallMatrices, first_max, matrix_loader
from .small_sweeps import diagonal_inverter, shuffled_sweep, slot_sweep

__all__ = ["COLUMNS", "ORDERS", "STEM", "UNLESS_FAILED", "WIDEST", "GetrsSmall", "source"]

STEM = "getrs_small"
PARAMETERS = parameters(
    "int32 pointer: piv, info",
    "pointer: lu, source, b",
    "int32: n, r, options, lanes, count, groups",
    "int64: lu_rs, lu_cs, piv_step, from_rs, from_cs, b_rs, b_cs",
    "int64: stride_piv, stride_info, stride_lu, stride_from, stride_b",
)
UNLESS_FAILED = 1 << 20  # an option: X is B where info is not 0
COLUMNS = 4  # right-hand sides that a lane has at a time, where there is more than one
ORDERS = (16, 32, 64)  # of matrices
WIDEST = 16  # bytes of an element: with shorter rows of these, more warps are resident


@dataclass(frozen=True)
class GetrsSmall(SmallMatrices):
    """Config of one `getrs_small` kernel.

    Attributes
    ----------
    dtype, DIM
        See `SmallMatrices`.
    ORDER : int
        The most rows of a matrix.
    INVERTS : bool
        Whether B is the identity, of Cholesky factors of the fewest rows: other kernels have nothing of it.
    """

    ORDER: int = 32
    INVERTS: bool = False

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.ORDER in ORDERS, "order", f"ORDER in {ORDERS}", ORDER=self.ORDER)
        if self.INVERTS:
            require(self.ORDER <= WARP, "inverse", f"ORDER <= {WARP}", ORDER=self.ORDER)

    def specialize(self, order: int, inverts: bool = False) -> Self:
        """The Config for matrices of `order` rows, which it solves or `inverts`."""
        fitting = next(each for each in self.orders if order <= each)
        return replace(self, ORDER=fitting, DIM=self.DIM if fitting <= WARP else WARP, INVERTS=inverts)

    @property
    def orders(self) -> tuple[int, ...]:
        """Orders of this dtype's kernels."""
        return ORDERS if self.dtype_facts.itemsize == WIDEST else ORDERS[1:]

    @property
    def variants(self) -> tuple[Self, ...]:
        return *(self.specialize(order) for order in self.orders), self.specialize(1, inverts=True)

    @property
    def divides(self) -> bool:
        """Whether the lane of a row of X divides it: a division of single reals takes less than what passes
        it on.
        """
        return self.dtype == "s" and self.ORDER <= WARP

    @staticmethod
    def lanes(rows: int) -> int:
        """Lanes of a matrix of `rows` rows."""
        return SmallMatrices.lanes(min(rows, WARP))

    @property
    def LD(self) -> int:  # type: ignore[override]
        """Elements from row to row in shared memory: odd, against bank conflicts; a reciprocal ends it."""
        return self.ORDER + 1

    @property
    def rows_of_lane(self) -> int:
        """Rows of a matrix that a lane owns."""
        return max(self.ORDER // WARP, 1)

    @property
    def rows(self) -> int:
        """Rows that the threads own."""
        return self.DIM * self.rows_of_lane

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return (1 + self.rows_of_lane) * COLUMNS * self.dtype_facts.itemsize // 4 + 56

    @property
    def elements(self) -> tuple[int, int]:
        """Elements of shared memory: of rows of op(LU), of rows of X, two a matrix."""
        return self.rows * self.LD, 0 if self.divides else self.DIM // GROUPS[0] * 2 * COLUMNS

    @property
    def shared_bytes(self) -> int:
        """Bytes of the elements, and an int32 a row."""
        return sum(self.elements) * self.dtype_facts.itemsize + self.rows * 4


def source(config: GetrsSmall) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    piv, info: int32 pointer, pivots, and the info of the factors
    lu, source, b: pointer, op(LU), B and X, which may replace it
    n, r: int32, rows, right-hand sides
    options: int32, see the notes
    lanes: int32, lanes of a matrix, ``config.lanes(rows)``
    count: int32, matrices
    groups: int32, groups of lanes that share the right-hand sides of a matrix
    lu_rs, lu_cs: int64, row and column stride of op(LU) (elements)
    piv_step: int64, words from pivot to pivot
    from_rs, from_cs, b_rs, b_cs: int64, row and column stride of B, of X (elements)
    stride_piv, stride_info: int64, batch strides of pivots, of info (words)
    stride_lu, stride_from, stride_b: int64, batch strides (elements)

    Grid: x ``config.grid(rows, matrices)`` times the groups for each.

    Notes
    -----
    The options (`options`) say whether the lower triangle has a diagonal of ones, and rows of B are
    interchanged, else the upper one, and rows of X are interchanged backwards; whether op(LU) is conjugated;
    whether the matrix is mirrored, a Cholesky factor L that needs no pivots; whether info is read, and X is B
    where it is not 0. Kernels with INVERTS take a mirrored matrix alone, and do not read B. Then info becomes
    0, and X is written up to its diagonal; or the number, from 1, of the first zero on the diagonal of L, and
    nothing is written.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _follower(config: GetrsSmall):
    """``follow(others, piv, piv_step, row_of_label, n, lane, t, is_here)``: the rows that interchanges move
    to those of this lane.
    """
    int32, shuffle, sync_warp, OWN = ptx.types.int32, ptx.shuffle, ptx.sync_warp, config.rows_of_lane

    @device_function
    def follow(others, piv, piv_step, row_of_label, n, lane, t, is_here):
        mine, label = cuda.local.array(OWN, int32), cuda.local.array(OWN, int32)
        for s in range(OWN):
            row = int32(lane + s * WARP)
            mine[s], label[s] = int32(0), row
            if is_here and row < n:
                mine[s] = int32(piv[row * piv_step])
        i = int32(0)
        while i < n:
            pivot = int32(shuffle(mine[0] if i < WARP else mine[OWN - 1], int32((t - lane + i) & (WARP - 1))))
            for s in range(OWN):
                if label[s] == i:
                    label[s] = pivot
                elif label[s] == pivot:
                    label[s] = i
            i = int32(i + 1)
        for s in range(OWN):
            row_of_label[lane + s * WARP] = lane + s * WARP
        sync_warp()
        for s in range(OWN):
            if label[s] >= 0 and label[s] < n:
                row_of_label[label[s]] = lane + s * WARP
        sync_warp()
        for s in range(OWN):
            others[s] = int32(row_of_label[lane + s * WARP])

    return follow


def _mover(config: GetrsSmall, columns: int):
    """``read(0, x, held, source, at, from_cs, c, r, ok)``: a row of B from column `c` on; ``unit(0, x, held,
    c, row)``: of the identity; ``write(...)``: of X, if it is an inverse up to its diagonal, which is real.
    """
    facts, load, store = config.dtype_facts, ptx.load_global(1, False), ptx.store_global
    REALS, real, select = facts.reals_per_element, ptx.REALS[facts.real], ptx.select
    INVERTS = config.INVERTS

    @device_function
    def read(q, x, held, b, at, b_cs, c, r, ok):
        for part in range(REALS):
            load(x, held + q * REALS + part, b, (at + (c + q) * b_cs) * REALS + part, ok & (c + q < r))

    @device_function
    def unit(q, x, held, c, row):
        for part in range(REALS):
            x[held + q * REALS + part] = select((row == c + q) & (part == 0), real(1), real(0))

    @device_function
    def write(q, x, held, b, at, b_cs, c, r, ok, row):
        ok = ok & (c + q < r)
        if INVERTS:
            ok = ok & (row >= c + q)
        for part in range(REALS):
            value = x[held + q * REALS + part]
            if INVERTS and part == 1:
                value = select(row == c + q, real(0), value)
            store(b, (at + (c + q) * b_cs) * REALS + part, value, ok)

    return unrolled(columns, read), unrolled(columns, unit), unrolled(columns, write)


def _solver(config: GetrsSmall, columns: int):
    """``solve(...)``: as many right-hand sides from column `c` on, read from rows `origin` of `source` and
    written to rows `goal` of B; as they are where the factors have `failed`.
    """
    REALS, OWN, INVERTS = config.dtype_facts.reals_per_element, config.rows_of_lane, config.INVERTS
    HAS_SLOTS = OWN > 1 or (columns > 1 and not config.divides)
    sweeps = slot_sweep if HAS_SLOTS else shuffled_sweep
    forward, backward = sweeps(config, columns, COLUMNS, False), sweeps(config, columns, COLUMNS, True)
    (read, unit_row, write), HELD = _mover(config, columns), columns * REALS
    int32, sync_warp = ptx.types.int32, ptx.sync_warp

    @device_function
    def read_rows(x, source, from_cs, origin, c, r, n, lane, is_here):
        for s in range(OWN):
            ok = is_here & (lane + s * WARP < n)
            read(0, x, s * HELD, source, origin[s], from_cs, c, r, ok)

    @device_function
    def solve(
        x, element, y, rows, slots, source, from_cs, b, b_cs, origin, goal, c, r, n, t, lane,
        is_here, unit, mirrored, failed, sign
    ):  # fmt: skip
        first, other_sign = int32(c if INVERTS else 0), -sign if mirrored else sign
        if INVERTS:
            unit_row(0, x, 0, c, lane)
        else:
            read_rows(x, source, from_cs, origin, c, r, n, lane, is_here)
        forward(x, element, y, rows, slots, first, n, t, lane, not unit, False, sign)
        if HAS_SLOTS:
            sync_warp()
        backward(x, element, y, rows, slots, first, n, t, lane, unit or mirrored, mirrored, other_sign)
        sync_warp()
        if failed and not INVERTS:  # other matrices of the warp go on
            read_rows(x, source, from_cs, origin, c, r, n, lane, is_here)
        for s in range(OWN):
            row = int32(lane + s * WARP)
            ok = is_here & (row < n) & (not (failed & INVERTS))
            write(0, x, s * HELD, b, goal[s], b_cs, c, r, ok, row)

    return solve


def _build(config: GetrsSmall):
    facts, LD, DIM, OWN = config.dtype_facts, config.LD, config.DIM, config.rows_of_lane
    REALS, WORDS = facts.reals_per_element, sum(config.elements) * facts.itemsize // 4
    HELD, OWNED, SLOT, SLOTS = (
        REALS * each for each in (COLUMNS * OWN, OWN, 2 * COLUMNS, config.elements[0])
    )
    real, int32, int64 = ptx.REALS[facts.real], ptx.types.int32, ptx.types.int64
    offset, shared_pointer, quotient = ptx.offset, ptx.shared_pointer, ptx.quotient
    load, follow, invert = matrix_loader(config), _follower(config), diagonal_inverter(config)
    solve_one, solve_several, find = _solver(config, 1), _solver(config, COLUMNS), first_max(config)
    RECIPROCALS, INVERTS = not config.divides, config.INVERTS
    grid_dependency_wait, NO_LABEL = ptx.grid_dependency_wait, ptx.NO_LABEL

    def getrs_small(
        piv, info, lu, source, b, n, r, options, lanes, count, groups,
        lu_rs, lu_cs, piv_step, from_rs, from_cs, b_rs, b_cs,
        stride_piv, stride_info, stride_lu, stride_from, stride_b
    ):  # fmt: skip
        # (1) the matrix of this group of lanes, and the rows of this lane
        t, block = int32(cuda.threadIdx.x & 1023), int32(cuda.blockIdx.x)
        group, lane, share = int32(quotient(t, lanes)), int32(t & (lanes - 1)), int32(block % groups)
        matrix = int64(quotient(block, groups)) * quotient(int32(DIM), lanes) + group
        is_here, unit, sign = matrix < count, (options & UNIT) != 0, real(1)
        mirrored = (options & MIRRORED) != 0
        if (options & CONJUGATE) != 0:
            sign = real(-1)
        shared, top = shared_pointer(cuda.shared.array(0, real, alignment=16)), int32(group * lanes * OWN)
        rows, slots = offset(shared, top * (LD * REALS)), offset(shared, SLOTS + group * SLOT)
        words = cuda.shared.array(0, int32, alignment=16)
        row_of_label, others = offset(shared_pointer(words), WORDS + top), cuda.local.array(OWN, int32)
        x, element = cuda.local.array(HELD, real), cuda.local.array(OWNED, real)
        y, origin = cuda.local.array(REALS, real), cuda.local.array(OWN, int64)
        goal = cuda.local.array(OWN, int64)
        grid_dependency_wait()
        piv, info = offset(piv, matrix * stride_piv), offset(info, matrix * stride_info)
        source, b = offset(source, matrix * stride_from * REALS), offset(b, matrix * stride_b * REALS)
        lu, extent = offset(lu, matrix * stride_lu * REALS), n if is_here else 0
        load(rows, lu, lu_rs, lu_cs, extent, n, lane, lanes, mirrored)
        failed = False
        if RECIPROCALS:
            invert(rows, lane)
        if is_here and (options & UNLESS_FAILED) != 0:
            failed = info[0] != 0
        if INVERTS:
            at = int32(lane * (LD + 1) * REALS)
            is_zero = (rows[at] == real(0)) & (rows[at + REALS - 1] == real(0))
            first = find(real(1), lane, is_zero & is_here & (lane < n), lanes)
            failed = first != NO_LABEL
            if is_here & (lane == 0):
                info[0] = int32(first + 1) if failed else int32(0)

        # (2) the rows that the interchanges move here: of B, or backwards where X goes
        for s in range(OWN):
            others[s] = int32(lane + s * WARP)
        if not mirrored:
            follow(others, piv, piv_step, row_of_label, n, lane, t, is_here)
        if failed:
            for s in range(OWN):
                others[s] = int32(lane + s * WARP)
        for s in range(OWN):
            row = int32(lane + s * WARP)
            origin[s] = int64(others[s] if unit else row) * from_rs
            goal[s] = int64(row if unit else others[s]) * b_rs

        # (3) both triangles, for some right-hand sides at a time
        if r == 1:
            solve_one(x, element, y, rows, slots, source, from_cs, b, b_cs, origin, goal, 0, r, n,
                      t, lane, is_here, unit, mirrored, failed, sign)  # fmt: skip
        else:
            for c in range(share * COLUMNS, r, groups * COLUMNS):
                solve_several(x, element, y, rows, slots, source, from_cs, b, b_cs, origin, goal,
                              c, r, n, t, lane, is_here, unit, mirrored, failed, sign)  # fmt: skip

    return getrs_small
