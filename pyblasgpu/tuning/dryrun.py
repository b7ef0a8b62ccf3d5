"""``pyblasgpu tune --dry-run``: what each rule removes, for any device that is here or described.

For products it also asks the generator of Kurzak et al. itself, rule by rule.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from rich.console import Console
from rich.table import Table

from ..database import FAMILIES, families_of, places_of, sizes_of
from ..gpu import device as devices
from ..gpu.device import Device
from ..types import DTYPES
from . import kurzak
from .build import compile_all, judge
from .prune import Funnel, Guidelines, candidates, defaults

__all__ = ["guidelines", "scope", "searches_of", "show", "sizes"]

WIDTH = 170  # columns of a table that goes into a file or a pipe
_OPTIONS = ("threads", "blocks", "reuse", "score")


def scope(names: Iterable[str], dtypes: Sequence[str]) -> list[tuple[str, str]]:
    """(routine, dtype) of what a person named: 'gemm' in all of `dtypes`, 'sgemm' in its own.

    Raises
    ------
    ValueError
        For what is the name of no routine.
    """
    routines = {family.routine for family in FAMILIES.values()}
    found: list[tuple[str, str]] = []
    for name in names:
        if name in routines:
            found += product([name], dtypes)
        elif name[1:] in routines and name[0] in DTYPES:
            found.append((name[1:], name[0]))
        else:
            raise ValueError(f"routine {name!r} is none of {', '.join(sorted(routines))}")
    return list(dict.fromkeys(found))


def searches_of(options: Any) -> list[tuple[str, str, str]]:
    """(stem, dtype, layout) of all that is searched separately.

    ``routine`` and ``dtype`` of `options` say of what, as of `scope`; ``family``, ``layout`` and ``size``,
    where there are any, narrow it.
    """
    families, layouts = getattr(options, "family", None), getattr(options, "layout", None)
    only = sizes(options)
    return [
        (stem, dtype, layout)
        for name, dtype in scope(options.routine, options.dtype)
        for stem in families_of(name, dtype)
        for layout in FAMILIES[stem].layouts
        if (not families or stem in families) and (not layouts or layout in layouts) and sizes_of(stem, only)
    ]


def sizes(options: Any) -> tuple[str, ...]:
    """The size classes that ``size`` of `options` names; none: all are meant."""
    return getattr(options, "size", None) or ()


def guidelines(options: Any, otherwise: Guidelines) -> Guidelines:
    """The guidelines `otherwise`, but for what ``min_threads``, ``min_blocks``, ... of `options` ask."""
    asked = {name: getattr(options, f"min_{name}", None) for name in _OPTIONS}
    return replace(otherwise, **{name: value for name, value in asked.items() if value is not None})


def show(options: Any) -> None:
    """Print the funnels.

    Parameters
    ----------
    options : object
        With the attributes ``routine`` and ``dtype`` (names, as of `scope`), ``effort``, ``device`` (a
        number, a name as of `device.known`, or None), ``json``, ``compile`` (whether the compiler prunes
        too), and optionally ``min_threads``, ``min_blocks``, ``min_reuse``, ``min_score``, ``family``,
        ``layout``, ``size``.

    Raises
    ------
    ValueError
        For an unknown device or routine.
    """
    device = _described(options.device)
    pairs = scope(options.routine, options.dtype)
    papers = {
        (dtype, layout): kurzak.count(
            DTYPES[dtype], layout, device, guidelines(options, kurzak.TABLE_1[dtype])
        )
        for name, dtype in pairs if name == "gemm"
        for layout in FAMILIES["gemm_tile"].layouts
    }  # fmt: skip
    funnels = {
        search: candidates(
            *search, device, options.effort,
            guidelines(options, defaults(search[0], search[1], options.effort)),
            [extents for _, extents in places_of(search[0], sizes(options))],
        )
        for search in searches_of(options)
    }  # fmt: skip
    dropped = _compile(funnels, device) if options.compile else []
    if options.json:
        print(json.dumps(_as_json(device, papers, funnels, dropped), indent=2))
        return
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    if papers:
        console.print(_paper_table(papers, device))
    console.print(_funnel_table(funnels, device))


def _described(name: str | None) -> Device:
    if name is None:
        return devices.current() if devices.count() else devices.known("h200")
    return devices.current(int(name)) if name.isdecimal() else devices.known(name)


@dataclass(frozen=True)
class _Dropped:
    """A candidate that the compiler's report speaks against."""

    family: str
    dtype: str
    layout: str
    rule: str
    detail: str
    parameters: dict[str, int]
    numbers: dict[str, int] = field(default_factory=dict)


def _compile(funnels: dict[tuple[str, str, str], Funnel], device: Device) -> list[_Dropped]:
    """Go on with the compiler: move what it speaks against from `left` to `removed`."""
    homes = {(key[0], config): key for key, funnel in funnels.items() for config in funnel.left}
    dropped = []
    for (stem, config), report in compile_all(homes, device.cc):
        rule, detail, numbers = judge(config, report, device)
        if rule != "ok":
            key = homes[stem, config]
            funnels[key].left.remove(config)
            funnels[key].removed[rule] += 1
            dropped.append(_Dropped(*key, rule, detail, FAMILIES[stem].parameters_of(config), numbers))
    return dropped


def _as_json(device: Device, papers: dict, funnels: dict, dropped: list[_Dropped]) -> dict[str, Any]:
    return {
        "device": device.name,
        "kurzak": [
            {"dtype": dtype, "layout": layout, "candidates": found.total, "removed": dict(+found.removed),
             "left": found.left}
            for (dtype, layout), found in papers.items()
        ],
        "funnels": [
            {"family": stem, "dtype": dtype, "layout": layout, "candidates": funnel.total,
             "added": funnel.added, "removed": dict(funnel.removed), "left": len(funnel.left)}
            for (stem, dtype, layout), funnel in funnels.items()
        ],
        "dropped": [vars(each) for each in dropped],
    }  # fmt: skip


def _paper_table(papers: dict[tuple[str, str], kurzak.Count], device: Device) -> Table:
    """A rule a row, a GEMM a column."""
    names = [f"{dtype}gemm {layout}" for dtype, layout in papers]
    table = Table("rule", *names, title=f"Algorithms 2 and 3 of Kurzak et al. on {device.name}")
    table.add_row("candidates", *(f"{found.total:,}" for found in papers.values()))
    for rule in dict.fromkeys(rule for found in papers.values() for rule in +found.removed):
        table.add_row(rule, *(f"−{found.removed[rule]:,}" for found in papers.values()))
    table.add_row("left", *(f"{found.left:,}" for found in papers.values()))
    return table


def _funnel_table(funnels: dict[tuple[str, str, str], Funnel], device: Device) -> Table:
    title = f"the kernels here on {device.name}"
    table = Table("family", "dtype", "layout", "candidates", "added", "removed by", "left", title=title)
    for search, funnel in funnels.items():
        removed = ", ".join(f"{rule} {count}" for rule, count in funnel.removed.items())
        table.add_row(*search, str(funnel.total), str(funnel.added), removed, str(len(funnel.left)))
    return table
