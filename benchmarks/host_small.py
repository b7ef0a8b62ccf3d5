"""Small matrices in host memory: the card, transfers included, against SciPy's BLAS on the processor.

    python -m benchmarks.host_small --out DIR [--letters sdcz] [--sizes 32 64 ...] [--routines gemm trsm ...]

Microseconds of a call whose output is given, the median of many; pages are not locked. It shows from which
size on a card pays for arrays in host memory.
"""

from __future__ import annotations

import os
import time
from functools import partial
from statistics import median

import numpy as np

from benchmarks.host_problems import ROUTINES, HostProblem, nested_document
from benchmarks.study import Namespace, Option, Rows, Study, device_facts, main
from pyblasgpu.testing.clocks import host_clock
from pyblasgpu.types import DTYPES


def problem(routine: str, letter: str, n: int) -> HostProblem:
    """Random matrices in memory of NumPy's."""
    rng, dtype = np.random.default_rng(0), DTYPES[letter]
    arrays = [np.asfortranarray(rng.uniform(-1, 1, (n, n)).astype(dtype.name)) for _ in range(3)]
    if routine in ("trsm", "trmm"):
        arrays[0] /= n
        np.fill_diagonal(arrays[0], 2)
    return HostProblem(routine, letter, arrays)


def microseconds(case: HostProblem, backend: str, budget: float = 0.05) -> float:
    """The median of calls, at least five, for some time."""
    call = partial(case.ours, backend=backend)
    times = [host_clock(call) for _ in range(2)][:0]  # two are not counted
    end = time.perf_counter() + budget
    while len(times) < 5 or time.perf_counter() < end:
        times.append(host_clock(call))
    return 1e6 * median(times)


def rows(options: Namespace) -> Rows:
    for routine in options.routines:
        for letter in options.letters:
            for n in options.sizes:
                case = problem(routine, letter, n)
                row = {"routine": routine, "dtype": letter, "n": n}
                yield {**row, **{name: microseconds(case, name) for name in ("cuda", "cpu")}}


STUDY = Study(
    "host_small",
    __doc__,
    rows,
    {
        "letters": "sd",
        "sizes": (32, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048),
        "routines": Option(("gemm", "trsm", "syrk"), ROUTINES),
    },
    lambda options: {**device_facts(options), "cores": os.cpu_count()},
    key="rows",
    document=nested_document,
)

if __name__ == "__main__":
    main(STUDY)
