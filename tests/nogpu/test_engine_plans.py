"""What is decided before a list runs: which card has which tiles, how large these are, in which order."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from tiled_runs import KINDS, problem

from pyblasgpu.database.policy import reference
from pyblasgpu.engine.matrices import TileLayout
from pyblasgpu.engine.order import by_blocks, by_columns_of_b, by_lines_of_factor, by_panels
from pyblasgpu.engine.placement import card_grid, deal, owners_of
from pyblasgpu.engine.tile_cache import TileCache, uses_by_card
from pyblasgpu.engine.tile_size import tile_orders
from pyblasgpu.frontend.calls.tiled_plan import can_hold_output
from pyblasgpu.frontend.calls.tiled_routines import TiledRoutine, has_lines, inner_extent
from pyblasgpu.tasks import cut, dependencies, flops, gemm, getrf, potrf, syrk, trmm, trsm
from pyblasgpu.types import DTYPES, Side, Trans, Uplo

GIB = 1 << 30


def test_blocks_are_dealt_by_weight():
    assert deal([4] * 6, [1, 1]) == [0, 1, 0, 1, 0, 1]
    counts = Counter(deal([4] * 60, [3, 1, 2]))
    assert [counts[index] for index in range(3)] == [30, 10, 20]
    assert deal([5], [1, 1, 1]) == [0]


@pytest.mark.parametrize(
    ("count", "grid"), [(1, (1, 1)), (2, (1, 2)), (4, (2, 2)), (6, (2, 3)), (7, (1, 7)), (8, (2, 4))]
)
def test_cards_as_a_grid(count, grid):
    assert card_grid(count) == grid


def test_a_triangular_routine_deals_lines_that_are_independent():
    for side in Side:
        tasks = trsm(cut(64, 8), cut(64, 8), side, Uplo.LOWER)
        owners = owners_of(tasks, [1, 1, 1], side)
        line = {Side.LEFT: "col", Side.RIGHT: "row"}[side]
        dealt = {
            (getattr(task.writes[0], line), owner) for task, owner in zip(tasks.tasks, owners, strict=True)
        }
        assert len(dealt) == 8 and set(owners) == {0, 1, 2}


@pytest.mark.parametrize("count", [2, 4, 8])
def test_tiles_are_dealt_evenly_in_two_dimensions(count):
    n = cut(160, 10)
    for tasks in (gemm(n, n, n), syrk(n, n, Uplo.LOWER), potrf(n * 2, Uplo.LOWER)):
        owners = owners_of(tasks, [1] * count)
        assert max(Counter(owners).values()) <= 1.35 * len(owners) / count
    for tasks in (syrk(n, n, Uplo.LOWER), potrf(n * 2, Uplo.LOWER)):
        work = Counter()
        for task, owner in zip(tasks.tasks, owners_of(tasks, [1] * count), strict=True):
            work[owner] += flops(tasks, task)
        assert max(work.values()) <= 1.02 * sum(work.values()) / count
    tasks = gemm(n, n, n)
    needs = uses_by_card(tasks.tasks, owners_of(tasks, [1] * count))
    rows, cols = card_grid(count)
    assert [len(needs[index]) for index in range(count)] == [256 // rows + 256 // cols + 256 // count] * count


#: By routine which of its extents is summed over, of triangular ones from the left.
INNER = {"gemm": 2, "syrk": 1, "trsm": 0, "trmm": 0}


def order_of(routine: str, n: int, limit: int = 64 * GIB, cards: int = 1, letter: str = "d") -> int:
    return tile_orders(routine, (n, n), letter, limit, cards)[0]


def test_the_size_of_tiles():
    sizes = {n: order_of("gemm", n) for n in (100, 1000, 4096, 8192, 16384, 40000)}
    assert sizes == {100: 128, 1000: 1024, 4096: 2048, 8192: 4096, 16384: 4096, 40000: 4096}
    assert order_of("gemm", 8192, letter="s") == 2048  # its lines are short
    assert [order_of("gemm", n) for n in (2047, 2048, 3000)] == [2048, 1024, 1536]
    # with little memory, or many cards, smaller
    assert order_of("gemm", 40000, 1 << 28) == 1024
    assert [order_of("gemm", 16384, cards=cards) for cards in (2, 4, 8)] == [4096, 2048, 2048]
    assert [order_of("potrf", 16384, cards=cards) for cards in (1, 2, 8)] == [2048, 2048, 2048]
    assert [order_of("potrf", 32768, cards=cards) for cards in (1, 4, 8)] == [4096, 3072, 3072]
    assert order_of("potrf", 65536, cards=4) == 4096
    assert order_of("potrf", 4096) == 1024
    assert order_of("gemm", 16384, 1 << 20, letter="z") == 256


def test_an_output_is_held_in_a_quarter_of_the_memory():
    assert can_hold_output(255, 1024, 1) and not can_hold_output(256, 1024, 1)
    assert can_hold_output(1023, 1024, 4) and not can_hold_output(1024, 1024, 4)


def test_the_inner_dimension_of_syrk_is_cut_less_finely():
    assert tile_orders("syrk", (4096, 4096), "d", 64 * GIB, 1, inner=1) == (1024, 2048)
    assert tile_orders("syrk", (16384, 100), "d", 64 * GIB, 1, inner=1) == (4096, 4096)
    assert tile_orders("syrk", (1000, 500), "d", 64 * GIB, 1, inner=1) == (1024, 1024)


def test_the_inner_dimension_is_cut_less_finely_on_several_cards():
    """Where the output is large and the memory holds them."""
    cube, square = (16384,) * 3, (16384,) * 2
    assert tile_orders("gemm", cube, "d", 64 * GIB, 4, inner=2) == (2048, 2048, 4096)
    assert tile_orders("gemm", cube, "d", 64 * GIB, 2, inner=2) == (4096,) * 3
    assert tile_orders("trsm", square, "d", 64 * GIB, 4, inner=0) == (4096, 2048)
    assert tile_orders("trmm", square, "s", 64 * GIB, 8, inner=1) == (2048, 4096)
    assert tile_orders("gemm", (8192,) * 3, "d", 64 * GIB, 4, inner=2) == (2048,) * 3
    assert tile_orders("gemm", cube, "d", 1 << 28, 4, inner=2) == (1024,) * 3
    assert tile_orders("gemm", cube, "d", 3 << 29, 4, inner=2) == (2048, 2048, 4096)  # 24 tiles, exactly
    assert tile_orders("gemm", cube, "d", (3 << 29) - 8, 4, inner=2) == (2048,) * 3
    assert tile_orders("trsm", square, "d", 3 << 29, 4, inner=0) == (2048, 2048)
    assert tile_orders("gemm", (16384, 16384, 6000), "d", 64 * GIB, 4, inner=2) == (2048, 2048, 3008)
    assert tile_orders("trsm", (16384, 4096), "d", 64 * GIB, 4, inner=0) == (2048, 2048)
    assert tile_orders("gemm", (4096, 4096, 16384), "d", 64 * GIB, 4, inner=2) == (2048,) * 3
    assert tile_orders("gemm", cube, "d", 64 * GIB, 3, inner=2) == (2048,) * 3
    assert tile_orders("syrk", square, "d", 64 * GIB, 4, inner=1) == (2048, 4096)
    assert tile_orders("gemm", cube, "d", 64 * GIB, 1, inner=2) == (4096,) * 3


def test_dimensions_without_lines_are_cut_finely():
    """Double precision is cut so while transfers bind."""
    lined = (True, False, True)

    def orders(routine, n, letter="d", limit=64 * GIB, cards=1):
        count = 3 if routine == "gemm" else 2
        longest = reference().narrow_tiles_max_order.get(letter, 0)
        return tile_orders(
            routine, (n,) * count, letter, limit, cards, lined[:count], INNER[routine], longest
        )

    assert orders("gemm", 8192) == (4096, 1024, 4096)
    assert orders("gemm", 4096) == (2048, 512, 4096)  # a tile is finished by one task
    assert orders("trsm", 4096) == (2048, 1024) and orders("trmm", 4096) == (2048, 512)
    assert orders("syrk", 16384) == (4096, 4096)
    assert orders("syrk", 4096) == (1024, 2048)
    assert orders("gemm", 8192, limit=1 << 20) == (256,) * 3
    assert orders("gemm", 16384) == (4096,) * 3
    assert orders("gemm", 8192, "s") == (2048,) * 3 == orders("gemm", 8192, cards=2)
    factors = [tile_orders("potrf", (n,), "d", 64 * GIB, 1) for n in (4096, 8192, 16384, 32768)]
    assert factors == [(1024,), (2048,), (2048,), (4096,)]
    all_lined = (True, True, False)
    assert tile_orders("gemm", (4096,) * 3, "d", 64 * GIB, 1, all_lined, None, 8192) == (2048,) * 3


def test_triangles_have_lines_that_are_not_short():
    """Where they are far apart, in double precision, while transfers matter."""

    def orders(routine, n, letter="d", cards=1, lined=(True, False), limit=64 * GIB):
        count = 1 if routine == "potrf" else 2
        longest = reference().narrow_tiles_max_order.get(letter, 0)
        inner = INNER.get(routine)
        return tile_orders(routine, (n,) * count, letter, limit, cards, lined[:count], inner, longest)

    assert orders("syrk", 8192) == (2752, 1024) and orders("syrk", 8192, lined=(True, True)) == (2752, 2752)
    assert orders("syrk", 4096) == (1024, 2048) and orders("syrk", 8192, "s") == (2048, 2048)
    assert [orders("potrf", n) for n in (4096, 8192, 16384, 32768)] == [(1024,), (2752,), (2752,), (4096,)]
    assert orders("potrf", 8192, limit=1 << 30) == (2048,) == orders("potrf", 16384, cards=2)


def test_cards_get_equally_many_large_tiles():
    def order(routine, extents, cards, letter="d", limit=64 * GIB):
        inner = INNER[routine]
        return tile_orders(routine, extents, letter, limit, cards, inner=inner)[inner - 1]

    assert order("gemm", (20480,) * 3, 2) == 3456 == order("trsm", (20480,) * 2, 2)  # six, not five
    assert order("trsm", (40000,) * 2, 4) == 3456 and order("gemm", (40000,) * 3, 4) == 4096
    assert order("trmm", (28672,) * 2, 3) == 3200
    assert order("trsm", (20480, 16384), 2) == 4096  # columns are dealt
    assert order("gemm", (24576,) * 3, 2) == 4096 and order("gemm", (30000,) * 3, 1) == 4096
    assert order("syrk", (20480,) * 2, 2) == 4096  # rows and columns are dealt by their work
    assert order("gemm", (10240,) * 3, 2) == 2048 and order("gemm", (20480,) * 3, 2, limit=1 << 30) == 2048


def empty_matrix(order: str) -> np.ndarray:
    return np.zeros((5, 7), order=order)


@pytest.mark.parametrize(
    ("routine", "flags", "orders", "expected"),
    [
        ("gemm", {"trans_a": Trans.NO, "trans_b": Trans.NO}, "FFF", (True, False, True)),
        ("gemm", {"trans_a": Trans.NO, "trans_b": Trans.NO}, "CCC", (False, True, True)),
        ("gemm", {"trans_a": Trans.TRANS, "trans_b": Trans.NO}, "FFF", (True, False, True)),
        ("gemm", {"trans_a": Trans.NO, "trans_b": Trans.CONJ}, "FFF", (True, True, False)),
        ("gemm", {"trans_a": Trans.NO, "trans_b": Trans.NO}, "CFF", (True, False, True)),
        ("syrk", {"trans": Trans.NO}, "FF", (True, False)),
        ("syrk", {"trans": Trans.TRANS}, "FC", (True, True)),
        ("symm", {"side": Side.RIGHT}, "FCC", (False, True)),
        ("symm", {"side": Side.LEFT}, "FFC", (True, True)),
        ("trsm", {"side": Side.LEFT}, "CF", (True, False)),
        ("trmm", {"side": Side.RIGHT}, "CC", (False, True)),
        ("potrf", {}, "F", (True,)),
        ("potrs", {}, "FF", (True, False)),
    ],
)
def test_which_dimensions_have_lines(routine, flags, orders, expected):
    tiled = TiledRoutine(routine, tuple("abc")[: len(orders)], (9,) * len(expected), flags)
    assert has_lines(tiled, [empty_matrix(order) for order in orders]) == expected


@pytest.mark.parametrize(
    ("routine", "flags", "expected"),
    [
        ("gemm", {}, 2),
        ("syrk", {}, 1),
        ("symm", {"side": Side.LEFT}, 0),
        ("trmm", {"side": Side.RIGHT}, 1),
        ("trsm", {"side": Side.LEFT}, 0),
        ("potrf", {}, None),
        ("potrs", {}, 0),
    ],
)
def test_which_dimension_is_summed_over(routine, flags, expected):
    extents = (9,) * {"gemm": 3, "potrf": 1}.get(routine, 2)
    assert inner_extent(TiledRoutine(routine, ("a", "b", "c")[: len(extents)], extents, flags)) == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cards", [(1, 1), (1, 2), (2, 4)])
@pytest.mark.parametrize("holds_output", [False, True])
def test_another_order_is_of_the_same_tasks(kind, cards, holds_output):
    """The tasks of a tile stay in order, and none comes before what it needs."""
    tasks = problem(kind, size=3).tasks
    ordered = by_blocks(tasks, cards, holds_output)
    assert Counter(ordered.tasks) == Counter(tasks.tasks)
    position = {id(task): number for number, task in enumerate(ordered.tasks)}
    for task, needs in zip(tasks.tasks, dependencies(tasks.tasks), strict=True):
        assert all(position[id(tasks.tasks[need])] < position[id(task)] for need in needs)


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("cards", [1, 2, 3])
def test_trmm_goes_by_columns(side, cards):
    """Tasks of a column stay in order; a column of each card follows the first ones."""
    tasks = trmm(cut(64, 8), cut(64, 8), side, Uplo.LOWER)
    ordered = by_columns_of_b(tasks, cards, side)
    line = {Side.LEFT: "col", Side.RIGHT: "row"}[side]

    def of(tasks, index):
        return [task for task in tasks.tasks if getattr(task.writes[0], line) == index]

    assert all(of(tasks, index) == of(ordered, index) for index in range(8))
    lines = [getattr(task.writes[0], line) for task in ordered.tasks]
    first = {1: 2, 2: 2, 3: 3}[cards]
    assert set(lines[: first * len(lines) // 8]) == set(range(first)) and lines[-1] == 7
    assert len(ordered.tasks) == len(tasks.tasks)
    assert by_columns_of_b(gemm((8,), (8,), (8,)), cards, None).tasks == gemm((8,), (8,), (8,)).tasks


@pytest.mark.parametrize("uplo", Uplo)
def test_a_cholesky_factor_goes_by_lines_on_one_card(uplo):
    """Tasks follow those they need; a line is final before the next line begins."""
    tasks = potrf(cut(40, 8), uplo)
    ordered = by_lines_of_factor(tasks, 1)
    position = {id(task): number for number, task in enumerate(ordered.tasks)}
    assert len(position) == len(tasks.tasks)
    for task, needs in zip(tasks.tasks, dependencies(tasks.tasks), strict=True):
        assert all(position[id(tasks.tasks[need])] < position[id(task)] for need in needs)
    ends = [sorted(task.writes[0][1:3]) for task in ordered.tasks if task.finishes]
    assert ends == [[across, line] for line in range(5) for across in range(line + 1)]
    assert by_lines_of_factor(tasks, 2) is tasks


@pytest.mark.parametrize("shape", [(40, 40), (56, 40), (40, 56)])
def test_lu_goes_by_panels(shape):
    tasks = getrf(*(cut(extent, 8) for extent in shape))
    ordered = by_panels(tasks)
    position = {id(task): number for number, task in enumerate(ordered.tasks)}
    assert len(position) == len(tasks.tasks)
    for task, needs in zip(tasks.tasks, dependencies(tasks.tasks), strict=True):
        assert all(position[id(tasks.tasks[need])] < position[id(task)] for need in needs)
    # the second panel is factored before any column after it is written
    factors = [number for number, task in enumerate(ordered.tasks) if task.leaf.routine == "getrf"]
    assert factors[1] == 4 and {task.writes[0].col for task in ordered.tasks[:5]} == {0, 1}


def test_few_tiles_give_much_to_compute():
    tasks = gemm(cut(64, 8), cut(64, 8), cut(64, 8))

    def needed(tasks, count):
        return len({tile for task in tasks[:count] for tile in task.reads})

    assert needed(by_blocks(tasks).tasks, 36) == 24 < needed(tasks.tasks, 36)
    held = by_blocks(tasks, holds_output=True).tasks
    assert needed(held, 64) == 16 and not any(task.finishes for task in held[:256])
    # then tiles are finished one after the other
    assert [number for number, task in enumerate(held) if task.finishes] == list(range(259, 512, 4))


def test_what_is_needed_last_gives_way():
    tasks = gemm(cut(8, 8), cut(32, 8), cut(8, 8)).tasks
    uses = uses_by_card(tasks, [0] * len(tasks))[0]
    cache = TileCache([0, 256, 512, 768], uses)
    layout = TileLayout.of(8, 8, True, DTYPES["d"])
    for tile in (*tasks[0].reads, tasks[0].writes[0], tasks[1].reads[1]):
        cache.assign_slot(tile, layout, 0)
    a, b, c = *tasks[0].reads, tasks[0].writes[0]
    assert not cache.find_free_slot()
    assert cache.victim(1).tile in (b, c)  # both are needed no more
    cache.copies[c].is_dirty = True
    assert cache.victim(1).tile == b
    cache.copies[b].pins = 1
    assert cache.victim(1).tile == a  # needed again, but after the other tile
    for tile in (b, c):
        cache.forget(tile)  # one is needed, the other has no copy elsewhere
    assert b in cache.copies and c in cache.copies and not cache.find_free_slot()
    cache.copies[c].is_dirty = False
    cache.forget(c)
    assert c not in cache.copies and cache.find_free_slot()
    cache.assign_slot(c, layout, 0)
    for copy in cache.copies.values():
        copy.pins = 1
    assert cache.victim(1) is None
