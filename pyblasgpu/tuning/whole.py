"""Whole routines: their stop sizes, tuned with the kernels just found; before and after; and cuBLAS's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import product

from ..database import FAMILIES, RHS_AT, Document, tuned_at
from .bench import Job
from .lab import Lab

__all__ = ["STOPS", "search_stop", "time_vendor", "time_whole"]

STOPS = (64, 128, 256, 512, 1024)
STOP_ORDER = 2048  # of the triangle on which stop sizes are compared
CURVE = (256, 512, 1024, 2048, 4096)  # orders at which whole routines are timed before and after
PATIENCE = 300.0  # seconds: there may be kernels that nobody has compiled yet


def search_stop(lab: Lab, routine: str, dtype: str, late: Callable[[], bool]) -> None:
    """Time the whole routine for every stop size, with the Configs of the user's file.

    This is the second stage of two, as PLASMA tunes a kernel first and then what calls it.
    """
    key = (routine, dtype, "any")
    known = {(record.size, record.parameters["stop"]) for record in lab.journal.timed(key)}
    for (size, rhs), stop in product(RHS_AT.items(), STOPS):
        if late():
            return
        if (size, stop) in known:
            continue
        extents = (STOP_ORDER, rhs)
        job = Job(routine, dtype, "any", ((routine, stop),), ((extents, math.inf),), reload=True)
        times, failure = lab.finish(job, PATIENCE)
        for seconds in times:
            lab.add_time(key, size, {"stop": stop}, extents, seconds)
        if failure is not None:
            lab.journal.add(key, size, {"stop": stop}, outcome=failure.outcome, detail=failure.detail)


def time_whole(lab: Lab, routines: Iterable[tuple[str, str]], outcome: str) -> None:
    """Time (routine, dtype) pairs over n, as whoever calls them would find them now."""
    for routine, dtype in routines:
        layout = "nn" if routine == "gemm" else "any"
        extents = [(n,) * (3 if routine == "gemm" else 2) for n in CURVE]
        places = tuple((each, math.inf) for each in extents)
        times, _ = lab.finish(Job(routine, dtype, layout, (), places, reload=True), PATIENCE)
        for each, seconds in zip(extents, times, strict=False):
            lab.add_time((routine, dtype, layout), "", {}, each, seconds, outcome)


def time_vendor(lab: Lab, found: Document) -> None:
    """Time cuBLAS where the winners were timed; without it, nothing is lost."""
    for stem, dtype, layout, size in found.entries:
        extents = tuned_at(stem, size)[-1]
        job = Job(FAMILIES[stem].routine, dtype, layout, (), ((extents, math.inf),), vendor=True)
        times, failure = lab.finish(job, PATIENCE)
        for seconds in times:
            lab.add_time((stem, dtype, layout), size, {}, extents, seconds, "vendor")
        if failure is not None:
            return
