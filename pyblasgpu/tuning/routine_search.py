"""Whole routines: their stop sizes, solvers and methods, tuned with the kernels just found; before and after;
and cuBLAS's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import product
from typing import Any, cast

from ..database import (
    FAMILIES,
    METHODS,
    METHODS_AT,
    RHS_AT,
    SMALL_AT,
    SOLVED,
    Document,
    families_of,
    is_batch,
    switch_at,
    tuned_at,
    ways_at,
)
from ..dispatch.choose import stop_size
from ..dispatch.trsm_fused import likeliest
from ..gpu.device import Device
from ..types import DTYPES
from .results import Record, candidate_of, sound
from .runner import Runner
from .search_problem import Measurement
from .twostage import combinations
from .worker_bench import Job

__all__ = ["STOPS", "search_methods", "search_solvers", "search_stop", "time_vendor", "time_routines"]

STOPS = (64, 128, 256, 512, 1024)
STOP_ORDER = 2048  # of the triangle on which stop sizes are compared
KEEP = 8  # pairs of leaf and stop size, beside those of the best leaf with every stop size
CURVE = (256, 512, 1024, 2048, 4096)  # orders at which whole routines are timed before and after
PATIENCE = 300.0  # seconds: there may be kernels that nobody has compiled yet


def search_stop(runner: Runner, routine: str, dtype: str, device: Device, late: Callable[[], bool]) -> None:
    """Time the whole routine for leaves and stop sizes that promise most, products as the user's file says.

    This is the second stage of two, as PLASMA tunes a kernel first and then what calls it. In each class the
    stop size that serves now is the first, so that one that is cut off ends with nothing worse.
    """
    key = (routine, dtype, "any")
    known = {(record.size, record.candidate) for record in runner.log.timed(key)}
    records = [record for record in sound(runner.log.records) if record.dtype == dtype]
    for size, rhs in RHS_AT.items():
        serving = stop_size(routine, DTYPES[dtype], rhs, device).config
        stops = sorted(STOPS, key=lambda stop: stop != serving)
        for stem, leaf, stop in _pairs(records, routine, dtype, size, rhs, stops):
            if late():
                return
            parameters = {"stop": stop, **FAMILIES[stem].parameters_of(leaf)}
            if (size, candidate_of(*key, parameters)) in known:
                continue
            extents, overrides = (STOP_ORDER, rhs), ((routine, stop), (stem, leaf))
            job = Job(routine, dtype, "any", overrides, ((extents, math.inf),), reload=True)
            _time(runner, size, parameters, job)


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
    runner: Runner, dtypes: Collection[str], device: Device, count: int,
    compile_all: Callable[[Collection[tuple[str, Any]]], None], late: Callable[[], bool],
) -> int:  # fmt: skip
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
    key, ((extents, _),) = (job.routine, job.dtype, job.layout), job.places
    times, failure = runner.finish(job, PATIENCE)
    for seconds in times:
        runner.add_time(key, size, parameters, extents, seconds)
    if failure is not None:
        runner.log.add(key, size, parameters, outcome=failure.outcome, detail=failure.detail)


def _pairs(
    records: list[Record], routine: str, dtype: str, size: str, rhs: int, stops: Sequence[int]
) -> Iterator[tuple[str, Any, int]]:
    """(family, leaf, stop size): all `stops` with the best leaf of the class, and what promises most."""
    stems = {}
    leaves: dict[Measurement, float] = {}
    for stem in families_of(routine, dtype):
        times = _times(records, stem, dtype, size)
        leaves.update(times)
        stems.update(dict.fromkeys((measurement.config for measurement in times), stem))
    if not leaves:
        return
    products: dict[Measurement, float] = {}
    for stem in families_of("gemm", dtype):
        times = _times(records, stem, dtype)
        products.update(
            {measurement: seconds for measurement, seconds in times.items() if not is_batch(measurement.size)}
        )
    largest = max(measurement.extents for measurement in leaves)
    best = min((t for t in leaves if t.extents == largest), key=leaves.__getitem__).config
    pairs = dict.fromkeys((best, stop) for stop in stops)
    if products:
        found = combinations(leaves, products, STOP_ORDER, rhs, stops, KEEP)
        pairs.update(dict.fromkeys((each.leaf, each.stop) for each in found))
    # beyond its own largest order a leaf is the same with every stop size
    different = dict.fromkeys((leaf, min(stop, leaf.ORDER)) for leaf, stop in pairs)
    yield from ((stems[leaf], leaf, stop) for leaf, stop in different)


def _times(records: list[Record], stem: str, dtype: str, size: str | None = None) -> dict[Measurement, float]:
    """The times of a family in its first layout, of one class or of all."""
    family = FAMILIES[stem]
    layout = family.layouts[0]
    return {
        Measurement(
            family.config(dtype, layout, record.parameters), record.size, record.extents
        ): record.seconds
        for record in records
        if (record.stem, record.dtype, record.layout) == (stem, dtype, layout) and size in (None, record.size)
    }


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
