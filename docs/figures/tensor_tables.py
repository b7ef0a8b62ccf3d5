"""The benchmarks page's table of routines on tensor cores, from results of `benchmarks.tensor_level3`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vendor_tables import runs_of

from pyblasgpu.bench.machine import short_commit

__all__ = ["newest_level3", "tensor_tables"]

TITLES = {"gesv": "solve", "posv": "solve, definite"}
TEXT = """
## Float32 on tensor cores

TFLOP/s of cuBLAS or cuSOLVER, of our FMAs, and with `set_math_mode("tensor")`.
The error is the largest of an entry, or of the residual's, in units of u |A||B|, u |T||X| or u |L||Lᵀ|.
"""
SOLVE = """
`solve` is `linalg.solve` of float64, one right-hand side: by float64's factors, and with `method="tensor"`.
Its error is the residual over √n ε ‖A‖∞ |x|.
"""
HEADER = """\
| routine | n | columns | vendor | FMAs | tensor cores | over the vendor | error | measured at |
|---|---|---|---|---|---|---|---|---|"""


def tensor_tables(results: Path, device: str) -> Iterator[str]:
    """The lines of the page for a device: a table, or nothing."""
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
