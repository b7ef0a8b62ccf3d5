"""What calls by tiles take at the measured rates of leaves and links: fill and drain included. Needs no card.

    python -m benchmarks.engine_model [--routines gemm trsm syrk potrf] [--sizes 8192 16384] [--cards 1 2 4]
                                      [--letter d] [--tiles 4096,1024,4096] [--on-card]

Host matrices are column-major, triangles lower, from the left. Every stream does its work in order: copies up
and down a card's link, copies from other cards, kernels. The host enqueues a task in `--host` microseconds
and requests tiles ahead, as the engine does. Rates of leaves are those of `benchmarks.reach`. Links have one
rate whatever goes the other way, and a lower one for short lines that are far apart, see
`benchmarks.host_lines`. `compute` is the work of the busiest card, `links` that of the busiest link. `bound`
is what one card takes at least in any order of the tasks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.table import Table

from benchmarks.reach import Rates
from benchmarks.study import Namespace, Option, Row, Rows, Study, main, table
from pyblasgpu.database.policy import reference
from pyblasgpu.engine.executor import AHEAD, AHEAD_ON_SEVERAL, FEW, IN_FLIGHT, MOST_IN_FLIGHT
from pyblasgpu.engine.leaves import overwrites
from pyblasgpu.engine.schedule import Schedule
from pyblasgpu.engine.tile_size import tile_orders
from pyblasgpu.engine.triangles import covering, diagonal_squares
from pyblasgpu.frontend.calls.tiled_plan import can_hold_output, plan_of
from pyblasgpu.frontend.calls.tiled_routines import TiledRoutine, inner_extent
from pyblasgpu.gpu.transfers import Block
from pyblasgpu.routine_table import ROUTINES
from pyblasgpu.tasks import Task, Tile, flops
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo

__all__ = ["Links", "Timeline", "schedule_for", "routine"]

#: By routine the matrices of which it needs a triangle, and whether that is read.
_TRIANGLES = {"trsm": {"a": True}, "trmm": {"a": True}, "syrk": {"c": False}}
#: Bytes that tiles may take on a card.
LIMIT = 100 << 30
#: Shares of the link's rate that lines of a tile of fewer bytes have next to products, where those of the
#: matrix are `FAR` bytes apart or more: of an H200, by `benchmarks.host_lines`.
SHORT, FAR = ((17 << 10, 0.62), (21 << 10, 0.82), (33 << 10, 0.95)), 64 << 10
#: The leaf whose rate serves for another one.
LIKE = {"syrk": "herk", "symm": "gemm", "hemm": "gemm", "trmm": "gemm"}


@dataclass(frozen=True)
class Links:
    """Bytes a second of the host's link and of that between cards, and seconds of the host.

    Attributes
    ----------
    host, peer : float
    start : float
        From the call to the first copy.
    task : float
        To enqueue a task.
    """

    host: float = 50e9
    peer: float = 300e9
    start: float = 0.4e-3
    task: float = 60e-6


@dataclass
class Timeline:
    """A schedule that runs.

    Attributes
    ----------
    up, down, peer, compute : dict of int to float
        By card when the stream is idle.
    busy : dict of int to float
        By card seconds of kernels.
    moved, linked : dict of (int, bool) to number
        Bytes and seconds of a card's copies down, and up.
    """

    schedule: Schedule
    rates: Rates
    links: Links
    itemsize: int
    on_card: bool = False
    up: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    down: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    peer: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    compute: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    busy: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    moved: Counter[tuple[int, bool]] = field(default_factory=Counter)
    linked: dict[tuple[int, bool], float] = field(default_factory=lambda: defaultdict(float))

    def __post_init__(self) -> None:
        self._there: dict[tuple[Tile, int], float] = {}  # when the newest version is on a card
        self._versions: Counter[Tile] = Counter()
        self._by = self.schedule.brought_by(frozenset(self.schedule.tasks.grids))

        self._triangle = {} if self.on_card else _TRIANGLES.get(self.schedule.tasks.routine, {})

    def nbytes(self, tile: Tile, goes_up: bool = False) -> int:
        """Bytes of a copy of a tile; of one on the diagonal of a triangle those of its parts."""
        rows, cols = self.schedule.tasks.grids[tile.matrix].tile_shape(tile)
        if tile.matrix not in self._triangle or tile.row != tile.col:
            return rows * cols * self.itemsize
        line = rows * self.itemsize
        whole = Block(0, line, rows, line, 0)
        if goes_up and not self._triangle[tile.matrix]:
            parts = diagonal_squares(whole, self.itemsize)
        else:
            parts = covering(whole, self.itemsize, has_tails=True)
        return sum(each.width * each.lines for each in parts)

    def copied(self, tile: Tile, goes_up: bool = False) -> float:
        """Seconds of a copy of a tile from the host or to it."""
        grid = self.schedule.tasks.grids[tile.matrix]
        rows, whole = grid.tile_shape(tile)[0], grid.shape[0]
        is_far = rows < whole and whole * self.itemsize >= FAR
        share = next((share for line, share in SHORT if is_far and rows * self.itemsize < line), 1.0)
        return self.nbytes(tile, goes_up) / (share * self.links.host)

    def run(self) -> float:
        """Seconds until the last tile is home."""
        tasks = self.schedule.tasks.tasks
        now, requested = self.links.start, 0
        unwritten: Counter[Tile] = Counter()
        ends: dict[int, list[float]] = defaultdict(list)
        ahead = AHEAD if len(self.schedule.uses) == 1 else AHEAD_ON_SEVERAL
        for number, task in enumerate(tasks):
            card = self.schedule.owners[number]
            now += self.links.task
            for other in range(requested, min(number + ahead, len(tasks))):
                for tile in dict.fromkeys(tasks[other].tiles):
                    ignores = tile in tasks[other].writes and overwrites(tasks[other].leaf)
                    if not unwritten[tile] and not ignores:
                        self._fetch(tile, self.schedule.owners[other], now)
                unwritten.update(tasks[other].writes)
                requested = other + 1
            now = self._wait(card, now, ends)
            ends[card].append(self._issue(number, now))
            unwritten.subtract(task.writes)
        streams = (self.down, self.compute, self.peer)
        return max(end for stream in streams for end in stream.values())

    def _wait(self, card: int, now: float, ends: dict[int, list[float]]) -> float:
        """Return when the host enqueues a task on a card, whose earlier ones end at ``ends[card]``."""
        while True:
            left = {other: len(ends[other]) - bisect_right(ends[other], now) for other in self.schedule.uses}
            is_another_idle = any(left[other] <= FEW for other in left if other != card)
            if left[card] < (MOST_IN_FLIGHT if is_another_idle else IN_FLIGHT):
                return now
            now = ends[card][-left[card]]

    def _issue(self, number: int, now: float) -> float:
        """Run a task's leaf, and bring home what it finishes; when the leaf ends."""
        task, card = self.schedule.tasks.tasks[number], self.schedule.owners[number]
        begin = max(self.compute[card], now)
        for tile in dict.fromkeys(task.tiles):
            if not (tile in task.writes and overwrites(task.leaf)):
                self._fetch(tile, card, now)
                begin = max(begin, self._there[tile, card])
        took = self._leaf(task)
        self.busy[card] += took
        end = self.compute[card] = begin + took
        for tile in task.writes:
            self._versions[tile] += 1
            for other in self.schedule.uses:
                self._there.pop((tile, other), None)
            self._there[tile, card] = end
        for tile in task.finishes:
            self._go_home(tile, card, end)
        return end

    def _leaf(self, task: Task) -> float:
        """Seconds of its kernels."""
        leaf = LIKE.get(task.leaf.routine, task.leaf.routine)
        return self.rates.seconds(leaf, flops(self.schedule.tasks, task))

    def bound(self) -> float:
        """Seconds that one card takes at least for host matrices, in any order of these tasks.

        All copies up are before some leaf and its copy home; all leaves are after some copies up.
        """
        tasks = self.schedule.tasks.tasks
        home = min(self.copied(tile) for task in tasks for tile in task.finishes)
        first = min(
            sum(self.copied(tile, goes_up=True) for tile in set(task.reads) - set(task.writes))
            for task in tasks
        )
        by_links = self.linked[0, True] + min(map(self._leaf, tasks))
        return self.links.start + max(by_links, first + self.busy[0]) + home

    def _go_home(self, tile: Tile, card: int, now: float) -> None:
        if not self.on_card:
            took = self.copied(tile)
            self.down[card] = max(self.down[card], now) + took
            self.linked[card, False] += took
            self.moved[card, False] += self.nbytes(tile)
        elif card:
            self.peer[card] = max(self.peer[card], now) + self.nbytes(tile) / self.links.peer

    def _fetch(self, tile: Tile, card: int, now: float) -> None:
        """Bring the newest version of a tile to a card, from the host or another card."""
        if (tile, card) in self._there:
            return
        holders = [other for other in self.schedule.uses if (tile, other) in self._there]
        if not holders:
            holders = [self._import(tile, card, now)]
        if card not in holders:
            there = min(self._there[tile, other] for other in holders)
            self.peer[card] = max(self.peer[card], there, now) + self.nbytes(tile) / self.links.peer
            self._there[tile, card] = self.peer[card]

    def _import(self, tile: Tile, card: int, now: float) -> int:
        """Bring a tile from where it lives; the card that has it then."""
        if self.on_card:
            self._there[tile, 0] = 0.0
            return 0
        by = card if self._versions[tile] else self._by.get(tile, card)
        took = self.copied(tile, goes_up=True)
        self.up[by] = max(self.up[by], now) + took
        self.linked[by, True] += took
        self.moved[by, True] += self.nbytes(tile, goes_up=True)
        self._there[tile, by] = self.up[by]
        return by


