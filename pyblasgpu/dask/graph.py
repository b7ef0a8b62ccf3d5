"""A list of tasks as a Dask graph: one task for a chunk's whole accumulation, or few."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import getitem
from typing import Any

import numpy as np
from dask.highlevelgraph import Layer

from ..routine_table import ROUTINES
from ..tasks import Task, TaskList, Tile
from .declared import Declared
from .leaves import Accumulate, LeafCall, Zeros

__all__ = ["MAX_PRODUCTS", "TileLayer", "pivot_keys"]

#: Products that one Dask task adds at most: a worker holds all of their operands at once.
MAX_PRODUCTS = 8

Key = tuple[Any, ...]


class TileLayer(Layer):  # type: ignore[misc]
    """The tasks of a routine, as a layer that is only described until a scheduler needs its tasks.

    Parameters
    ----------
    name : str
        The name of the array that results, ``routine-token``.
    make_list : callable
        Makes the list of tasks, without arguments; picklable.
    output : str
        The matrix whose tiles are the chunks of the result.
    numblocks : (int, int)
        The chunks of the result, down and across.
    sources : mapping of str to str
        Matrices to the names of the arrays that hold their tiles; what is not named begins as zeros.
    library : str
        The library of the chunks: "numpy" or "cupy".
    dtype : numpy.dtype
        The dtype of the chunks.
    caller : str
        The routine that errors name.
    by_columns : bool
        Chunks of `output` are block columns, each all of its tiles.
    blank : bool
        Chunks that no task writes are zeros, else what they were.
    """

    def __init__(
        self,
        name: str,
        make_list: Callable[[], TaskList],
        output: str,
        numblocks: tuple[int, int],
        sources: Mapping[str, str],
        library: str,
        dtype: np.dtype[Any],
        caller: str,
        by_columns: bool = False,
        blank: bool = False,
    ):
        super().__init__()
        self.name, self.make_list, self.output, self.numblocks = name, make_list, output, numblocks
        self.sources, self.library, self.dtype, self.caller = dict(sources), library, dtype, caller
        self.by_columns, self.blank = by_columns, blank

    @cached_property
    def _graph(self) -> dict[Key, Any]:
        return _Builder(self).graph

    def is_materialized(self) -> bool:
        return "_graph" in self.__dict__

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_graph"}

    def __getitem__(self, key: Key) -> Any:
        return self._graph[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._graph)

    def __len__(self) -> int:
        return len(self._graph)

    def __contains__(self, key: object) -> bool:
        return key in self._graph

    def get_output_keys(self) -> Set[Key]:
        rows, cols = self.numblocks
        keys: set[Key] = {(self.name, row, col) for row in range(rows) for col in range(cols)}
        return keys | set(pivot_keys(self.name, cols)) if self.by_columns else keys

    def get_dependencies(self, key: Key, all_hlg_keys: Collection[Key]) -> set[Key]:
        """The keys that a task reads; Dask does not know those that are no output keys."""
        function, *arguments = self._graph[key]
        if not callable(function):
            return {self._graph[key]}
        keys = [each for each in arguments[:1] if isinstance(each, tuple)]
        return {*keys, *(arguments[1] if isinstance(function, Accumulate) else ())}


def pivot_keys(name: str, panels: int) -> list[Key]:
    """The keys of the pivots of each panel, where `name` is the array of the factors."""
    stem, _, token = name.rpartition("-")
    return [(f"{stem}-pivots-{token}", panel) for panel in range(panels)]


@dataclass
class _Step:
    """A task, and the keys of the chunks that it reads."""

    task: Task
    reads: tuple[Key, ...]


class _Builder:
    """Gives each state of a chunk that a task reads a key of its own."""

    def __init__(self, layer: TileLayer):
        self.layer, self.graph = layer, {}  # type: ignore[var-annotated]
        self.list = layer.make_list()
        self.stem, _, self.token = layer.name.rpartition("-")
        self.pivots = pivot_keys(layer.name, layer.numblocks[1])
        self.current: dict[Tile, Key | Zeros] = {}
        self.pending: dict[Tile, list[_Step]] = {}
        self.states: dict[Tile, int] = {}
        self.declared: dict[Key | Zeros, Declared] = {}  # of the chunks that are arguments
        self.last = {self.chunk(task.writes[0]): task for task in self.list.tasks}
        # where a single chunk waits for none, as of a factor, the critical path is long and counts
        self.last_run = 1 if self.count_independent() == 1 else 2
        for task in self.list.tasks:
            self.add(task)
        self.add_unwritten()

    def count_independent(self) -> int:
        """How many chunks read none that was written."""
        written: set[Tile] = set()
        waiting = set()
        for task in self.list.tasks:
            chunk = self.chunk(task.writes[0])
            if any(self.chunk(tile) in written for tile in task.reads):
                waiting.add(chunk)
            written.update(map(self.chunk, task.writes))
        return len(self.last.keys() - waiting)

    def chunk(self, tile: Tile) -> Tile:
        """The chunk that holds a tile."""
        return Tile(tile.matrix, 0 if self.holds_column(tile) else tile.row, tile.col)

    def holds_column(self, tile: Tile) -> bool:
        """Whether the chunk that holds a tile is a block column."""
        return self.layer.by_columns and tile.matrix == self.layer.output

    def rows(self, tile: Tile) -> slice:
        """The rows of a tile in its chunk."""
        if not self.holds_column(tile):
            return slice(None)
        offsets = self.list.grids[tile.matrix].row_offsets
        return slice(offsets[tile.row], offsets[tile.row + tile.rows])

    def add(self, task: Task) -> None:
        chunk = self.chunk(task.writes[0])
        reads = tuple(self.state(self.chunk(tile)) for tile in task.reads)
        self.pending.setdefault(chunk, []).append(_Step(task, reads))
        final = self.last[chunk] is task
        if final or len(task.writes) > 1:
            self.flush(chunk, final)

    def state(self, chunk: Tile) -> Any:
        """The key of what a chunk holds now."""
        if self.pending.get(chunk):
            self.flush(chunk, final=False)
        return self.current.get(chunk) or self.start(chunk)

    def start(self, chunk: Tile) -> Key | Zeros:
        """The key of what a chunk holds at first."""
        if chunk.matrix not in self.layer.sources:
            return self.zeros(chunk)
        key = (self.layer.sources[chunk.matrix], chunk.row, chunk.col)
        if key not in self.declared:
            argument, position = (self.layer.caller, chunk.matrix), (chunk.row, chunk.col)
            self.declared[key] = Declared(*argument, self.layer.dtype, position, self.shape(chunk))
        return key

    def shape(self, chunk: Tile) -> tuple[int, int]:
        """The extents of a chunk."""
        grid = self.list.grids[chunk.matrix]
        return (grid.shape[0], grid.cols[chunk.col]) if self.holds_column(chunk) else grid.tile_shape(chunk)

    def zeros(self, chunk: Tile) -> Zeros:
        return Zeros(self.shape(chunk), self.layer.library, self.layer.dtype)

    def flush(self, chunk: Tile, final: bool) -> None:
        """Put the pending steps of a chunk into the graph."""
        segments = list(_segments(self.pending.pop(chunk), self.graph, self.last_run))
        for segment in segments:
            key = self.key(chunk, final and segment is segments[-1])
            pair = segment[-1].task.writes[1:]
            made = self.key(chunk, False) if pair else key
            self.graph[made] = self.graph_task(chunk, segment)
            if pair:
                pivots = self.pivots[pair[0].row]
                self.graph[key], self.graph[pivots] = (getitem, made, 0), (getitem, made, 1)
                self.current[pair[0]] = pivots
            self.current[chunk] = key

    def key(self, chunk: Tile, final: bool) -> Key:
        if final:
            return (self.layer.name, chunk.row, chunk.col)
        state = self.states[chunk] = self.states.get(chunk, 0) + 1
        return (f"{self.stem}-update-{self.token}", chunk.row, chunk.col, state)

    def graph_task(self, chunk: Tile, segment: list[_Step]) -> tuple[Any, ...]:
        operands = list(dict.fromkeys(key for step in segment for key in step.reads))
        calls = []
        for step in segment:
            rows = [self.rows(tile) for tile in step.task.reads]
            reads = tuple(zip((operands.index(key) for key in step.reads), rows, strict=True))
            output = step.task.writes[0]
            first = self.list.grids[output.matrix].row_offsets[output.row]
            calls.append(LeafCall(step.task.leaf, reads, self.rows(output), first))
        order = "F" if self.layer.by_columns else "C"
        start = self.current.get(chunk) or self.start(chunk)
        declared = tuple(map(self.declared.get, (start, *operands)))
        return Accumulate(tuple(calls), order, declared), start, operands

    def add_unwritten(self) -> None:
        """Chunks of the result that no task writes."""
        for _, row, col in self.layer.get_output_keys() - self.graph.keys():
            chunk = Tile(self.layer.output, row, col)
            if self.layer.blank:
                self.graph[self.layer.name, row, col] = (self.zeros(chunk).broadcast,)
            else:
                start = self.start(chunk)
                self.graph[self.layer.name, row, col] = (self.declared[start], start)


def _segments(steps: list[_Step], made: Container[Key], last_run: int) -> Iterator[list[_Step]]:
    """The steps of a chunk as runs of products.

    Where they read what other tasks make, the last ones wait longest: so the last runs are short. The last
    has `last_run` products, each other as many as those after it together, and one more if `last_run` is 1.
    Steps after the products are a run of their own if they wait too: the products need not wait for them.
    """
    groups: list[list[_Step]] = [[]]  # each ends with a product, the last one with what follows it
    for step in steps:
        groups[-1].append(step)
        if "beta" in ROUTINES[step.task.leaf.routine].scalars:
            groups.append([])
    rest = groups.pop()
    if not groups or not _reads_any(rest, made):
        groups, rest = [*groups[:-1], (groups[-1] if groups else []) + rest], []
    ends, length = [len(groups)], last_run if _reads_any(steps, made) else MAX_PRODUCTS
    while ends[-1] > 0:
        ends.append(max(ends[-1] - min(length, MAX_PRODUCTS), 0))
        length = max(length, len(groups) - ends[-1] + (last_run == 1))
    for begin, end in pairwise(reversed(ends)):
        yield [step for group in groups[begin:end] for step in group]
    if rest:
        yield rest


def _reads_any(steps: list[_Step], made: Container[Key]) -> bool:
    return any(key in made for step in steps for key in step.reads)
