"""The look of all plots: a colour and a dash for each library, the legend outside, text that stays text.

Needs Matplotlib, the extra ``plot``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

__all__ = ["COLOURS", "OURS", "OUT_OF_PLACE", "VENDOR"]
__all__ += ["canvas", "from_zero", "legend", "over_n", "save", "with_dash"]

#: Colours that the colour-blind can distinguish (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
OURS = {"color": COLOURS[0], "linestyle": "-", "marker": "o"}
VENDOR = {"color": COLOURS[1], "linestyle": "--", "marker": "s"}
OUT_OF_PLACE = {"color": COLOURS[2], "linestyle": "--", "marker": "^"}
SIZE = 4  # of markers
LIBRARIES = ("cublas", "cusolver", "pytorch", "scipy")


def with_dash(number: int, label: str) -> dict[str, Any]:
    """The style of one curve of many: solid, or dashed if its label names another library."""
    dashed = any(name in label.lower() for name in LIBRARIES)
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": "--" if dashed else "-",
        "marker": "s" if dashed else "o",
    }


def canvas(rows: int, columns: int, panel: tuple[float, float], **options: Any) -> tuple[Figure, Any]:
    """A figure of panels of `panel` inches, and its axes in two dimensions; `options` as of `subplots`."""
    size = (panel[0] * columns, panel[1] * rows)
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for axis in axes.flat:
        axis.grid(alpha=0.3)
    return figure, axes


def over_n(axis: Any, orders: Iterable[int], most: int = 7) -> None:
    """A logarithmic axis of orders, with at most `most` powers of two as ticks, the largest among them."""
    ticks = sorted({order for order in orders if order & (order - 1) == 0}, reverse=True)
    shown = ticks[:: -(-len(ticks) // most) or 1]
    axis.set_xscale("log", base=2)
    axis.set_xticks(shown, [str(tick) for tick in shown])
    axis.set_xticks([], minor=True)


def from_zero(figure: Figure) -> None:
    """Let the rates of all panels begin at 0; once all curves are drawn, since it ends automatic limits."""
    for axis in figure.axes:
        axis.set_ylim(bottom=0)


def legend(figure: Figure, columns: int = 4) -> None:
    """One legend of all panels, below them; each label once."""
    found: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        figure.legend(
            list(found.values()), list(found), loc="outside lower center", ncols=columns, frameon=False
        )


def save(figure: Figure, out: Path, source: str | None = None, **options: Any) -> Path:
    """Write an SVG that differs only where what is drawn differs; `source` is kept in its metadata."""
    metadata = {"Date": None, **({"Source": source} if source else {})}
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "pyblasgpu"}):
        figure.savefig(out, metadata=metadata, **options)
    return out