def routine(name: str, n: int) -> TiledRoutine:
    """A routine on matrices of order n."""
    row, no = ROUTINES[name], Trans.NO
    flags = {"side": Side.LEFT, "uplo": Uplo.LOWER, "trans": no, "trans_a": no, "trans_b": no}
    return TiledRoutine.of(row, (n,) * len(row.dims), {**flags, "diag": Diag.NON_UNIT}, DTYPES["d"])


def schedule_for(name: str, n: int, letter: str, cards: int, tiles: tuple[int, ...] = ()) -> Schedule:
    """The schedule of a call, with tiles as the engine cuts them or of these orders."""
    tiled = routine(name, n)
    free = (True, False, True) if name == "gemm" else (True, False)[: len(tiled.extents)]
    narrow = reference().narrow_tiles_max_order.get(letter, 0)
    cut = name, tiled.extents, letter, LIMIT, cards, free, inner_extent(tiled), narrow
    orders = tiles or tile_orders(*cut)
    scalars = (1, 0) if name in ("gemm", "syrk") else (1,)
    holds_output = can_hold_output(n * n * DTYPES[letter].itemsize, LIMIT, cards)
    return plan_of(tiled, orders, scalars, letter, [1.0] * cards, holds_output)


def rows(options: Namespace) -> Rows:
    """Milliseconds of each call."""
    rates, itemsize = Rates.of(options.device, options.letter), DTYPES[options.letter].itemsize
    links = Links(options.link * 1e9, options.peer * 1e9, options.start * 1e-6, options.host * 1e-6)
    for name in options.routines:
        for n in options.sizes:
            one = 0.0
            for cards in options.cards:
                schedule = schedule_for(name, n, options.letter, cards, options.tiles)
                line = Timeline(schedule, rates, links, itemsize, options.on_card)
                took = line.run()
                one = one or took
                linked = max(line.linked.values(), default=0.0)
                bound = line.bound() if cards == 1 and not options.on_card else took
                times = {"compute": max(line.busy.values()), "links": linked, "bound": bound, "call": took}
                cuts = ", ".join(f"{grid.rows[0]}x{grid.cols[0]}" for grid in schedule.tasks.grids.values())
                row = {"routine": name, "n": n, "cards": cards, "tiles": cuts, "tasks": len(schedule.owners)}
                yield row | {key: 1e3 * x for key, x in times.items()} | {"times one card": one / took}


def summary(rows: list[Row], options: Namespace) -> Iterator[Table]:
    title = f"{options.letter}, milliseconds, {'on a card' if options.on_card else 'from the host'}"
    yield table(title, " | ".join(rows[0]), [list(row.values()) for row in rows])


KNOWN = ("gemm", "trsm", "trmm", "syrk", "potrf")
STUDY = Study(
    "engine_model",
    __doc__,
    rows,
    {
        "routines": Option(KNOWN, KNOWN),
        "sizes": (4096, 8192, 16384, 32768),
        "cards": (1, 2, 4),
        "letter": Option("d", choices=("s", "d")),
        "tiles": Option((), kind=lambda text: tuple(map(int, text.split(",")))),
        "on_card": Option(False, help="matrices on the first card"),
        "device": "nvidia-h200",
        "link": Option(Links.host / 1e9, help="GB/s to the host"),
        "peer": Option(Links.peer / 1e9, help="GB/s between cards"),
        "start": Option(Links.start * 1e6, help="microseconds to the first copy"),
        "host": Option(Links.task * 1e6, help="microseconds to enqueue a task"),
    },
    lambda options: {},
    summary=summary,
    prints_rows=False,
)

if __name__ == "__main__":
    main(STUDY)
