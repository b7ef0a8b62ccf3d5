"""KBLAS's Figure 7: TRMM and TRSM on several devices side by side, from recorded benchmarks; no device.

``python tuning/papers/kblas_figure7.py [--dtype s,d] [--out FOLDER] [RESULTS.json ...]``

The files are those of ``pyblasgpu bench``. Of several times of a call on a device the newest file's counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.table import Table

from pyblasgpu.bench.command import OUT_OF_PLACE, RESULTS
from pyblasgpu.bench.machine import short_commit
from pyblasgpu.terminal import console, guarded
from pyblasgpu.types import DTYPES
from tuning.papers.study import Figure, draw, names_in

__all__ = ["Call", "figures", "main", "rates", "table"]

WIDTH = 190
VARIANT = "LLNN"
ROUTINES = ("trmm", "trsm")


class Call(NamedTuple):
    """A routine on a device, with as many right-hand sides as rows."""

    routine: str
    device: str
    n: int


class Rate(NamedTuple):
    """TFLOP/s of this library and of cuBLAS, whose TRMM is in place and out of place; and the commit."""

    ours: float
    vendor: float | None
    out_of_place: float | None
    commit: str


def rates(documents: Iterable[Mapping[str, Any]]) -> dict[Call, Rate]:
    """Rates of each call in the newest document that has it."""
    found: dict[Call, Rate] = {}
    for document in sorted(documents, key=lambda each: str(each.get("date", ""))):
        for record in document.get("results", ()):
            if isinstance(record, Mapping) and _is_square(record):
                call = Call(record["dtype"] + record["routine"], document["device"], record["n"])
                vendor, out_of_place = record.get("cublas_tflops"), record.get(OUT_OF_PLACE)
                found[call] = Rate(
                    record["tflops"], vendor, out_of_place, short_commit(document.get("commit"))
                )
    return found


def _is_square(record: Mapping[str, Any]) -> bool:
    is_ours = record.get("routine") in ROUTINES and record.get("variant") == VARIANT and "tflops" in record
    return is_ours and record.get("m") == record.get("n") and not record.get("batch")


def table(found: Mapping[Call, Rate], letters: Sequence[str]) -> Table:
    """A routine and device a row, an order a column: TFLOP/s, in brackets ratios; then commits."""
    orders = sorted({call.n for call in found})
    title = "TRMM and TRSM by device, TFLOP/s (of cuBLAS in place, of cuBLAS out of place)"
    made = Table("", "device", *map(str, orders), "measured at", title=title)
    for letter, routine in ((letter, routine) for routine in ROUTINES for letter in letters):
        name = letter + routine
        for device in sorted({call.device for call in found if call.routine == name}):
            row = [found.get(Call(name, device, n)) for n in orders]
            commits = dict.fromkeys(rate.commit for rate in row if rate)
            made.add_row(name, device, *map(_shown, row), ", ".join(commits))
    return made


def _shown(rate: Rate | None) -> str:
    if rate is None:
        return ""
    ratios = [f"{rate.ours / rival:.2f}" for rival in (rate.vendor, rate.out_of_place) if rival]
    return f"{rate.ours:.1f}" + (f" ({', '.join(ratios)})" if ratios else "")


def figures(found: Mapping[Call, Rate], letters: Sequence[str]) -> list[Figure]:
    """A figure a routine and type, a curve a device and library."""
    made = []
    for name in (letter + routine for routine in ROUTINES for letter in letters):
        curves: dict[str, list[tuple[float, float]]] = {}
        for call, rate in sorted(found.items()):
            if call.routine == name:
                curves.setdefault(call.device, []).append((call.n, rate.ours))
                if rate.vendor:
                    curves.setdefault(f"{call.device}, cuBLAS", []).append((call.n, rate.vendor))
        made.append(Figure(f"kblas_figure7_{name}", f"{name} by device", dict(curves)))
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and draw the figures; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="default: all in benchmarks/results")
    parser.add_argument("--dtype", default=["s", "d"], type=names_in(DTYPES), help="(s,d)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="also draw the figures there")
    options = parser.parse_args(arguments)
    files = options.files or sorted(RESULTS.glob("*/*.json"))
    found = rates(json.loads(path.read_text()) for path in files)
    console(WIDTH).print(table(found, options.dtype))
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        for figure in figures(found, options.dtype):
            draw(options.out, figure)
    return 0


if __name__ == "__main__":
    sys.exit(guarded(["tuning/papers/kblas_figure7.py"], main))
