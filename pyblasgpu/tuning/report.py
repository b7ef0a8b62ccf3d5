"""Report of a sweep: the winners as Table 2 of Kurzak et al. (2011) shows them, with the vendor's rate."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ..database import FAMILIES, FUSED_TRSM, Document, Entry, sizes_of
from ..errors import lacking
from ..types import DTYPES
from .results import Record, sound, winners

__all__ = ["ClassWinner", "as_json", "funnel", "rows", "show", "why_no_plots", "write"]

#: A letter of a layout after its operand.
_MARKS = {"n": "", "t": "ᵀ"}
_COLUMNS = (
    "routine",
    "form",
    "kernel",
    "class",
    "tile",
    "computes C",
    "loads A",
    "loads B",
    "stages",
    "TFLOP/s",
    "cuBLAS",
    "tried",
    "median",
)


@dataclass(frozen=True)
class ClassWinner:
    """The winner of a class.

    Attributes
    ----------
    stem, dtype, layout, size : str
        Key, as in the database.
    extents : tuple of int
        The largest at which the class was tuned; the rates are those at it.
    parameters : dict
    tflops : float
    vendor : float or None
        cuBLAS's rate, where it was timed.
    tried : int
        Candidates with a time.
    median : float
        Their median rate.
    """

    stem: str
    dtype: str
    layout: str
    size: str
    extents: tuple[int, ...]
    parameters: dict[str, int]
    tflops: float
    vendor: float | None
    tried: int
    median: float


def rows(records: Sequence[Record]) -> list[ClassWinner]:
    """The winners in a sweep of one device, class by class."""
    timed: dict[tuple, dict[tuple, list[Record]]] = {}
    vendor = {}
    for record in sound(records):
        by_extents = timed.setdefault((record.stem, record.dtype, record.layout, record.size), {})
        by_extents.setdefault(record.extents, []).append(record)
    for record in records:
        if record.outcome == "vendor":
            vendor[record.stem, record.dtype, record.layout, record.size, record.extents] = record.tflops
    class_winners = []
    document = winners(records, records[0].device if records else "")
    kernel_entries = {key: entry for key, entry in document.entries.items() if key[0] in FAMILIES}
    for key, entry in sorted(kernel_entries.items(), key=lambda item: _order(item[0])):
        extents, there = max(timed[key].items())
        rates = sorted({record.candidate: record.tflops for record in there}.values())
        best = [record.tflops for record in there if record.parameters == entry.parameters]
        class_winners.append(
            ClassWinner(
                *key,
                extents,
                entry.parameters,
                max(best, default=entry.tflops or 0.0),
                vendor.get((*key, extents)),
                len(rates),
                rates[len(rates) // 2],
            )
        )
    return class_winners


def funnel(records: Iterable[Record]) -> dict[str, Counter[str]]:
    """Count the candidates of each family by outcome."""
    last: dict[tuple, Record] = {}
    for record in records:
        if record.stem in FAMILIES and record.parameters and record.outcome != "reference":
            before = last.get(record.candidate)
            if before is None or before.outcome == "ok":  # a failure is the last word
                last[record.candidate] = record
    counts: dict[str, Counter[str]] = {}
    for record in last.values():
        counts.setdefault(record.stem, Counter())[record.outcome] += 1
    return counts


def show(records: Sequence[Record], console: Console) -> None:
    """Print the table of winners, the algorithms of TRSM, and what became of all candidates."""
    winners = rows(records)
    if winners:
        table = Table(*_COLUMNS, title=f"{records[0].device}: the fastest kernels")
        for row in winners:
            table.add_row(*_cells(row))
        console.print(table)
    for line in _lines(records):
        console.print(line, highlight=False)


def write(records: Sequence[Record], folder: Path) -> list[Path]:
    """Write ``report.md``, ``report.json`` and, where Matplotlib is there, the plots; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    plots = _plots(records, folder)
    page, data = folder / "report.md", folder / "report.json"
    parts = [f"# Tuning of {records[0].device}" if records else "# Tuning", _markdown(records)]
    parts += [f"- {line}" for line in _lines(records)]
    parts += [f"\n![{plot.stem}]({plot.name})" for plot in plots]
    page.write_text("\n".join(parts) + "\n", encoding="utf-8")
    data.write_text(json.dumps(as_json(records), indent=2) + "\n", encoding="utf-8")
    return [page, data, *plots]


