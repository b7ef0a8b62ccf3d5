"""Small matrices in host memory: the card, transfers included, beside SciPy's BLAS on the processor.

    python -m benchmarks.host_small --out DIR [--letters sdcz] [--sizes 32 64 ...] [--routines gemm trsm ...]

Microseconds of a call whose output is given, the median of many; pages are not locked. It tells from which
size on a card pays for arrays in host memory.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.host_problems import ROUTINES, HostProblem, write
from pyblasgpu.types import DTYPES

SIZES = (32, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048)


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
    for _ in range(2):
        case.ours(backend=backend)
    times: list[float] = []
    end = time.perf_counter() + budget
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        case.ours(backend=backend)
        times.append(time.perf_counter() - start)
    return 1e6 * median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--letters", default="sd")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--routines", nargs="+", default=("gemm", "trsm", "syrk"), choices=ROUTINES)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for routine in options.routines:
        for letter in options.letters:
            for n in options.sizes:
                case = problem(routine, letter, n)
                row = {"routine": routine, "dtype": letter, "n": n}
                rows.append({**row, **{name: microseconds(case, name) for name in ("cuda", "cpu")}})
                print({k: round(x) if isinstance(x, float) else x for k, x in rows[-1].items()}, flush=True)
    write(options.out, "host_small", {"cores": os.cpu_count()}, rows)


if __name__ == "__main__":
    main()
