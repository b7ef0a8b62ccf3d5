"""PLASMA's pairs (NB, IB): surfaces, the pruned search and Table 3.1 for Cholesky, LU and QR.

``python tuning/papers/plasma.py [--routine potrf,getrf,geqrf] [--dtype d] [--seconds 5m] [--out FOLDER]``

NB is the number of columns after which a factorization updates the rest, IB that of its panels. The first
stage times a step of each pair alone (Figure 3.2). That is factors of a block of NB columns with the update
of the next block, of Cholesky the product. For each NB it keeps the best IB. Of these it keeps an NB that is
faster than all smaller ones. The second stage times factorizations with these pairs. The exhaustive search
times all pairs at all orders (Figure 3.1). Matrices of LU and QR are random, so LU interchanges nearly all
rows.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from numpy import finfo
from rich.table import Table

from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu.device import Device
from pyblasgpu.kernels.registry import family_of
from pyblasgpu.options import parse_sizes
from pyblasgpu.terminal import guarded
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.tuning.worker_bench import Job
from pyblasgpu.types import DTYPES
from tuning.papers.device_time import device_seconds
from tuning.papers.experiment import Experiment, Kernel, Rows
from tuning.papers.study import Figure, Study, add_options, names_in, run_study

__all__ = ["ROUTINES", "STUDY", "experiment", "factor_rate", "interchanged", "main", "pruned", "replay"]

SEED = 2010
ORDERS = "1024,2048,4096"
ROWS = 1024  # of a step
NONE = 0  # the IB of Cholesky
#: Values of the policy with which QR has panels at all: none of its blocks comes from Cholesky factors.
PANELS = {"cholesky_panel_min_rows": 1 << 30}
Overrides = tuple[tuple[str, Any], ...]
Pair = tuple[int, int]


class Factorization(NamedTuple):
    """A routine and what is tuned of it.

    Attributes
    ----------
    outer, inner : sequence of int
        Values of NB and IB.
    overrides : callable
        ``overrides(letter, nb, ib)``: what makes a pair that of a call.
    fmas : callable
        ``fmas(m, n)``, of real matrices.
    """

    outer: Sequence[int]
    inner: Sequence[int]
    overrides: Callable[[str, int, int], Overrides]
    fmas: Callable[[int, int], float]


def _of_potrf(letter: str, nb: int, ib: int) -> Overrides:
    return ("potrf_algorithm", "panels"), ("lookahead", nb)


def _of_getrf(letter: str, nb: int, ib: int) -> Overrides:
    panel = family_of("getrf_panel").fixed_config(letter)
    return ("lookahead", nb), ("getrf_panel", replace(panel, COLS=ib))


def _of_geqrf(letter: str, nb: int, ib: int) -> Overrides:
    triangle, panel = (family_of(stem).fixed_config(letter) for stem in ("larft_leaf", "geqrf_panel"))
    if ib < panel.COLS:
        panel = replace(panel, COLS=ib, DIM=256, ROWS=10)
    return ("larft_leaf", replace(triangle, ORDER=nb)), ("geqrf_panel", panel)


ROUTINES = {
    "potrf": Factorization((64, 128, 256, 512), (NONE,), _of_potrf, lambda m, n: n**3 / 6),
    "getrf": Factorization(
        (64, 128, 256, 512), (8, 16, 32), _of_getrf, lambda m, n: (m * n**2 - n**3 / 3) / 2
    ),
    "geqrf": Factorization((32, 64, 128), (8, 16, 32), _of_geqrf, lambda m, n: m * n**2 - n**3 / 3),
}


def pairs(routine: str) -> list[Pair]:
    """All pairs in random order, so that what is left out where time ends is no corner."""
    found = list(itertools.product(ROUTINES[routine].outer, ROUTINES[routine].inner))
    random.Random(SEED).shuffle(found)
    return found


def kernels(routine: str, letter: str, device: Device, orders: Sequence[int]) -> Iterator[Kernel]:
    """The panels and triangles of all pairs."""
    for nb, ib in pairs(routine):
        for stem, config in ROUTINES[routine].overrides(letter, nb, ib):
            if stem == "getrf_panel":
                yield from ((stem, config.specialize(rows, device)) for rows in (ROWS, *orders))
            elif stem == "geqrf_panel":
                yield from ((stem, each) for each in config.variants)
            elif stem == "larft_leaf":
                yield stem, config.fitting(device.shared_per_block)


def _matrix(routine: str, letter: str, m: int, n: int) -> Any:
    import cupy

    dtype = DTYPES[letter]
    noise = cupy.random.default_rng(n).random((m, n), dtype=dtype.real).astype(dtype.name) - 0.5
    if routine == "potrf":
        noise = noise @ noise.T + n * cupy.eye(n, dtype=dtype.name)
    return cupy.asfortranarray(noise)


def _function(routine: str) -> Callable[[Any], Any]:
    from pyblasgpu import lapack

    options: dict[str, Any] = {"lower": True} if routine == "potrf" else {}
    return partial(getattr(lapack, routine), overwrite_a=True, **options)


def residual(routine: str, given: Any, made: Sequence[Any]) -> float:
    """How far factors are from their matrix, over its largest element; of QR R^H R from A^H A."""
    import cupy

    (m, n), factors = given.shape, made[0]
    upper = cupy.triu(factors[:n])
    if routine == "geqrf":
        product, expected = upper.T.conj() @ upper, given.T.conj() @ given
    elif routine == "potrf":
        lower = cupy.tril(factors)
        product, expected = lower @ lower.T.conj(), given
    else:
        rows = list(range(m))
        for number, row in enumerate(_on_host(made[1])):
            rows[number], rows[row] = rows[row], rows[number]
        unit_lower = cupy.tril(factors, -1) + cupy.eye(m, n, dtype=given.dtype)
        product, expected = unit_lower @ upper, given[cupy.asarray(rows)]
    return float(abs(product - expected).max() / abs(expected).max())


def _on_host(pivots: Any) -> list[int]:
    return [int(row) for row in (pivots.get() if hasattr(pivots, "get") else pivots)]


@contextmanager
def in_force(overrides: Overrides) -> Iterator[None]:
    """A block whose factorizations have this pair; without overrides the library decides."""
    with ExitStack() as held:
        if overrides:
            held.enter_context(deciding_by(**PANELS))
        for name, value in overrides:
            held.enter_context(override(name, value))
        yield


def factor_rate(routine: str, letter: str, m: int, n: int, overrides: Overrides) -> float:
    """TFLOP/s of the factors of an m by n matrix, the median of several by events.

    Raises
    ------
    RuntimeError
        If the factors are wrong.
    """
    given, factor = _matrix(routine, letter, m, n), _function(routine)
    with in_force(overrides):
        error = residual(routine, given, factor(given.copy(order="F")))
        if not error <= 10 * n * float(finfo(DTYPES[letter].name).eps):
            raise RuntimeError(f"factors of {m} by {n} are wrong: {error:.1e}")
        seconds = device_seconds(factor, [given])
    return round(DTYPES[letter].flops_per_fma * ROUTINES[routine].fmas(m, n) / seconds / 1e12, 4)


def interchanged(letter: str, n: int) -> float:
    """The share of an LU's rows that are interchanged with another."""
    _, pivots, _ = _function("getrf")(_matrix("getrf", letter, n, n))
    return sum(row != number for number, row in enumerate(_on_host(pivots))) / n


