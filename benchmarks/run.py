"""``pyblasgpu bench``: routine x dtype x variant x size, ours and cuBLAS in one process."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from pyblasgpu.cublas import Cublas
from pyblasgpu.cublas import load as load_cublas
from pyblasgpu.errors import BackendUnavailable
from pyblasgpu.execution import backend_status
from pyblasgpu.gpu.device import current
from pyblasgpu.problems import Problem
from pyblasgpu.types import DTYPES

from . import machine

RESULTS = Path(__file__).parent / "results"
SCHEMA = 1


def main(options: argparse.Namespace) -> int:
    """Run what `options` (of `pyblasgpu.cli`) ask for; 1 if a result is outside its error bound."""
    backend_status("cuda")  # raises BackendUnavailable, with the reason
    try:
        import cupy  # noqa: F401 - for the arrays and the events
    except ImportError as missing:
        raise BackendUnavailable("the benchmarks need CuPy: pip install cupy-cuda13x") from missing
    cases = list(problems(options.routine, options.dtype, options.variants, options.sizes))
    if not cases:
        raise ValueError(f"no routine of {options.routine} has a variant of {options.variants}")
    device, cublas = current(), _cublas()
    document: dict[str, Any] = {"schema": SCHEMA, **machine.describe(device, cublas), "results": []}
    out = options.out or RESULTS / _slug(device.name) / f"{document['date'][:10]}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    for problem in track(cases, "timing", console=Console(stderr=True)):
        document["results"].append(measure(problem, cublas))
        # after every case: a run that is cut short keeps what it has
        out.write_text(json.dumps(document, indent=1) + "\n")
    _report(options, document, out)
    return 0 if all(result["error_over_bound"] <= 1 for result in document["results"]) else 1


def problems(routines, dtypes, variants, sizes) -> Iterator[Problem]:
    """The cases, square; a variant of two letters is GEMM's, one of four TRMM's and TRSM's."""
    for routine in routines:
        for letter in dtypes:
            for variant in variants:
                if (len(variant) == 2) == (routine == "gemm"):
                    yield from (Problem.square(routine, DTYPES[letter], variant, n) for n in sizes)


def measure(problem: Problem, cublas: Cublas | None) -> dict[str, Any]:
    """The record of one case."""
    from .timing import Rotation

    given = problem.data()
    rotation = Rotation(given)
    ours = rotation.seconds(lambda x: problem.ours(x, "cuda"))
    error = problem.error(given, rotation.sets[-1].out.get(order="A"))
    record = {
        "routine": problem.routine,
        "dtype": problem.dtype.letter,
        "variant": problem.variant,
        "n": problem.case.n,
        "calls": len(rotation.sets),
        "seconds": ours,
        "tflops": problem.flops / ours / 1e12,
        "error_over_bound": error,
        "configs": problem.explain(),
    }
    if cublas is not None:
        rival = rotation.seconds(lambda x: problem.cublas(cublas, x))
        record |= {
            "cublas_seconds": rival,
            "cublas_tflops": problem.flops / rival / 1e12,
            "cublas_error_over_bound": problem.error(given, rotation.sets[-1].out.get(order="A")),
            "speedup": rival / ours,
        }
    return record


def _cublas() -> Cublas | None:
    try:
        return load_cublas()
    except BackendUnavailable as reason:
        Console(stderr=True).print(f"without cuBLAS: {reason}")
        return None


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _report(options: argparse.Namespace, document: dict[str, Any], out: Path) -> None:
    if options.json:
        print(json.dumps(document))
    else:
        _show(document)
    print(f"results in {out}", file=sys.stderr)
    if options.plot:
        from .plot import draw

        print(f"plot in {draw(document, out.with_suffix('.svg'))}", file=sys.stderr)


def _show(document: dict[str, Any]) -> None:
    table = Table(title=f"{document['device']}, TFLOP/s")
    for name in ("call", "n", "ours", "cuBLAS", "ours / cuBLAS", "error/bound"):
        table.add_column(name, justify="left" if name == "call" else "right")
    for record in document["results"]:
        rival = record.get("cublas_tflops", np.nan)
        table.add_row(
            f"{record['dtype']}{record['routine']} {record['variant']}",
            str(record["n"]),
            f"{record['tflops']:.2f}",
            f"{rival:.2f}",
            f"{record['tflops'] / rival:.2f}",
            f"{record['error_over_bound']:.2g}",
        )
    Console().print(table)
