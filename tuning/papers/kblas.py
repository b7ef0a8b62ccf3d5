"""KBLAS's figures: TRMM and TRSM against cuBLAS in place and out of place, GEMM, and inverted blocks.

``python tuning/papers/kblas.py [--dtype s,d] [--orders 1024,2048] [--seconds 10m] [--out FOLDER]``

Figures 1 and 5: TRMM, cuBLAS's TRMM in place and out of place, and GEMM, over n. Figure 6: TRSM with square
and with 512 right-hand sides, cuBLAS's TRSM, and a solver with inverted diagonal blocks, MAGMA's way, whose
inversions are not in the time. And where the recursion, the fused kernels and the small ones each win.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.table import Table

from pyblasgpu.options import parse_sizes
from pyblasgpu.terminal import guarded
from pyblasgpu.testing.cublas import load as load_cublas
from pyblasgpu.tuning.measure import flops
from pyblasgpu.tuning.worker_bench import Job
from pyblasgpu.types import DTYPES, Trans
from tuning.papers.device_time import device_seconds
from tuning.papers.experiment import Experiment, Extents, Rows
from tuning.papers.study import Figure, Study, add_options, names_in, run_study

__all__ = [
    "ALGORITHMS",
    "STUDY",
    "algorithms",
    "experiment",
    "inverted",
    "main",
    "solve_with_inverses",
    "table",
    "winners",
]

FEW = 512  # right-hand sides of Figure 6
BLOCK = 128  # whose inverses MAGMA keeps
ANY = 1 << 20
#: Routine -> algorithm -> the largest order and number of right-hand sides at which it is timed.
ALGORITHMS = {
    "trmm": {"trmm_fused": (ANY, ANY), "recursion": (ANY, ANY)},
    "trsm": {"trsv": (ANY, 4), "trsm_fused": (ANY, ANY), "trsm_small": (512, ANY), "recursion": (ANY, ANY)},
}
SMALL = (64, 256)  # orders of the table of algorithms, besides those of the figures
SIDES = (1, 16, 64, 512)  # right-hand sides of the table of algorithms, besides square ones
FIGURES, TABLE = 0.45, 0.8  # of the time that is left: the curves, then the table of algorithms


def experiment(run: Experiment, letter: str, orders: Sequence[int]) -> Rows:
    """TFLOP/s of each curve over n, as JSON holds them."""
    square: list[Extents] = [(n, n) for n in orders]
    few: list[Extents] = [(n, FEW) for n in orders]
    cubes: list[Extents] = [(n, n, n) for n in orders]
    asked: list[tuple[str, str, Callable[[], dict[Extents, float]]]] = [
        ("trmm", "this library", lambda: run.ours(letter, "any", square, "trmm")),
        ("trmm", "cuBLAS, in place", lambda: run.vendor(letter, "any", square, "trmm")),
        (
            "trmm",
            "cuBLAS, out of place",
            lambda: run.vendor(letter, "any", square, "trmm", of="trmm_out_of_place"),
        ),
        ("trmm", "GEMM", lambda: run.ours(letter, "nn", cubes)),
        ("trsm", "this library", lambda: run.ours(letter, "any", square, "trsm")),
        ("trsm", "cuBLAS", lambda: run.vendor(letter, "any", square, "trsm")),
        (f"trsm {FEW}", "this library", lambda: run.ours(letter, "any", few, "trsm")),
        (f"trsm {FEW}", "cuBLAS", lambda: run.vendor(letter, "any", few, "trsm")),
    ]
    rows: Rows = []
    for figure, who, rates_of in asked:
        points = {str(extents[0]): round(rate, 3) for extents, rate in rates_of().items()}
        rows.append({"dtype": letter, "figure": figure, "who": who, "tflops": points})
    return rows


def algorithms(run: Experiment, letter: str, orders: Sequence[int]) -> Rows:
    """TFLOP/s of each algorithm, asked for by name, at orders and numbers of right-hand sides."""
    rows: Rows = []
    for routine, names in ALGORITHMS.items():
        for name, (most, most_sides) in names.items():
            problems: list[Extents] = [
                (n, rhs)
                for n in dict.fromkeys((*SMALL, *orders))
                for rhs in dict.fromkeys((*SIDES, n))
                if n <= most and rhs <= most_sides
            ]
            rates = run.ours(letter, "any", problems, routine, ((f"{routine}_algorithm", name),))
            points = {f"{n}x{rhs}": round(rate, 3) for (n, rhs), rate in rates.items()}
            rows.append({"dtype": letter, "routine": routine, "algorithm": name, "tflops": points})
    return rows


def solve_with_inverses(cublas: Any, t: Any, inverses: Any, b: Any, scratch: Any) -> None:
    """``b := t^-1 b`` with the inverses of the diagonal blocks of a lower `t`, by cuBLAS's GEMM alone."""
    n, block = len(t), inverses.shape[1]
    for first in range(0, n, block):
        here = b[first : first + block]
        x = scratch[: len(here)]
        inverse = inverses[first // block][: len(here), : len(here)]
        cublas.gemm(1, inverse, here, 0, x, Trans.NO, Trans.NO)
        here[...] = x
        if first + block < n:
            below = t[first + block :, first : first + block]
            cublas.gemm(-1, below, x, 1, b[first + block :], Trans.NO, Trans.NO)


def inverted(run: Experiment, letter: str, orders: Sequence[int]) -> Rows:
    """TFLOP/s of `solve_with_inverses` on the current device, as JSON holds them; none without CuPy."""
    if find_spec("cupy") is None and not run.is_over:
        return []
    rows: Rows = []
    for figure, rhs_of in (("trsm", lambda n: n), (f"trsm {FEW}", lambda n: FEW)):
        points = {}
        for n in orders:
            extents = n, rhs_of(n)
            job = Job("inverted", letter, "any", vendor=True)
            rate = run.remembered(job, extents, partial(_rate_of_inverted, letter, *extents))
            if rate is not None:
                points[str(n)] = rate
        if points:
            rows.append({"dtype": letter, "figure": figure, "who": "inverted blocks", "tflops": points})
    return rows


def _rate_of_inverted(letter: str, n: int, rhs: int) -> float:
    import cupy

    import pyblasgpu

    cublas, dtype = load_cublas(), DTYPES[letter]
    cublas.set_stream(cupy.cuda.get_current_stream().ptr)
    noise = cupy.random.default_rng(n).random((n, n), dtype=dtype.real).astype(dtype.name)
    t = cupy.asfortranarray(cupy.tril(noise) / n + cupy.eye(n, dtype=dtype.name))
    b = cupy.asfortranarray(cupy.ones((n, rhs), dtype.name))
    scratch = cupy.empty((BLOCK, rhs), dtype.name, order="F")
    inverses = cupy.empty((-(-n // BLOCK), BLOCK, BLOCK), dtype.name).swapaxes(1, 2)
    for number, first in enumerate(range(0, n, BLOCK)):
        part = t[first : first + BLOCK, first : first + BLOCK]
        identity = cupy.eye(len(part), dtype=dtype.name)
        inverses[number, : len(part), : len(part)] = pyblasgpu.trsm(part, identity, lower=True)
    seconds = device_seconds(lambda b: solve_with_inverses(cublas, t, inverses, b, scratch), [b])
    return round(flops("trsm", dtype, (n, rhs)) / seconds / 1e12, 3)


def table(rows: Rows, orders: Sequence[int], device: str) -> Table:
    """A curve a row, an order a column."""
    made = Table("figure", "", *map(str, orders), title=f"TRMM and TRSM on {device}, TFLOP/s")
    for row in rows:
        rates = [row["tflops"].get(str(n)) for n in orders]
        made.add_row(
            row["dtype"] + row["figure"],
            row["who"],
            *["" if rate is None else f"{rate:.2f}" for rate in rates],
        )
    return made


def winners(rows: Rows, device: str) -> list[Table]:
    """Which algorithm is the fastest by order and right-hand sides, and how far before the second."""
    tables = []
    for name in dict.fromkeys(row["dtype"] + row["routine"] for row in rows):
        rates: dict[tuple[int, int], dict[str, float]] = {}
        for row in rows:
            if row["dtype"] + row["routine"] == name:
                for problem, rate in row["tflops"].items():
                    order, rhs = map(int, problem.split("x"))
                    rates.setdefault((order, rhs), {})[row["algorithm"]] = rate
        columns = [f"{rhs} right" for rhs in SIDES]
        title = f"Fastest algorithms of {name} on {device}, and times the second's rate"
        made = Table("order", *columns, "as many right", title=title)
        for order in sorted({order for order, _ in rates}):
            made.add_row(str(order), *[_winner(rates.get((order, rhs), {})) for rhs in (*SIDES, order)])
        tables.append(made)
    return tables


def _winner(rates: Mapping[str, float]) -> str:
    """The first of the algorithms, and its lead."""
    best, *others = sorted(rates, key=lambda name: -rates[name]) or [""]
    return f"{best} {rates[best] / rates[others[0]]:.2f}" if others else best


def _collect(run: Experiment, options: argparse.Namespace) -> dict[str, Any]:
    rows: Rows = []
    compared: Rows = []
    for letter in run.in_turn(options.dtype):
        with run.part(FIGURES):
            rows += experiment(run, letter, options.orders)
        with run.part(TABLE):
            compared += algorithms(run, letter, options.orders)
        rows += inverted(run, letter, options.orders)
    return {"results": rows, "algorithms": compared}


def _tables(made: dict[str, Any], options: argparse.Namespace) -> list[Table]:
    device = made["device"]
    return [table(made["results"], options.orders, device), *winners(made["algorithms"], device)]


def _figures(made: dict[str, Any], options: argparse.Namespace) -> list[Figure]:
    rows, figures = made["results"], []
    for letter in options.dtype:
        for figure in dict.fromkeys(row["figure"] for row in rows):
            curves = {
                row["who"]: [(float(n), rate) for n, rate in row["tflops"].items()]
                for row in rows
                if (row["dtype"], row["figure"]) == (letter, figure)
            }
            name = f"kblas_{letter}{figure.replace(' ', '_')}"
            figures.append(Figure(name, f"{letter}{figure} on {made['device']}", curves))
    return figures


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default=["s", "d"], type=names_in(DTYPES), help="(s,d)")
    parser.add_argument("--orders", type=parse_sizes, default="512,1024,2048,4096,8192", help="(%(default)s)")
    add_options(parser, "10m")
    return parser.parse_args(arguments)


STUDY = Study("kblas", _parse, lambda options, device: (), _collect, _tables, _figures)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment on the device that is here; returns the exit code."""
    return run_study(STUDY, arguments)


if __name__ == "__main__":
    sys.exit(guarded(["tuning/papers/kblas.py"], main))
