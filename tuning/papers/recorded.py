"""What recorded sweeps answer to three papers, without a device.

``python tuning/papers/recorded.py [--out FOLDER] [SWEEP ...]``

KBLAS: where TRSM by recursion, by one fused launch, by a recursion that ends in fused triangles, and by
small triangles are each the fastest. PLASMA's Table 3.1: whether the fastest leaves by themselves are those
that are fastest within TRMM's recursion, with the order at which it stops. Kurzak et al.: how many of the
fastest kernels of FMA units Table 1's guidelines would have left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.table import Table

from pyblasgpu.database import FAMILIES, RECURSION, TRSM_FUSED
from pyblasgpu.errors import ConfigError
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.gemm import simt
from pyblasgpu.model.occupancy import Fit, demand
from pyblasgpu.terminal import console, guarded
from pyblasgpu.tuning.results import Record, sound, winners
from pyblasgpu.tuning.sweep_file import read_sweep
from pyblasgpu.types import DTYPES
from tuning.papers.kurzak import TABLE_1

__all__ = [
    "Replay",
    "algorithms",
    "batch_of",
    "counts_table",
    "document",
    "fastest",
    "main",
    "obeyed",
    "obeyed_table",
    "replays",
    "replays_table",
]

WIDTH = 130
SWEEPS = Path(__file__).parents[1] / "sweeps"
KEEP = 3  # leaves that the first stage keeps
STOP = "stop"
NAME = "recorded"
ENDS_IN_FUSED = "ends in fused"
LAYOUT = "nn"  # of the products whose winners `obeyed` looks at

Rates = Mapping[tuple[str, str], Mapping[str, float]]


def algorithms(records: Sequence[Record], device: str) -> Rates:
    """(dtype, order x right-hand sides) -> TFLOP/s of each algorithm of TRSM."""
    rates: Rates = winners([record for record in records if record.device == device], device).trsm_rates
    return rates


class Replay(NamedTuple):
    """A two-stage search on a recording: its rate, the best rate, and the pairs that either has timed."""

    dtype: str
    rhs: int
    pruned: float
    exhaustive: float
    tried: int
    all: int

    @property
    def overhead(self) -> float:
        """The overhead in percent, as in Table 3.1."""
        return 100 * (self.exhaustive / self.pruned - 1)


def replays(records: Sequence[Record], device: str, keep: int = KEEP) -> list[Replay]:
    """TRMM at each dtype and number of right-hand sides that has leaves alone and pairs of leaf and stop.

    Of each run only, as times of different runs are not compared.
    """
    alone: dict[tuple, dict[tuple, float]] = defaultdict(dict)
    pairs: dict[tuple, dict[tuple, float]] = defaultdict(dict)
    for record in records:
        if record.device != device or record.stem not in ("trmm", "trmm_leaf"):
            continue
        key = record.dtype, record.size
        leaf = tuple(sorted((k, v) for k, v in record.parameters.items() if k != STOP))
        if record.stem == "trmm_leaf":
            order = record.extents[0]
            if order >= max((order for order, _ in alone[key]), default=0):
                alone[key][order, leaf] = max(record.tflops, alone[key].get((order, leaf), 0.0))
        elif STOP in record.parameters:
            at = leaf, record.parameters[STOP], record.extents, record.toolchain
            pairs[key][at] = max(record.tflops, pairs[key].get(at, 0.0))
    return [
        found
        for key in sorted(pairs, key=lambda key: (list(DTYPES).index(key[0]), key[1]))
        for found in _replay(key[0], alone[key], pairs[key], keep)
    ]


def _replay(
    dtype: str, alone: Mapping[tuple, float], pairs: Mapping[tuple, float], keep: int
) -> list[Replay]:
    """One for the run that has timed most pairs."""
    largest = max((order for order, _ in alone), default=0)
    runs: dict[tuple, dict[tuple, float]] = defaultdict(dict)
    for (leaf, stop, extents, toolchain), rate in pairs.items():
        if (largest, leaf) in alone:
            runs[extents, toolchain][leaf, stop] = rate
    if not runs:
        return []
    (extents, _), timed = max(runs.items(), key=lambda item: len(item[1]))
    leaves = sorted({leaf for leaf, _ in timed}, key=lambda leaf: -alone[largest, leaf])
    if len(leaves) <= keep:
        return []
    tried = [rate for (leaf, _), rate in timed.items() if leaf in leaves[:keep]]
    return [Replay(dtype, extents[1], max(tried), max(timed.values()), len(tried), len(timed))]


def obeyed(records: Sequence[Record], device: str) -> list[dict[str, Any]]:
    """The number of problems of each dtype whose fastest kernel Table 1's guidelines leave out, by what it
    lacks, and how many times as long the best takes of those that are left.
    """
    rates: dict[tuple, dict[tuple, float]] = defaultdict(dict)
    for record in records:
        if (record.device, record.stem, record.layout) != (device, simt.STEM, LAYOUT):
            continue
        if record.outcome == "ok" and record.caches == "cold":
            of, key = tuple(sorted(record.parameters.items())), (record.dtype, record.size, record.extents)
            rates[key][of] = max(record.tflops, rates[key].get(of, 0.0))
    rows: list[dict[str, Any]] = []
    if not rates:
        return rows
    fit = Fit(known(device))
    for letter in DTYPES:
        each = [_obeyed(letter, timed, fit) for (dtype, *_), timed in rates.items() if dtype == letter]
        lost = [(lack, ratio) for lack, ratio in each if lack]
        rows.append(
            {
                "dtype": letter,
                "problems": len(each),
                "lacks": dict(Counter(lack for lack, _ in lost)),
                "times": sorted(round(ratio, 4) for _, ratio in lost if ratio),
            }
        )
    return [row for row in rows if row["problems"]]


def _obeyed(letter: str, timed: Mapping[tuple, float], fit: Fit) -> tuple[str, float]:
    """What the fastest of `timed` lacks, and its rate over that of the best which lacks nothing; 0 where none
    does.
    """
    first, best = "", 0.0
    for parameters in sorted(timed, key=lambda each: -timed[each]):
        try:
            config = FAMILIES[simt.STEM].config(letter, LAYOUT, dict(parameters))
        except ConfigError:
            continue  # today's rules have no such kernel
        best, lack = best or timed[parameters], _lack(config, fit)
        first = first or lack
        if not lack:
            return first, best / timed[parameters]
    return first, 0.0


def _lack(config: Any, fit: Fit) -> str:
    """The first guideline of Table 1 that a kernel does not reach; none: ''."""
    of, blocks = TABLE_1[config.dtype], fit.blocks(config)
    reached = {
        "reuse": config.reuse >= of.reuse,
        "blocks": blocks >= of.blocks,
        "threads": blocks * demand(config).threads >= of.threads,
    }
    return next((name for name, is_reached in reached.items() if not is_reached), "")


def obeyed_table(rows: Sequence[Mapping[str, Any]], device: str) -> Table:
    columns = ("GEMM", "problems", "winners left out", "for reuse", "blocks", "threads")
    slower = ("times as long, median", "most", "nothing left")
    made = Table(*columns, *slower, title=f"Winners that Table 1's guidelines leave out on {device}")
    for row in rows:
        lost, times = sum(row["lacks"].values()), row["times"]
        shown = (f"{of(times):.2f}" for of in (statistics.median, max)) if times else ("", "")
        made.add_row(
            f"{row['dtype']}gemm {LAYOUT}",
            *map(str, (row["problems"], lost)),
            *(str(row["lacks"].get(name, 0)) for name in ("reuse", "blocks", "threads")),
            *shown,
            str(lost - len(times)),
        )
    return made


def _algorithms_table(rates: Rates, device: str) -> Table:
    made = Table(
        "", "order x sides", "fastest", "TFLOP/s", "recursion", "the others", title=f"TRSM on {device}"
    )
    for (dtype, point), each in sorted(rates.items(), key=_by_size):
        best, *others = sorted(each, key=lambda name: -each[name])
        rest = ", ".join(f"{name} {each[name]:.2f}" for name in others if name != RECURSION)
        recursion = f"{each[RECURSION]:.2f}" if RECURSION in each else ""
        made.add_row(f"{dtype}trsm", point, best, f"{each[best]:.2f}", recursion, rest)
    return made


def _by_size(item: tuple[tuple[str, str], Any]) -> tuple:
    dtype, point = item[0]
    return list(DTYPES).index(dtype), point.count("x"), [int(number) for number in point.split("x")]


def fastest(each: Mapping[str, float]) -> str:
    """The kind of the algorithm with the highest rate."""
    best = max(each, key=lambda name: each[name])
    return ENDS_IN_FUSED if best.startswith(f"{TRSM_FUSED}_") else best


def counts_table(rates: Rates, device: str) -> Table:
    """The number of problems at which each algorithm is the fastest, batches apart."""
    kinds = (RECURSION, ENDS_IN_FUSED, TRSM_FUSED, "trsm_small")
    made = Table("", "problems", "number", *kinds, title=f"Fastest TRSM on {device}")
    for dtype in DTYPES:
        for label, is_batch in (("one triangle", False), ("batches", True)):
            bests = [
                fastest(each)
                for (letter, point), each in rates.items()
                if letter == dtype and (batch_of(point) > 1) == is_batch
            ]
            if bests:
                counts = (str(bests.count(kind)) for kind in kinds)
                made.add_row(f"{dtype}trsm", label, str(len(bests)), *counts)
    return made


def batch_of(point: str) -> int:
    """The number of triangles of a problem."""
    return int([*point.split("x"), "1"][2])


def document(path: Path, records: Sequence[Record], device: str) -> dict[str, Any]:
    """What the tables are made of, as JSON holds it, with the digest of the sweep."""
    return {
        "paper": NAME,
        "device": device,
        "sweep": path.name,
        "sha256": sha256(path.read_bytes()).hexdigest(),
        "trsm": [
            {"dtype": dtype, "problem": point, "tflops": {name: round(x, 4) for name, x in each.items()}}
            for (dtype, point), each in sorted(algorithms(records, device).items(), key=_by_size)
        ],
        "trmm": [each._asdict() for each in replays(records, device)],
        "guidelines": obeyed(records, device),
    }


def replays_table(found: Sequence[Replay], device: str) -> Table:
    columns = ("", "sides", "PS, TFLOP/s", "ES, TFLOP/s", "overhead", "pairs")
    made = Table(*columns, title=f"Two stages of TRMM of 2048 on {device}")
    for each in found:
        rates = f"{each.pruned:.2f}", f"{each.exhaustive:.2f}", f"{each.overhead:.1f} %"
        made.add_row(f"{each.dtype}trmm", str(each.rhs), *rates, f"{each.tried} of {each.all}")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables of each device; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sweeps", nargs="*", type=Path, metavar="SWEEP", help="default: all in tuning/sweeps")
    parser.add_argument("--counts", action="store_true", help="how often each algorithm wins, and no more")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write JSON, a folder a device")
    options = parser.parse_args(arguments)
    page = console(WIDTH)
    for path in options.sweeps or sorted(SWEEPS.glob("*.jsonl.gz")):
        records = sound(read_sweep(path))
        for device in dict.fromkeys(record.device for record in records):
            rates = algorithms(records, device)
            page.print(counts_table(rates, device))
            if not options.counts:
                page.print(_algorithms_table(rates, device))
            found = replays(records, device)
            if found:
                page.print(replays_table(found, device))
            if rows := obeyed(records, device):
                page.print(obeyed_table(rows, device))
            if options.out is not None:
                file = options.out / device.lower().replace(" ", "_") / f"{NAME}.json"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(document(path, records, device), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(guarded(["tuning/papers/recorded.py"], main))
