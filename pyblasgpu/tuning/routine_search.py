"""Fused TRSMs and algorithms, tuned with the kernels just found; whole routines and cuBLAS's, timed."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import product
from typing import Any

from ..database import (
    FAMILIES,
    FUSED_STEMS,
    FUSED_TRSM,
    T_LAYOUTS,
    TRSM_FUSED,
    TRSM_POINTS,
    TRSM_SMALL_POINTS,
    Document,
    algorithms_at,
    is_batch,
    tuned_at,
)
from ..dispatch.trsm_fused import likeliest
from ..gpu.device import Device
from ..types import DTYPES
from .results import candidate_of
from .runner import Runner
from .worker_bench import Job

__all__ = ["search_algorithms", "search_fused_trsm", "time_routines", "time_vendor"]

CURVE = (256, 512, 1024, 2048, 4096)  # orders at which whole routines are timed before and after
PATIENCE = 300.0  # seconds: there may be kernels that nobody has compiled yet


def search_algorithms(runner: Runner, dtypes: Collection[str], late: Callable[[], bool]) -> int:
    """Time the algorithms of TRSM in these dtypes, with what the user's file says.

    Point by point, so that a run that is cut off has compared all of them at the first ones. Returns how many
    times are missing then.
    """
    tried = {(r.dtype, r.size, r.algorithm) for r in runner.log.records}
    points: dict[str, tuple[int, ...]] = {**TRSM_POINTS, **TRSM_SMALL_POINTS}
    wanted = []
    for point, extents in points.items():
        for dtype, algorithm in product(dtypes, algorithms_at(point)):
            if (dtype, point, algorithm) not in tried:
                override = ("trsm_algorithm", algorithm)
                job = Job("trsm", dtype, "any", (override,), ((extents, math.inf),), reload=True)
                wanted.append(((job.routine, dtype, "any"), point, {algorithm: 1}, job))
    return _time_all(runner, wanted, late)


def search_fused_trsm(
    runner: Runner,
    dtypes: Collection[str],
    device: Device,
    count: int,
    compile_all: Callable[[Collection[tuple[Any, Any]]], None],
    late: Callable[[], bool],
) -> int:
    """Time the fused TRSM with the `count` likeliest Configs at each point and for each of `T_LAYOUTS`; they
    are compiled first.

    Returns how many times are missing when it is `late`.
    """
    known = {record.candidate for record in runner.log.records if record.stem in FUSED_TRSM}
    wanted, kernels = [], set()
    for (point, extents), layout, dtype in product(TRSM_POINTS.items(), T_LAYOUTS, dtypes):
        for config in likeliest(DTYPES[dtype], layout, *extents, device, count):
            key = FUSED_STEMS[config.STEM], dtype, layout
            parameters = FAMILIES[config.STEM].parameters_of(config)
            if (*candidate_of(*key, parameters), point) not in known:
                kernels.add((T_LAYOUTS[layout].triangle, config))
                overrides = ("trsm_algorithm", TRSM_FUSED), (config.STEM, config)
                job = Job("trsm", dtype, layout, overrides, ((extents, math.inf),))
                wanted.append((key, point, parameters, job))
    compile_all(kernels)
    return _time_all(runner, wanted, late)


#: (family or routine, dtype, layout), size class or point, parameters, and what is run.
_Wanted = tuple[tuple[str, str, str], str, dict[str, int], Job]


def _time_all(runner: Runner, wanted: Sequence[_Wanted], late: Callable[[], bool]) -> int:
    """Time one by one; returns how many are missing when it is `late`."""
    for done, each in enumerate(wanted):
        if late():
            return len(wanted) - done
        _time(runner, *each)
    return 0


def _time(runner: Runner, key: tuple[str, str, str], size: str, parameters: dict[str, int], job: Job) -> None:
    """Note what a job says of a candidate."""
    ((extents, _),) = job.problems
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
        layout = {"gemm": "nn", "gemv": "n"}.get(routine, "any")
        extents = [(n,) * (3 if routine == "gemm" else 2) for n in CURVE]
        problems = tuple((each, math.inf) for each in extents)
        times, _ = runner.finish(Job(routine, dtype, layout, (), problems, reload=True), PATIENCE)
        for each, seconds in zip(extents, times, strict=False):
            runner.add_time((routine, dtype, layout), "", {}, each, seconds, outcome)


def time_vendor(runner: Runner, winners: Document) -> None:
    """Time cuBLAS where the winners were timed; without it, nothing is lost."""
    for stem, dtype, layout, size in winners.entries:
        if stem in FUSED_TRSM:
            continue
        if FAMILIES[stem].routine == "trmm" and is_batch(size):
            continue  # it has none of batches
        extents = tuned_at(stem, size)[-1]
        job = Job(FAMILIES[stem].routine, dtype, layout, (), ((extents, math.inf),), vendor=True)
        times, failure = runner.finish(job, PATIENCE)
        for seconds in times:
            runner.add_time((stem, dtype, layout), size, {}, extents, seconds, "vendor")
        if failure is not None:
            return
