"""PLASMA's validation (Table 3.1 of Dongarra and Moore): a two-stage search against an exhaustive one.

``python tuning/papers/atlas.py [--routine trsm] [--dtype d] [--seconds 20m] [--out FOLDER]``
``python tuning/papers/atlas.py RECORDING.json``

The exhaustive search times the recursion of TRSM or TRMM at three orders. It takes every leaf, every order at
which the recursion stops, and every GEMM of the lists. Combinations come in random order. The paper's own
factorizations are in `plasma`.

The two-stage search times leaves and GEMMs alone, and the recursion with the best few only. It is replayed on
the recording. PS is the rate of what it picks, ES that of the best of all. The overhead is 100 (ES / PS - 1),
at most 2 % in the paper.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.table import Table

from pyblasgpu.database import families_of
from pyblasgpu.gpu.device import Device
from pyblasgpu.options import parse_count, parse_sizes
from pyblasgpu.terminal import guarded
from pyblasgpu.tuning.prune import best_few, candidates
from pyblasgpu.types import DTYPES
from tuning.papers.experiment import Experiment, Kernel, Rows
from tuning.papers.study import Figure, Study, add_options, interleaved, names_in, report, run_study

__all__ = ["STUDY", "Lists", "lists", "main", "record", "replay", "table"]

ROUTINES = ("trsm", "trmm")
STOPS = (64, 128, 256, 512)
SEED = 2010
ORDERS = "1024,2048,4096"
KEEP = 3  # kernels of each kind that the second stage combines


class Lists(NamedTuple):
    """What is combined: (family, Config) of leaves and of products, and orders at which a recursion stops."""

    leaves: list[tuple[str, Any]]
    products: list[tuple[str, Any]]
    stops: Sequence[int]


def lists(routine: str, letter: str, device: Device, most: int) -> Lists:
    """The likeliest `most` leaves and products of each family, by the cost model."""
    leaves, products = [], []
    for stem in families_of(routine, letter):
        found = candidates(stem, letter, "any", device, "quick").left
        leaves += [(stem, config) for config in found[:: max(len(found) // most, 1)][:most]]
    for stem in families_of("gemm", letter):
        found = candidates(stem, letter, "nn", device, "quick").left
        products += [(stem, config) for config in best_few(found, (1024, 1024, 512), device, most, 1)]
    return Lists(leaves, products, STOPS)


def kernels(routine: str, letter: str, device: Device, most: int) -> list[Kernel]:
    """Kernels of the lists, the products first."""
    chosen = lists(routine, letter, device, most)
    return [*chosen.products, *chosen.leaves]


def record(
    run: Experiment, routine: str, letter: str, orders: Sequence[int], chosen: Lists
) -> dict[str, Any]:
    """Time kernels alone, then every combination; as JSON holds it, rates in TFLOP/s by order."""
    leaves = [_alone(run, routine, letter, stem, leaf, orders) for stem, leaf in chosen.leaves]
    products = [_product(run, letter, stem, config, orders) for stem, config in chosen.products]
    whole: Rows = []
    for leaf, stop, product in _shuffled(range(len(leaves)), chosen.stops, range(len(products))):
        overrides = (
            (f"{routine}_algorithm", "recursion"),
            (routine, stop),
            chosen.leaves[leaf],
            chosen.products[product],
        )
        rates = run.ours(letter, "any", [(n, n) for n in orders], routine, overrides)
        if rates:
            whole.append({"leaf": leaf, "stop": stop, "product": product, "rates": _by_order(rates)})
    return {
        "routine": routine,
        "dtype": letter,
        "orders": list(orders),
        "stops": list(chosen.stops),
        "leaves": leaves,
        "products": products,
        "whole": whole,
    }


def _alone(
    run: Experiment, routine: str, letter: str, stem: str, leaf: Any, orders: Sequence[int]
) -> dict[str, Any]:
    """A leaf at its own order, or the largest at which a recursion stops."""
    problems = [(min(leaf.ORDER, STOPS[-1]), n) for n in orders]
    overrides = ((f"{routine}_algorithm", "recursion"), (stem, leaf))
    rates = run.ours(letter, "any", problems, routine, overrides)
    return {"config": str(leaf), "rates": {str(rhs): rate for (_, rhs), rate in rates.items()}}


def _product(run: Experiment, letter: str, stem: str, config: Any, orders: Sequence[int]) -> dict[str, Any]:
    """A product between the halves of the largest triangle."""
    rates = run.ours(letter, "nn", [(n // 2, n, n // 2) for n in orders], "gemm", ((stem, config),))
    return {"config": str(config), "rates": {str(n): rate for (_, n, _), rate in rates.items()}}


def _shuffled(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """All combinations; what is left out where time ends is no corner."""
    combinations = list(itertools.product(*axes))
    random.Random(SEED).shuffle(combinations)
    return combinations


def _by_order(rates: Mapping[tuple[int, ...], float]) -> dict[str, float]:
    return {str(extents[0]): rate for extents, rate in rates.items()}


def replay(recording: Mapping[str, Any], keep: int = KEEP) -> Rows:
    """The two-stage search on a recording: a row an order, with the paper's columns."""
    rows: Rows = []
    for n in map(str, recording["orders"]):
        leaves = _best(recording["leaves"], n, keep)
        products = _best(recording["products"], n, keep)
        timed = [each for each in recording["whole"] if n in each["rates"]]
        if not timed:
            continue
        tried = [each for each in timed if each["leaf"] in leaves and each["product"] in products]
        es = max(each["rates"][n] for each in timed)
        ps = max((each["rates"][n] for each in tried), default=0.0)
        rows.append(
            {
                "n": int(n),
                "PS": ps,
                "ES": es,
                "overhead": 100 * (es / ps - 1) if ps else None,
                "tried": len(tried),
                "all": len(timed),
            }
        )
    return rows


