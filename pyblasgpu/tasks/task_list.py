"""Parts of a list of tasks: tiles, leaves, tasks, and the grids of tiles of the matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

__all__ = ["Cut", "Grid", "TileLeaf", "Step", "Task", "TaskList", "Tile", "cut", "finished"]

#: A dimension as the extents of its blocks.
Cut = tuple[int, ...]


def cut(extent: int, block: int) -> Cut:
    """`extent` as blocks of `block`, the last one smaller if that does not divide; 0 is one empty block."""
    whole, rest = divmod(extent, block)
    return (block,) * whole + ((rest,) if rest or not whole else ())


class Tile(NamedTuple):
    """A tile of a matrix, or several below one another, which then are one operand.

    Attributes
    ----------
    matrix : str
        Its name in the routine: "a", "b", "c", or "piv" for the pivots of LU factors.
    row, col : int
        Counted in tiles.
    rows : int
        Number of tiles, from `row` down.
    """

    matrix: str
    row: int
    col: int
    rows: int = 1

    def each(self) -> Iterator[Tile]:
        """Its tiles one by one."""
        for row in range(self.row, self.row + self.rows):
            yield Tile(self.matrix, row, self.col)


class TileLeaf(NamedTuple):
    """A routine of this package and its flags.

    Attributes
    ----------
    routine : str
        "gemm", "herk", "trsm", ..., of `pyblasgpu`, or "potrf", "getrf", "laswp", of `pyblasgpu.lapack`.
    flags : tuple of (str, value)
        The keyword arguments, by the names of that function; flags of the BLAS are members of `Side`, `Uplo`,
        `Trans` and `Diag`.
    """

    routine: str
    flags: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, routine: str, **flags: Any) -> TileLeaf:
        return cls(routine, tuple(flags.items()))

    @property
    def keywords(self) -> dict[str, Any]:
        return dict(self.flags)

    @property
    def ignores_output(self) -> bool:
        """Whether what the written tile held before is not read."""
        return bool(self.keywords.get("beta", 1) == 0)


#: A task before it is known what it finishes: leaf, reads, writes.
Step = tuple[TileLeaf, tuple[Tile, ...], tuple[Tile, ...]]


class Task(NamedTuple):
    """One call of a leaf.

    Attributes
    ----------
    leaf : TileLeaf
    reads : tuple of Tile
        The operands that are only read, in the order of the routine's arguments.
    writes : tuple of Tile
        The operand that is updated in place; of "getrf" also the pivots.
    finishes : tuple of Tile
        The single tiles of `writes` that no later task writes.
    """

    leaf: TileLeaf
    reads: tuple[Tile, ...]
    writes: tuple[Tile, ...]
    finishes: tuple[Tile, ...]

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """All operands."""
        return (*self.reads, *self.writes)


@dataclass(frozen=True)
class Grid:
    """A matrix as tiles: the cuts of its rows and of its columns."""

    rows: Cut
    cols: Cut

    @property
    def shape(self) -> tuple[int, int]:
        """The extents of the matrix."""
        return sum(self.rows), sum(self.cols)

    @cached_property
    def row_offsets(self) -> tuple[int, ...]:
        """First row of each block of rows, and the end."""
        return tuple(accumulate(self.rows, initial=0))

    @cached_property
    def col_offsets(self) -> tuple[int, ...]:
        """First column of each block of columns, and the end."""
        return tuple(accumulate(self.cols, initial=0))

    def tile_shape(self, tile: Tile) -> tuple[int, int]:
        """The extents of a tile."""
        return sum(self.rows[tile.row : tile.row + tile.rows]), self.cols[tile.col]


@dataclass(frozen=True)
class TaskList:
    """A routine as tasks.

    Attributes
    ----------
    routine : str
        Routine that it computes.
    grids : mapping of str to Grid
        The tiles of each matrix that the tasks name.
    tasks : tuple of Task
        Tasks in a valid order, in which an output tile is finished before work on later ones begins. Run as
        soon as what they need is there, earlier tasks first, they keep to the critical path.
    """

    routine: str
    grids: Mapping[str, Grid]
    tasks: tuple[Task, ...]


def finished(steps: Iterable[Step]) -> tuple[Task, ...]:
    """Tasks that know which tiles they finish."""
    later: set[Tile] = set()
    tasks = []
    for leaf, reads, writes in reversed(list(steps)):
        last = [tile for operand in writes for tile in operand.each() if tile not in later]
        later.update(last)
        tasks.append(Task(leaf, reads, writes, tuple(last)))
    return tuple(reversed(tasks))
