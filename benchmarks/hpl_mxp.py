"""HPL-MxP's measure: a system of float64 by refined LU factors of lower precision, and by float64's factors.

    python -m benchmarks.hpl_mxp --out DIR [--sizes 16384 32768] [--data dominant normal] [--cards 1 2]
                                 [--seconds 55]

Rates count (2/3 n³ + 3/2 n²) operations, as the measure does. Seconds are those of `linalg.solve` with
``method="tensor"``, refined at any order, and of its factors alone, in float32 by FP16 pairs. `residual` is
max |b - A x| / (n ε (‖A‖∞ max |x| + max |b|)), ε = 2⁻⁵³; the measure allows 16. A dominant matrix needs no
interchanges, as that of the measure; a normal one does. The first of several cards has the matrix.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from itertools import product
from typing import Any

import cupy
import numpy as np

from benchmarks.arrays import cold_seconds
from benchmarks.study import Namespace, Option, Row, Rows, Study, attempt, main
from pyblasgpu import lapack, linalg, use_devices
from pyblasgpu.dispatch.overrides import set_math_mode
from pyblasgpu.testing.policies import deciding_by

DATA = "dominant", "normal"
ROWS = 1024  # of A that are made, or multiplied, at a time
#: Bytes of float64 up to which factors in float64 are timed too: they take a second matrix.
MOST_IN_DOUBLE = 20 << 30


class _Steps(logging.Handler):
    """Keeps what a solution says of its steps."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the text of a record."""
        self.last = record.getMessage()


def system(n: int, data: str) -> tuple[cupy.ndarray, cupy.ndarray]:
    """A column-major matrix and a right-hand side."""
    rng, a = cupy.random.RandomState(n), cupy.empty((n, n), np.float64, order="F")
    for at in range(0, n, ROWS):
        part = a[:, at : at + ROWS]
        part[...] = (
            rng.standard_normal(part.T.shape).T
            if data == "normal"
            else rng.uniform(-0.5, 0.5, part.T.shape).T
        )
    if data == "dominant":
        a[np.arange(n), np.arange(n)] = n
    return a, rng.standard_normal(n)


def residual(a: cupy.ndarray, x: cupy.ndarray, b: cupy.ndarray) -> float:
    """The measure's, by rows of A."""
    worst, norm = 0.0, 0.0
    for at in range(0, len(a), ROWS):
        part = a[at : at + ROWS]
        worst = max(worst, float(abs(b[at : at + ROWS] - part @ x).max()))
        norm = max(norm, float(abs(part).sum(axis=1).max()))
    return worst * 2**53 / len(a) / (norm * float(abs(x).max()) + float(abs(b).max()))


def factor_seconds(a: cupy.ndarray, repeats: int) -> float:
    """Seconds of LU factors in float32, in the mode."""
    single = cupy.empty(a.shape, np.float32, order="F")

    def restore() -> None:
        single[...] = a

    def run() -> None:
        lapack.getrf(single, overwrite_a=1)

    with set_math_mode("tensor"):
        return cold_seconds(run, restore, repeats, busy=1)


def measured(n: int, data: str, cards: int) -> Row:
    """Seconds, rates and the residual of one system."""
    a, b = system(n, data)
    with use_devices(range(cards)) if cards > 1 else nullcontext():
        return _measured(n, a, b)


def _measured(n: int, a: cupy.ndarray, b: cupy.ndarray) -> Row:
    steps, log = _Steps(), logging.getLogger("pyblasgpu")
    repeats, kept = (1 if n > 30000 else 3), {}

    def solved(method: Any) -> None:
        kept["x"] = linalg.solve(a, b, assume_a="gen", method=method)

    work = (2 / 3 * n**3 + 1.5 * n**2) / 1e12
    before = log.level
    log.addHandler(steps)
    log.setLevel(logging.DEBUG)
    try:
        with deciding_by(getrf_refined_min_order=1):
            seconds = cold_seconds(lambda: solved("tensor"), repeats=repeats, busy=1)
    finally:
        log.removeHandler(steps)
        log.setLevel(before)
    row: Row = {
        "seconds": seconds,
        "tflops": work / seconds,
        "steps": steps.last,
        "residual": residual(a, kept["x"], b),
    }
    row["factors"] = factor_seconds(a, repeats)
    if a.nbytes <= MOST_IN_DOUBLE:
        row["double"] = cold_seconds(lambda: solved(None), repeats=repeats, busy=1)
        row["ratio"] = row["double"] / seconds
    return row


def rows(options: Namespace) -> Rows:
    """A row for each system and number of cards."""
    for n, data, cards in product(options.sizes, options.data, options.cards):
        yield attempt({"n": n, "data": data, "cards": cards}, measured, n, data, cards)
        cupy.get_default_memory_pool().free_all_blocks()


STUDY = Study(
    "hpl_mxp",
    __doc__,
    rows,
    {"sizes": (16384, 32768), "data": Option(DATA, DATA), "cards": (1,)},
    key="systems",
    seconds=55,
)

if __name__ == "__main__":
    main(STUDY)
