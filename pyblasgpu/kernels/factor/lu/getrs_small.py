"""``getrs_small``: solutions from P L U or L L^H of up to 32 rows, of a batch as a rule, in one launch.

A lane owns a row of op(LU), in shared memory, and elements of right-hand sides in registers. It takes the
interchanges on reading or on writing. Both triangles are solved by columns: the element that is done goes to
the other lanes of the matrix by a shuffle. No inverse is formed. Of Cholesky factors one triangle is read,
and the other one is its conjugate transpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP
from ...common.options import CONJUGATE, MIRRORED, UNIT
from ...common.parameters import parameters
from .small_matrices import SmallMatrices, column_step, matrix_loader

__all__ = ["COLUMNS", "STEM", "UNLESS_FAILED", "GetrsSmall", "source"]

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


@dataclass(frozen=True)
class GetrsSmall(SmallMatrices):
    """Config of one `getrs_small` kernel; its attributes are those of `SmallMatrices`."""

    STEM: ClassVar[str] = STEM

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 2 * COLUMNS * self.dtype_facts.itemsize // 4 + 48

    @property
    def shared_bytes(self) -> int:
        """A row a thread, and an int32."""
        return self.DIM * (self.LD * self.dtype_facts.itemsize + 4)


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
    where it is not 0.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _follower(config: GetrsSmall):
    """``follow(piv, piv_step, lane_of_row, n, lane, t)``: the row that interchanges move to this lane."""
    int32, shuffle, sync_warp = ptx.types.int32, ptx.shuffle, ptx.sync_warp

    @device_function
    def follow(piv, piv_step, lane_of_row, n, lane, t, is_here):
        mine, label = int32(0), int32(lane)
        if is_here and lane < n:
            mine = int32(piv[lane * piv_step])
        i = int32(0)
        while i < n:
            pivot = int32(shuffle(mine, int32((t - lane + i) & (WARP - 1))))
            if label == i:
                label = pivot
            elif label == pivot:
                label = i
            i = int32(i + 1)
        lane_of_row[lane] = lane
        sync_warp()
        if label >= 0 and label < n:
            lane_of_row[label] = lane
        sync_warp()
        return int32(lane_of_row[lane])

    return follow


def _solver(config: GetrsSmall, columns: int):
    """``solve(x, rows, source, from_cs, b, b_cs, origin, goal, c, r, n, t, lane, ok, unit, mirrored, failed,
    sign)``: as many right-hand sides from column `c` on, read from row `origin` of `source` and written to
    row `goal` of B; as they are where the factors have `failed`.
    """
    REALS, LD, offset = config.dtype_facts.reals_per_element, config.LD, ptx.offset
    step, sync_warp, int32 = column_step(config, columns), ptx.sync_warp, ptx.types.int32
    load, store = ptx.load_global(1, False), ptx.store_global

    @device_function
    def read(q, x, b, at, b_cs, c, r, ok):
        for part in range(REALS):
            load(x, q * REALS + part, b, (at + (c + q) * b_cs) * REALS + part, ok & (c + q < r))

    @device_function
    def write(q, x, b, at, b_cs, c, r, ok):
        for part in range(REALS):
            store(b, (at + (c + q) * b_cs) * REALS + part, x[q * REALS + part], ok & (c + q < r))

    read_all, write_all = unrolled(columns, read), unrolled(columns, write)

    @device_function
    def solve(
        x, rows, source, from_cs, b, b_cs, origin, goal, c, r, n, t, lane, ok, unit, mirrored, failed, sign
    ):
        read_all(0, x, source, origin, from_cs, c, r, ok)
        j = int32(0)
        while j < n:
            at = offset(rows, int32((lane * LD + j) * REALS))
            pivot_lane, is_pivot = int32((t - lane + j) & (WARP - 1)), (lane == j) & (not unit)
            step(x, at[0], sign * at[REALS - 1], pivot_lane, is_pivot, lane > j)
            j = int32(j + 1)
        other_sign = -sign if mirrored else sign
        while j > 0:
            j = int32(j - 1)
            at = offset(rows, int32((j * LD + lane if mirrored else lane * LD + j) * REALS))
            pivot_lane, is_pivot = int32((t - lane + j) & (WARP - 1)), (lane == j) & (unit or mirrored)
            step(x, at[0], other_sign * at[REALS - 1], pivot_lane, is_pivot, lane < j)
        sync_warp()
        if failed:  # other matrices of the warp go on
            read_all(0, x, source, origin, from_cs, c, r, ok)
        write_all(0, x, b, goal, b_cs, c, r, ok)

    return solve


def _build(config: GetrsSmall):
    facts, LD, DIM = config.dtype_facts, config.LD, config.DIM
    REALS, HELD = facts.reals_per_element, COLUMNS * facts.reals_per_element
    WORDS = config.DIM * LD * facts.itemsize // 4
    real, int32, int64 = ptx.REALS[facts.real], ptx.types.int32, ptx.types.int64
    offset, shared_pointer, quotient = ptx.offset, ptx.shared_pointer, ptx.quotient
    load, follow, grid_dependency_wait = matrix_loader(config), _follower(config), ptx.grid_dependency_wait
    solve_one, solve_several = _solver(config, 1), _solver(config, COLUMNS)

    def getrs_small(
        piv, info, lu, source, b, n, r, options, lanes, count, groups,
        lu_rs, lu_cs, piv_step, from_rs, from_cs, b_rs, b_cs,
        stride_piv, stride_info, stride_lu, stride_from, stride_b
    ):  # fmt: skip
        # (1) the matrix of this group of lanes, and the row of this lane
        t, block = int32(cuda.threadIdx.x & 1023), int32(cuda.blockIdx.x)
        group, lane, share = int32(quotient(t, lanes)), int32(t & (lanes - 1)), int32(block % groups)
        matrix = int64(quotient(block, groups)) * quotient(int32(DIM), lanes) + group
        is_here, unit, sign = matrix < count, (options & UNIT) != 0, real(1)
        mirrored = (options & MIRRORED) != 0
        if (options & CONJUGATE) != 0:
            sign = real(-1)
        rows = offset(shared_pointer(cuda.shared.array(0, real, alignment=16)), group * lanes * LD * REALS)
        words = shared_pointer(cuda.shared.array(0, int32, alignment=16))
        lane_of_row = offset(words, WORDS + group * lanes)
        x = cuda.local.array(HELD, real)
        grid_dependency_wait()
        piv = offset(piv, matrix * stride_piv)
        source, b = offset(source, matrix * stride_from * REALS), offset(b, matrix * stride_b * REALS)
        lu, extent = offset(lu, matrix * stride_lu * REALS), n if is_here else 0
        load(rows, lu, lu_rs, lu_cs, extent, n, lane, lanes, mirrored)
        ok, failed = is_here & (lane < n), False
        if is_here and (options & UNLESS_FAILED) != 0:
            failed = info[matrix * stride_info] != 0

        # (2) the row that the interchanges move here: of B, or backwards where X goes
        other = int32(lane)
        if not mirrored:
            other = follow(piv, piv_step, lane_of_row, n, lane, t, is_here)
        if failed:
            other = int32(lane)
        origin = (other if unit else lane) * from_rs
        goal = (lane if unit else other) * b_rs

        # (3) both triangles, for some right-hand sides at a time
        if r == 1:
            solve_one(x, rows, source, from_cs, b, b_cs, origin, goal, 0, r, n, t, lane, ok, unit, mirrored,
                      failed, sign)  # fmt: skip
        else:
            for c in range(share * COLUMNS, r, groups * COLUMNS):
                solve_several(x, rows, source, from_cs, b, b_cs, origin, goal, c, r, n, t, lane, ok, unit,
                              mirrored, failed, sign)  # fmt: skip

    return getrs_small
