"""A list of tasks on cards, from the checks to the last tile at home."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

from ..errors import PyblasgpuError, TileReport
from ..gpu import memory
from ..gpu.context import current_context
from ..gpu.events import record
from ..gpu.transfers import memory_bytes
from ..tasks.task_list import TaskList, Tile
from . import leaves
from .cards import Card, held, present
from .executor import TaskExecutor
from .host_traffic import HostTraffic
from .infos import Infos, infos_on
from .matrices import HostMatrix, Matrix, TileLayout
from .schedule import Schedule
from .tile_cache import TileCache
from .tile_memory import tile_memory
from .zeros import zeros_of

__all__ = ["SHARE", "Controls", "memory_limit", "run_tasks"]

#: Default share of a card's free memory for tiles.
SHARE = 0.8
#: The matrix of the pivots of LU, which is no part of the output.
PIVOTS = "piv"


class Controls(NamedTuple):
    """Callbacks that watch and stop a run."""

    is_cancelled: Callable[[], bool] = lambda: False
    progress: Callable[[int, int], None] = lambda done, total: None


class CallerStream(NamedTuple):
    """A stream of the caller's: the work follows what is queued there, and later work there follows it."""

    device: int
    handle: int


def memory_limit(devices: Sequence[int], requested: int | None) -> int:
    """Bytes that tiles may take on each of the cards."""
    return requested if requested is not None else int(SHARE * min(map(_free_bytes, devices)))


def _free_bytes(device: int) -> int:
    """Bytes that are free on a card, or that it keeps for tiles."""
    kept = (chunk.nbytes for card in present() if card.device == device for chunk in card.chunks)
    return memory_bytes(device).free + sum(kept)


def run_tasks(
    schedule: Schedule,
    matrices: Mapping[str, Matrix],
    devices: Sequence[int],
    limit: int,
    stream: CallerStream | None = None,
    settled: Sequence[Tile] = (),
    controls: Controls = Controls(),  # noqa: B008 - immutable
    enqueue: leaves.EnqueueLeaf | None = None,
    prepare: Callable[[], None] | None = None,
) -> int:
    """Run all tasks; return when the results are where the matrices live.

    Parameters
    ----------
    schedule : Schedule
    matrices : mapping of str to Matrix
        The matrices; one in a card's memory is on one of `devices`.
    devices : sequence of int
        The cards of the schedule.
    limit : int
        Bytes that tiles may take on each card.
    stream : CallerStream, optional
    settled : sequence of Tile
        Tiles of host memory that no task writes, and that become what `HostMatrix` says.
    controls : Controls
    enqueue : callable
        See `leaves`.
    prepare : callable
        Enqueues on the caller's stream what the output holds at first, once nothing more is checked.

    Returns
    -------
    int
        0, or of a Cholesky factor the number, from 1, of the first pivot that is not positive.

    Raises
    ------
    ValueError
        When the limit is too small for the tiles of one task, before anything starts.
    MemoryError
        When a card has no memory for tiles, before anything starts.
    BaseException
        Whatever went wrong on the way; its attribute `tiles` is a `TileReport`.
    """
    with ExitStack() as stack:
        # one is always current on this thread, whichever: pinned memory and events need no more
        stack.enter_context(current_context(devices[0]))
        cards = stack.enter_context(held(devices))
        caches, infos = _memory_of(schedule, matrices, cards, limit, stack)
        if prepare is not None:
            prepare()
        _wait_for_caller(cards, stream)
        traffic = HostTraffic()
        operands = [each.operand for each in infos]
        run_leaf = enqueue or leaves.enqueue_leaf
        brought_by = schedule.brought_by(
            frozenset(n for n, x in matrices.items() if isinstance(x, HostMatrix))
        )
        executor = TaskExecutor(schedule, matrices, cards, caches, traffic, run_leaf, operands, brought_by)
        _execute(executor, schedule.tasks, settled, controls, is_prepared=prepare is not None)
        _let_caller_wait(cards, stream)
        return _first_info(infos, schedule.tasks)