def experiment(run: Experiment, routine: str, letter: str, orders: Sequence[int]) -> dict[str, Any]:
    """Steps of all pairs, then factorizations, as JSON holds them; rates in TFLOP/s."""
    chosen, all_pairs = ROUTINES[routine], pairs(routine)

    def rate(m: int, n: int, overrides: Overrides) -> float | None:
        job = Job(routine, letter, "any", overrides)
        return run.remembered(job, (m, n), partial(factor_rate, routine, letter, m, n, overrides))

    def step(nb: int, ib: int) -> float | None:
        if ib == NONE:
            return run.ours(letter, "nt", [(ROWS, ROWS, nb)]).get((ROWS, ROWS, nb))
        return rate(ROWS, 2 * nb, chosen.overrides(letter, nb, ib))

    steps = [{"nb": nb, "ib": ib, "tflops": step(nb, ib)} for nb, ib in all_pairs]
    library = {str(n): rate(n, n, ()) for n in orders}
    made = {"routine": routine, "dtype": letter, "orders": list(orders), "library": _known(library)}
    if routine == "getrf":
        job = Job("interchanged", letter, "any")
        shares = {str(n): run.remembered(job, (n, n), partial(interchanged, letter, n)) for n in orders}
        made["interchanged"] = _known(shares)
    whole: Rows = []
    for nb, ib in all_pairs:
        rates = {str(n): rate(n, n, chosen.overrides(letter, nb, ib)) for n in orders if n > nb}
        whole.append({"nb": nb, "ib": ib, "tflops": _known(rates)})
    return {**made, "steps": [each for each in steps if each["tflops"] is not None], "whole": whole}


def _known(rates: Mapping[str, float | None]) -> dict[str, float]:
    return {n: rate for n, rate in rates.items() if rate is not None}


def pruned(steps: Mapping[Pair, float]) -> list[Pair]:
    """Pairs with the fastest step of their NB, where that is faster than those of all smaller NB."""
    kept: list[Pair] = []
    for nb in sorted({nb for nb, _ in steps}):
        best = max((pair for pair in steps if pair[0] == nb), key=lambda pair: steps[pair])
        if all(steps[best] > steps[pair] for pair in kept):
            kept.append(best)
    return kept


