"""Plots of a sweep; needs Matplotlib, the extra ``plot``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..database import FAMILIES
from .results import Record, sound

__all__ = ["draw"]

MOST_PARAMETERS = 16  # in a figure
WIDTH = 4  # panels side by side


def draw(records: Sequence[Record], folder: Path) -> list[Path]:
    """Draw what the records hold; returns the files.

    The distribution of all rates, the effect of each parameter, and TFLOP/s over n before and after.
    """
    groups = _groups(records)
    files = []
    if groups:
        files.append(
            _save(
                _grid(groups, _distribution, "TFLOP/s of all candidates, sorted"), folder / "distribution.svg"
            )
        )
    for stem in dict.fromkeys(stem for stem, *_ in groups):
        mine = {key: group for key, group in groups.items() if key[0] == stem}
        files.append(_save(_effects(stem, mine), folder / f"parameters_{stem}.svg"))
    curves = _curves(records)
    if curves:
        files.append(_save(_grid(curves, _over_n, "TFLOP/s over n, before and after"), folder / "over_n.svg"))
    return files


def _groups(records: Sequence[Record]) -> dict[tuple, list[Record]]:
    """The times of each (stem, dtype, layout) in its largest class at its largest extents."""
    groups: dict[tuple, dict[tuple, list[Record]]] = {}
    for record in sound(records):
        if record.stem in FAMILIES:
            key = (record.stem, record.dtype, record.layout)
            groups.setdefault(key, {}).setdefault((math.prod(record.extents), record.size), []).append(record)
    return {key: max(groups[key].items(), key=lambda item: item[0])[1] for key in sorted(groups)}


def _curves(records: Sequence[Record]) -> dict[tuple, list[Record]]:
    curves: dict[tuple, list[Record]] = {}
    for record in records:
        if record.outcome in ("before", "after"):
            curves.setdefault((record.stem, record.dtype, record.layout), []).append(record)
    return curves


def _grid(
    groups: dict[tuple, list[Record]], panel: Callable[[Any, list[Record]], None], title: str
) -> Figure:
    figure, axes = _panels(len(groups), title)
    for axis, (key, records) in zip(axes, groups.items(), strict=False):
        panel(axis, records)
        axis.set_title(" ".join(key), fontsize=9)
        axis.set_ylim(bottom=0)
    return figure


def _panels(count: int, title: str) -> tuple[Figure, list[Any]]:
    high = -(-count // WIDTH)
    figure = Figure(figsize=(3.2 * WIDTH, 2.5 * high + 0.5), layout="constrained")
    axes = list(figure.subplots(high, WIDTH, squeeze=False).flat)
    for axis in axes[count:]:
        axis.set_axis_off()
    for axis in axes[:count]:
        axis.grid(alpha=0.3)
    figure.suptitle(title)
    return figure, axes


def _distribution(axis: Any, records: list[Record]) -> None:
    rates = sorted((record.tflops for record in records), reverse=True)
    axis.plot(range(1, len(rates) + 1), rates, ".", markersize=3)
    axis.axhline(0.98 * rates[0], color="grey", linewidth=0.8, linestyle=":")  # within 2 % of the best
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    axis.set_xlabel("candidate", fontsize=8)


def _over_n(axis: Any, records: list[Record]) -> None:
    for outcome, style in (("before", "s--"), ("after", "o-")):
        points = {record.extents[0]: record.tflops for record in records if record.outcome == outcome}
        if points:
            axis.plot(*zip(*sorted(points.items()), strict=True), style, markersize=3, label=outcome)
    axis.set_xscale("log", base=2)
    axis.legend(fontsize=7)


def _effects(stem: str, groups: dict[tuple, list[Record]]) -> Figure:
    """Draw the best rate with each value of a parameter, as a share of the best rate, a line a dtype."""
    first = {key: group for key, group in groups.items() if key[2] == FAMILIES[stem].layouts[0]} or groups
    names = [name for name in FAMILIES[stem].parameters if _varies(name, first)][:MOST_PARAMETERS]
    figure, axes = _panels(max(len(names), 1), f"{stem}: the best with each value, over the best")
    for axis, name in zip(axes, names, strict=False):
        known = {int(r.parameters[name]) for group in first.values() for r in group if name in r.parameters}
        positions = {value: position for position, value in enumerate(sorted(known))}
        for (_, dtype, layout), records in first.items():
            top = max(record.tflops for record in records)
            best: dict[int, float] = {}
            for record in records:
                if name in record.parameters:
                    position = positions[int(record.parameters[name])]
                    best[position] = max(best.get(position, 0.0), record.tflops / top)
            axis.plot(
                *zip(*sorted(best.items()), strict=True), ".-", linewidth=0.8, label=f"{dtype} {layout}"
            )
        axis.set_xticks(list(positions.values()), list(map(str, positions)))
        axis.set_title(name, fontsize=9)
        axis.set_ylim(0, 1.05)
    if names:
        figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="outside right upper")
    return figure


def _varies(name: str, groups: dict[tuple, list[Record]]) -> bool:
    return any(len({record.parameters.get(name) for record in records}) > 1 for records in groups.values())


def _save(figure: Figure, path: Path) -> Path:
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "pyblasgpu"}):  # text stays text: a small file
        figure.savefig(path, metadata={"Date": None})
    return path