def _memory_of(
    schedule: Schedule, matrices: Mapping[str, Matrix], cards: Sequence[Card], limit: int, stack: ExitStack
) -> tuple[list[TileCache], list[Infos]]:
    """Memory of each card for tiles and infos, as long as `stack`."""
    nbytes, dtype = slot_bytes(schedule, matrices), next(iter(matrices.values())).dtype
    caches, infos = [], []
    for index, card in enumerate(cards):
        uses = schedule.uses.get(index, {})
        count = sum(matrices[tile.matrix].device != card.device for tile in uses)
        most, fewest = _slot_counts(schedule, nbytes, count, limit)
        slots = stack.enter_context(tile_memory(card, nbytes, most, limit))
        caches.append(TileCache(slots.first(fewest), uses, slots.more))
        infos.append(stack.enter_context(infos_on(card, schedule.infos.get(index, []), dtype)))
    return caches, infos


def _execute(
    executor: TaskExecutor, tasks: TaskList, settled: Sequence[Tile], controls: Controls, is_prepared: bool
) -> None:
    """TaskExecutor through all tasks; whatever happens, nothing is under way when this returns."""
    traffic = executor.traffic
    try:
        with zeros_of(executor.cards[0]) as zeros:
            for tile in settled:
                matrix = executor.matrices[tile.matrix]
                assert isinstance(matrix, HostMatrix)
                traffic.settle(matrix, tile, zeros if len(executor.cards) == 1 else None)
            executor.run(controls.is_cancelled, controls.progress)
            for tile in (*executor.final, *settled):
                traffic.join(tile)
    except BaseException as error:
        _drain(executor)
        report = _report(tasks, executor, is_prepared)
        error.tiles = report  # type: ignore[attr-defined]
        error.add_note(str(report))
        raise
    _drain(executor)


def slot_bytes(schedule: Schedule, matrices: Mapping[str, Matrix]) -> int:
    """Bytes of the largest tile."""
    tiles = ((matrices[name], rows, cols) for name, rows, cols in schedule.shapes)
    return max(TileLayout.of(rows, cols, x.row_major, x.dtype).nbytes for x, rows, cols in tiles)


def _slot_counts(schedule: Schedule, nbytes: int, needed: int, limit: int) -> tuple[int, int]:
    """Return the number of tiles that a card may hold, and the least number."""
    fewest = min(schedule.most_tiles, needed)
    count = min(needed, limit // nbytes)
    if count < fewest:
        raise ValueError(
            f"{schedule.tasks.routine}: {limit} bytes of device memory are too few; "
            f"a task needs {fewest} tiles of {nbytes} bytes"
        )
    return count, fewest


def _wait_for_caller(cards: Sequence[Card], stream: CallerStream | None) -> None:
    """Let all work on the cards follow what is on the caller's stream."""
    if stream is None:
        return
    with current_context(stream.device):
        event = record(stream.handle)
    for card in cards:
        with current_context(card.device):
            for handle in card.streams:
                event.hold_back(handle)


def _let_caller_wait(cards: Sequence[Card], stream: CallerStream | None) -> None:
    """Let later work on the caller's stream follow all work on the cards."""
    if stream is None:
        return
    for card in cards:
        for handle in card.streams:
            with current_context(card.device):
                event = record(handle)
            with current_context(stream.device):
                event.hold_back(stream.handle)


def _drain(executor: TaskExecutor) -> None:
    """Wait until nothing is under way on the cards and in the threads, whatever became of it."""
    for cache in executor.caches:
        for copy in cache.copies.values():
            if copy.staged is not None:
                copy.staged.stop()
                copy.staged = None
    executor.traffic.close()
    for card in executor.cards:
        for handle in card.streams:
            with suppress(PyblasgpuError, MemoryError), current_context(card.device):
                memory.synchronize(handle)


def _report(tasks: TaskList, executor: TaskExecutor, is_prepared: bool) -> TileReport:
    """Return the report on the output's tiles; a prepared output has no untouched ones."""
    outputs = [tile for task in tasks.tasks for tile in task.finishes if tile.matrix != PIVOTS]
    final = {tile for tile in set(executor.final).intersection(outputs) if executor.traffic.is_home(tile)}
    partial_tiles = {
        tile for tile in outputs if (executor.home_versions[tile] or is_prepared) and tile not in final
    }

    def regions(tiles: set[Tile]) -> tuple[tuple[slice, slice], ...]:
        return tuple(executor.matrices[tile.matrix].region(tile) for tile in sorted(tiles))

    return TileReport(tasks.routine, regions(final), regions(partial_tiles), len(outputs))


def _first_info(infos: Sequence[Infos], tasks: TaskList) -> int:
    """The smallest info of all cards that is not 0."""
    return min(filter(None, (each.first(tasks) for each in infos)), default=0)
