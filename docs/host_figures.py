"""Draw rates of matrices in host memory, as KBLAS's Figure 8 has them, and speedups of several cards.

``python docs/host_figures.py`` after new files of `benchmarks.host_resident` and `benchmarks.several_cards`
of an H200 in ``benchmarks/results``; it needs Matplotlib.
"""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS.parent / "benchmarks" / "results" / "nvidia-h200"
STREAMED, CARDS = DOCS / "images" / "host_resident.svg", DOCS / "images" / "several_cards.svg"

#: What a panel shows: key of the seconds, label, line and marker.
LINES = (
    ("streamed", "pyblasgpu", "o-"),
    ("upload_cublas_download", "upload, cuBLAS, download", "s--"),
    ("cublas_xt", "cublasXt", "^:"),
)
CASE = ("routine", "dtype", "n", "where", "cards")
KEYS = {"host-resident": {"aim", "streamed"}, "several-cards": {"speedup"}}
ROUTINES, LETTERS = ("trmm", "trsm", "gemm"), "sd"
FLOPS = {"trmm": 1, "trsm": 1, "gemm": 2, "syrk": 1, "potrf": 1 / 3}


def newest(results: Path, ending: str) -> dict[str, Any]:
    """The files whose names end so as one: of each case the newest measurement."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in results.glob(f"*-{ending}.json")]
    files.sort(key=lambda each: str(each["about"]["date"]))
    rows = {}
    for file in files:
        for row in file["rows"]:
            if set(row) >= KEYS[ending]:  # others vary a constant
                case = tuple(row.get(name) for name in CASE)
                rows[case] = {**rows.get(case, {}), **row}  # not all runs had cublasXt
    commits = dict.fromkeys(str(file["about"]["commit"])[:7] for file in files)
    return {"about": {**files[-1]["about"], "commit": ", ".join(commits)}, "rows": list(rows.values())}


def rate(row: dict[str, Any], key: str) -> float:
    """TFLOP/s."""
    return float(FLOPS[row["routine"]] * row["n"] ** 3 / row[key] / 1e12)


def draw_streamed(run: dict[str, Any]) -> Any:
    """TFLOP/s over n, transfers included, a panel a routine and type."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 5), layout="constrained", facecolor="white")
    panels = figure.subplots(len(LETTERS), len(ROUTINES))
    for line, letter in zip(panels, LETTERS, strict=True):
        for axis, routine in zip(line, ROUTINES, strict=True):
            rows = [row for row in run["rows"] if (row["routine"], row["dtype"]) == (routine, letter)]
            for key, label, style in LINES:
                points = sorted((row["n"], rate(row, key)) for row in rows if key in row)
                axis.plot(*zip(*points, strict=True), style, markersize=4, label=label)
            axis.set_title(f"{letter}{routine}", fontsize=10)
            axis.set_xscale("log", base=2)
            orders = sorted({row["n"] for row in rows})
            axis.set_xticks(orders, [str(order) for order in orders])
            axis.grid(alpha=0.3)
            axis.set_ylim(bottom=0)
    for axis in panels[-1]:
        axis.set_xlabel("n")
    for axis in panels[:, 0]:
        axis.set_ylabel("TFLOP/s")
    panels[0][0].legend(fontsize=8)
    figure.suptitle(f"Page-locked host memory to host memory, {run['about']['device']}", fontsize=11)
    return figure


def draw_cards(run: dict[str, Any]) -> Any:
    """Speedup over the number of cards, a line a routine, a panel a type and order."""
    from matplotlib.figure import Figure

    rows = [r for r in run["rows"] if r["where"] == "host" and r["routine"] in FLOPS]
    orders, letters = sorted({row["n"] for row in rows}), sorted({row["dtype"] for row in rows})
    size = 2.6 * len(orders), 0.6 + 2.3 * len(letters)
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    panels = figure.subplots(len(letters), len(orders), sharey=True, squeeze=False)
    for (letter, n), axis in zip(product(letters, orders), panels.flat, strict=True):
        here = [row for row in rows if (row["dtype"], row["n"]) == (letter, n)]
        for number, routine in enumerate(FLOPS):
            points = sorted((row["cards"], row["speedup"]) for row in here if row["routine"] == routine)
            if points:
                axis.plot(*zip(*points, strict=True), f"C{number}o-", markersize=4, label=routine)
        counts = sorted({row["cards"] for row in rows})
        axis.plot(counts, counts, color="0.7", linestyle=":")
        axis.set_xticks(counts)
        axis.set_title(f"{letter}, n = {n}", fontsize=10)
        axis.grid(alpha=0.3)
        axis.set_visible(bool(here))
    for column in panels.T:
        [axis for axis in column if axis.get_visible()][-1].set_xlabel("cards")
    for axis in panels[:, 0]:
        axis.set_ylabel("times one card")
    max(panels.flat, key=lambda axis: len(axis.lines)).legend(fontsize=8)
    figure.suptitle(f"From host memory, {run['about']['device']}", fontsize=11)
    return figure


def main(arguments: list[str]) -> int:
    """Draw both; returns the exit code."""
    from matplotlib import rc_context

    if arguments:
        raise SystemExit(__doc__)
    for path, draw, ending in (
        (STREAMED, draw_streamed, "host-resident"),
        (CARDS, draw_cards, "several-cards"),
    ):
        run = newest(RESULTS, ending)
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "pyblasgpu"}):
            metadata = {"Date": None, "Source": run["about"]["commit"]}
            draw(run).savefig(path, metadata=metadata)
        print(path.relative_to(DOCS.parent))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
