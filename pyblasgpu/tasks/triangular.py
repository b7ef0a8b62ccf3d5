"""TRMM and TRSM by tiles, in place on b: block rows from the left, block columns from the right."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..types import Diag, Side, Trans, Uplo
from .products import op_tile
from .task_list import Cut, Grid, Step, TaskList, Tile, TileLeaf, finished

__all__ = ["potrs", "trmm", "trsm"]


def trsm(
    m: Cut,
    n: Cut,
    side: Side,
    uplo: Uplo,
    trans: Trans = Trans.NO,
    diag: Diag = Diag.NON_UNIT,
    alpha: complex = 1,
) -> TaskList:
    """``b := x`` of ``op(a) x = alpha b``, or ``x op(a) = alpha b`` from the right; b is cut into m by n."""
    order = m if side is Side.LEFT else n
    blocks = _substitution_order(len(order), side, uplo, trans)

    def updates(position: int, tile_at: Callable[[int], Tile]) -> Iterator[Step]:
        block = blocks[position]
        for count, solved in enumerate(blocks[:position]):
            yield _product(side, trans, block, solved, tile_at, -1, 1 if count else alpha)
        leaf = _diagonal_leaf("trsm", side, uplo, trans, diag, 1 if position else alpha)
        yield leaf, (Tile("a", block, block),), (tile_at(block),)

    return _in_place("trsm", m, n, side, range(len(order)), updates)


def potrs(n: Cut, cols: Cut, uplo: Uplo) -> TaskList:
    """``b := x`` with L L^H x = b, or U^H U x = b; `a` holds the factor. Both solves are one list."""
    first, then = (Trans.NO, Trans.CONJ) if uplo is Uplo.LOWER else (Trans.CONJ, Trans.NO)
    lists = [trsm(n, cols, Side.LEFT, uplo, trans) for trans in (first, then)]
    steps = [(task.leaf, task.reads, task.writes) for each in lists for task in each.tasks]
    return TaskList("potrs", lists[0].grids, finished(steps))


def trmm(
    m: Cut,
    n: Cut,
    side: Side,
    uplo: Uplo,
    trans: Trans = Trans.NO,
    diag: Diag = Diag.NON_UNIT,
    alpha: complex = 1,
) -> TaskList:
    """``b := alpha op(a) b``, or ``alpha b op(a)`` from the right; b is cut into m by n."""
    order = m if side is Side.LEFT else n
    blocks = _substitution_order(len(order), side, uplo, trans)

    def updates(position: int, tile_at: Callable[[int], Tile]) -> Iterator[Step]:
        block = blocks[position]
        leaf = _diagonal_leaf("trmm", side, uplo, trans, diag, alpha)
        yield leaf, (Tile("a", block, block),), (tile_at(block),)
        for other in blocks[:position]:
            yield _product(side, trans, block, other, tile_at, alpha, 1)

    # backwards: a product reads blocks that are not yet overwritten
    return _in_place("trmm", m, n, side, range(len(order))[::-1], updates)


def _substitution_order(count: int, side: Side, uplo: Uplo, trans: Trans) -> range:
    """The blocks of the triangle in the order of a solve."""
    lower = (uplo is Uplo.LOWER) == (trans is Trans.NO)
    return range(count) if lower == (side is Side.LEFT) else range(count)[::-1]


def _diagonal_leaf(
    routine: str, side: Side, uplo: Uplo, trans: Trans, diag: Diag, alpha: complex
) -> TileLeaf:
    return TileLeaf.of(routine, side=side, lower=uplo, trans=trans, unit_diag=diag, alpha=alpha)


def _product(
    side: Side,
    trans: Trans,
    block: int,
    other: int,
    tile_at: Callable[[int], Tile],
    alpha: complex,
    beta: complex,
) -> Step:
    """The block's tile plus the product of a block of the triangle and the other tile."""
    if side is Side.LEFT:
        reads, flags = (op_tile("a", block, other, trans), tile_at(other)), (trans, Trans.NO)
    else:
        reads, flags = (tile_at(other), op_tile("a", other, block, trans)), (Trans.NO, trans)
    leaf = TileLeaf.of("gemm", trans_a=flags[0], trans_b=flags[1], alpha=alpha, beta=beta)
    return leaf, reads, (tile_at(block),)


def _in_place(
    routine: str,
    m: Cut,
    n: Cut,
    side: Side,
    positions: range,
    updates: Callable[[int, Callable[[int], Tile]], Iterator[Step]],
) -> TaskList:
    """All steps, those of a block row (from the right: block column) together."""
    left = side is Side.LEFT

    def place_in(line: int) -> Callable[[int], Tile]:
        return lambda block: Tile("b", block, line) if left else Tile("b", line, block)

    lines = range(len(n if left else m))
    steps = (step for position in positions for line in lines for step in updates(position, place_in(line)))
    order = m if left else n
    return TaskList(routine, {"a": Grid(order, order), "b": Grid(m, n)}, finished(steps))
