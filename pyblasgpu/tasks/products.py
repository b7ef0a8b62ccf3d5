"""GEMM, SYRK, HERK, SYMM and HEMM by tiles: each output tile is finished before the next one begins."""

from __future__ import annotations

from collections.abc import Iterator

from ..types import Side, Trans, Uplo
from .task_list import Cut, Grid, Step, TaskList, Tile, TileLeaf, finished

__all__ = ["gemm", "op_tile", "symm", "syrk"]


def op_tile(matrix: str, row: int, col: int, trans: Trans) -> Tile:
    """The tile of the stored matrix at (row, col) of op(matrix)."""
    return Tile(matrix, row, col) if trans is Trans.NO else Tile(matrix, col, row)


def op_grid(rows: Cut, cols: Cut, trans: Trans) -> Grid:
    """The grid of a matrix of which op(matrix) has these cuts."""
    return Grid(rows, cols) if trans is Trans.NO else Grid(cols, rows)


def gemm(
    m: Cut,
    n: Cut,
    k: Cut,
    trans_a: Trans = Trans.NO,
    trans_b: Trans = Trans.NO,
    alpha: complex = 1,
    beta: complex = 0,
) -> TaskList:
    """``c := alpha op(a) op(b) + beta c``, c cut into m by n, and the inner dimension into k."""
    first, then = (
        TileLeaf.of("gemm", trans_a=trans_a, trans_b=trans_b, alpha=alpha, beta=scale) for scale in (beta, 1)
    )

    def steps() -> Iterator[Step]:
        for j in range(len(n)):
            for i in range(len(m)):
                for p in range(len(k)):
                    reads = op_tile("a", i, p, trans_a), op_tile("b", p, j, trans_b)
                    yield first if p == 0 else then, reads, (Tile("c", i, j),)

    grids = {"a": op_grid(m, k, trans_a), "b": op_grid(k, n, trans_b), "c": Grid(m, n)}
    return TaskList("gemm", grids, finished(steps()))


def syrk(
    n: Cut,
    k: Cut,
    uplo: Uplo,
    trans: Trans = Trans.NO,
    alpha: complex = 1,
    beta: complex = 0,
    hermitian: bool = False,
) -> TaskList:
    """The triangle `uplo` of ``c := alpha op(a) op(a)^T + beta c``, or ^H if `hermitian`.

    The cut `n` is that of both dimensions of c, `k` that of the inner one. Where the matrix is
    Hermitian, `trans` is `Trans.CONJ` rather than `Trans.TRANS`.
    """
    routine, other = ("herk", Trans.CONJ) if hermitian else ("syrk", Trans.TRANS)
    trans_a, trans_b = (Trans.NO, other) if trans is Trans.NO else (trans, Trans.NO)
    on_diagonal = [
        TileLeaf.of(routine, lower=uplo, trans=trans, alpha=alpha, beta=scale) for scale in (beta, 1)
    ]
    off_diagonal = [
        TileLeaf.of("gemm", trans_a=trans_a, trans_b=trans_b, alpha=alpha, beta=scale) for scale in (beta, 1)
    ]

    def steps() -> Iterator[Step]:
        for j in range(len(n)):
            for i in range(j, len(n)) if uplo is Uplo.LOWER else range(j + 1):
                leaves = on_diagonal if i == j else off_diagonal
                for p in range(len(k)):
                    reads = [op_tile("a", i, p, trans)] + [op_tile("a", j, p, trans)] * (i != j)
                    yield leaves[p > 0], tuple(reads), (Tile("c", i, j),)

    return TaskList(routine, {"a": op_grid(n, k, trans), "c": Grid(n, n)}, finished(steps()))


def symm(
    m: Cut,
    n: Cut,
    side: Side,
    uplo: Uplo,
    alpha: complex = 1,
    beta: complex = 0,
    hermitian: bool = False,
) -> TaskList:
    """``c := alpha a b + beta c``, or ``alpha b a + beta c`` from the right, a symmetric or Hermitian.

    Of a the triangle `uplo` is read; c is cut into m by n.
    """
    routine, other = ("hemm", Trans.CONJ) if hermitian else ("symm", Trans.TRANS)
    left = side is Side.LEFT
    order = m if left else n

    def step(i: int, j: int, p: int) -> Step:
        scale = beta if p == 0 else 1
        row, col = (i, p) if left else (p, j)  # of a
        b = Tile("b", p, j) if left else Tile("b", i, p)
        if row == col:
            leaf = TileLeaf.of(routine, side=side, lower=uplo, alpha=alpha, beta=scale)
            return leaf, (Tile("a", row, col), b), (Tile("c", i, j),)
        trans = Trans.NO if (row > col) == (uplo is Uplo.LOWER) else other
        a = op_tile("a", row, col, trans)
        trans_a, trans_b = (trans, Trans.NO) if left else (Trans.NO, trans)
        leaf = TileLeaf.of("gemm", trans_a=trans_a, trans_b=trans_b, alpha=alpha, beta=scale)
        return leaf, (a, b) if left else (b, a), (Tile("c", i, j),)

    steps = (step(i, j, p) for j in range(len(n)) for i in range(len(m)) for p in range(len(order)))
    grids = {"a": Grid(order, order), "b": Grid(m, n), "c": Grid(m, n)}
    return TaskList(routine, grids, finished(steps))