def _best(kernels: Iterable[Mapping[str, Any]], n: str, keep: int) -> set[int]:
    """Numbers of the `keep` fastest at an order."""
    rated = [(each["rates"][n], number) for number, each in enumerate(kernels) if n in each["rates"]]
    return {number for _, number in sorted(rated, reverse=True)[:keep]}


def table(recording: Mapping[str, Any], device: str, keep: int) -> Table:
    """Table 3.1."""
    name = recording["dtype"] + recording["routine"]
    made = Table("n", "PS, TFLOP/s", "ES, TFLOP/s", "overhead", "combinations", title=f"{name} on {device}")
    for row in replay(recording, keep):
        overhead = "" if row["overhead"] is None else f"{row['overhead']:.1f} %"
        counts = f"{row['tried']} of {row['all']}"
        made.add_row(str(row["n"]), f"{row['PS']:.2f}", f"{row['ES']:.2f}", overhead, counts)
    return made


def _cases(options: argparse.Namespace) -> list[tuple[str, str]]:
    return list(itertools.product(options.routine, options.dtype))


def _kernels(options: argparse.Namespace, device: Device) -> Iterable[Kernel]:
    return interleaved(kernels(*case, device, options.most) for case in _cases(options))


def _collect(run: Experiment, options: argparse.Namespace) -> dict[str, Any]:
    results = [
        record(run, *case, options.orders, lists(*case, run.device, options.most))
        for case in run.in_turn(_cases(options))
    ]
    return {"results": results}


def _tables(made: dict[str, Any], options: argparse.Namespace) -> list[Table]:
    return [table(recording, made["device"], options.keep) for recording in made["results"]]


def _figures(made: dict[str, Any], options: argparse.Namespace) -> list[Figure]:
    curves: dict[str, list[tuple[float, float]]] = {}
    for recording in made["results"]:
        name = recording["dtype"] + recording["routine"]
        rows = replay(recording, options.keep)
        curves |= {f"{name} {key}": [(row["n"], row[key]) for row in rows] for key in ("PS", "ES")}
    return [Figure("atlas", f"Two-stage and exhaustive search on {made['device']}", curves)]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recording", nargs="?", type=Path, help="a recording to replay; needs no device")
    parser.add_argument("--routine", default=["trsm", "trmm"], type=names_in(ROUTINES), help="(trsm,trmm)")
    parser.add_argument("--dtype", default=["d"], type=names_in(DTYPES), help="(d)")
    parser.add_argument("--orders", type=parse_sizes, default=ORDERS, metavar="N,N,...", help="(%(default)s)")
    parser.add_argument("--most", type=parse_count, default=4, help="kernels of each family (%(default)s)")
    parser.add_argument("--keep", type=parse_count, default=KEEP, help="of the second stage (%(default)s)")
    add_options(parser, "20m")
    return parser.parse_args(arguments)


STUDY = Study("atlas", _parse, _kernels, _collect, _tables, _figures)


def main(arguments: Sequence[str] | None = None) -> int:
    """Record on the device that is here, or read a recording; print the table. Returns the exit code."""
    options = _parse(arguments)
    if options.recording is None:
        return run_study(STUDY, arguments)
    report(STUDY, json.loads(options.recording.read_text()), options)
    return 0


if __name__ == "__main__":
    sys.exit(guarded(["tuning/papers/atlas.py"], main))
