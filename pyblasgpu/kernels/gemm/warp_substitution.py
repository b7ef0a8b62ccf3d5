"""Substitution by the threads of a block together: by groups of unknowns, one after the other.

Some lanes of a warp *share* a right-hand side, and have some rows each of every group. All of them solve a
group alike, in registers, from the panel; then each takes it off its own rows of the groups that follow, and
puts those of the next one into the panel. So a group costs the substitution of its few unknowns and no
barrier of the block, where one thread would take it off all that follows, with most of the block idle.

The triangle is row-major in shared memory, divided by its diagonal (`diagonal_solve`).
"""

from __future__ import annotations

from types import SimpleNamespace

from ...gpu.backend import device_function, in_order, ptx, unrolled
from ...types import Dtype
from ..common.substitution import subtracter
from .fused import group_of

__all__ = ["group_solver"]


def _registers(facts: Dtype, count: int, shares: int) -> SimpleNamespace:
    """Return the offsets in registers of a group's unknowns, a line of T, its corner, by rows, and the own
    rows.
    """
    group = group_of(facts)
    size = group * facts.reals_per_element
    corner, mine, own = 2 * size, (2 + group) * size, count // shares * facts.reals_per_element
    return SimpleNamespace(unknowns=0, line=size, corner=corner, mine=mine, all=mine + own)