def as_json(records: Sequence[Record]) -> dict[str, Any]:
    """The report for machines."""
    document = winners(records, records[0].device if records else "")
    return {
        "device": document.device,
        "winners": [asdict(row) for row in rows(records)],
        "trsm_rates": [
            {"dtype": dtype, "point": point, **rates}
            for (dtype, point), rates in sorted(document.trsm_rates.items())
        ],
        "trsm_fused": [
            dict(zip(("stem", "dtype", "layout", "point"), key, strict=True))
            | {**entry.parameters, "tflops": entry.tflops}
            for key, entry in sorted(_fused(document).items())
        ],
        "policy": [
            {"name": name, "dtype": dtype, "value": value} for name, dtype, value in _decided(records)
        ],
        "candidates": {stem: dict(counts) for stem, counts in funnel(records).items()},
    }


def _decided(records: Iterable[Record]) -> list[tuple[str, str, str]]:
    """Name, dtype and text of values of the policy; a value of several dtypes has the first of them."""
    last = {(each.stem, each.dtype): each.detail for each in records if each.outcome == "decided"}
    return [(*key, value) for key, value in sorted(last.items())]


def _fused(document: Document) -> dict[tuple[str, str, str, str], Entry]:
    """The entries of the fused TRSM."""
    return {key: entry for key, entry in document.entries.items() if key[0] in FUSED_TRSM}


def _cells(row: ClassWinner) -> list[str]:
    of = row.parameters

    def grid(*names: str) -> str:
        return "×".join(str(of[name]) for name in names) if all(name in of for name in names) else ""

    vendor = "" if row.vendor is None else _rate(row.vendor)
    return [
        row.dtype.upper() + FAMILIES[row.stem].routine.upper(),
        _form(row.layout),
        row.stem,
        f"{row.size} ({'×'.join(map(str, row.extents))})",
        grid("BLK_M", "BLK_N", "BLK_K"),
        grid("DIM_X", "DIM_Y"),
        grid("DIM_XA", "DIM_YA"),
        grid("DIM_XB", "DIM_YB"),
        str(of.get("stages", "")),
        _rate(row.tflops),
        vendor,
        str(row.tried),
        _rate(row.median),
    ]


def _order(key: tuple[str, str, str, str]) -> tuple:
    """Families, dtypes, layouts and classes in the order in which the rest of the library names them."""
    stem, dtype, layout, size = key
    family = FAMILIES[stem]
    indices = family.layouts.index(layout), sizes_of(stem).index(size)
    return list(FAMILIES).index(stem), list(DTYPES).index(dtype), *indices


def _rate(tflops: float) -> str:
    return f"{tflops:.3g}" if tflops < 100 else f"{tflops:.0f}"


def _form(layout: str) -> str:
    """'tn' is AᵀB; a family that does not distinguish layouts has no form."""
    if not set(layout) <= set(_MARKS):
        return ""
    return "".join(name + _MARKS[letter] for name, letter in zip("AB", layout, strict=False))


def _markdown(records: Sequence[Record]) -> str:
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    lines += [f"| {' | '.join(_cells(row))} |" for row in rows(records)]
    return "\n".join(["", *lines, ""])


def _lines(records: Sequence[Record]) -> list[str]:
    """Return the lines of the report outside the table."""
    document = winners(records, "")
    points: dict[tuple[str, str], list[str]] = {}
    for (dtype, point), rates in document.trsm_rates.items():
        points.setdefault((f"{dtype}trsm", max(rates, key=rates.__getitem__)), []).append(point)
    for (_, dtype, layout, point), entry in _fused(document).items():
        tile = "×".join(str(entry.parameters[name]) for name in ("BLK_M", "BLK_N", "BLK_K"))
        points.setdefault((f"{dtype}trsm, fused, {layout}", tile), []).append(point)
    lines = [f"{name}: {which} at {', '.join(at)}" for (name, which), at in sorted(points.items())]
    lines += [f"{name} of {dtype}: {value}" for name, dtype, value in _decided(records)]
    for stem, counts in sorted(funnel(records).items()):
        outcomes = ", ".join(f"{outcome} {count}" for outcome, count in counts.most_common())
        lines.append(f"{stem}: {counts.total()} candidates: {outcomes}")
    caches = sorted({record.caches for record in records if record.outcome == "ok"})
    lines.append(f"caches were {' or '.join(caches) or 'not recorded'}; TFLOP/s at the extents in brackets")
    return lines


def why_no_plots() -> str:
    """Return why plots are unavailable, and how to install them; '' where they are drawn."""
    try:
        from . import plots  # noqa: F401
    except ImportError as missing:
        return lacking(missing, "plot")
    return ""


def _plots(records: Sequence[Record], folder: Path) -> list[Path]:
    if why_no_plots():
        return []
    from . import plots

    return plots.draw(records, folder)
