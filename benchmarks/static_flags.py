"""What the run-time options of GEMM kernels and their two widths of loads cost, beside cuBLAS.

``python -m benchmarks.static_flags --out DIR``: products of columns that begin within sectors of memory, by
full vectors, through the L1 cache and by scalar loads; then all conjugations, and triangles of C.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from unittest.mock import patch

import cupy

import pyblasgpu as pb
from benchmarks.kernels import compiled, named
from pyblasgpu.dispatch.choose import select
from pyblasgpu.gpu.device import current
from pyblasgpu.kernels.gemm.config import GemmConfig
from pyblasgpu.types import DTYPES

LEADS = {"s": (516, 1028, 2052), "d": (514, 1022, 2050, 4098), "c": (514, 1022, 2050), "z": (513, 1023, 2049)}
ORDERS = 500, 1000, 2048
PASSES, CALLS = 7, 6


def seconds(call: Callable[[int], object]) -> float:
    """Median of passes; the calls of a pass take their arrays in turn."""
    found = []
    for _ in range(PASSES + 1):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        for i in range(CALLS):
            call(i)
        end.record()
        end.synchronize()
        found.append(cupy.cuda.get_elapsed_time(start, end) / 1e3 / CALLS)
    return median(found[1:])


def arrays(n: int, dtype: str, copies: int = CALLS) -> list[cupy.ndarray]:
    """Random column-major matrices, in memory apart."""

    def one() -> cupy.ndarray:
        real = cupy.random.random((n, n), dtype=cupy.float64) - 0.5
        values = real + 1j * real.T if DTYPES[dtype].is_complex else real
        return cupy.asfortranarray(values.astype(DTYPES[dtype].name))

    return [one() for _ in range(copies)]


def by_loads(dtype: str, n: int) -> Iterator[dict]:
    """A product by the Config that is chosen for aligned columns, with its loads in each way."""
    device = current()
    config = select("gemm", DTYPES[dtype], "nn", (n, n, n, 1), device).config
    config = replace(config, packed=False)
    ways = {"full": replace(config, through_l1=False), "scalar": config.scalar_variant}
    ways["through_l1"] = ways["full"].with_cache_policy(True)
    ways = {name: way for name, way in ways.items() if way is not None}
    compiled(set(ways.values()), device, f"{dtype}gemm {n}")
    a, b, c = (arrays(n, dtype) for _ in "abc")
    for name, way in ways.items():
        with (
            pb.override(config.STEM, way),
            pb.override("splits", 1),
            pb.override("packed", False),
            patch.object(GemmConfig, "for_alignment", lambda config, *_, **__: config),
        ):
            time = seconds(lambda i: pb.gemm(a[i], b[i], out=c[i]))
        yield {"what": "loads", "dtype": dtype, "n": n, "way": name, "kernel": named(way), "seconds": time}
    time = seconds(lambda i: cupy.matmul(a[i], b[i]))
    yield {"what": "loads", "dtype": dtype, "n": n, "way": "cuBLAS", "seconds": time}


def by_conjugation(dtype: str, n: int) -> Iterator[dict]:
    """op(A) op(B), none, one and both of them conjugated and transposed."""
    a, b, c = (arrays(n, dtype) for _ in "abc")
    for trans in ("TT", "TC", "CT", "CC"):
        time = seconds(partial(_product, a, b, c, *trans))
        yield {"what": "conjugation", "dtype": dtype, "n": n, "way": trans, "seconds": time}


def of_triangles(dtype: str, n: int) -> Iterator[dict]:
    """SYRK and HERK of both triangles."""
    a, c = arrays(n, dtype), arrays(n, dtype)
    routines = {"syrk": pb.syrk, "herk": pb.herk} if DTYPES[dtype].is_complex else {"syrk": pb.syrk}
    for name, routine in routines.items():
        for uplo in "LU":
            time = seconds(partial(_update, routine, a, c, uplo == "L"))
            yield {"what": name, "dtype": dtype, "n": n, "way": uplo, "seconds": time}


def _product(a: list, b: list, c: list, trans_a: str, trans_b: str, i: int) -> None:
    pb.gemm(a[i], b[i], out=c[i], trans_a=trans_a, trans_b=trans_b)


def _update(routine: Callable, a: list, c: list, lower: bool, i: int) -> None:
    routine(a[i], out=c[i], lower=lower)


def cases() -> Iterator[dict]:
    for dtype, orders in LEADS.items():
        for n in orders:
            yield from by_loads(dtype, n)
    for dtype in "cz":
        yield from by_conjugation(dtype, ORDERS[-1])
    for dtype in "sdcz":
        for n in ORDERS:
            yield from of_triangles(dtype, n)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    found = []
    for case in cases():
        found.append(case)
        print(*case.values(), flush=True)
        (out / "static_flags.json").write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
