"""Two-stage tuning as in PLASMA: ``python tuning/papers/two_stage.py [--routine trsm] [--dtype d] [SWEEP]``

PLASMA tunes its serial kernels first. It times a factorization only with the (NB, IB) pairs that do best
there (Dongarra and Moore, *Empirical Performance Tuning of Dense Linear Algebra Software*, 3.3.1).

Here the caller is the recursion of TRSM and TRMM. What is combined are a leaf kernel, the order at which the
recursion stops, and a Config of the products in between. The first stage is a sweep that `pyblasgpu tune`
recorded; the second runs on the device that is here.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from pyblasgpu.database import FAMILIES, RHS_AT, families_of, is_batch
from pyblasgpu.frontend.calls.call import routine as routine_of
from pyblasgpu.gpu import device as devices
from pyblasgpu.terminal import console, guarded
from pyblasgpu.tuning.results import Record, sound
from pyblasgpu.tuning.search_problem import Measurement, Times
from pyblasgpu.tuning.sweep_file import read_sweep, sweep_file
from pyblasgpu.tuning.worker import DONE, Worker
from pyblasgpu.tuning.worker_bench import Bench, Job, Timing
from pyblasgpu.types import DTYPES

__all__ = [
    "ORDER",
    "STOPS",
    "Combination",
    "Pair",
    "combinations",
    "main",
    "pairs",
    "predicted",
    "second_stage",
]

STOPS = (64, 128, 256, 512, 1024)
ORDER = 2048  # of the triangle on which stops are compared
KEEP = 8  # pairs, besides those of the best leaf with every stop
PATIENCE = 300.0  # seconds: there may be kernels that nobody has compiled yet
WIDTH = 170  # columns of a table that goes into a file or a pipe


class Combination(NamedTuple):
    """What a recursive routine needs to run, and the seconds that its kernels' times promise."""

    leaf: Any
    stop: int
    gemm: Any
    seconds: float


def combinations(
    leaves: Times, products: Times, n: int, rhs: int, stops: Sequence[int], keep: int = 8, best: int = 3
) -> list[Combination]:
    """The `keep` combinations that promise the shortest time for a triangle of `n` and `rhs` columns.

    Parameters
    ----------
    leaves : mapping of Measurement to float
        Seconds of leaf kernels; extents are (order, right-hand sides).
    products : mapping of Measurement to float
        Seconds of GEMM kernels; extents are (m, n, k).
    n, rhs : int
        The problem that decides.
    stops : sequence of int
        Orders at which the recursion may stop.
    keep : int
        How many combinations are to be timed.
    best : int
        How many kernels of each kind are combined: at each extents that were timed the fastest so many.

    Raises
    ------
    ValueError
        Where one of the kinds has no times.
    """
    if not leaves or not products:
        raise ValueError(f"combinations: {len(leaves)} times of leaves, {len(products)} of products")
    at_leaves, at_products = _by_config(leaves), _by_config(products)
    combined = [
        Combination(leaf, stop, gemm, predicted(at_leaves[leaf], at_products[gemm], n, rhs, stop))
        for leaf, gemm, stop in product(_fastest(leaves, best), _fastest(products, best), stops)
    ]
    return sorted(combined, key=lambda combination: combination.seconds)[:keep]


def predicted(
    leaf: Mapping[tuple[int, ...], float], gemm: Mapping[tuple[int, ...], float], n: int, rhs: int, stop: int
) -> float:
    """Seconds of the recursion: leaves of at most `stop` rows, and a product between the two halves of each
    larger triangle. `leaf` and `gemm` are the seconds of one kernel of each kind, by extents.
    """
    if n <= stop:
        return _scaled(leaf, (n, rhs), n * n * rhs)
    half = n // 2
    return (
        predicted(leaf, gemm, half, rhs, stop)
        + predicted(leaf, gemm, n - half, rhs, stop)
        + _scaled(gemm, (n - half, rhs, half), (n - half) * half * rhs)
    )


def _scaled(times: Mapping[tuple[int, ...], float], extents: tuple[int, ...], work: int) -> float:
    """The time at the nearest extents, by each one's logarithm, at the rate that was reached there."""

    def distance(other: tuple[int, ...]) -> float:
        return sum(abs(math.log(a / b)) for a, b in zip(extents, other, strict=True))

    nearest = min(times, key=distance)
    if nearest == extents:
        return times[nearest]
    done = nearest[0] ** 2 * nearest[1] if len(nearest) == 2 else math.prod(nearest)
    return times[nearest] * work / done


def _by_config(times: Times) -> dict[Any, dict[tuple[int, ...], float]]:
    by_config: dict[Any, dict[tuple[int, ...], float]] = {}
    for measurement, seconds in times.items():
        by_config.setdefault(measurement.config, {})[measurement.extents] = seconds
    return by_config


def _fastest(times: Times, best: int) -> list[Any]:
    """At each extents the `best` fastest, each once."""
    at: dict[tuple[int, ...], list[tuple[float, Any]]] = {}
    for measurement, seconds in times.items():
        at.setdefault(measurement.extents, []).append((seconds, measurement.config))
    ranked = (sorted(pairs, key=lambda pair: pair[0])[:best] for pairs in at.values())
    return list(dict.fromkeys(config for pairs in ranked for _, config in pairs))


