"""TFLOP/s over n, ours and cuBLAS, a panel a call; of `benchmarks.cliffs` their ratio over n; of
`benchmarks.counters` the bytes of DRAM over n, with those of a GEMM of the same size (KBLAS, Figure 4).

``python -m pyblasgpu.bench.plot RESULTS.json [PLOT.svg]``
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from pyblasgpu.bench import style
from pyblasgpu.terminal import guarded
from pyblasgpu.types import DTYPES

READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
SERIES = (
    ("tflops", "pyblasgpu", style.OURS),
    ("cublas_tflops", "cuBLAS", style.VENDOR),
    ("cublas_out_of_place_tflops", "cuBLAS, out of place", style.OUT_OF_PLACE),
)


def draw(document: dict[str, Any], out: Path) -> Path:
    """Draw the results of one run into `out`; returns it."""
    panels: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in document["results"]:
        row = f"{record['routine']} {record['variant']}"
        panels.setdefault((row, record["dtype"]), []).append(record)
    rows, letters = (list(dict.fromkeys(names)) for names in zip(*panels, strict=True))
    figure, axes = style.canvas(len(rows), len(letters), (3.4, 2.8))
    for (row, letter), records in panels.items():
        axis = axes[rows.index(row)][letters.index(letter)]
        _panel(axis, records, document["peak_tflops"], DTYPES[letter].real)
        axis.set_title(f"{letter}{row}", fontsize=10)
    return _saved(figure, document, "TFLOP/s over n", out)


def _panel(axis: Any, records: list[dict[str, Any]], peaks: dict[str, float], real: str) -> None:
    for key, label, look in SERIES:
        points = sorted((record["n"], record[key]) for record in records if key in record)
        if points:
            axis.plot(*zip(*points, strict=True), label=label, markersize=style.SIZE, **look)
    for name, peak in peaks.items():
        if name.startswith(real):
            axis.axhline(peak, color="grey", linewidth=0.8, linestyle=":" if "tensor" in name else "-")
            axis.annotate(
                f"peak, {name}", (0, peak), xycoords=("axes fraction", "data"), fontsize=6, va="bottom"
            )
    axis.set_xscale("log", base=2)
    axis.set_ylim(bottom=0)


def draw_ratios(document: dict[str, Any], out: Path) -> Path:
    """Draw ours / cuBLAS over n as `benchmarks.cliffs` measured it, a row a dtype; returns `out`."""
    rows, columns = (list(dict.fromkeys(s[key] for s in document["series"])) for key in ("dtype", "storage"))
    figure, axes = style.canvas(len(rows), len(columns), (4.2, 2.8), sharex=True)
    for series in document["series"]:
        axis = axes[rows.index(series["dtype"])][columns.index(series["storage"])]
        # thousands of dots: as a picture within the drawing
        axis.plot(series["n"], series["ratio"], ".", markersize=2.5, label=series["layout"], rasterized=True)
        axis.set_title(f"{series['dtype']}gemm, {series['storage']}", fontsize=10)
    for axis in axes.flat:
        axis.set_xscale("log", base=2)
        axis.set_yscale("log", base=2)
        axis.axhline(1, color="grey", linewidth=0.8)
        axis.axhline(document["floor"], color=style.COLOURS[1], linewidth=0.8, linestyle=":")
    return _saved(figure, document, "ours / cuBLAS over n", out, dpi=150)


def draw_traffic(document: dict[str, Any], out: Path) -> Path:
    """Draw the bytes of DRAM that `benchmarks.counters` counted, a panel a dtype, a line a call."""
    panels: dict[str, dict[tuple[str, str], list[tuple[int, float]]]] = {}
    for record in document["results"]:
        counted, call = record["counted"], (f"{record['routine']} {record['variant']}", record["of"])
        if READ in counted and WRITTEN in counted:
            point = record["n"], (counted[READ] + counted[WRITTEN]) / 1e6
            panels.setdefault(record["dtype"], {}).setdefault(call, []).append(point)
    figure, axes = style.canvas(1, len(panels), (5.4, 4.2))
    for axis, (letter, calls) in zip(axes[0], panels.items(), strict=True):
        names = list(dict.fromkeys(name for name, _ in calls))
        for (name, of), points in calls.items():
            n, megabytes = zip(*sorted(points), strict=True)
            look = style.with_dash(names.index(name), "" if of == "ours" else "cuBLAS")
            axis.plot(n, megabytes, label=f"{letter}{name}, {of}", **look)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xlabel("n")
        axis.set_ylabel("MB read from DRAM and written to it")
    return _saved(figure, document, "traffic of DRAM over n", out)


def _saved(figure: Figure, document: dict[str, Any], title: str, out: Path, **options: Any) -> Path:
    figure.suptitle(f"{document['device']}, driver {document['driver']}: {title}")
    style.legend(figure)
    return style.save(figure, out, **options)


def drawing_of(document: dict[str, Any]) -> Callable[[dict[str, Any], Path], Path]:
    """Return the function that draws such a document."""
    if "series" in document:
        return draw_ratios
    return draw_traffic if "counted" in document["results"][0] else draw


def main(arguments: list[str]) -> int:
    """Draw a file of results; returns the exit code."""
    if len(arguments) not in (1, 2):
        raise ValueError(
            "a file of results is needed, and may be followed by the plot's: " + __doc__.split("``")[1]
        )
    source = Path(arguments[0])
    target = Path(arguments[1]) if len(arguments) > 1 else source.with_suffix(".svg")
    results = json.loads(source.read_text(encoding="utf-8"))
    print(drawing_of(results)(results, target))
    return 0


if __name__ == "__main__":
    sys.exit(guarded(["pyblasgpu.bench.plot"], lambda: main(sys.argv[1:])))
