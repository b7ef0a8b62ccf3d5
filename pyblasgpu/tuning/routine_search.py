"""Whole routines: their solvers and methods, tuned with the winners; before and after; and cuBLAS's."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import product
from typing import Any, cast

from ..database import (
    FAMILIES,
    METHODS,
    METHODS_AT,
    SMALL_AT,
    SOLVED,
    Document,
    is_batch,
    switch_at,
    tuned_at,
    ways_at,
)
from ..dispatch.trsm_fused import likeliest
from ..gpu.device import Device
from ..types import DTYPES
from .results import candidate_of
from .runner import Runner
from .worker_bench import Job

__all__ = ["search_methods", "search_solvers", "time_vendor", "time_routines"]

CURVE = (256, 512, 1024, 2048, 4096)  # orders at which whole routines are timed before and after
PATIENCE = 300.0  # seconds: there may be kernels that nobody has compiled yet


def search_methods(runner: Runner, routines: Collection[tuple[str, str]], late: Callable[[], bool]) -> int:
    """Time (routine, dtype) pairs in all their ways, with what the user's file says.

    Place by place, so that a run that is cut off has compared all of them at the first ones. Returns how many
    times are missing then.
    """
    tried = {(r.stem, r.dtype, r.size, r.method) for r in runner.log.records}
    places: dict[str, tuple[int, ...]] = {**METHODS_AT, **SMALL_AT}
    ways = ((*pair, at, *way) for at in places for pair in routines for way in ways_at(pair[0], at).items())
    wanted = []
    for routine, dtype, place, _, asked in (way for way in ways if way[:4] not in tried):
        switch = cast(str, switch_at(routine, place))
        job = Job(routine, dtype, "any", ((switch, asked),), ((places[place], math.inf),), reload=True)
        wanted.append((place, {switch: int(asked)}, job))
    return _time_all(runner, wanted, late)


def search_solvers(
    runner: Runner,
    dtypes: Collection[str],
    device: Device,
    count: int,
    compile_all: Callable[[Collection[tuple[Any, Any]]], None],
    late: Callable[[], bool],
) -> int:
    """Time TRSM in one launch with the `count` likeliest Configs at each place and for each of `SOLVED`; they
    are compiled first.

    Returns how many times are missing when it is `late`.
    """
    method = METHODS["trsm"]
    known = {record.candidate for record in runner.log.records if record.solver}
    wanted, kernels = [], set()
    for (place, extents), solved, dtype in product(METHODS_AT.items(), SOLVED.values(), dtypes):
        for config in likeliest(DTYPES[dtype], solved, *extents, device, count):
            key, overrides = ("trsm", dtype, solved.recorded), ((method, True), (config.STEM, config))
            parameters = {method: 1, **FAMILIES[config.STEM].parameters_of(config)}
            if (*candidate_of(*key, parameters), place) not in known:
                kernels.add((solved.triangle, config))
                wanted.append((place, parameters, Job(*key, overrides, ((extents, math.inf),))))
    compile_all(kernels)
    return _time_all(runner, wanted, late)


def _time_all(
    runner: Runner, wanted: Sequence[tuple[str, dict[str, int], Job]], late: Callable[[], bool]
) -> int:
    """Time (size, parameters, job) one by one; returns how many are missing when it is `late`."""
    for done, (size, parameters, job) in enumerate(wanted):
        if late():
            return len(wanted) - done
        _time(runner, size, parameters, job)
    return 0


def _time(runner: Runner, size: str, parameters: dict[str, int], job: Job) -> None:
    """Note what a job says of a candidate."""
    key, ((extents, _),) = (job.routine, job.dtype, job.layout), job.problems
    times, failure = runner.finish(job, PATIENCE)
    for seconds in times:
        runner.add_time(key, size, parameters, extents, seconds)
    if failure is not None:
        runner.log.add(key, size, parameters, outcome=failure.outcome, detail=failure.detail)


def time_routines(
    runner: Runner,
    routines: Iterable[tuple[str, str]],
    outcome: str,
    late: Callable[[], bool] = lambda: False,
) -> None:
    """Time (routine, dtype) pairs over n, as whoever calls them would find them now, until it is `late`."""
    for routine, dtype in routines:
        if late():
            return
        layout = "nn" if routine == "gemm" else "any"
        extents = [(n,) * (3 if routine == "gemm" else 2) for n in CURVE]
        places = tuple((each, math.inf) for each in extents)
        times, _ = runner.finish(Job(routine, dtype, layout, (), places, reload=True), PATIENCE)
        for each, seconds in zip(extents, times, strict=False):
            runner.add_time((routine, dtype, layout), "", {}, each, seconds, outcome)


def time_vendor(runner: Runner, found: Document) -> None:
    """Time cuBLAS where the winners were timed; without it, nothing is lost."""
    for stem, dtype, layout, size in found.entries:
        if FAMILIES[stem].routine == "trmm" and is_batch(size):
            continue  # it has none of batches
        extents = tuned_at(stem, size)[-1]
        job = Job(FAMILIES[stem].routine, dtype, layout, (), ((extents, math.inf),), vendor=True)
        times, failure = runner.finish(job, PATIENCE)
        for seconds in times:
            runner.add_time((stem, dtype, layout), size, {}, extents, seconds, "vendor")
        if failure is not None:
            return
