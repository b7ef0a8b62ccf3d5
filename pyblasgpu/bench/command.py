"""``pyblasgpu bench``: routine x dtype x variant x size, ours and cuBLAS in one process.

With ``--shapes`` products of other than square matrices, with ``--batched`` strided batches of them, with
``--rhs`` triangles and that number of right-hand sides; with ``--splits`` products with k in that number of
slices too, with ``--packed`` with operands both packed and unpacked. That is so whatever would be chosen, and
shows whether the choice is the best.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
from rich.progress import track
from rich.table import Table

from pyblasgpu.dispatch.overrides import override
from pyblasgpu.errors import BackendUnavailable, lacking
from pyblasgpu.frontend.backend_status import backend_status
from pyblasgpu.gpu.device import current
from pyblasgpu.options import OTHERS, ROUTINES
from pyblasgpu.terminal import console
from pyblasgpu.testing.cublas import Cublas
from pyblasgpu.testing.cublas import load as load_cublas
from pyblasgpu.testing.problems import Problem, fits
from pyblasgpu.types import DTYPES

from . import machine

#: Default folder of results: the checkout's, else ``results`` in the current folder.
RESULTS = (
    machine.ROOT / "benchmarks" / "results" if (machine.ROOT / "benchmarks").is_dir() else Path("results")
)
SCHEMA = 1
WIDTH = 140  # columns of a table that goes into a file or a pipe
PACKED = ("packed", "as they lie")  # how a product's operands are, with --packed

OURS, VENDOR = "ours", "cublas"
OUT_OF_PLACE = "cublas_out_of_place_tflops"
#: Columns of other ways to a result, by the key of a record.
OTHER_WAYS = {
    "out_of_place_tflops": "ours, out of place",
    OUT_OF_PLACE: "cuBLAS, out of place",
    "cublas_four_products_tflops": "cuBLAS, four products",
}

#: Lists of (m, n, k) by name.
SHAPES = {
    "awkward": (
        (8192, 8192, 32),
        (8192, 8192, 64),
        (8192, 8192, 128),
        (8192, 64, 8192),
        (8192, 16, 8192),
        (64, 64, 65536),
        (262144, 64, 64),
        (1000, 1000, 1000),
        (4097, 4099, 4101),
    ),
    # the products of a block LU of order n: the trailing matrix, and a panel by its triangle (Li et al.)
    "lu": tuple(
        shape for bs in (64, 128) for n in range(512, 6145, 512) for shape in ((n, n - bs, bs), (n, bs, bs))
    ),
    "between": (
        *((n, n, n) for n in (192, 448, 640, 1280, 3500)),
        (3000, 20, 3000),
        (3000, 56, 3000),
        (20, 3000, 3000),
        (5000, 5000, 48),
        (3000, 100, 3000),
    ),
    # where single products were furthest behind the vendor's
    "tail": (
        *((n, n, n) for n in (777, 900, 1100, 3000)),
        (999, 1001, 1003),
        (1535, 1537, 1539),
        (700, 900, 1100),
        (2048, 1984, 64),
        (6144, 6080, 64),
        (4096, 3968, 128),
        (8192, 8192, 256),
        (20000, 96, 3000),
        (300, 300, 20000),
        (2, 3000, 3000),
    ),
}


def main(options: argparse.Namespace) -> int:
    """Run what `options` (of `pyblasgpu.cli`) request; return 1 if a result is outside its error bound."""
    cases = requested(options)
    require_device()
    if options.plot:
        require_plots()
    device, cublas = current(), _cublas()
    document: dict[str, Any] = {"schema": SCHEMA, **machine.describe(device, cublas), "results": []}
    out = options.out or RESULTS / slug(device.name) / f"{document['date'][:10]}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    for problem in track(cases, "timing", console=console(stderr=True)):
        document["results"].append(measure(problem, cublas, options.splits, options.packed))
        # after every case: a run that is cut short keeps what it has
        out.write_text(json.dumps(document, indent=1) + "\n")
    _report(options, document, out)
    return 0 if all(result["error_over_bound"] <= 1 for result in document["results"]) else 1


def require_device() -> None:
    """Raise `BackendUnavailable`, with the reason, where nothing can be timed."""
    backend_status("cuda")
    try:
        import cupy  # noqa: F401 - for the arrays and the events
    except ImportError as missing:
        raise BackendUnavailable("the benchmarks need CuPy: pip install cupy-cuda13x") from missing


def require_plots() -> None:
    """Raise `BackendUnavailable` where nothing can be drawn: before hours of timing, not after them."""
    try:
        import_module("matplotlib")
    except ImportError as missing:
        raise BackendUnavailable(f"--plot: {lacking(missing, 'plot')}") from missing


def requested(options: argparse.Namespace) -> list[Problem]:
    batches = options.batched if "gemm" in options.routine else ()
    shape_lists = options.shapes or (), batches
    squares = options.routine, options.dtype, options.variants, options.sizes
    if not any((options.shapes, options.batched, options.rhs)):
        cases = list(problems(*squares))
    elif options.plot:
        raise ValueError("--plot draws square matrices: it goes with none of --shapes, --batched and --rhs")
    else:
        cases = [case for shapes in shape_lists for case in products(options.dtype, options.variants, shapes)]
        cases += triangles(*squares, options.rhs)
        if "trsm" in options.routine:
            cases += stacks(options.dtype, options.variants, options.batched)
    known = [(routine, dtype) for routine in (*ROUTINES, *OTHERS) for dtype in DTYPES.values()]
    for variant in options.variants:
        if not any(fits(*each, variant) for each in known):
            raise ValueError(f"--variants {variant} is one of no routine")
    if not cases:
        names, variants = ", ".join(options.routine), ",".join(options.variants)
        letters = ",".join(options.dtype)
        raise ValueError(f"--variants {variants}: {names} in {letters} has none of these")
    return cases


def products(
    dtypes: Sequence[str], variants: Sequence[str], shapes: str | Sequence[tuple[int, ...]]
) -> Iterator[Problem]:
    """A GEMM of each (m, n, k[, batch]) of `shapes`, a list or its name; variants of other routines are left
    out.
    """
    if isinstance(shapes, str):
        if shapes not in SHAPES:
            raise ValueError(f"shapes {shapes!r} are none of {', '.join(SHAPES)}")
        shapes = SHAPES[shapes]
    for letter in dtypes:
        for variant in variants:
            if fits("gemm", DTYPES[letter], variant):
                yield from (Problem.product(DTYPES[letter], variant, shape) for shape in shapes)


def problems(
    routines: Sequence[str], dtypes: Sequence[str], variants: Sequence[str], sizes: Sequence[int]
) -> Iterator[Problem]:
    """The cases, square; of the variants each routine takes its own."""
    for routine in routines:
        for letter in dtypes:
            for variant in variants:
                if fits(routine, DTYPES[letter], variant):
                    yield from (Problem.square(routine, DTYPES[letter], variant, n) for n in sizes)


def triangles(
    routines: Sequence[str],
    dtypes: Sequence[str],
    variants: Sequence[str],
    sizes: Sequence[int],
    rhs: Sequence[int],
) -> Iterator[Problem]:
    """The cases of TRMM and TRSM, each size with each number of right-hand sides."""
    routines = [routine for routine in ("trmm", "trsm") if routine in routines]
    for square, others in product(problems(routines, dtypes, variants, sizes), rhs):
        yield Problem.triangle(square.routine, square.dtype, square.variant, square.case.order, others)


def stacks(
    dtypes: Sequence[str], variants: Sequence[str], batches: Sequence[tuple[int, ...]]
) -> Iterator[Problem]:
    """Batches of TRSM: of each (n, n, n, batch), or (n, right-hand sides, n, batch), of `batches`."""
    for letter, variant, (n, others, order, count) in product(dtypes, variants, batches):
        if fits("trsm", DTYPES[letter], variant) and n == order:
            yield Problem.triangle("trsm", DTYPES[letter], variant, n, others, batch=(count,))


def measure(
    problem: Problem, cublas: Cublas | None, splits: tuple[int, ...] = (), packed: bool = False
) -> dict[str, Any]:
    """The record of one case; a product also with its k in each number of slices of `splits`, and on request
    for with its operands `packed`, and not.
    """
    from .timing import Rotation

    data = problem.data()
    rotation = Rotation(data)

    def call(x: Any) -> None:
        problem.ours(x, "cuda")

    elsewhere = partial(_elsewhere, {})
    others = problem.our_other_ways(elsewhere, "cuda")
    theirs = _ways_of(cublas, problem, elsewhere) if cublas else {}
    seconds = rotation.in_turn({OURS: call, **others, **theirs})
    rates = {way: problem.flops / spent / 1e12 for way, spent in seconds.items()}
    record = {
        "routine": problem.routine,
        "dtype": problem.dtype.letter,
        "variant": problem.variant,
        **{
            extent: getattr(problem.case, extent)
            for extent in ("m", "n", "k", "batch")
            if getattr(problem.case, extent, ())
        },
        "calls": len(rotation.sets),
        "seconds": seconds[OURS],
        "tflops": rates[OURS],
        **{f"{way}_tflops": rates[way] for way in others},
        "error_over_bound": problem.error(data, rotation.result(call)),
        "configs": problem.explain(),
    }
    if theirs:
        record |= {
            "cublas_seconds": seconds[VENDOR],
            **{f"{way}_tflops": rates[way] for way in theirs},
            "cublas_error_over_bound": problem.error(data, rotation.result(theirs[VENDOR])),
            "speedup": min(seconds[way] for way in theirs) / seconds[OURS],
        }
    return record | _forced(problem, rotation, call, splits, packed)


def _ways_of(
    cublas: Cublas, problem: Problem, elsewhere: Callable[[Any], Any]
) -> dict[str, Callable[[Any], None]]:
    """cuBLAS's call, then its other ways to the result."""
    others = problem.other_ways(cublas, elsewhere)
    return {
        VENDOR: lambda x: problem.cublas(cublas, x),
        **{f"{VENDOR}_{way}": run for way, run in others.items()},
    }


