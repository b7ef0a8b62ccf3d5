"""Batches of small matrices beside torch.linalg's: factors, solutions, inverses.

``python -m benchmarks.batched --out DIR [--letters sd] [--orders 4 8 ...] [--routines potrf ...]`` prints
microseconds of a call, medians of CUDA events, the L2 cache emptied before each. Both sides are called on the
same PyTorch tensors; neither waits for the device, which is kept busy until the host has enqueued the call.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from datetime import date
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

from pyblasgpu import lapack
from pyblasgpu.bench import machine
from pyblasgpu.bench.command import require_device
from pyblasgpu.terminal import guarded

try:
    import torch
except ImportError:  # `main` says so
    torch = None

ORDERS = (4, 8, 16, 32, 64, 128, 256)
ELEMENTS, MOST, LEAST = 1 << 22, 20_000, 64  # of a batch, and matrices of it
ROUNDS, BUSY_CYCLES, FLUSH = 5, 4_000_000, 128 << 20
UNIT_ORDERS = (16, 128)  # of the unit triangles that are inverted

Call = Callable[[], Any]


def matrices(letter: str, n: int, device: str) -> Any:
    """Symmetric, definite and well conditioned."""
    count = min(max(ELEMENTS // n**2, LEAST), MOST)
    torch.manual_seed(n)
    a = torch.rand((count, n, n), dtype=_dtype(letter), device=device) - 0.5
    return a @ a.mH / n + torch.eye(n, dtype=a.dtype, device=device)


def _dtype(letter: str) -> Any:
    return {"s": torch.float32, "d": torch.float64, "c": torch.complex64, "z": torch.complex128}[letter]


def calls(routine: str, letter: str, a: Any) -> tuple[Call, Call]:
    """Ours and PyTorch's, on the batch `a`."""
    ours, n = getattr(lapack, letter + routine.split(",")[0]), a.shape[-1]
    right, solve = torch.ones_like(a[..., :4]), torch.linalg.solve_triangular
    if routine == "potrf":
        return lambda: ours(a, lower=1), lambda: torch.linalg.cholesky_ex(a)
    if routine == "potrs":
        factor = torch.linalg.cholesky(a)
        return lambda: ours(factor, right, lower=1), lambda: torch.cholesky_solve(right, factor)
    if routine == "getrf":
        return lambda: ours(a), lambda: torch.linalg.lu_factor_ex(a)
    if routine == "getrs":
        factors, (lu, pivots) = getattr(lapack, letter + "getrf")(a), torch.linalg.lu_factor(a)
        return lambda: ours(*factors[:2], right), lambda: torch.linalg.lu_solve(lu, pivots, right)
    if routine == "gesv":
        return lambda: ours(a, right), lambda: torch.linalg.solve_ex(a, right)
    unit, eye = routine.endswith("unit"), torch.eye(n, dtype=a.dtype, device=a.device)
    triangle = torch.linalg.cholesky(a).tril(-1) * n**-0.5 + eye
    return (
        lambda: ours(triangle, lower=1, unitdiag=int(unit)),
        lambda: solve(triangle, eye, upper=False, unitriangular=unit),
    )


ROUTINES = ("potrf", "potrs", "getrf", "getrs", "gesv", "trtri", "trtri, unit")


def microseconds(call: Call, flush: Any) -> float:
    """Of one call, on the device."""
    times = []
    for _ in range(ROUNDS + 2):
        flush.zero_()
        torch.cuda._sleep(BUSY_CYCLES)
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) * 1e3)
    return median(times[2:])


def difference(ours: Any, theirs: Any) -> float:
    """Of the lower triangles of both results, beside the largest element."""
    x, y = (each[0] if isinstance(each, tuple) else each for each in (ours, theirs))
    x, y = x.tril(), y.tril()
    return float(abs(x - y).max() / abs(y).max())


def rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row of results for each case."""
    flush = torch.empty(FLUSH, dtype=torch.uint8, device="cuda")
    for letter in options.letters:
        for n in options.orders:
            a = matrices(letter, n, "cuda")
            for routine in options.routines:
                if routine.endswith("unit") and not UNIT_ORDERS[0] <= n <= UNIT_ORDERS[1]:
                    continue
                ours, theirs = calls(routine, letter, a)
                row = {"routine": routine, "dtype": letter, "n": n, "count": len(a)}
                if routine not in ("getrs", "gesv"):  # whose results are elsewhere, and tested
                    row["difference"] = difference(ours(), theirs())
                row["ours_us"], row["torch_us"] = (microseconds(call, flush) for call in (ours, theirs))
                yield {**row, "ratio": row["torch_us"] / row["ours_us"]}


def summary(results: list[dict[str, Any]]) -> Iterator[str]:
    """Geometric means of the ratios, and the least."""
    for name, letter in dict.fromkeys((row["routine"], row["dtype"]) for row in results):
        ratios = [r["ratio"] for r in results if (r["routine"], r["dtype"]) == (name, letter)]
        mean = exp(sum(map(log, ratios)) / len(ratios))
        yield f"{letter}{name}: mean {mean:.2f}, least {min(ratios):.2f}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--letters", default="sd")
    parser.add_argument("--orders", nargs="*", type=int, default=ORDERS)
    parser.add_argument("--routines", nargs="*", default=ROUTINES, choices=ROUTINES)
    parser.add_argument("--seconds", type=float, default=60, help="after which no case is begun")
    options = parser.parse_args(arguments)
    require_device()
    if torch is None:
        raise SystemExit("needs PyTorch")
    begin, results = time.monotonic(), []
    options.out.mkdir(parents=True, exist_ok=True)
    for row in rows(options):
        results.append(row)
        print({k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in row.items()}, flush=True)
        made = {"device": torch.cuda.get_device_name(), "date": date.today().isoformat()}
        document = {**made, "commit": machine.commit(), "results": results}
        (options.out / "batched.json").write_text(json.dumps(document, indent=1))
        if time.monotonic() - begin > options.seconds:
            print("out of time")
            break
    print(*summary(results), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(guarded(["benchmarks.batched"], lambda: main(sys.argv[1:])))
