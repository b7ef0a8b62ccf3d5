"""Time Configs between the classes: ``python tuning/time_products.py OUT.products.gz [--points 40] ...``

In each dtype and layout products are drawn, m, n and k from 40 to 5800 and half of them odd. Those of
`SHAPES` are timed too: low rank, long k, few rows. At each the likeliest Configs are timed, in the numbers of
slices that are estimated to be the fastest. What `OUT.products.gz` has already is kept, but for products
timed anew. `database_from_sweeps` takes the file as a section of the device's. Lower triangles of C, as
rank-k updates compute them, and trapezoids, which panels of Cholesky factors subtract, have points of their
own.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from pyblasgpu import database
from pyblasgpu.database import families_of
from pyblasgpu.dispatch.gemm import Candidate, estimates
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.dispatch.product_kinds import GemmProblem
from pyblasgpu.dispatch.throughput_model import LOWER, config_name, contiguous_alignment
from pyblasgpu.gpu.device import Device, current
from pyblasgpu.operands import Operand
from pyblasgpu.routines.launch_list import ALPHA, BETA, LaunchList, cached_launch_list
from pyblasgpu.routines.level3.gemm import emit_gemm
from pyblasgpu.terminal import guarded
from pyblasgpu.tuning.measure import Timer, Workload
from pyblasgpu.types import DTYPES, Region

LAYOUTS = "nn", "nt", "tn", "tt"
SHAPES = (
    (4096, 3968, 128), (8192, 8192, 128), (3000, 1000, 100), (300, 300, 20000), (20000, 96, 3000),
    (2, 3000, 3000), (777, 777, 777), (1333, 1333, 1333), (3000, 3000, 3000),
)  # fmt: skip
TRAPEZOIDS = tuple((m, k, k) for k in (128, 256) for m in (2000, 4000, 8064))
SQUARES = tuple((n, n, n) for n in (256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192))
STACKS = tuple((n, n, n, count) for n, count in ((32, 4096), (64, 1024), (128, 256), (256, 64), (512, 32)))
SMALLEST, OCTAVES = 40, 7.2  # of an extent, and factors of two up to the largest
MOST_WORK = 1e10  # m n k: longer products are near those of classes
CLOSE, MOST, LEAST = 1.45, 10, 4  # times the best estimate; Configs of a product
STREAM = 0

Key = tuple[str, str, str, str]


def drawn(letter: str, layout: str, count: int) -> Iterator[tuple[int, int, int]]:
    """Extents of `count` products, the same ones each time."""
    chance = random.Random(letter + layout)
    while count:
        m, n, k = (int(SMALLEST * 2 ** chance.uniform(0, OCTAVES)) for _ in range(3))
        m, n, k = (extent if chance.random() < 0.5 else max(extent // 8, 1) * 8 for extent in (m, n, k))
        if m * n * k * DTYPES[letter].flops_per_fma <= 2 * MOST_WORK:
            count -= 1
            yield m, n, k


def problem_of(letter: str, layout: str, extents: tuple[int, ...], region: Region) -> GemmProblem:
    """A product of contiguous operands, or the lower triangle of one; a trapezoid is added to C."""
    dtype, no = DTYPES[letter], (False, False)
    aligned = contiguous_alignment(layout, extents, dtype)
    stems = families_of("gemm", letter)
    adds = region is not Region.ALL and extents[0] > extents[1]
    return GemmProblem(stems, dtype, layout, extents, region, None, no, False, aligned, no, False, None, adds)


def lower(alpha: Any, a: Operand, b: Operand, beta: Any, c: Operand, stream: int) -> None:
    """Compute the lower triangle of A B, or subtract a lower trapezoid of it from C."""
    launches, alpha = cached_launch_list(_emit_lower, (a, b, c), ()), -1.0 if c.rows > c.cols else 1.0
    launches.run([each.pointer for each in (a, b, c)], alpha, 1.0, stream=stream)


def _emit_lower(launches: LaunchList, a: Operand, b: Operand, c: Operand) -> None:
    emit_gemm(launches, ALPHA, a, b, BETA if c.rows > c.cols else 0.0, c, Region.LOWER)


def likeliest(problem: GemmProblem, device: Device) -> list[Candidate]:
    """The candidates near the best by estimate, each Config in one or two numbers of slices; k is whole where
    a region of C is computed.
    """
    may_slice = problem.region is Region.ALL
    candidates = (each for each in estimates(problem, device) if may_slice or each.splits <= 1)
    ordered = sorted(candidates, key=lambda each: each.seconds)
    near: dict[Any, list[Candidate]] = {}
    for each in ordered:
        of_config = near.setdefault(each.config, [])
        if len(of_config) < 2 and (each.seconds < CLOSE * ordered[0].seconds or len(near) <= LEAST):
            of_config.append(each)
    return [each for of_config in near.values() for each in of_config][:MOST]


def rates(
    letter: str,
    layout: str,
    extents: tuple[int, ...],
    timer: Any,
    workload: Any,
    run: Any,
    device: Device,
    region: Region = Region.ALL,
) -> Iterator[tuple[Key, str, float]]:
    """The place, the Config's name and the TFLOP/s of each candidate at `extents`."""
    dtype = DTYPES[letter]
    rotation, best = workload.products(run, dtype, layout, extents), math.inf
    point = "x".join(map(str, extents)) + LOWER * (region is not Region.ALL)
    for candidate in likeliest(problem_of(letter, layout, extents, region), device):
        config, splits = candidate.config, candidate.splits
        with ExitStack() as stack:  # slices first: a Config alone leaves k whole
            for name, value in (("splits", splits), (config.STEM, config)):
                stack.enter_context(override(name, value))
            seconds = timer(rotation, best)
        best = min(best, seconds)
        rate = dtype.flops_per_fma * math.prod(extents) / seconds / 1e12
        name = config_name(config) + f"*{splits}" * (splits > 1)
        yield (config.STEM, letter, layout, point), name, rate


