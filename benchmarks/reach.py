"""How far tile algorithms reach: POTRF and GEMM of order 10^6 on many cards, simulated. No device is used.

``python -m benchmarks.reach [--n 1000000] [--cards 8 64 512] [--chunks 2048 ... 32768] [--out FOLDER]``

Chunks of 4096 are simulated with ``--most-tasks 3000000``, in some minutes and 2.2 GB of memory.

Seconds of leaves are those of benchmarks/results, interpolated; rates of the links are arguments. POTRF runs
the list of `pyblasgpu.tasks` on a simulated machine, if it is short enough; GEMM is bound by its counts.
docs/design/reach.md says what is assumed.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import ceil, exp, log, sqrt
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.study import Namespace, Option, Row, Rows, Study, cubes, main, table
from pyblasgpu.tasks import Task, TaskList, Tile, cut, dependencies, flops, potrf
from pyblasgpu.types import Uplo

__all__ = ["Links", "Rates", "bounds", "gemm_bounds", "simulate"]

RESULTS = Path(__file__).parent / "results"
#: Routines of the leaves of a factorization.
LEAVES = "gemm", "herk", "trsm", "potrf"
#: By routine and variant of `bench` the leaf whose rate it is.
LEAF_OF = {"gemm NT": "gemm", "syrk LN": "herk", "trsm LLNN": "trsm"}


@dataclass(frozen=True)
class Links:
    """Bytes a second into a card, one direction, and the bytes that it holds.

    Attributes
    ----------
    nvlink : float
        Between cards of a node: peer writes between two H100 with 18 links, NVIDIA/nccl issue 1264.
    network : float
        Into a node, for each of its cards: an adapter of 400 Gb/s a card, measured by DeepEP (its README).
    host : float
        From the host's memory: NVIDIA/nvbandwidth issue 24.
    memory : float
        For tiles, of the 141 GB of an H200.
    """

    nvlink: float = 376e9
    network: float = 46e9
    host: float = 52e9
    memory: float = 120e9


@dataclass
class Rates:
    """FLOP/s of the leaves by order, in one dtype.

    Attributes
    ----------
    points : dict of str to list of (int, float)
        Orders that were measured, ascending, and the rates.
    """

    points: dict[str, list[tuple[int, float]]]
    known: dict[tuple[str, int], float] = field(default_factory=dict)

    @classmethod
    def of(cls, device: str, letter: str = "d", results: Path = RESULTS) -> Rates:
        """What was measured on a device, the newest where there are several."""
        rates: dict[str, dict[int, float]] = {name: {} for name in LEAVES}
        for file in sorted((results / device).glob("*.json")):
            rows = json.loads(file.read_text()).get("results", [])
            for routine, order, rate in _rates(rows, letter):
                rates[routine][order] = rate
        return cls({name: sorted(points.items()) for name, points in rates.items()})

    def at(self, routine: str, order: float) -> float:
        """The rate of square operands of this order; that of the largest measured one beyond it."""
        points = self.points[routine]
        place = bisect_left(points, (order, 0.0))
        if place in (0, len(points)):
            return points[min(place, len(points) - 1)][1]
        (below, low), (above, high) = points[place - 1 : place + 1]
        weight = log(order / below) / log(above / below)
        return exp((1 - weight) * log(low) + weight * log(high))

    def seconds(self, routine: str, count: int) -> float:
        """The time of a number of flops, at the rate of square operands with as many."""
        if (routine, count) not in self.known:
            rate = self.at(routine, (count / cubes(routine)) ** (1 / 3))
            self.known[routine, count] = count / rate
        return self.known[routine, count]


def _rates(rows: Iterable[dict[str, Any]], letter: str) -> Iterable[tuple[str, int, float]]:
    """The rates of square operands among results of `bench` and of benchmarks.lapack."""
    for row in rows:
        if row.get("letter") == letter and row.get("routine") == "potrf" and row["uplo"] == "LOWER":
            if row["batch"] == 1:
                yield "potrf", row["n"], row["n"] ** 3 / 3 / row["ours_us"] * 1e6
        elif row.get("dtype") == letter and row.get("batch", 1) in (1, None) and {"n", "tflops"} <= {*row}:
            square = row["n"] == row.get("m", row["n"]) == row.get("k", row["n"])
            routine = LEAF_OF.get(f"{row.get('routine')} {row.get('variant')}")
            if square and routine and row["n"] & (row["n"] - 1) == 0:
                yield routine, row["n"], row["tflops"] * 1e12


def grid_of(cards: int) -> tuple[int, int]:
    """Rows and columns of the grid of cards, as square as a power of two goes."""
    rows = 1 << (cards.bit_length() - 1) // 2
    return rows, cards // rows


@dataclass
class _Machine:
    """Cards in nodes of eight, and when their links are free."""

    cards: int
    links: Links
    nvlink: dict[int, float] = field(default_factory=dict)
    network: dict[int, float] = field(default_factory=dict)

    def owner(self, tile: Tile) -> int:
        """The card of a tile, block-cyclic in two dimensions; nodes are blocks of 2 by 4 in the grid."""
        rows, cols = grid_of(self.cards)
        row, col = tile.row % rows, tile.col % cols
        node = row // 2 * (cols // 4) + col // 4
        return node * 8 + row % 2 * 4 + col % 4

    def arrivals(self, now: float, source: int, receivers: set[int], size: int) -> dict[int, float]:
        """Return when a tile that is final `now` reaches each receiver: to a node once, within it by NVLink.

        The links into a card or a node are busy meanwhile; those out of them are not: nodes pass tiles on.
        """
        reached = {source // 8: now}
        times = {}
        for card in sorted(receivers - {source}):
            node = card // 8
            if node not in reached:
                adapter = min(range(node * 8, node * 8 + 8), key=lambda each: self.network.get(each, 0.0))
                begin = max(now, self.network.get(adapter, 0.0))
                reached[node] = self.network[adapter] = begin + size / self.links.network
            begin = max(reached[node], self.nvlink.get(card, 0.0))
            times[card] = self.nvlink[card] = begin + size / self.links.nvlink
        return times


def simulate(tasks: TaskList, cards: int, rates: Rates, links: Links, itemsize: int = 8) -> float:
    """Seconds of a list whose tasks read final tiles: each card runs what is ready, earlier tasks first."""
    machine = _Machine(cards, links)
    owners = [machine.owner(task.writes[0]) for task in tasks.tasks]
    needs = dependencies(tasks.tasks)
    users: list[list[int]] = [[] for _ in needs]
    for number, need in enumerate(needs):
        for other in need:
            users[other].append(number)
    waiting = [len(need) for need in needs]
    ready: list[list[int]] = [[] for _ in range(cards)]
    idle, now = [True] * cards, 0.0
    events: list[tuple[float, int, int, bool]] = []  # when, card, task, whether it ends there

    def start(card: int) -> None:
        if idle[card] and ready[card]:
            number = heappop(ready[card])
            task = tasks.tasks[number]
            idle[card] = False
            end = now + rates.seconds(task.leaf.routine, flops(tasks, task))
            heappush(events, (end, card, number, True))

    for number, count in enumerate(waiting):
        if not count:
            heappush(ready[owners[number]], number)
    for card in range(cards):
        start(card)
    while events:
        now, card, number, ends = heappop(events)
        if ends:
            idle[card] = True
            for other, when in _sent(machine, tasks, number, owners, users, now, itemsize):
                heappush(events, (when, other, number, False))
        for user in users[number]:
            if owners[user] == card:
                waiting[user] -= 1
                if not waiting[user]:
                    heappush(ready[card], user)
        start(card)
    return now


def _sent(
    machine: _Machine,
    tasks: TaskList,
    number: int,
    owners: Sequence[int],
    users: Sequence[Sequence[int]],
    now: float,
    itemsize: int,
) -> Iterable[tuple[int, float]]:
    """The cards that a finished tile goes to, and when it has come."""
    task: Task = tasks.tasks[number]
    if not task.finishes:
        return ()
    rows, cols = tasks.grids["a"].tile_shape(task.writes[0])
    receivers = {owners[user] for user in users[number]}
    return machine.arrivals(now, owners[number], receivers, rows * cols * itemsize).items()


def bounds(n: int, chunk: int, cards: int, rates: Rates, links: Links, itemsize: int = 8) -> dict[str, float]:
    """Seconds that POTRF takes at least: for its work, its longest chain of tasks, and what cards receive."""
    blocks = ceil(n / chunk)
    products, pairs = blocks * (blocks - 1) * (blocks - 2) // 6, blocks * (blocks - 1) // 2
    whole = (n / (blocks * chunk)) ** 3  # the last blocks are smaller
    leaf = {name: rates.seconds(name, round(cubes(name) * chunk**3)) for name in LEAVES}
    work = products * leaf["gemm"] + pairs * (leaf["herk"] + leaf["trsm"]) + blocks * leaf["potrf"]
    size = chunk * chunk * itemsize
    step = leaf["trsm"] + leaf["herk"] + 2 * size / links.nvlink
    chain = blocks * leaf["potrf"] + (blocks - 2) * step
    return {
        "work": whole * work / cards,
        "chain": chain,
        "links": _received(n, cards, links, n * n / 2 * itemsize),
        "host": _streamed(n, cards, links, n * n / 2, n / 6, itemsize),
    }


def gemm_bounds(
    n: int, chunk: int, cards: int, rates: Rates, links: Links, itemsize: int = 8
) -> dict[str, float]:
    """Seconds that GEMM takes at least: for its work, for what cards receive, and from the hosts' memory."""
    work = 2 * n**3 / rates.at("gemm", chunk) / cards
    links_seconds = _received(n, cards, links, n * n * itemsize)
    return {"work": work, "links": links_seconds, "host": _streamed(n, cards, links, 3 * n * n, n, itemsize)}


