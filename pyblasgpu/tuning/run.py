"""``pyblasgpu tune``: show the funnel, or tune the device that is there and show the winners."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import product
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..database import FAMILIES, STOP_ROUTINES, Document
from ..errors import BackendUnavailable
from ..gpu import device as devices
from ..gpu.device import Device
from . import select
from .build import compile_all, complaint
from .prune import Funnel, candidates
from .tuner import STEMS, Search, Tuner

__all__ = ["main"]

WIDTH = 140  # columns of a table that goes into a file or a pipe


def main(options: Any, routine: Callable[[str], Callable] | None = None) -> int:
    """Tune, or in a dry run show the funnel; returns the exit code.

    Parameters
    ----------
    options : object
        With the attributes ``routine`` and ``dtype`` (sequences of names), ``effort``, ``budget`` (seconds
        or None), ``dry_run``, ``device`` (a number; in a dry run also a name; or None), ``json``, and
        optionally ``compile``, with which a dry run also compiles.
    routine : callable
        Gives the function of a routine by name; a dry run needs none.

    Raises
    ------
    BackendUnavailable
        Where there is no device to tune.
    ValueError
        For an unknown device.
    """
    searches = [
        (STEMS[name], dtype, layout)
        for name, dtype in product(options.routine, options.dtype)
        for layout in FAMILIES[STEMS[name]].layouts
    ]
    if options.dry_run:
        device = _described(options.device)
        _show_funnels(options, device, _funnels(options, device, searches))
        return 0
    if routine is None:
        raise BackendUnavailable("the tuner was not given the routines to run")
    number = options.device or "0"
    if not number.isdecimal():
        raise ValueError(f"device {number!r} is no number; only a dry run takes names")
    device = devices.current(int(number))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr)) as progress:
        tuner = Tuner(device, routine, options.effort, options.budget, progress)
        found = tuner.run(searches, [name for name in options.routine if name in STOP_ROUTINES])
    _show_winners(options, device, found)
    return 0 if found.entries else 1


def _described(name: str | None) -> Device:
    if name is None:
        return devices.current() if devices.count() else devices.known("h200")
    return devices.current(int(name)) if name.isdecimal() else devices.known(name)


def _funnels(options: Any, device: Device, searches: list[Search]) -> dict[Search, Funnel]:
    funnels = {search: candidates(*search, device, options.effort) for search in searches}
    if getattr(options, "compile", False):
        homes = {(key[0], config): funnel for key, funnel in funnels.items() for config in funnel.left}
        for (stem, config), report in compile_all(homes, device.cc):
            rule, _ = complaint(config, report, device)
            if rule != "ok":
                homes[stem, config].left.remove(config)
                homes[stem, config].removed[rule] += 1
    return funnels


def _show_funnels(options: Any, device: Device, funnels: dict[Search, Funnel]) -> None:
    if options.json:
        rows = [
            {"family": stem, "dtype": dtype, "layout": layout, "candidates": funnel.total,
             "removed": dict(funnel.removed), "left": len(funnel.left)}
            for (stem, dtype, layout), funnel in funnels.items()
        ]  # fmt: skip
        print(json.dumps({"device": device.name, "funnels": rows}, indent=2))
        return
    table = Table("family", "dtype", "layout", "candidates", "removed by", "left", title=device.name)
    for search, funnel in funnels.items():
        removed = ", ".join(f"{rule} {count}" for rule, count in funnel.removed.items())
        table.add_row(*search, str(funnel.total), removed, str(len(funnel.left)))
    _console().print(table)


def _show_winners(options: Any, device: Device, found: Document) -> None:
    """The winners, as Table 2 of Kurzak et al. has them."""
    if options.json:
        rows = [
            {"family": stem, "dtype": dtype, "layout": layout, "class": size, "tflops": entry.tflops,
             "config": entry.parameters}
            for (stem, dtype, layout, size), entry in sorted(found.entries.items())
        ]  # fmt: skip
        stops = [
            {"routine": routine, "dtype": dtype, "class": size, "stop": stop}
            for (routine, dtype, size), stop in sorted(found.stop_sizes.items())
        ]
        print(json.dumps({"device": device.name, "winners": rows, "stop_sizes": stops}, indent=2))
        return
    table = Table("family", "dtype", "layout", "class", "tile", "threads", "stages", "TFLOP/s")
    for key, entry in sorted(found.entries.items()):
        of = entry.parameters
        tile, threads = f"{of['BLK_M']}×{of['BLK_N']}×{of['BLK_K']}", f"{of['DIM_X']}×{of['DIM_Y']}"
        table.add_row(*key, tile, threads, str(of["stages"]), f"{entry.tflops:.1f}")
    console = _console()
    console.print(table)
    for (name, dtype, size), stop in sorted(found.stop_sizes.items()):
        console.print(f"{dtype}{name}, {size} right-hand sides: leaves of at most {stop} rows")
    console.print(f"written to {select.levels(device)[0].path}", soft_wrap=True)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else WIDTH)