def read(path: Path) -> dict[Key, dict[str, float]]:
    """The rates of a file, as documents have them."""
    raw = {"schema": database.SCHEMA, "device": path.name, **json.loads(gzip.decompress(path.read_bytes()))}
    return database.parse(json.dumps(raw).encode()).products


def write(path: Path, products: dict[Key, dict[str, float]]) -> None:
    """Write a file of rates, sorted, to four digits."""
    section = json.loads(database.dumps(database.Document(path.name, products=products)))["products"]
    text = json.dumps({"products": section}, indent=1)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def main(out: Path, letters: str, points: int, timer: Any, workload: Any, run: Any, device: Device) -> None:
    """Time all products, and write after each layout what there is."""
    products = read(out) if out.exists() else {}
    for letter in letters:
        for layout in LAYOUTS:
            has_trapezoids = layout == "nt" and not DTYPES[letter].is_complex
            parts = [*SQUARES, *STACKS, *TRAPEZOIDS * has_trapezoids]
            all_of_c = [(each, run, Region.ALL) for each in (*SHAPES, *drawn(letter, layout, points))]
            for extents, call, region in (*all_of_c, *((each, lower, Region.LOWER) for each in parts)):
                anew: dict[Key, dict[str, float]] = {}
                timed = rates(letter, layout, extents, timer, workload, call, device, region)
                for key, name, rate in timed:
                    anew.setdefault(key, {})[name] = rate
                products |= anew
            write(out, products)


def _command() -> int:
    from pyblasgpu.frontend.calls.call import routine

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--points", type=int, default=40)
    parser.add_argument("--dtypes", default="sdcz")
    options = parser.parse_args()
    device = current(0)
    timer, workload = Timer(device, STREAM), Workload(device.ordinal, STREAM)
    main(options.out, options.dtypes, options.points, timer, workload, routine("gemm"), device)
    return 0


if __name__ == "__main__":
    sys.exit(guarded(["tuning/time_products.py"], _command))