def replay(made: Mapping[str, Any]) -> Rows:
    """Table 3.1: a row an order, where pairs that the first stage keeps were timed."""
    kept = pruned({(each["nb"], each["ib"]): each["tflops"] for each in made["steps"]})
    rows: Rows = []
    for n in map(str, made["orders"]):
        timed = {(each["nb"], each["ib"]): each["tflops"][n] for each in made["whole"] if n in each["tflops"]}
        tried = [pair for pair in kept if pair in timed]
        if tried:
            ps, es = (max(of, key=lambda pair: timed[pair]) for of in (tried, timed))
            rows.append(
                {
                    "n": int(n),
                    "PS": timed[ps],
                    "PS pair": ps,
                    "ES": timed[es],
                    "ES pair": es,
                    "overhead": 100 * (timed[es] / timed[ps] - 1),
                    "tried": len(tried),
                    "all": len(timed),
                    "library": made["library"].get(n),
                }
            )
    return rows


def _shown(pair: Pair) -> str:
    return f"{pair[0]}" if pair[1] == NONE else f"{pair[0]}, {pair[1]}"


def table(results: Rows, device: str) -> Table:
    """Table 3.1 of all routines."""
    rates = ("PS, TFLOP/s", "NB, IB", "ES, TFLOP/s", "NB, IB", "overhead", "pairs", "library's choice")
    made = Table("", "n", *rates, "interchanged", title=f"Table 3.1 on {device}")
    for of_routine in results:
        for row in replay(of_routine):
            shares = of_routine.get("interchanged", {})
            made.add_row(
                of_routine["dtype"] + of_routine["routine"],
                str(row["n"]),
                *(f"{row['PS']:.2f}", _shown(row["PS pair"]), f"{row['ES']:.2f}", _shown(row["ES pair"])),
                f"{row['overhead']:.1f} %",
                f"{row['tried']} of {row['all']}",
                "" if row["library"] is None else f"{row['library']:.2f}",
                f"{shares[str(row['n'])]:.0%}" if str(row["n"]) in shares else "",
            )
    return made


def surface(made: Mapping[str, Any], device: str) -> Table:
    """Figures 3.1 and 3.2: rates of the step and of factorizations over NB and IB."""
    name = made["dtype"] + made["routine"]
    columns = ("NB", "IB", "step", *map(str, made["orders"]), "kept")
    shown = Table(*columns, title=f"{name} over (NB, IB) on {device}, TFLOP/s")
    steps = {(each["nb"], each["ib"]): each["tflops"] for each in made["steps"]}
    kept = pruned(steps)
    for each in sorted(made["whole"], key=lambda each: (each["nb"], each["ib"])):
        pair = each["nb"], each["ib"]
        rates = [each["tflops"].get(str(n)) for n in made["orders"]]
        cells = ("" if rate is None else f"{rate:.2f}" for rate in (steps.get(pair), *rates))
        shown.add_row(str(pair[0]), str(pair[1] or ""), *cells, "yes" if pair in kept else "")
    return shown


def _cases(options: argparse.Namespace) -> list[tuple[str, str]]:
    return list(itertools.product(options.routine, options.dtype))


def _kernels(options: argparse.Namespace, device: Device) -> Iterable[Kernel]:
    return itertools.chain(*(kernels(*case, device, options.orders) for case in _cases(options)))


def _collect(run: Experiment, options: argparse.Namespace) -> dict[str, Any]:
    return {"results": [experiment(run, *case, options.orders) for case in run.in_turn(_cases(options))]}


def _tables(made: dict[str, Any], options: argparse.Namespace) -> list[Table]:
    surfaces = (surface(each, made["device"]) for each in made["results"])
    return [table(made["results"], made["device"]), *surfaces]


def _figures(made: dict[str, Any], options: argparse.Namespace) -> list[Figure]:
    curves: dict[str, list[tuple[float, float]]] = {}
    for of_routine in made["results"]:
        name, rows = of_routine["dtype"] + of_routine["routine"], replay(of_routine)
        curves |= {f"{name} {key}": [(row["n"], row[key]) for row in rows] for key in ("PS", "ES")}
    return [Figure("plasma", f"Pruned and exhaustive search on {made['device']}", curves)]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--routine", default=list(ROUTINES), type=names_in(ROUTINES), help="(all)")
    parser.add_argument("--dtype", default=["d"], type=names_in(DTYPES), help="(d)")
    parser.add_argument("--orders", type=parse_sizes, default=ORDERS, metavar="N,N,...", help="(%(default)s)")
    add_options(parser, "5m")
    return parser.parse_args(arguments)


STUDY = Study("plasma", _parse, _kernels, _collect, _tables, _figures)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment on the device that is here; returns the exit code."""
    return run_study(STUDY, arguments)


if __name__ == "__main__":
    sys.exit(guarded(["tuning/papers/plasma.py"], main))
