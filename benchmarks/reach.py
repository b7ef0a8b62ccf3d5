"""How far tile algorithms reach: POTRF and GEMM of order 10^6 on many cards, simulated. No device is used.

``python -m benchmarks.reach [--n 1000000] [--cards 8 64 512] [--chunks 2048 ... 32768] [--out FOLDER]``

Chunks of 4096 are simulated with ``--most-tasks 3000000``, in some minutes and 2.2 GB of memory.

Seconds of leaves are those of benchmarks/results, interpolated; rates of the links are arguments. POTRF runs
the list of `pyblasgpu.tasks` on a simulated machine, if it is short enough; GEMM is bound by its counts.
docs/design/reach.md says what is assumed.
"""

from __future__ import annotations

import argparse
import json
import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import ceil, exp, log, sqrt
from pathlib import Path
from typing import Any

from rich.table import Table

from pyblasgpu.tasks import Task, TaskList, Tile, cut, dependencies, flops, potrf
from pyblasgpu.terminal import console
from pyblasgpu.types import Uplo

__all__ = ["Links", "Rates", "bounds", "gemm_bounds", "main", "simulate"]

RESULTS = Path(__file__).parent / "results"
#: Flops of each routine on square operands, as multiples of the cube of the order.
CUBES = {"gemm": 2.0, "herk": 1.0, "trsm": 1.0, "potrf": 1 / 3}
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
        rates: dict[str, dict[int, float]] = {name: {} for name in CUBES}
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
        """The time of so many flops, at the rate of square operands with as many."""
        if (routine, count) not in self.known:
            rate = self.at(routine, (count / CUBES[routine]) ** (1 / 3))
            self.known[routine, count] = count / rate
        return self.known[routine, count]


def _rates(rows: Iterable[dict[str, Any]], letter: str) -> Iterable[tuple[str, int, float]]:
    """The rates of square operands among results of `bench` and of benchmarks.lapack."""
    for row in rows:
        if row.get("letter") == letter and row.get("routine") == "potrf" and row["uplo"] == "LOWER":
            if row["batch"] == 1:
                yield "potrf", row["n"], row["n"] ** 3 / 3 / row["ours_us"] * 1e6
        elif row.get("dtype") == letter and "n" in row and row.get("batch", 1) in (1, None):
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
        """When a tile that is final `now` has come to each receiver: to a node once, within it by NVLink.

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
    leaf = {name: rates.seconds(name, round(count * chunk**3)) for name, count in CUBES.items()}
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, print tables, write JSON; returns the exit code."""
    options = _parse(arguments)
    rates = Rates.of(options.device)
    links = Links(options.nvlink, options.network, options.host, options.memory)
    rows = []
    for chunk in options.chunks:
        blocks = ceil(options.n / chunk)
        tasks = None
        if blocks * blocks * blocks / 6 <= options.most_tasks:
            tasks = potrf(cut(options.n, chunk), Uplo.LOWER)
        for cards in options.cards:
            row = {"cards": cards, "chunk": chunk, "blocks": blocks}
            row["potrf"] = bounds(options.n, chunk, cards, rates, links)
            row["seconds"] = simulate(tasks, cards, rates, links) if tasks else None
            row["gemm"] = gemm_bounds(options.n, chunk, cards, rates, links)
            rows.append(row)
    rows.sort(key=lambda row: row["cards"])
    made = {"device": options.device, "n": options.n, "links": vars(links), "results": rows}
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "reach.json").write_text(json.dumps(made, indent=1) + "\n")
    peak = max(rate for _, rate in rates.points["gemm"])
    console(120).print(_table(rows, options.n, peak))
    return 0


def _table(rows: list[dict[str, Any]], n: int, peak: float) -> Table:
    table = Table(title=f"n = {n}; seconds; efficiency is of GEMM's best rate on all cards")
    heads = ("cards", "chunk", "potrf: work", "chain", "links", "host", "simulated", "efficiency")
    for head in (*heads, "gemm: work", "links", "host", "efficiency"):
        table.add_column(head, justify="right")
    for row in rows:
        potrf_bounds, gemm = row["potrf"], row["gemm"]
        seconds = row["seconds"]
        simulated = (
            ("", "")
            if seconds is None
            else (f"{seconds:.1f}", f"{n**3 / 3 / peak / row['cards'] / seconds:.2f}")
        )
        table.add_row(
            str(row["cards"]),
            str(row["chunk"]),
            *(f"{potrf_bounds[name]:.1f}" for name in ("work", "chain", "links", "host")),
            *simulated,
            *(f"{gemm[name]:.1f}" for name in ("work", "links", "host")),
            f"{2 * n**3 / peak / row['cards'] / max(gemm.values()):.2f}",
        )
    return table


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reach", description=__doc__)
    parser.add_argument("--n", type=int, default=10**6)
    parser.add_argument("--cards", type=int, nargs="+", default=[8, 64, 512])
    parser.add_argument("--chunks", type=int, nargs="+", default=[2048, 4096, 8192, 16384, 32768])
    parser.add_argument("--device", default="nvidia-h200")
    parser.add_argument("--most-tasks", type=int, default=400_000, help="longer lists are not simulated")
    for name, rate in vars(Links()).items():
        parser.add_argument(f"--{name}", type=float, default=rate, help="bytes a second, or bytes")
    parser.add_argument("--out", type=Path)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