def _streamed(n: int, cards: int, links: Links, numbers: float, length: float, itemsize: int) -> float:
    """Seconds from the hosts' memory, 0 where the cards hold all `numbers`.

    All cards together keep a square of the result. Two strips of the factors, `length` long in the mean, go
    past it; the result comes and goes.
    """
    if numbers * itemsize <= cards * links.memory:
        return 0.0
    side = sqrt(0.75 * links.memory * cards / itemsize)
    moved = n * n / side * 2 * length + n * n
    return moved * itemsize / (cards * links.host)


def _received(n: int, cards: int, links: Links, size: float) -> float:
    """Seconds for what comes into a card, or a node, if `size` bytes go along the rows and the columns."""
    rows, cols = grid_of(cards)
    card = size * (1 / rows + 1 / cols) / links.nvlink
    if cards <= 8:
        return card
    node = size * (2 / rows + 4 / cols) / (8 * links.network)
    return max(card, node)


def rows(options: Namespace) -> Rows:
    rates, links = Rates.of(options.device), links_of(options)
    for chunk in options.chunks:
        blocks, tasks = ceil(options.n / chunk), None
        if blocks * blocks * blocks / 6 <= options.most_tasks:
            tasks = potrf(cut(options.n, chunk), Uplo.LOWER)
        for cards in options.cards:
            row: Row = {"cards": cards, "chunk": chunk, "blocks": blocks}
            row["potrf"] = bounds(options.n, chunk, cards, rates, links)
            row["seconds"] = simulate(tasks, cards, rates, links) if tasks else None
            yield {**row, "gemm": gemm_bounds(options.n, chunk, cards, rates, links)}