def _elsewhere(results: dict[int, Any], x: Any) -> Any:
    """Memory for a result, apart from the arrays of one call, made once."""
    if id(x) not in results:
        import cupy

        results[id(x)] = cupy.empty_like(x.out)
    return results[id(x)]


def _forced(
    problem: Problem, rotation: Any, call: Callable[[Any], None], splits: tuple[int, ...], packed: bool
) -> dict[str, Any]:
    """Rates of a product in other numbers of slices, and with its operands packed and not."""
    asked: dict[str, dict[str, Any]] = {
        "splits": {str(count): count for count in splits if not problem.case.batch},
        "packed": {how: how == "packed" for how in PACKED if packed},
    }
    rates: dict[str, Any] = {}
    for name, values in asked.items():
        for label, value in values.items() if problem.routine == "gemm" else ():
            with override(name, value):
                rate = problem.flops / rotation.seconds(call) / 1e12
            rates.setdefault(f"{name}_tflops", {})[label] = rate
    return rates


def _cublas() -> Cublas | None:
    try:
        return load_cublas()
    except BackendUnavailable as reason:
        console(stderr=True).print(f"without cuBLAS: {reason}")
        return None


def slug(name: str) -> str:
    """A device's name as that of a folder."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _report(options: argparse.Namespace, document: dict[str, Any], out: Path) -> None:
    if options.json:
        print(json.dumps(document))
    else:
        show(document)
    print(f"results in {out}", file=sys.stderr)
    if options.plot:
        from .plot import draw

        print(f"plot in {draw(document, out.with_suffix('.svg'))}", file=sys.stderr)


def extents(record: dict[str, Any]) -> str:
    """The order of square matrices; else all extents; after how many there are of them."""
    sides = [record[extent] for extent in ("m", "n", "k") if extent in record]
    matrix = str(sides[0]) if len(set(sides)) == 1 else " x ".join(map(str, sides))
    return " of ".join([*map(str, record.get("batch", ())), matrix])


def mean_speedups(records: Iterable[dict[str, Any]]) -> str:
    """Geometric means and least of ours / cuBLAS, a dtype each."""
    ratios: dict[str, list[float]] = {}
    for record in records:
        if "speedup" in record:
            ratios.setdefault(record["dtype"], []).append(record["speedup"])
    return ", ".join(
        f"{letter} {geometric_mean(of_dtype):.3f} ({min(of_dtype):.3f})"
        for letter, of_dtype in ratios.items()
    )


def _other_rates(record: dict[str, Any], columns: Iterable[str]) -> Iterator[float]:
    """TFLOP/s of a product in each number of slices, packed and not, and of other ways; NaN where that was
    not timed.
    """
    rates = {f"{count} splits": rate for count, rate in record.get("splits_tflops", {}).items()}
    rates |= record.get("packed_tflops", {})
    rates |= {label: record[key] for key, label in OTHER_WAYS.items() if key in record}
    return (rates.get(column, np.nan) for column in columns)


def show(document: dict[str, Any]) -> None:
    """Print a table of the results, the ratios to cuBLAS's best way, and their means."""
    table = Table(title=f"{document['device']}, TFLOP/s")
    counts = list(
        dict.fromkeys(count for record in document["results"] for count in record.get("splits_tflops", ()))
    )
    columns = [f"{count} splits" for count in counts]
    if any("packed_tflops" in record for record in document["results"]):
        columns += PACKED
    columns += [
        label for key, label in OTHER_WAYS.items() if any(key in record for record in document["results"])
    ]
    for name in ("call", "n", "ours", "cuBLAS", "ours / cuBLAS", "error/bound", *columns):
        table.add_column(name, justify="left" if name == "call" else "right")
    for record in document["results"]:
        table.add_row(
            f"{record['dtype']}{record['routine']} {record['variant']}",
            extents(record),
            f"{record['tflops']:.2f}",
            f"{record.get('cublas_tflops', np.nan):.2f}",
            f"{record.get('speedup', np.nan):.2f}",
            f"{record['error_over_bound']:.2g}",
            *(f"{rate:.2f}" for rate in _other_rates(record, columns)),
        )
    page = console(WIDTH)
    page.print(table)
    if means := mean_speedups(document["results"]):
        page.print(f"geometric mean (least) of ours / the best of cuBLAS: {means}")
