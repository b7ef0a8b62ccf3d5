"""Lookahead of LU and Cholesky factors: by blocks of how many columns, on one stream and on two.

    python -m benchmarks.lookahead --out DIR [--routines getrf,potrf] [--letters ds] [--sizes 1024,...]
                                   [--widths 128,256] [--tiles 1,4] [--mode tensor] [--seconds 60]

Width 0 is without lookahead. Each list of launches runs twice on fresh copies and its factors are compared:
the bits must be the same, and the pivots those without lookahead. Times as in `lu`, side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cupy

from benchmarks.arrays import cold_seconds, definite, identical, repeats_at, uniform
from benchmarks.study import Namespace, Option, Row, Rows, Study, main
from pyblasgpu import lapack
from pyblasgpu.dispatch.overrides import override, set_math_mode
from pyblasgpu.gpu import lanes
from pyblasgpu.testing.policies import deciding_by


@contextmanager
def streams(count: int) -> Iterator[None]:
    """The lanes of a launch list on this number of streams."""
    two = lanes.side_stream
    if count == 1:
        lanes.side_stream = lambda device, stream: None
    try:
        yield
    finally:
        lanes.side_stream = two


class Case:
    """A routine on a matrix."""

    def __init__(self, routine: str, letter: str, n: int):
        self.facts = {"routine": routine, "dtype": letter, "n": n}
        self.start = uniform(letter, n, n) if routine == "getrf" else definite(letter, n)
        self.a, self.call = cupy.empty_like(self.start), getattr(lapack, letter + routine)
        self.is_lu, self.repeats = routine == "getrf", repeats_at(n)
        self.expected: list[cupy.ndarray] | None = None

    def restore(self) -> None:
        self.a[...] = self.start

    def run(self) -> Any:
        return self.call(self.a, *(() if self.is_lu else (1, 0)), overwrite_a=1)

    def factors(self) -> list[cupy.ndarray]:
        """Pivots, if any, and factors of a fresh copy."""
        self.restore()
        results = self.run()
        return [*([cupy.asarray(results[1])] if self.is_lu else []), self.a.copy()]

    def measure(self, width: int, tiles: int, count: int) -> Row:
        """Seconds, whether two runs agree, and how far the factors are from those without lookahead."""
        with override("lookahead", width), override("tiles", tiles), streams(count):
            first, second = self.factors(), self.factors()
            taken = cold_seconds(self.run, self.restore, self.repeats)
        self.expected = self.expected or first
        how = {"width": width, "tiles": tiles, "streams": count}
        *pivots, (factors, others) = zip(first, self.expected, strict=True)
        return {
            **self.facts,
            **how,
            "seconds": taken,
            "same_bits": all(map(identical, first, second)),
            "same_pivots": all(identical(*pair) for pair in pivots),
            "distance": float(abs(factors - others).max() / abs(others).max()),
        }


def rows(options: Namespace) -> Rows:
    with deciding_by(tensor_getrf_min_order=0), set_math_mode(options.mode):
        for n in options.sizes:
            for routine in options.routines:
                for letter in options.letters:
                    case = Case(routine, letter, n)
                    yield case.measure(0, 1, 1)
                    for width in options.widths:
                        for tiles in options.tiles:
                            yield case.measure(width, tiles, 2)
                    yield case.measure(options.widths[-1], 1, 1)


STUDY = Study(
    "lookahead",
    __doc__,
    rows,
    {
        "routines": ("getrf", "potrf"),
        "letters": "ds",
        "sizes": (1024, 2048, 4096, 8192, 16384),
        "widths": (128, 256),
        "tiles": (1,),
        "mode": Option(None, choices=("tensor",)),
    },
    key="lookahead",
    seconds=60,
)

if __name__ == "__main__":
    main(STUDY)
