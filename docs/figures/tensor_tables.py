"""The benchmarks page's tables of routines on tensor cores, from results of `benchmarks.tensor_level3`, and
of HPL-MxP's measure, from those of `benchmarks.hpl_mxp`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vendor_tables import runs_of

from pyblasgpu.bench.machine import short_commit

__all__ = ["newest_level3", "tensor_tables"]

TITLES = {"gesv": "solve", "posv": "solve, definite"}
TEXT = """
## Routines on tensor cores

TFLOP/s of cuBLAS or cuSOLVER, of our FMAs, and with `set_math_mode("tensor")`, of float32. Names that begin
with a letter more are of its dtype. The error is the largest of an entry, or of the residual's, in units of
u |A||B|, u |T||X| or u |L||Lᵀ|; it is found in single precision.
"""
SOLVE = """
`solve` is `linalg.solve` of float64, one right-hand side: by float64's factors, and with `method="tensor"`.
Its error is the residual over √n ε ‖A‖∞ |x|.
"""
HEADER = """\
| routine | n | columns | vendor | FMAs | tensor cores | over the vendor | error | measured at |
|---|---|---|---|---|---|---|---|---|"""

SYSTEMS = """
HPL-MxP's measure: `linalg.solve` of float64 with `method="tensor"`, one right-hand side.
TFLOP/s count 2/3 n³ + 3/2 n² operations. The residual is max |b − A x| / (n ε (‖A‖∞ max |x| + max |b|)),
of which the measure allows 16. Times are ms: of the solution, of its factors, and by float64's factors.

| n | matrix | cards | solution | TFLOP/s | factors | by float64 | times faster | residual | measured at |
|---|---|---|---|---|---|---|---|---|---|
"""


def tensor_tables(results: Path, device: str) -> Iterator[str]:
    """The lines of the page for a device: tables, or nothing."""
    yield from _routines(results, device)
    yield from _systems(results, device)


def _systems(results: Path, device: str) -> Iterator[str]:
    """The newest measurement of each system."""
    newest: dict[tuple[Any, ...], str] = {}
    for run in sorted(runs_of(results, device), key=lambda run: run["date"]):
        for case in run.get("systems", []):
            if "tflops" in case:
                key = case["n"], case["data"], case.get("cards", 1)
                newest[key] = _system_row(key, case, short_commit(run["commit"]))
    if newest:
        yield from SYSTEMS.rstrip("\n").split("\n")
        yield from (newest[key] for key in sorted(newest))


def _system_row(key: tuple[Any, ...], case: dict[str, Any], commit: str) -> str:
    double = [f"{1e3 * case['double']:.1f}", f"{case['ratio']:.2f}"] if "double" in case else ["", ""]
    times = f"{1e3 * case['seconds']:.1f}", f"{case['tflops']:.1f}", f"{1e3 * case['factors']:.1f}"
    residual = f"{case['residual']:.2g}"
    return f"| {' | '.join([*map(str, key), *times, *double, residual, commit])} |"


def _routines(results: Path, device: str) -> Iterator[str]:
    """The table of single routines."""
    measured = newest_level3(results, device)
    if measured:
        solves = SOLVE.rstrip("\n") if TITLES.keys() & {case["routine"] for case, _ in measured} else ""
        yield from (TEXT.rstrip("\n") + solves + "\n\n" + HEADER).split("\n")
        yield from (_row(*each) for each in measured)


def newest_level3(results: Path, device: str) -> list[tuple[dict[str, Any], str]]:
    """The newest measurement of each routine, order and number of columns, with its commit."""
    newest: dict[tuple[str, int, int], tuple[dict[str, Any], str]] = {}
    for run in sorted(runs_of(results, device), key=lambda run: run["date"]):
        for case in run.get("cases", []):
            if "mode" in case:
                newest[case["routine"], case["n"], case["columns"]] = case, short_commit(run["commit"])
    return [newest[key] for key in sorted(newest)]


def _row(case: dict[str, Any], commit: str) -> str:
    routine, n, columns, units = case["routine"], case["n"], case["columns"], case["mode"]["units"]
    rates = [f"{case[each]['tflops']:.1f}" for each in ("vendor", "fma", "mode")]
    other = "" if routine in TITLES or columns == n else str(columns)
    in_place = " (cuBLAS in place)" * (routine.endswith("trmm") and "vendor_out_of_place" not in case)
    error = "" if units is None else f"{units:.2g}"
    title = TITLES.get(routine, routine) + in_place
    cells = [title, str(n), other, *rates, f"{case['ratio']:.2f}", error, commit]
    return f"| {' | '.join(cells)} |"
