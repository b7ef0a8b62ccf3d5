"""All variants of TRMM, TRSM and SYMM over the GEMM of the same run, as Cui et al. have them of one SGEMM.

    python -m benchmarks.variants [--letters ds] [--sizes 4096] [--routines trmm trsm symm] [--out FOLDER]

Medians of calls with cold caches, on square matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import pyblasgpu
from benchmarks.arrays import cold_seconds, uniform
from benchmarks.study import Namespace, Option, Row, Rows, Study, cupy, device_facts, main, table
from pyblasgpu.types import DTYPES

__all__ = ["STUDY", "VARIANTS"]

TRIANGULAR = tuple("".join((*each, "N")) for each in product("LR", "LU", "NT"))
#: By routine: the operations of A and B; side, triangle, operation, diagonal; side and triangle.
VARIANTS = {
    "gemm": ("NN",),
    "trmm": TRIANGULAR,
    "trsm": TRIANGULAR,
    "symm": tuple("".join(each) for each in product("LR", "LU")),
}


def call_of(routine: str, variant: str, a: Any, b: Any, c: Any) -> Callable[[], object]:
    """A call of the variant that has A, a triangle of it or a symmetric A, and leaves its result in C."""
    if routine == "gemm":
        return lambda: pyblasgpu.gemm(a, b, out=c)
    options: dict[str, Any] = {"side": variant[0], "lower": variant[1] == "L"}
    if routine == "symm":
        return lambda: pyblasgpu.symm(a, b, **options, out=c)
    return lambda: getattr(pyblasgpu, routine)(a, c, **options, trans=variant[2], out=c)


def rows(options: Namespace) -> Rows:
    """TFLOP/s by variant; GEMM's are first."""
    cases = [(name, each) for name in dict.fromkeys(("gemm", *options.routines)) for each in VARIANTS[name]]
    for letter, n in product(options.letters, options.sizes):
        a, b, c = (uniform(letter, n, n) for _ in range(3))
        a /= n
        a += cupy.eye(n, dtype=a.dtype)  # solutions stay finite
        restore = partial(cupy.copyto, c, b)
        for routine, variant in cases:
            spent = cold_seconds(call_of(routine, variant, a, b, c), restore)
            flops = DTYPES[letter].flops_per_fma * n**3 / (2 if routine in ("trmm", "trsm") else 1)
            row = {"routine": routine, "dtype": letter, "variant": variant, "n": n}
            yield {**row, "tflops": flops / spent / 1e12}


def summary(rows: list[Row], options: Namespace) -> Iterator[Any]:
    gemm = {(row["dtype"], row["n"]): row["tflops"] for row in rows if row["routine"] == "gemm"}
    lines = (
        (
            row["dtype"] + row["routine"],
            row["variant"],
            row["n"],
            row["tflops"],
            row["tflops"] / gemm[row["dtype"], row["n"]],
        )
        for row in rows
    )
    yield table("variants over GEMM", "call | variant | n | TFLOP/s | of GEMM's", lines)


STUDY = Study(
    "variants",
    __doc__,
    rows,
    {"letters": "ds", "sizes": (4096,), "routines": Option(("trmm", "trsm", "symm"), tuple(VARIANTS))},
    device_facts,
    summary=summary,
    prints_rows=False,
)

if __name__ == "__main__":
    main(STUDY)
