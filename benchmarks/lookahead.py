"""Lookahead of LU and Cholesky factors: by blocks of how many columns, on one stream and on two.

    python -m benchmarks.lookahead --out DIR [--routines getrf,potrf] [--letters ds] [--sizes 1024,...]
                                   [--widths 128,256] [--tiles 1,4] [--mode tensor] [--seconds 60]

Width 0 is without lookahead. Each list of launches runs twice on fresh copies and its factors are compared:
the bits must be the same, and the pivots those without lookahead. Times as in `lu`, side by side.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import cupy

from pyblasgpu import lapack
from pyblasgpu.dispatch.overrides import override, set_math_mode
from pyblasgpu.gpu import lanes
from pyblasgpu.kernels.factor.potrf_panel import PotrfPanel
from pyblasgpu.testing.policies import deciding_by

from .lu import FLUSH, random, seconds


def definite(letter: str, n: int) -> cupy.ndarray:
    """A Hermitian positive definite matrix, dominated by its diagonal."""
    a = random(letter, n, n)
    return cupy.asfortranarray((a + a.conj().T) / 2 + n * cupy.eye(n, dtype=a.dtype))


@contextmanager
def streams(count: int) -> Iterator[None]:
    """The lanes of a launch list on so many streams."""
    two = lanes.side_stream
    if count == 1:
        lanes.side_stream = lambda device, stream: None
    try:
        yield
    finally:
        lanes.side_stream = two


class Case:
    """A routine on a matrix."""

    def __init__(self, routine: str, letter: str, n: int, flush: cupy.ndarray):
        self.facts = {"routine": routine, "dtype": letter, "n": n}
        self.start = random(letter, n, n) if routine == "getrf" else definite(letter, n)
        self.a, self.flush = cupy.empty_like(self.start), flush
        self.call, self.is_lu = getattr(lapack, letter + routine), routine == "getrf"
        self.repeats = 3 if n > 5000 else 9
        self.expected: list[cupy.ndarray] | None = None

    def prepare(self) -> None:
        self.a[...] = self.start
        self.flush.fill(0)

    def run(self) -> Any:
        if self.is_lu:
            return self.call(self.a, overwrite_a=1)
        return self.call(self.a, 1, 0, overwrite_a=1)

    def factors(self) -> list[cupy.ndarray]:
        """Pivots, if any, and factors of a fresh copy."""
        self.prepare()
        results = self.run()
        return [*([cupy.asarray(results[1])] if self.is_lu else []), self.a.copy()]

    def measure(self, width: int, tiles: int, count: int) -> dict[str, Any]:
        """Seconds, whether two runs agree, and how far the factors are from those without lookahead."""
        with override("lookahead", width), override("tiles", tiles), streams(count):
            first, second = self.factors(), self.factors()
            same = all(bool((x == y).all()) for x, y in zip(first, second, strict=True))
            taken = seconds(self.run, self.prepare, self.repeats)
        self.expected = self.expected or first
        pairs = list(zip(first, self.expected, strict=True))
        pivots = all(bool((x == y).all()) for x, y in pairs[:-1])
        distance = float(abs(pairs[-1][0] - pairs[-1][1]).max() / abs(pairs[-1][1]).max())
        how = {"width": width, "tiles": tiles, "streams": count}
        outcome = {"seconds": taken, "same_bits": same, "same_pivots": pivots, "distance": distance}
        return {**self.facts, **how, **outcome}


def measurements(options: argparse.Namespace, flush: cupy.ndarray) -> Iterator[dict[str, Any]]:
    for n in map(int, options.sizes.split(",")):
        for routine in options.routines.split(","):
            for letter in options.letters:
                case = Case(routine, letter, n, flush)
                yield case.measure(0, 1, 1)
                for width in map(int, options.widths.split(",")):
                    for tiles in map(int, options.tiles.split(",")):
                        yield case.measure(width, tiles, 2)
                yield case.measure(width, 1, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--routines", default="getrf,potrf")
    parser.add_argument("--letters", default="ds")
    parser.add_argument("--sizes", default="1024,2048,4096,8192,16384")
    parser.add_argument("--widths", default="128,256")
    parser.add_argument("--tiles", default="1")
    parser.add_argument("--mode", choices=["tensor"])
    parser.add_argument("--shared", type=int, help="SHARED of panels of float32 Cholesky factors")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    flush, begin, results = cupy.empty(FLUSH, cupy.uint8), time.monotonic(), []
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    panel = None if options.shared is None else PotrfPanel("s", SHARED=options.shared)
    everywhere = deciding_by(tensor_getrf_min_order=0)
    with everywhere, set_math_mode(options.mode), override("potrf_panel", panel) if panel else nullcontext():
        for result in measurements(options, flush):
            results.append(result)
            print({key: round(x, 7) if isinstance(x, float) else x for key, x in result.items()}, flush=True)
            (options.out / "lookahead.json").write_text(
                json.dumps({"device": device, "lookahead": results}, indent=1)
            )
            if time.monotonic() - begin > options.seconds:
                break


if __name__ == "__main__":
    main()
