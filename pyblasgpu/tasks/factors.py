"""Cholesky and LU factors by tiles, in place on a."""

from __future__ import annotations

from collections.abc import Iterator

from ..types import Diag, Side, Trans, Uplo
from .task_list import Cut, Grid, Step, TaskList, Tile, TileLeaf, finished

__all__ = ["getrf", "potrf"]


def potrf(n: Cut, uplo: Uplo, clean: bool = False) -> TaskList:
    """The Cholesky factor of a, in its triangle `uplo`; tiles of the other triangle are not touched.

    Block columns of L, or block rows of U, follow one another, the diagonal tile first. If `clean`, the other
    triangle of each diagonal tile becomes zero, else it is neither read nor written.
    """
    lower = uplo is Uplo.LOWER
    side = Side.RIGHT if lower else Side.LEFT
    trans = Trans.NO if lower else Trans.CONJ
    trans_b = Trans.CONJ if lower else Trans.NO
    herk = TileLeaf.of("herk", lower=uplo, trans=trans, alpha=-1, beta=1)
    gemm = TileLeaf.of("gemm", trans_a=trans, trans_b=trans_b, alpha=-1, beta=1)
    factor = TileLeaf.of("potrf", lower=uplo, clean=clean)
    solve = TileLeaf.of("trsm", side=side, lower=uplo, trans=Trans.CONJ, unit_diag=Diag.NON_UNIT, alpha=1)

    def tile(line: int, block: int) -> Tile:
        """The tile of L in block column `block`, or of U in block row `block`."""
        return Tile("a", line, block) if lower else Tile("a", block, line)

    def steps() -> Iterator[Step]:
        for j in range(len(n)):
            diagonal = (Tile("a", j, j),)
            for p in range(j):
                yield herk, (tile(j, p),), diagonal
            yield factor, (), diagonal
            for i in range(j + 1, len(n)):
                for p in range(j):
                    reads = (tile(i, p), tile(j, p))
                    yield gemm, reads if lower else reads[::-1], (tile(i, j),)
                yield solve, diagonal, (tile(i, j),)

    return TaskList("potrf", {"a": Grid(n, n)}, finished(steps()))


def getrf(m: Cut, n: Cut) -> TaskList:
    """L, U and pivots of a with rows interchanged: panels are whole block columns, from the diagonal down.

    "piv" has a tile for each panel, with as many pivots as the panel has columns, which count rows from the
    panel's first. `laswp` takes the rows from a panel's first down, and the panel's pivots.

    Parameters
    ----------
    m, n : tuple of int
        The cuts of rows and columns. Their first blocks are equal, as many as the shorter one has.

    Raises
    ------
    ValueError
        When a diagonal tile is not square.
    """
    panels = min(len(m), len(n))
    if m[:panels] != n[:panels]:
        raise ValueError(f"getrf: tiles on the diagonal are not square: rows are cut into {m}, columns {n}")
    factor, swap = TileLeaf.of("getrf"), TileLeaf.of("laswp")
    solve = TileLeaf.of(
        "trsm", side=Side.LEFT, lower=Uplo.LOWER, trans=Trans.NO, unit_diag=Diag.UNIT, alpha=1
    )
    gemm = TileLeaf.of("gemm", trans_a=Trans.NO, trans_b=Trans.NO, alpha=-1, beta=1)

    def below(row: int, col: int) -> Tile:
        return Tile("a", row, col, len(m) - row)

    def steps() -> Iterator[Step]:
        for j in range(len(n)):
            for p in range(min(j, panels)):
                yield swap, (Tile("piv", p, 0),), (below(p, j),)
                yield solve, (Tile("a", p, p),), (Tile("a", p, j),)
                if p + 1 < len(m):
                    yield gemm, (below(p + 1, p), Tile("a", p, j)), (below(p + 1, j),)
            if j < panels:
                yield factor, (), (below(j, j), Tile("piv", j, 0))
        for j in range(panels):
            for p in range(j + 1, panels):
                yield swap, (Tile("piv", p, 0),), (below(p, j),)

    grids = {"a": Grid(m, n), "piv": Grid(m[:panels], (1,))}
    return TaskList("getrf", grids, finished(steps()))
