"""GEMM, TRMM and TRSM on the processor: Numba's kernels compared with SciPy's BLAS.

``python -m benchmarks.cpu [--letters sd] [--sizes 256 512] [--layouts nn tn] [--out FOLDER]``

It takes one core, or as many as ``NUMBA_NUM_THREADS`` and ``OPENBLAS_NUM_THREADS`` say, which are to be the
same. A time is the shortest of several. Of one core they are the thread's own seconds, so that other
processes do not count, but for what they take of caches and memory. Of several the clock's count. The peak
is that of a core, times their number.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.study import Namespace, Option, Row, Rows, Study, main, table
from pyblasgpu.bench.machine import commit
from pyblasgpu.cpu.numba import level3 as numba_cpu
from pyblasgpu.cpu.numba import tuned_gemm
from pyblasgpu.cpu.numba.device import current
from pyblasgpu.cpu.scipy import level3 as cpu
from pyblasgpu.options import parse_count
from pyblasgpu.testing.reference import reals
from pyblasgpu.tuning.cpu_search import measured_peak, seconds_of
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo

ROUTINES, LAYOUTS = ("gemm", "trmm", "trsm"), ("nn", "nt", "tn", "tt")


def rows(options: Namespace) -> Rows:
    """GFLOP/s of both."""
    cores = numba_cpu.threads()
    clock = time.thread_time if cores == 1 else time.perf_counter
    for letter in options.letters:
        dtype, peak = DTYPES[letter], cores * measured_peak(letter, current())
        for name, layout in _cases(options):
            for n in options.sizes:
                row = {"dtype": letter, "routine": name, "layout": layout, "n": n, "peak": peak}
                flops = dtype.flops_per_fma * n**3 // (1 if name == "gemm" else 2)
                for what, host in (("numba", numba_cpu), ("scipy", cpu)):
                    run = _call(host, letter, name, layout, n)
                    run()
                    row[what] = round(flops / seconds_of(run, options.repeats, clock) / 1e9, 2)
                yield row


def _cases(options: Namespace) -> Iterator[tuple[str, str]]:
    """Routines; of GEMM the four operations of Matsumoto's Table 3."""
    for name in options.routines:
        for layout in options.layouts if name == "gemm" else ("nn",):
            yield name, layout


def _call(host: Any, letter: str, name: str, layout: str, n: int) -> Callable[[], None]:
    dtype, rng = DTYPES[letter], np.random.default_rng(n)
    a, b = (np.asfortranarray(reals(rng, (n, n), dtype)) for _ in range(2))
    if name == "gemm":
        c = np.zeros_like(a)
        trans = [Trans.TRANS if each == "t" else Trans.NO for each in layout]
        return lambda: host.gemm(1, a, b, 0, c, *trans)
    a = np.asfortranarray(np.tril(a) / n + np.eye(n, dtype=dtype.name))  # repeated, it stays finite
    return lambda: getattr(host, name)(1, a, b, Side.LEFT, Uplo.LOWER, Trans.NO, Diag.NON_UNIT)


def facts(options: Namespace) -> Row:
    processor = current()
    configs = {letter: str(tuned_gemm.choose(letter, processor)[0]) for letter in options.letters}
    run = {"date": date.today().isoformat(), "commit": commit()}
    return {"processor": processor.name, "cores": numba_cpu.threads(), **run, "configs": configs}


def summary(rows: list[Row], options: Namespace) -> Iterator[Any]:
    lines = (
        (
            f"{r['dtype']}{r['routine']} {r['layout']}",
            r["n"],
            r["numba"],
            r["numba"] / r["peak"],
            r["scipy"],
            r["numba"] / r["scipy"],
        )
        for r in rows
    )
    heads = "routine | n | Numba, GFLOP/s | of peak | SciPy, GFLOP/s | ratio"
    yield table(f"{current().name}, cores: {numba_cpu.threads()}", heads, lines)


STUDY = Study(
    "cpu",
    __doc__,
    rows,
    {
        "letters": "sdcz",
        "routines": Option(ROUTINES, ROUTINES),
        "layouts": Option(LAYOUTS, LAYOUTS),
        "sizes": (128, 256, 512, 1024, 2048),
        "repeats": Option(7, kind=parse_count, help="runs, of which the shortest counts (%(default)s)"),
    },
    facts,
    summary=summary,
    prints_rows=False,
)

if __name__ == "__main__":
    main(STUDY)
