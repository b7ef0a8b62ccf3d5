"""``pyblasgpu tune --dry-run``: what each rule removes, for any device that is here or described."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import count, product
from typing import Any

from rich.progress import Progress
from rich.table import Table

from .. import terminal
from ..database import FAMILIES, families_of, sizes_of, tuned_points
from ..gpu import device as devices
from ..gpu.device import Device
from ..processes import background_pool, cores
from ..types import DTYPES
from .compile_pool import compile_all, judge
from .prune import Funnel, Guidelines, candidates, defaults

__all__ = ["guidelines", "scope", "searches_of", "show", "sizes"]

WIDTH = 170  # columns of a table that goes into a file or a pipe
_OPTIONS = ("threads", "blocks", "reuse", "score")
UNNAMED = {"gemm", "trmm", "trsm"}  # routines that are meant where none is named
_ROUTINES = sorted({family.routine for family in FAMILIES.values()})
FEW = 2  # searches of products that one process makes as soon as several have begun


def scope(names: Iterable[str], dtypes: Sequence[str]) -> list[tuple[str, str]]:
    """(routine, dtype) of what a person named: 'gemm' in all of `dtypes`, 'sgemm' in its own.

    Raises
    ------
    ValueError
        For what is the name of no routine.
    """
    meant = {letter + routine: [(routine, letter)] for routine in _ROUTINES for letter in DTYPES}
    meant |= {routine: list(product([routine], dtypes)) for routine in _ROUTINES}
    pairs: list[tuple[str, str]] = []
    for name in names:
        if name not in meant:
            raise ValueError(f"routine {name!r} is none of {', '.join(_ROUTINES)}")
        pairs += meant[name]
    return list(dict.fromkeys(pairs))


def searches_of(options: Any) -> list[tuple[str, str, str]]:
    """(stem, dtype, layout) of all that is searched separately.

    ``routine`` and ``dtype`` of `options` say of what, as of `scope`; ``family``, ``layout`` and ``size``,
    where there are any, narrow it.

    Raises
    ------
    ValueError
        For a family, layout or size class that none of these has, and where nothing is left.
    """
    all_searches = [
        (stem, dtype, layout)
        for name, dtype in scope(options.routine, options.dtype)
        for stem in families_of(name, dtype)
        for layout in FAMILIES[stem].layouts
    ]
    families, layouts, only = (_narrowed(options, name) for name in _NARROWING)
    searches = [
        (stem, dtype, layout)
        for stem, dtype, layout in all_searches
        if (not families or stem in families) and (not layouts or layout in layouts) and sizes_of(stem, only)
    ]
    _refuse_unused(options, all_searches, searches)
    return searches


_NARROWING = ("family", "layout", "size")


def _narrowed(options: Any, name: str) -> tuple[str, ...]:
    return getattr(options, name, None) or ()


def _refuse_unused(
    options: Any, all_searches: list[tuple[str, str, str]], searches: list[tuple[str, str, str]]
) -> None:
    """Raise ValueError where a value narrows to nothing, or a routine that was named is left out."""
    routines = list(dict.fromkeys(FAMILIES[stem].routine for stem, _, _ in all_searches))
    dtypes = ",".join(dict.fromkeys(dtype for _, dtype, _ in all_searches))
    takes = {
        "family": [stem for stem, _, _ in all_searches],
        "layout": [layout for _, _, layout in all_searches],
        "size": [size for stem, _, _ in all_searches for size in sizes_of(stem)],
    }
    for name, known in takes.items():
        for value in _narrowed(options, name):
            if value not in known:
                others = ", ".join(dict.fromkeys(known))
                raise ValueError(f"--{name} {value}: {', '.join(routines)} in {dtypes} takes {others}")
    left = {FAMILIES[stem].routine for stem, _, _ in searches}
    if _narrowed(options, "layout") and not set(routines) >= UNNAMED:
        for routine in routines:
            layouts = dict.fromkeys(
                layout for stem, _, layout in all_searches if FAMILIES[stem].routine == routine
            )
            if not layouts.keys() & set(_narrowed(options, "layout")):
                asked = ",".join(_narrowed(options, "layout"))
                raise ValueError(f"--layout {asked}: {routine} takes {', '.join(layouts)}")
    if not left:
        narrowing = [(name, _narrowed(options, name)) for name in _NARROWING]
        narrowed_by = " and ".join(f"--{name} {','.join(values)}" for name, values in narrowing if values)
        raise ValueError(f"no kernel of {', '.join(routines)} in {dtypes} is of {narrowed_by}")


def sizes(options: Any) -> tuple[str, ...]:
    """The size classes that ``size`` of `options` names; none: all are meant."""
    return _narrowed(options, "size")


def guidelines(options: Any, otherwise: Guidelines) -> Guidelines:
    """The guidelines `otherwise`, but for what ``min_threads``, ``min_blocks``, ... of `options` set."""
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
    searches = searches_of(options)
    with _watched(len(searches), f"counting candidates on {device.name}") as done:
        funnels = _funnels(searches, device, options, done)
    dropped = _compile(funnels, device) if options.compile else []
    if options.json:
        print(json.dumps(_as_json(device, funnels, dropped), indent=2))
        return
    terminal.console(WIDTH).print(_funnel_table(funnels, device))


def _described(name: str | None) -> Device:
    return devices.named(name) if name is not None or devices.count() else devices.known("h200")


@contextmanager
def _watched(total: int, what: str) -> Iterator[Callable[[str], None]]:
    """Yield a function to call after each of `total` steps: it moves a bar on stderr, or prints a line."""
    screen = terminal.console(WIDTH, stderr=True)
    if screen.is_terminal:
        with Progress(*Progress.get_default_columns(), console=screen, transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda text: bar.update(task, advance=1, description=text)
        return
    steps = count(1)
    screen.print(f"{what}: {total} steps", highlight=False, soft_wrap=True)
    yield lambda text: screen.print(f"{next(steps)}/{total} {text}", highlight=False, soft_wrap=True)


def _funnels(
    searches: Sequence[tuple[str, str, str]], device: Device, options: Any, done: Callable[[str], None]
) -> dict[tuple[str, str, str], Funnel]:
    """The funnel of each search; of many long ones by several processes."""
    jobs = {
        (stem, dtype, layout): (
            stem,
            dtype,
            layout,
            device,
            options.effort,
            guidelines(options, defaults(stem, dtype, options.effort)),
            [extents for _, extents in tuned_points(stem, sizes(options))],
        )
        for stem, dtype, layout in searches
    }
    funnels = {}
    long = [search for search in searches if FAMILIES[search[0]].routine == "gemm"]
    workers = min(cores(), len(long) // FEW) if options.effort != "quick" else 1
    with background_pool(workers) if workers > 1 else nullcontext() as pool:
        asked = {search: pool.submit(candidates, *jobs[search]) for search in long} if pool else {}
        for search, job in jobs.items():
            funnels[search] = asked[search].result() if search in asked else candidates(*job)
            stem, dtype, layout = search
            left = f"{len(funnels[search].left)} left of {funnels[search].total}"
            done(f"{stem} {dtype} {layout}: {left}")
    return funnels


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


def _as_json(device: Device, funnels: dict, dropped: list[_Dropped]) -> dict[str, Any]:
    return {
        "device": device.name,
        "funnels": [
            {
                "family": stem,
                "dtype": dtype,
                "layout": layout,
                "candidates": funnel.total,
                "added": funnel.added,
                "removed": dict(funnel.removed),
                "left": len(funnel.left),
            }
            for (stem, dtype, layout), funnel in funnels.items()
        ],
        "dropped": [vars(each) for each in dropped],
    }


def _funnel_table(funnels: dict[tuple[str, str, str], Funnel], device: Device) -> Table:
    title = f"the kernels here on {device.name}"
    table = Table("family", "dtype", "layout", "candidates", "added", "removed by", "left", title=title)
    for search, funnel in funnels.items():
        removed = ", ".join(f"{rule} {count}" for rule, count in funnel.removed.items())
        table.add_row(*search, str(funnel.total), str(funnel.added), removed, str(len(funnel.left)))
    return table
