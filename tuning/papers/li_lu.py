"""Li's block LU: one code, with our GEMM and with cuBLAS's.

``python tuning/papers/li_lu.py [--dtype d,s] [--sizes 6144] [--panels 64,128] [--out FOLDER]``

Li, Dongarra and Tomov (*A note on auto-tuning GEMM for GPUs*, ICCS 2009) put their tuned DGEMM under a
right-looking LU of 6144 with panels of 64 columns. 53 GFLOP/s became 65. So does this script. Panels,
interchanges and triangles are ours in both columns, and the products alone differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from pyblasgpu import lapack
from pyblasgpu.api.keyword.level3 import gemm
from pyblasgpu.api.keyword.triangular import trsm
from pyblasgpu.testing import cublas
from pyblasgpu.types import DTYPES
from tuning.papers.device_time import device_seconds

__all__ = ["block_lu", "main"]

#: ``update(left, right, c)``: c -= left right.
Update = Callable[[Any, Any, Any], object]


def ours(left: Any, right: Any, c: Any) -> object:
    """The product by our GEMM."""
    return gemm(left, right, alpha=-1, beta=1, out=c)


def theirs(left: Any, right: Any, c: Any) -> None:
    """The product by cuBLAS's."""
    cublas.load().gemm(-1, left, right, 1, c)


def block_lu(a: Any, columns: int, update: Update) -> list[Any]:
    """Factor `a` in place by panels of so many columns; the pivots of each, counted from its first row."""
    m, n = a.shape
    pivots = []
    for first in range(0, min(m, n), columns):
        last = min(first + columns, m, n)
        panel = a[first:, first:last]
        factors, piv, _ = lapack.getrf(panel, overwrite_a=1)
        if factors is not panel:
            panel[...] = factors
        pivots.append(piv)
        for beside in (a[first:, :first], a[first:, last:]):
            if beside.shape[1]:
                _interchange(beside, piv)
        if last < n:
            right = a[first:last, last:]
            trsm(a[first:last, first:last], right, lower=True, unit_diag=True, out=right)
            if last < m:
                update(a[last:, first:last], right, a[last:, last:])
    return pivots


def _interchange(rows: Any, piv: Any) -> None:
    moved = lapack.laswp(rows, piv, overwrite_a=1)
    if moved is not rows:
        rows[...] = moved


def _milliseconds(a: Any, columns: int, update: Update) -> float:
    return 1e3 * device_seconds(lambda copy: block_lu(copy, columns, update), [a])


def rows(letters: list[str], sizes: list[int], panels: list[int]) -> list[dict[str, Any]]:
    """Times, rates and ratios."""
    import cupy

    found = []
    for letter in letters:
        for n in sizes:
            a = cupy.random.default_rng(n).random((n, n), cupy.float64) - 0.5
            a = cupy.asfortranarray(a.astype(DTYPES[letter].name))
            for columns in panels:
                mine, other = (_milliseconds(a, columns, update) for update in (ours, theirs))
                rate = 2e-9 * n**3 / 3
                row = {"dtype": letter, "n": n, "columns": columns, "ms": mine, "cublas_ms": other}
                found.append({**row, "tflops": rate / mine, "cublas_tflops": rate / other})
                print({key: round(x, 3) if isinstance(x, float) else x for key, x in found[-1].items()})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dtype", default="d,s")
    parser.add_argument("--sizes", default="6144")
    parser.add_argument("--panels", default="64,128")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    sizes, panels = ([int(x) for x in text.split(",")] for text in (options.sizes, options.panels))
    found = rows(options.dtype.split(","), sizes, panels)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "li_lu.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
