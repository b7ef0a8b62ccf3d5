"""Lists of matrices of unequal sizes: one grouped call compared with loops of calls, ours and CuPy's.

``python -m benchmarks.grouped --out DIR [--letters sd] [--counts 8 64 1000] [--sizes 16 64 256]`` prints
microseconds of whole calls, until the device is done, medians taken in turn. Orders are uniform up to a size.
A repeated call has the same arrays; one of new sizes has others each time, as of lists that change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import numpy as np

import pyblasgpu
from benchmarks.study import Namespace, Rows, Study, cupy, main, means
from pyblasgpu.testing.clocks import medians_in_turn
from pyblasgpu.types import DTYPES

COLUMNS, LISTS = 8, 6  # right-hand sides, and lists of new sizes: one for each call

Lists = list[list[Any]]


def lists(letter: str, count: int, size: int, seed: int) -> tuple[Lists, Lists]:
    """Factors of products and their outputs; definite matrices, triangles of them and right-hand sides."""
    rng, dtype = np.random.default_rng(seed), DTYPES[letter].name

    def random(m: int, n: int) -> Any:
        return cupy.asarray(rng.standard_normal((m, n)).astype(dtype))

    extents = rng.integers(1, size + 1, (count, 3)).tolist()
    products = [[random(m, k), random(k, n), random(m, n)] for m, n, k in extents]
    squares = [random(n, n) for n, _, _ in extents]
    definite = [x @ x.T.conj() + len(x) * cupy.eye(len(x), dtype=dtype) for x in squares]
    systems = [[x, cupy.tril(x), random(len(x), COLUMNS)] for x in definite]
    transposed = [[list(each) for each in zip(*x, strict=True)] for x in (products, systems)]
    return transposed[0], transposed[1]


def calls(products: Lists, systems: Lists) -> Iterator[tuple[str, dict[str, Callable[[], object]]]]:
    """A routine, its grouped call, and loops of calls."""
    (a, b, c), (definite, triangles, right) = products, systems
    each = [*zip(a, b, c, strict=True)]
    yield (
        "gemm",
        {
            "grouped": lambda: pyblasgpu.gemm_grouped(a, b, out=c),
            "loop": lambda: [pyblasgpu.gemm(x, y, out=z) for x, y, z in each],
            "cupy": lambda: [cupy.matmul(x, y, out=z) for x, y, z in each],
        },
    )
    yield (
        "trsm",
        {
            "grouped": lambda: pyblasgpu.trsm_grouped(triangles, right, lower=True),
            "loop": lambda: [pyblasgpu.trsm(t, x, lower=True) for t, x in zip(triangles, right, strict=True)],
        },
    )
    yield (
        "potrf",
        {
            "grouped": lambda: pyblasgpu.potrf_grouped(definite, lower=True),
            "loop": lambda: [pyblasgpu.lapack.potrf(x, lower=1) for x in definite],
            "cupy": lambda: [cupy.linalg.cholesky(x) for x in definite],
        },
    )


def microseconds(runs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Microseconds of each run, until the device is done."""
    wait = cupy.cuda.Device().synchronize
    timed = {name: lambda run=run: (run(), wait()) for name, run in runs.items()}
    return {f"{name}_us": 1e6 * seconds for name, seconds in medians_in_turn(timed, prepare=wait).items()}


def in_turn(runs: list[Callable[[], object]]) -> Callable[[], object]:
    """Return a function that calls another of them each time."""
    turns = cycle(runs)
    return lambda: next(turns)()


def rows(options: Namespace) -> Rows:
    for letter in options.letters:
        for count in options.counts:
            for size in options.sizes:
                made = [dict(calls(*lists(letter, count, size, seed))) for seed in range(LISTS)]
                for routine, runs in made[0].items():
                    new = in_turn([each[routine]["grouped"] for each in made])
                    times = microseconds({**runs, "new_sizes": new})
                    row = {"routine": routine, "dtype": letter, "count": count, "size": size, **times}
                    best = min(times[name] for name in ("loop_us", "cupy_us") if name in times)
                    yield {**row, "ratio": best / times["grouped_us"]}


STUDY = Study(
    "grouped",
    __doc__,
    rows,
    {"letters": "sd", "counts": (8, 64, 1000), "sizes": (16, 64, 256)},
    summary=lambda rows, options: means(rows),
    seconds=120,
)

if __name__ == "__main__":
    main(STUDY)
