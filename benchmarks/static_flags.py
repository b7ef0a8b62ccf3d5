"""What the run-time options of GEMM kernels and their loads of any alignment cost, beside cuBLAS.

``python -m benchmarks.static_flags --out DIR``: products of columns that begin with vectors, with sectors of
memory, or within them; all conjugations; triangles of C.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median

import cupy

import pyblasgpu as pb
from pyblasgpu.types import DTYPES

SIZES = 512, 514, 513, 1024, 1026, 1025, 2048, 2050, 2049
ORDERS = 500, 1000, 2048
PASSES, CALLS = 7, 6


def seconds(call: Callable[[int], object]) -> float:
    """Median of passes; the calls of a pass take their arrays in turn."""
    times = []
    for _ in range(PASSES + 1):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        for i in range(CALLS):
            call(i)
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, end) / 1e3 / CALLS)
    return median(times[1:])


def arrays(n: int, dtype: str, copies: int = CALLS) -> list[cupy.ndarray]:
    """Random column-major matrices, in memory apart."""

    def one() -> cupy.ndarray:
        real = cupy.random.random((n, n), dtype=cupy.float64) - 0.5
        values = real + 1j * real.T if DTYPES[dtype].is_complex else real
        return cupy.asfortranarray(values.astype(DTYPES[dtype].name))

    return [one() for _ in range(copies)]


def by_alignment(dtype: str, n: int) -> Iterator[dict]:
    """A product whose columns begin with vectors, and of one or two rows more, beside cuBLAS."""
    a, b, c = (arrays(n, dtype) for _ in "abc")
    taken = seconds(lambda i: pb.gemm(a[i], b[i], out=c[i]))
    yield {"what": "alignment", "dtype": dtype, "n": n, "way": "pyblasgpu", "seconds": taken}
    taken = seconds(lambda i: cupy.matmul(a[i], b[i]))
    yield {"what": "alignment", "dtype": dtype, "n": n, "way": "cuBLAS", "seconds": taken}


def by_conjugation(dtype: str, n: int) -> Iterator[dict]:
    """op(A) op(B), none, one and both of them conjugated and transposed."""
    a, b, c = (arrays(n, dtype) for _ in "abc")
    for trans in ("TT", "TC", "CT", "CC"):
        taken = seconds(partial(_product, a, b, c, *trans))
        yield {"what": "conjugation", "dtype": dtype, "n": n, "way": trans, "seconds": taken}


def of_triangles(dtype: str, n: int) -> Iterator[dict]:
    """SYRK and HERK of both triangles."""
    a, c = arrays(n, dtype), arrays(n, dtype)
    routines = {"syrk": pb.syrk, "herk": pb.herk} if DTYPES[dtype].is_complex else {"syrk": pb.syrk}
    for name, routine in routines.items():
        for uplo in "LU":
            taken = seconds(partial(_update, routine, a, c, uplo == "L"))
            yield {"what": name, "dtype": dtype, "n": n, "way": uplo, "seconds": taken}


def _product(a: list, b: list, c: list, trans_a: str, trans_b: str, i: int) -> None:
    pb.gemm(a[i], b[i], out=c[i], trans_a=trans_a, trans_b=trans_b)


def _update(routine: Callable, a: list, c: list, lower: bool, i: int) -> None:
    routine(a[i], out=c[i], lower=lower)


def cases() -> Iterator[dict]:
    for n, dtype in product(SIZES, "dszc"):
        yield from by_alignment(dtype, n)
    for dtype in "cz":
        yield from by_conjugation(dtype, ORDERS[-1])
    for n, dtype in product(ORDERS, "sdcz"):
        yield from of_triangles(dtype, n)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=50, help="after which nothing more is timed")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    results, begin = [], time.monotonic()
    for case in cases():
        results.append(case)
        print(*case.values(), flush=True)
        (options.out / "static_flags.json").write_text(json.dumps(results, indent=1) + "\n")
        if time.monotonic() - begin > options.seconds:
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