class Pair(NamedTuple):
    """A leaf kernel, its family, and the order at which the recursion stops: PLASMA's (IB, NB)."""

    stem: str
    leaf: Any
    stop: int


def pairs(
    records: Sequence[Record], routine: str, dtype: str, size: str, stops: Sequence[int] = STOPS
) -> list[Pair]:
    """What the second stage times in a size class: the best leaf with every stop, and what promises most.

    Parameters
    ----------
    records : sequence of Record
        The first stage: `sound` times of leaves and products.
    routine : {'trsm', 'trmm'}
    dtype, size : str
    stops : sequence of int
    """
    stems = {}
    leaves: dict[Measurement, float] = {}
    for stem in families_of(routine, dtype):
        times = _times(records, stem, dtype, size)
        leaves.update(times)
        stems.update(dict.fromkeys((measurement.config for measurement in times), stem))
    if not leaves:
        return []
    products: dict[Measurement, float] = {}
    for stem in families_of("gemm", dtype):
        times = _times(records, stem, dtype)
        products.update((m, seconds) for m, seconds in times.items() if not is_batch(m.size))
    largest = max(measurement.extents for measurement in leaves)
    best = min((m for m in leaves if m.extents == largest), key=leaves.__getitem__).config
    chosen = dict.fromkeys((best, stop) for stop in stops)
    if products:
        likely = combinations(leaves, products, ORDER, RHS_AT[size], stops, KEEP)
        chosen.update(dict.fromkeys((each.leaf, each.stop) for each in likely))
    # beyond its own largest order a leaf is the same with every stop
    different = dict.fromkeys((leaf, min(stop, leaf.ORDER)) for leaf, stop in chosen)
    return [Pair(stems[leaf], leaf, stop) for leaf, stop in different]


def _times(
    records: Iterable[Record], stem: str, dtype: str, size: str | None = None
) -> dict[Measurement, float]:
    """The times of a family in its first layout, of one class or of all."""
    family = FAMILIES[stem]
    layout = family.layouts[0]
    return {
        Measurement(
            family.config(dtype, layout, record.parameters), record.size, record.extents
        ): record.seconds
        for record in records
        if (record.stem, record.dtype, record.layout) == (stem, dtype, layout) and size in (None, record.size)
    }


def second_stage(
    records: Sequence[Record], routine: str, dtype: str, measure: Callable[[Job], float | None]
) -> dict[str, list[tuple[Pair, float]]]:
    """The pairs of each size class with their seconds, the fastest first.

    Parameters
    ----------
    records : sequence of Record
    routine, dtype : str
    measure : callable
        ``measure(job)``, the seconds of a job; None where it failed.
    """
    timed: dict[str, list[tuple[Pair, float]]] = {}
    for size, rhs in RHS_AT.items():
        for pair in pairs(records, routine, dtype, size):
            overrides = (routine, pair.stop), (pair.stem, pair.leaf)
            seconds = measure(Job(routine, dtype, "any", overrides, (((ORDER, rhs), math.inf),)))
            if seconds is not None:
                timed.setdefault(size, []).append((pair, seconds))
    return {size: sorted(each, key=lambda item: item[1]) for size, each in timed.items()}


def _on_device(worker: Worker, job: Job) -> float | None:
    worker.send(job, PATIENCE)
    seconds = None
    while worker.busy:
        answer = worker.receive(PATIENCE)
        if isinstance(answer, Timing):
            seconds = answer.seconds
        elif answer not in (None, DONE):
            print(f"{job.overrides}: {answer.outcome}, {answer.detail}", file=sys.stderr)
    return seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the second stage on the device that is here and print its table; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sweeps", nargs="*", type=Path, metavar="SWEEP", help="default: that of the device")
    parser.add_argument("--routine", choices=("trsm", "trmm"), default="trsm")
    parser.add_argument("--dtype", choices=tuple(DTYPES), default="d")
    options = parser.parse_args(arguments)
    device = devices.current()
    records = [r for path in options.sweeps or [sweep_file(device.name)] for r in read_sweep(path)]
    records = [record for record in sound(records) if record.device == device.name]
    with Worker(Bench, (routine_of, device.ordinal)) as worker:
        timed = second_stage(records, options.routine, options.dtype, lambda job: _on_device(worker, job))
    if not timed:
        raise ValueError(f"no times of {options.dtype}{options.routine} on {device.name} are recorded")
    console(WIDTH).print(table(timed, options.dtype + options.routine, device.name))
    return 0


def table(timed: dict[str, list[tuple[Pair, float]]], routine: str, device: str) -> Table:
    """A row a pair, the fastest of each class first."""
    made = Table("class", "family", "leaf", "stop", "ms", title=f"{routine} of order {ORDER} on {device}")
    for size, each in timed.items():
        for pair, seconds in each:
            parameters = FAMILIES[pair.stem].parameters_of(pair.leaf)
            leaf = " ".join(f"{name}={value}" for name, value in parameters.items())
            made.add_row(size, pair.stem, leaf, str(pair.stop), f"{1e3 * seconds:.3f}")
    return made


if __name__ == "__main__":
    sys.exit(guarded(["tuning/papers/two_stage.py"], main))
