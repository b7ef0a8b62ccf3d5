"""Products of host matrices whose last columns the host computes, while the device computes the others.

    python -m benchmarks.host_share [--letters ds] [--sizes 4097 8193] [--columns 0 1 64] [--out FOLDER]

Li, Dongarra and Tomov leave to the host what a matrix has beyond whole tiles. 0 columns are the device alone.
Times are wall-clock medians, and each way's product is compared with that of the device alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

import pyblasgpu
from benchmarks.host_problems import seconds
from benchmarks.study import Namespace, Row, Rows, Study, device_facts, main, table
from pyblasgpu.types import DTYPES

__all__ = ["STUDY", "shared_product"]


def shared_product(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, columns: int, pool: ThreadPoolExecutor
) -> None:
    """C := A B of matrices by columns, its last columns by NumPy in another thread."""
    middle = c.shape[1] - columns
    host = pool.submit(np.matmul, b[:, middle:].T, a.T, out=c[:, middle:].T) if columns else None
    pyblasgpu.gemm(a, b[:, :middle], out=c[:, :middle], backend="cuda")
    if host:
        host.result()


def rows(options: Namespace) -> Rows:
    """Milliseconds by the number of columns that the host has."""
    with ThreadPoolExecutor(1) as pool:
        for letter in options.letters:
            for n in options.sizes:
                dtype, rng = DTYPES[letter], np.random.default_rng(n)
                a, b = (np.asfortranarray(rng.random((n, n)).astype(dtype.name)) for _ in range(2))
                alone, c = (np.zeros((n, n), dtype.name, "F") for _ in range(2))
                shared_product(a, b, alone, 0, pool)
                for columns in options.columns:
                    spent = seconds(partial(shared_product, a, b, c, columns, pool), 5)
                    error = float(abs(c - alone).max() / abs(alone).max())
                    yield {
                        "dtype": letter,
                        "n": n,
                        "columns": columns,
                        "ms": 1e3 * spent,
                        "difference": error,
                    }


def summary(rows: list[Row], options: Namespace) -> Iterator[Any]:
    alone = {(row["dtype"], row["n"]): row["ms"] for row in rows if not row["columns"]}
    lines = []
    for row in rows:
        of = alone.get((row["dtype"], row["n"]))
        lines.append((row["dtype"], row["n"], row["columns"], row["ms"], of / row["ms"] if of else ""))
    yield table("products shared with the host", "dtype | n | columns of the host | ms | times faster", lines)


STUDY = Study(
    "host_share",
    __doc__,
    rows,
    {"letters": "ds", "sizes": (4097, 8193), "columns": (0, 1, 64, 128, 256)},
    device_facts,
    summary=summary,
    prints_rows=False,
)

if __name__ == "__main__":
    main(STUDY)