def links_of(options: Namespace) -> Links:
    return Links(*(getattr(options, name) for name in vars(Links())))


def facts(options: Namespace) -> Row:
    return {"device": options.device, "n": options.n, "links": vars(links_of(options))}


def document(facts: Row, lists: dict[str, list[Row]]) -> Row:
    return {**facts, "results": sorted(lists["results"], key=lambda row: row["cards"])}


def summary(rows: list[Row], options: Namespace) -> Iterator[Table]:
    peak = max(rate for _, rate in Rates.of(options.device).points["gemm"])
    lines = []
    for row in sorted(rows, key=lambda row: row["cards"]):
        all_cards, n, seconds = peak * row["cards"], options.n, row["seconds"]
        simulated = ("", "") if seconds is None else (seconds, n**3 / 3 / all_cards / seconds)
        gemm = row["gemm"].values()
        efficiency = 2 * n**3 / all_cards / max(gemm)
        lines.append((row["cards"], row["chunk"], *row["potrf"].values(), *simulated, *gemm, efficiency))
    heads = "cards | chunk | potrf: work | chain | links | host | simulated | efficiency"
    title = f"n = {options.n}; seconds; efficiency is of GEMM's best rate on all cards"
    yield table(title, heads + " | gemm: work | links | host | efficiency", lines)


STUDY = Study(
    "reach",
    __doc__,
    rows,
    {
        "n": 10**6,
        "cards": (8, 64, 512),
        "chunks": (2048, 4096, 8192, 16384, 32768),
        "device": "nvidia-h200",
        "most_tasks": Option(400_000, help="longer lists are not simulated"),
        **{name: Option(rate, help="bytes a second, or bytes") for name, rate in vars(Links()).items()},
    },
    facts,
    document=document,
    summary=summary,
    prints_rows=False,
)

if __name__ == "__main__":
    main(STUDY)