def _within(facts: Dtype, layout: SimpleNamespace, at: SimpleNamespace):
    """``load(column, here)``: the corner at `here`; ``eliminate(column)``: a group's unknowns by it."""
    REALS, GROUP, take_off = facts.reals_per_element, group_of(facts), subtracter(facts)
    LD = layout.ld
    X, CORNER, SIZE, WIDTH = at.unknowns, at.corner, GROUP * REALS, 16 // facts.real_size

    def row_loader(i):
        load = ptx.load_shared(WIDTH, -(-i * REALS // WIDTH), WIDTH)

        @device_function
        def load_row(column, here):
            load(column, CORNER + i * SIZE, here, i * LD * REALS)

        return load_row

    def eliminator(j):
        @device_function
        def subtract_below(e, column):
            i = j + 1 + e
            take_off(column, X + i * REALS, column, CORNER + i * SIZE + j * REALS, column, X + j * REALS)

        off_all_below = unrolled(GROUP - 1 - j, subtract_below)

        @device_function
        def eliminate(column):
            off_all_below(0, column)

        return eliminate

    load = in_order([row_loader(i) for i in range(1, GROUP)])
    return load, in_order([eliminator(j) for j in range(GROUP - 1)])


def _own_rows(facts: Dtype, layout: SimpleNamespace, at: SimpleNamespace, group: int):
    """``update(column, own)``, twice: the solved `group` taken off the rows that this thread has of the next
    one, and of those behind it. Its first row of T is at `own`.
    """
    REALS, GROUP, LD, take_off = facts.reals_per_element, group_of(facts), layout.ld, subtracter(facts)
    X, LINE, HAS, WIDTH = at.unknowns, at.line, GROUP // layout.shares, 16 // facts.real_size
    load = ptx.load_shared(WIDTH, GROUP * REALS // WIDTH, WIDTH)

    @device_function
    def one(k, column, row):
        take_off(column, row, column, LINE + k * REALS, column, X + k * REALS)

    line_off = unrolled(GROUP, one)

    def of_row(number):
        later, e = divmod(number, HAS)
        row = at.mine + ((group + 1) * HAS + number) * REALS
        start = ((group + 1 + later) * GROUP + e) * LD + group * GROUP

        @device_function
        def update(column, own):
            load(column, LINE, own, start * REALS)
            line_off(0, column, row)

        return update

    left = (layout.count // GROUP - 1 - group) * HAS
    rows = [of_row(number) for number in range(left)]
    nothing = device_function(_nothing)
    return in_order(rows[:HAS] or [nothing]), in_order(rows[HAS:] or [nothing])


def _nothing(column, own):
    pass


def _own_values(facts: Dtype, layout: SimpleNamespace, at: SimpleNamespace, down: bool):
    """``fetch(0, column, mine)``, ``store_to_smem(0, column, mine)``: this thread's rows of all groups, its
    first one at `mine`, to its registers and back; ``fetch_group(0, column, side, g)``: all rows of a group.
    """
    REALS, GROUP, SIGN = facts.reals_per_element, group_of(facts), 1 if down else -1
    HAS, UNKNOWN, MINE, X = GROUP // layout.shares, layout.unknown, at.mine, at.unknowns
    load, store = ptx.load_shared(REALS), ptx.store_shared(REALS)

    @device_function
    def fetch(e, column, mine):
        load(column, MINE + e * REALS, mine, SIGN * (e // HAS * GROUP + e % HAS) * UNKNOWN)

    @device_function
    def store_to_smem(e, column, mine):
        store(mine, SIGN * (e // HAS * GROUP + e % HAS) * UNKNOWN, column, MINE + e * REALS)

    @device_function
    def fetch_one(p, column, side, g):
        load(column, X + p * REALS, side, SIGN * (g * GROUP + p) * UNKNOWN)

    return fetch, store_to_smem, unrolled(GROUP, fetch_one)


def _chooser(facts: Dtype, layout: SimpleNamespace, at: SimpleNamespace):
    """``choose(e, column, share, g)``: of the solved group the e-th row that is this thread's own, to its
    registers, which no index that is not constant may address.
    """
    REALS, SHARES, X, MINE, select = facts.reals_per_element, layout.shares, at.unknowns, at.mine, ptx.select
    HAS = group_of(facts) // SHARES

    @device_function
    def choose(e, column, share, g):
        for part in range(REALS):
            value = column[X + e * REALS + part]
            for other in range(1, SHARES):
                value = select(share == other, column[X + (other * HAS + e) * REALS + part], value)
            column[MINE + (g * HAS + e) * REALS + part] = value

    return unrolled(HAS, choose)


def group_solver(facts: Dtype, threads: int, layout: SimpleNamespace, down: bool) -> SimpleNamespace:
    """Return the solver of a k-tile by groups of threads.

    Parameters
    ----------
    facts : Dtype
    threads : int
        Threads of the block.
    layout : SimpleNamespace
        Layout of the panel and the triangle, by `diagonal_solve`.
    down : bool
        Whether the first unknown is solved first.

    Returns
    -------
    SimpleNamespace
        `registers`: reals of a thread; `solve`: ``solve(panel, triangle, column, t)``, all right-hand sides;
        whether one of this thread's came out not finite: that stays so down to the last unknown.
    """
    SIDES, SHARES, SIDE, UNKNOWN = layout.sides, layout.shares, layout.side, layout.unknown
    REALS = facts.reals_per_element
    GROUP, SIGN, ALL = group_of(facts), 1 if down else -1, threads == SIDES * SHARES
    FIRST, HAS, OWN = 0 if down else layout.count - 1, GROUP // SHARES, layout.count // SHARES
    at, real, INFINITY = _registers(facts, layout.count, SHARES), ptx.REALS[facts.real], float("inf")
    LAST, LINES = at.unknowns + (GROUP - 1) * REALS, HAS * layout.ld * REALS
    int32, uint32, offset = ptx.types.int32, ptx.types.uint32, ptx.offset
    device_functions = _device_functions(facts, layout, at, down)
    fetch_own, store_own = (
        unrolled(OWN, device_functions.fetch),
        unrolled(OWN, device_functions.store_to_smem),
    )
    load_corner = device_functions.load_corner
    groups = range(layout.count // GROUP)
    solve_groups = in_order([_group_step(facts, layout, at, device_functions, group) for group in groups])

    @device_function
    def solve(panel, triangle, column, t):
        number, share = int32(uint32(t) // uint32(SHARES)), int32(uint32(t) % uint32(SHARES))
        works = True if ALL else number < SIDES
        side, own = offset(panel, number * SIDE + FIRST * UNKNOWN), offset(triangle, share * LINES)
        mine = offset(side, SIGN * share * (HAS * UNKNOWN))
        if works:
            load_corner(column, triangle)
            fetch_own(0, column, mine)
        solve_groups(column, side, mine, triangle, own, share, works)
        non_finite = int32(0)
        if works:
            store_own(0, column, mine)
            size = max(abs(column[LAST]), abs(column[LAST + REALS - 1]))
            non_finite = int32(0 if size < real(INFINITY) else 1)
        return non_finite

    return SimpleNamespace(registers=at.all, solve=solve)


def _device_functions(
    facts: Dtype, layout: SimpleNamespace, at: SimpleNamespace, down: bool
) -> SimpleNamespace:
    """Return the device functions that all groups share."""
    load_corner, eliminate = _within(facts, layout, at)
    fetch, store_to_smem, fetch_group = _own_values(facts, layout, at, down)
    return SimpleNamespace(
        load_corner=load_corner,
        eliminate=eliminate,
        fetch=fetch,
        store_to_smem=store_to_smem,
        fetch_group=fetch_group,
        choose=_chooser(facts, layout, at),
    )


def _group_step(
    facts: Dtype, layout: SimpleNamespace, at: SimpleNamespace, device_functions: SimpleNamespace, group: int
):
    """``solve_group(column, side, mine, triangle, own, share, works)``: one group, by the lanes that have it;
    what the next one needs of T is loaded meanwhile.
    """
    GROUP, sync_warp, offset = group_of(facts), ptx.sync_warp, ptx.offset
    HAS = GROUP // layout.shares
    IS_LAST, NEXT = (
        group == layout.count // GROUP - 1,
        (group + 1) * GROUP * (layout.ld + 1) * facts.reals_per_element,
    )
    next_rows, later_rows = _own_rows(facts, layout, at, group)
    load_corner, eliminate, choose = (
        device_functions.load_corner,
        device_functions.eliminate,
        device_functions.choose,
    )
    fetch_group, store_to_smem = device_functions.fetch_group, device_functions.store_to_smem

    @device_function
    def store_next(e, column, mine):
        store_to_smem((group + 1) * HAS + e, column, mine)

    put = unrolled(HAS, store_next)

    @device_function
    def solve_group(column, side, mine, triangle, own, share, works):
        if works:
            fetch_group(0, column, side, group)
            eliminate(column)
            choose(0, column, share, group)
            if not IS_LAST:
                next_rows(column, own)
                put(0, column, mine)
                load_corner(column, offset(triangle, NEXT))
                later_rows(column, own)
        sync_warp()

    return solve_group
